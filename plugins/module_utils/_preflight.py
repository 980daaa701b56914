# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Joins node and policy: reads everything that a verdict needs, and judges it.

`validate` is what the modules and the guard call. `_mapping` does the same for data from any source; both end in
`_policy.evaluation.evaluate`.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field, replace

from ._node.boot import BootFacts, read_boot_facts
from ._node.cgroup import read_cgroups
from ._node.configuration import parse_document, read_inputs
from ._node.history import HISTORY_FILE, UNKNOWN_BOOT, HistoryReading, read_history
from ._node.kubelet import MANAGED, KubeletFacts, find_kubelet
from ._node.lost_settings import lost_settings
from ._node.pods import guaranteed_pods, pod_names
from ._node.root import HostRoot, NodeError, NotFound, PermissionMissing
from ._node.settings import TOLERANCE_FILE, guard_tolerance
from ._node.topology import TopologyReading, read_machine
from ._policy.configuration import (
    Document,
    EffectiveConfiguration,
    KubeletConfiguration,
    effective_configuration,
)
from ._policy.configuration_findings import fault_finding
from ._policy.evaluation import NOT_APPLICABLE, Evaluation, evaluate
from ._policy.findings import Finding, info, warning
from ._policy.hints import BootContext
from ._policy.history import (
    Totals,
    cumulative_drift,
    cumulative_findings,
    last_of_another_boot,
    machine_totals,
    recorded_totals,
)
from ._policy.kubelet_start import CgroupFacts, start_findings
from ._policy.machine import MachineInfo
from ._policy.reservation import (
    MEMORY_AVAILABLE,
    ReservationError,
    ResourceList,
    node_allocatable_reservation,
    static_validation,
)
from ._policy.static_policy import MATCH, TOLERABLE
from ._policy.subject import STATIC, StateFile, Subject
from ._policy.tolerance import OPTION, ToleranceError, ToleranceSetting, derive_bound, parse_tolerance
from ._request import InputError, Request

STATE_FILE_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True)
class NodeReading:
    """A node as it was read, ready to be judged."""

    root: HostRoot
    subject: Subject
    kubelet: KubeletFacts
    boot: BootFacts
    effective: EffectiveConfiguration
    tolerance: ToleranceSetting
    tolerance_source: str
    not_applicable: t.Optional[str] = None
    managed: bool = False
    history: HistoryReading = HistoryReading()  # noqa: RUF009
    cgroups: CgroupFacts = CgroupFacts("none")  # noqa: RUF009
    machine_findings: t.Tuple[Finding, ...] = ()
    """Those that do not come from the configuration."""


@dataclass(frozen=True)
class Report:
    """A reading and what became of it."""

    reading: NodeReading
    evaluation: Evaluation
    pod_names: t.Mapping[str, str] = field(default_factory=dict)


def validate(request: Request) -> Report:
    """Read and judge a node.

    :raises NodeError: with the path, if something cannot be read (PermissionMissing: without the rights)
    :raises InputError: if an argument cannot be used
    """
    reading = read_node(request)
    return with_pod_names(Report(reading, judge_reading(reading)))


def with_pod_names(report: Report) -> Report:
    """The report with the names of the pods that have assignments, as far as the node's files tell them."""
    state = report.evaluation.state
    uids = sorted((state.entries or {}) if state else ())
    return replace(report, pod_names=pod_names(report.reading.root, report.reading.kubelet.root_dir, uids))


def read_node(request: Request) -> NodeReading:
    """Everything that a verdict needs, in one pass. Raises as `validate`."""
    root = HostRoot(request.host_root)
    kubelet = find_kubelet(root, request.overrides)
    effective = effective_configuration(read_inputs(root, kubelet), kubelet.version, _candidate(request))
    configuration = effective.configuration
    boot = read_boot_facts(root)
    history = read_history(root)
    tolerance, source = _tolerance(root, request, configuration)
    not_applicable = None if kubelet.found else "there is no kubelet on this node"
    topology = TopologyReading(MachineInfo(())) if not_applicable else read_machine(root)
    machine = topology.machine
    state_file = StateFile(request.state_file or kubelet.state_file)
    if not not_applicable:
        state_file = replace(state_file, content=_state_content(root, state_file.path))
        _require_iomem(root, boot, tolerance, configuration)
    subject = Subject(
        machine=machine,
        state_file=state_file,
        release=kubelet.version,
        listed_gates=kubelet.known_gates,
        iomem=boot.iomem.value,
        iomem_reason=boot.iomem.reason,
        memory_block_size=boot.memory_block_size_bytes.value,
        kernel_release=boot.kernel_release.value,
        context=BootContext(previous=last_of_another_boot(history.records, boot.boot_id.value or UNKNOWN_BOOT)),
        findings=topology.findings + _restart_pending(kubelet) + lost_settings(root),
    )
    managed = kubelet.layout in MANAGED
    reading = NodeReading(root, subject, kubelet, boot, effective, tolerance, source, not_applicable, managed, history)
    reading = replace(reading, machine_findings=subject.findings, cgroups=read_cgroups(root))
    return with_configuration(reading, effective)


def with_configuration(reading: NodeReading, effective: EffectiveConfiguration) -> NodeReading:
    """The same node with another configuration, such as one that is yet to be written."""
    configuration = effective.configuration
    reservation, more = _reservation(configuration, reading.subject.machine)
    stops = start_findings(configuration, reading.cgroups) if reading.kubelet.found else ()
    subject = replace(
        reading.subject,
        policy=configuration.memory_manager_policy,
        reserved_memory=configuration.reserved_memory,
        reservation=reservation,
        policy_options=configuration.memory_manager_policy_options,
        feature_gates=configuration.feature_gates,
        overridden_gates=configuration.overridden_gates,
        gate_sources=configuration.sources,
        findings=reading.kubelet.findings + effective.findings + more + stops + reading.machine_findings,
    )
    return replace(reading, subject=subject, effective=effective)


def judge_reading(reading: NodeReading) -> Evaluation:
    """The evaluation of a reading; a node without a kubelet, or with one that manages its own state, is not judged."""
    if reading.not_applicable:
        finding = info("no_kubelet", f"Nothing to judge: {reading.not_applicable}.")
        return Evaluation(NOT_APPLICABLE, None, (finding,) + reading.subject.findings)
    evaluation = evaluate(reading.subject, reading.tolerance)
    if reading.managed and not any(finding.stops_start for finding in reading.subject.findings):
        finding = info(
            "managed_state",
            f"{reading.kubelet.layout} manages this node's kubelet and its state file itself; what could be read is "
            "listed, nothing is judged or changed.",
        )
        return replace(evaluation, verdict=NOT_APPLICABLE, findings=(finding,) + evaluation.findings)
    return _with_history(reading, _with_running_pods(reading, evaluation))


def _with_history(reading: NodeReading, evaluation: Evaluation) -> Evaluation:
    """Slow loss: what adds up over the boots of an epoch to more than the bound, though each drift was within it."""
    distances = distance_to_first_baseline(reading, evaluation) if evaluation.verdict in (MATCH, TOLERABLE) else {}
    findings = cumulative_findings(distances, evaluation.bound.bytes)
    return replace(evaluation, findings=evaluation.findings + findings + _history_findings(reading.history))


def distance_to_first_baseline(reading: NodeReading, evaluation: Evaluation) -> Totals:
    """Bytes by NUMA node; empty where there is no state, or where the history does not know the file."""
    if evaluation.state is None:
        return {}
    totals = recorded_totals(evaluation.state.nodes)
    return cumulative_drift(reading.history.records, totals, machine_totals(reading.subject.machine))


def _history_findings(history: HistoryReading) -> t.Tuple[Finding, ...]:
    if history.problem is not None:
        return (
            info("history_unreadable", f"Drift over many boots is not judged: {history.problem}.", path=HISTORY_FILE),
        )
    if not history.damaged:
        return ()
    text = f"{HISTORY_FILE}: {history.damaged} lines are no records and are left out. Find out who edited the file."
    return (warning("history_damaged", text, path=HISTORY_FILE),)


def _with_running_pods(reading: NodeReading, evaluation: Evaluation) -> Evaluation:
    pods = guaranteed_pods(reading.root) if evaluation.verdict == "absent" else ()
    if not pods:
        return evaluation
    finding = warning(
        "pods_without_state",
        "There is no state file, but {0} Guaranteed pods run ({1}): their assignments are lost, and the kubelet may "
        "give their memory to others. Drain the node to place them again.".format(len(pods), ", ".join(pods[:3])),
        path=reading.subject.state_file.path,
        pod_uid=pods[0],
    )
    return replace(evaluation, findings=evaluation.findings + (finding,))


def _candidate(request: Request) -> t.Optional[Document]:
    if not request.candidate_config:
        return None
    return parse_document("candidate_config", request.candidate_config.encode("utf-8"))


def _tolerance(root: HostRoot, request: Request, configuration: KubeletConfiguration) -> t.Tuple[ToleranceSetting, str]:
    """(setting, where it comes from): argument, guard, configuration, `auto`."""
    if request.tolerance:
        return parse_argument(request.tolerance), "argument"
    text = guard_tolerance(root)
    if text is not None:
        try:
            return parse_tolerance(text), "guard"
        except ToleranceError as error:
            raise NodeError(f"{root.display(TOLERANCE_FILE)}: {error}. Correct the file.") from None
    option = configuration.memory_manager_policy_options.get(OPTION)
    if option is not None:
        try:
            return parse_tolerance(option), "configuration"
        except ToleranceError:
            # A finding where the kubelet reads the option; what it does with the drift is the exact comparison.
            return ToleranceSetting("off"), "configuration"
    return ToleranceSetting("auto"), "default"


def parse_argument(text: t.Any) -> ToleranceSetting:
    """The argument `tolerance`.

    :raises InputError: with the kubelet's words for a bad value
    """
    if not isinstance(text, str):
        raise InputError(f"tolerance is {text!r}, it has to be text; off stands in quotes in YAML")
    try:
        return parse_tolerance(text)
    except ToleranceError as error:
        raise InputError(f"tolerance is {text!r}: {error}. It takes auto, off or a quantity such as 128Mi.") from None


def _state_content(root: HostRoot, path: str) -> t.Optional[bytes]:
    try:
        return root.read_bytes(path, STATE_FILE_LIMIT)
    except NotFound:
        return None


def _require_iomem(
    root: HostRoot, boot: BootFacts, tolerance: ToleranceSetting, configuration: KubeletConfiguration
) -> None:
    """Without the rights to read /proc/iomem no bound may be guessed; where no bound is needed it does not matter."""
    if not tolerance.is_auto or configuration.memory_manager_policy != STATIC:
        return
    if boot.iomem.denied:
        raise PermissionMissing(boot.iomem.reason)
    bound = derive_bound(tolerance, boot.iomem.value, boot.iomem.reason)
    if bound.unavailable == "hidden" and root.is_live and os.geteuid() != 0:
        raise PermissionMissing(bound.reason or "")


def _reservation(
    configuration: KubeletConfiguration, machine: MachineInfo
) -> t.Tuple[t.Optional[ResourceList], t.Tuple[Finding, ...]]:
    """What Node Allocatable reserves, and the findings of the checks on the way to it."""
    faults = tuple(map(fault_finding, static_validation(configuration.reserved_memory)))
    try:
        reservation = node_allocatable_reservation(configuration, machine.memory_capacity or 0)
    except ReservationError as error:
        return None, faults + (fault_finding(error.fault),)
    threshold = (configuration.eviction_hard or {}).get(MEMORY_AVAILABLE, "")
    if configuration.memory_manager_policy == STATIC and threshold.endswith("%") and threshold not in ("0%", "100%"):
        faults += (_percentage_finding(threshold, configuration),)
    return reservation, faults


def _percentage_finding(threshold: str, configuration: KubeletConfiguration) -> Finding:
    return warning(
        "eviction_percentage",
        f"evictionHard {MEMORY_AVAILABLE} is {threshold}: a share of the capacity, which itself changes at every boot, "
        "so that no reservedMemory can add up to it for long. Use an amount.",
        field="evictionHard." + MEMORY_AVAILABLE,
        found=threshold,
        path=configuration.sources.get("evictionHard." + MEMORY_AVAILABLE),
    )


def _restart_pending(kubelet: KubeletFacts) -> t.Tuple[Finding, ...]:
    if not kubelet.changed_flags:
        return ()
    return (
        warning(
            "restart_pending_change",
            "The running kubelet was started with other flags than its unit has now: {0}. The next start uses those on "
            "disk.".format(", ".join(kubelet.changed_flags)),
            field=", ".join(kubelet.changed_flags),
        ),
    )
