# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Joins node and policy: reads everything that a verdict needs, judges it, and presents the answer.

`validate` is what the modules and the guard call, `evaluate_mapping` what the filter calls; both end in the same
`_policy.evaluation.evaluate`. Dicts are made here and nowhere deeper.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import typing as t
from dataclasses import dataclass, field, replace

from ._node.boot import BootFacts, read_boot_facts
from ._node.cgroup import read_cgroups
from ._node.configuration import parse_document, read_inputs
from ._node.history import HISTORY_FILE, UNKNOWN_BOOT, HistoryReading, read_history
from ._node.kubelet import MANAGED, KubeletFacts, KubeletOverrides, find_kubelet
from ._node.pods import guaranteed_pods, pod_names
from ._node.root import HostRoot, NodeError, NotFound, PermissionMissing
from ._node.settings import TOLERANCE_FILE, guard_tolerance
from ._node.topology import TopologyReading, read_machine
from ._policy.configuration import (
    Document,
    EffectiveConfiguration,
    KubeletConfiguration,
    MemoryReservation,
    effective_configuration,
)
from ._policy.evaluation import (
    NOT_APPLICABLE,
    STATIC,
    Evaluation,
    StateFile,
    Subject,
    evaluate,
    fault_finding,
)
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
from ._policy.machine import HugePagesInfo, MachineInfo, NumaNode
from ._policy.notifier import CgroupFacts, start_findings
from ._policy.quantity import parse_quantity
from ._policy.release import parse_release
from ._policy.reservation import (
    MEMORY_AVAILABLE,
    ReservationError,
    ResourceList,
    node_allocatable_reservation,
    static_validation,
)
from ._policy.state import MachineState, MemoryManagerState
from ._policy.static_policy import MATCH, REFUSE, TOLERABLE
from ._policy.tolerance import OPTION, ToleranceError, ToleranceSetting, derive_bound, parse_tolerance
from ._policy.units import mebibytes

STATE_FILE_LIMIT = 64 * 1024 * 1024


class InputError(ValueError):
    """An argument that cannot be used; the message names it, its value and the next step."""


@dataclass(frozen=True)
class Request:
    """What is asked of a node. Empty values mean: find out.

    `candidate_config` is the text of a KubeletConfiguration that would be merged last ("what if").
    """

    host_root: str = "/"
    tolerance: t.Optional[str] = None
    state_file: t.Optional[str] = None
    overrides: KubeletOverrides = field(default_factory=KubeletOverrides)
    candidate_config: t.Optional[str] = None


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


# --- a node ----------------------------------------------------------------------------------------------------------


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
        findings=topology.findings + _restart_pending(kubelet),
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


# --- data from any source --------------------------------------------------------------------------------------------


def evaluate_mapping(
    data: t.Mapping[str, t.Any], kubelet_version: str = "", tolerance: str = "auto"
) -> t.Dict[str, t.Any]:
    """Judge a mapping with the keys of the vectors (filter `memmgr_evaluate`).

    :returns: what the module `memmgr_validate` returns of it, plus `machine_state_after`
    :raises InputError: if a key is missing or has another type than documented
    """
    subject = subject_from_mapping(data, kubelet_version)
    setting = parse_argument(tolerance)
    evaluation = evaluate(subject, setting)
    result = present(evaluation, subject, {})
    result["tolerance"] = {"value": setting.text, "source": "argument"}
    after = evaluation.machine_state_after
    result["machine_state_after"] = None if after is None else present_machine_state(after)
    return result


def subject_from_mapping(data: t.Mapping[str, t.Any], kubelet_version: str) -> Subject:
    """The subject of a mapping. Raises as `evaluate_mapping`."""
    if not isinstance(data, dict):
        raise InputError(f"memmgr_evaluate takes a mapping, not {type(data).__name__}")
    reader = _Reader(data)
    # What is forgotten or misspelt must not look like policy None, or like a node without a state file.
    reader.require("machine", "policy")
    gate = reader.get("pod_level_resource_managers_gate", bool, False)
    release = None
    if kubelet_version:
        try:
            release = parse_release(str(kubelet_version))
        except ValueError as error:
            raise InputError(f"kubelet_version: {error}") from None
    return Subject(
        machine=_machine_from(reader),
        state_file=StateFile("memory_manager_state", _content_from(reader)),
        policy=reader.get("policy", str, "None"),
        release=release,
        reserved_memory=_reserved_from(reader),
        reservation=_reservation_from(reader),
        feature_gates={"PodLevelResourceManagers": True} if gate else {},
        iomem=reader.get("iomem_text", str, None),
        iomem_reason="iomem_text is not given",
        memory_block_size=reader.natural("memory_block_size_bytes") if data.get("memory_block_size_bytes") else None,
    )


class _Reader:
    """Typed access to a mapping from outside; errors name the key."""

    def __init__(self, data: t.Mapping[str, t.Any], where: str = "") -> None:
        self._data = data
        self._where = where

    def has(self, key: str) -> bool:
        return key in self._data

    def get(self, key: str, kind: t.Type[t.Any], default: t.Any) -> t.Any:
        value = self._data.get(key)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, value, kind.__name__)
        return value

    def require(self, *keys: str) -> None:
        for key in keys:
            if self._data.get(key) is None:
                raise InputError(f"{self._where}{key} is missing")

    def natural(self, key: str) -> int:
        value = self.get(key, int, None)
        if value is None or not 0 <= value < 1 << 64:
            raise self.error(key, value, "a whole number from 0 to 2^64 - 1")
        return int(value)

    def int32(self, key: str) -> int:
        value = self.get(key, int, None)
        if value is None or not -(1 << 31) <= value < 1 << 31:
            raise self.error(key, value, "a whole number of 32 bit")
        return int(value)

    def each(self, key: str) -> t.Iterator[_Reader]:
        for index, item in enumerate(self.get(key, list, [])):
            if not isinstance(item, dict):
                raise self.error(f"{key}[{index}]", item, "a mapping")
            yield _Reader(item, f"{self._where}{key}[{index}].")

    def error(self, key: str, value: t.Any, wanted: str) -> InputError:
        return InputError(f"{self._where}{key} is {_short(value)!r}, it has to be {wanted}")


def _short(value: t.Any) -> t.Any:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return value if len(text) <= 60 else text[:57] + "..."


def _machine_from(reader: _Reader) -> MachineInfo:
    machine = _Reader(reader.get("machine", dict, {}), "machine.")
    nodes = tuple(
        NumaNode(
            node.natural("id"),
            node.natural("memory"),
            tuple(
                HugePagesInfo(pool.natural("page_size_kb"), pool.natural("num_pages"))
                for pool in node.each("hugepages")
            ),
        )
        for node in machine.each("nodes")
    )
    ids = [node.id for node in nodes]
    if len(set(ids)) < len(ids):
        raise reader.error("machine.nodes", ids, "a list in which each id stands once")
    return MachineInfo(nodes)


def _reserved_from(reader: _Reader) -> t.Tuple[MemoryReservation, ...]:
    entries = []
    for entry in reader.each("reserved_memory"):
        limits = entry.get("limits", dict, {})
        for resource, text in limits.items():
            _quantity("reserved_memory limits " + str(resource), text)
        entries.append(MemoryReservation(entry.int32("numa_node"), {str(k): str(v) for k, v in limits.items()}))
    return tuple(entries)


def _reservation_from(reader: _Reader) -> ResourceList:
    values = reader.get("node_allocatable_reservation", dict, {})
    return {str(name): _quantity("node_allocatable_reservation " + str(name), text) for name, text in values.items()}


def _quantity(where: str, text: t.Any) -> t.Any:
    try:
        return parse_quantity(str(text))
    except ValueError as error:
        raise InputError(f"{where} is {_short(text)!r}: {error}") from None


def _content_from(reader: _Reader) -> t.Optional[bytes]:
    if not reader.has("file_text") and not reader.has("file_base64"):
        raise InputError("file_text (or file_base64) is missing; null says that there is no state file")
    encoded = reader.get("file_base64", str, None)
    if encoded is None:
        text = reader.get("file_text", str, None)
        return None if text is None else bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"file_base64 is not base64: {error}") from None


# --- presentation ----------------------------------------------------------------------------------------------------


def present_report(report: Report) -> t.Dict[str, t.Any]:
    """What the module returns: plain dicts and lists."""
    reading, kubelet = report.reading, report.reading.kubelet
    result = present(report.evaluation, reading.subject, report.pod_names)
    result["tolerance"] = {"value": reading.tolerance.text, "source": reading.tolerance_source}
    result["kubelet"] = {
        "version": None if kubelet.version is None else str(kubelet.version),
        "rules": "unknown" if kubelet.version is None else kubelet.version.proof,
        "layout": kubelet.layout,
        "unit": kubelet.unit,
        "config": kubelet.config_path,
        "config_dir": kubelet.config_dir,
        "root_dir": kubelet.root_dir,
        "running": kubelet.running_pid is not None,
    }
    result["boot"] = {
        "boot_id": reading.boot.boot_id.value,
        "kernel": reading.boot.kernel_release.value,
        "architecture": reading.boot.architecture.value,
    }
    return result


def present(evaluation: Evaluation, subject: Subject, names: t.Mapping[str, str]) -> t.Dict[str, t.Any]:
    """The part of a result that does not depend on where the data came from."""
    bound, state = evaluation.bound, evaluation.state
    return {
        "verdict": evaluation.verdict,
        "will_start": evaluation.will_start,
        "summary": summary(evaluation),
        "findings": [present_finding(finding) for finding in evaluation.findings],
        "kubelet_error": evaluation.kubelet_errors[0] if evaluation.kubelet_errors else None,
        "kubelet_errors": list(evaluation.kubelet_errors),
        "policy": subject.policy,
        "bound": {
            "bytes": bound.bytes,
            "source": bound.source,
            "reason": bound.reason,
            "kernel_image_bytes": None if bound.kernel_image is None else bound.kernel_image.span,
        },
        "drift_bytes": {str(node): size for node, size in evaluation.drift.items()},
        "drift_total_bytes": sum(evaluation.drift.values()),
        "fit_margins": [{"numa_nodes": list(one.numa_nodes), "bytes": one.bytes} for one in evaluation.margins],
        "hints": [hint.message for hint in evaluation.hints],
        "state_file": _present_file(subject, evaluation),
        "numa_nodes": [_present_node(node, state) for node in subject.machine.topology],
        "groups": _groups(state),
        "assignments": _assignments(state, names),
    }


def present_finding(finding: Finding) -> t.Dict[str, t.Any]:
    """A finding without the attributes that do not apply to it."""
    return {key: value for key, value in finding.__dict__.items() if value is not None}


def present_machine_state(machine_state: MachineState) -> t.Dict[str, t.Any]:
    """A machine state in the form of the state file."""
    return {
        str(node_id): {
            "numberOfAssignments": node.number_of_assignments,
            "memoryMap": {
                name: {
                    "total": table.total,
                    "systemReserved": table.system_reserved,
                    "allocatable": table.allocatable,
                    "reserved": table.reserved,
                    "free": table.free,
                }
                for name, table in (node.memory_map or {}).items()
                if table is not None
            },
            "cells": list(node.cells or ()),
        }
        if node is not None
        else None
        for node_id, node in machine_state.items()
    }


def summary(evaluation: Evaluation) -> str:
    """One short line: `tolerable: node 0 -43.2 MiB, node 1 +43.2 MiB, bound 116.0 MiB`."""
    parts = [f"node {node} {mebibytes(size, signed=True)}" for node, size in evaluation.drift.items() if size]
    if parts and evaluation.bound.bytes:
        parts.append(f"bound {mebibytes(evaluation.bound.bytes)}")
    codes = _deciding_codes(evaluation)
    if codes:
        parts.insert(0, ", ".join(codes))
    return "{0}: {1}".format(evaluation.verdict, ", ".join(parts)) if parts else evaluation.verdict


def _deciding_codes(evaluation: Evaluation) -> t.List[str]:
    """The codes that a person looks at first; a tolerable drift is told by its numbers."""
    if evaluation.verdict == "tolerable":
        return []
    stopping = [finding.code for finding in evaluation.findings if finding.stops_start]
    if not stopping and evaluation.verdict == REFUSE:
        stopping = [finding.code for finding in evaluation.findings if finding.severity == "warning"]
    if not stopping and evaluation.verdict == NOT_APPLICABLE:
        stopping = [finding.code for finding in evaluation.findings[:1]]
    return list(dict.fromkeys(stopping))


def _present_file(subject: Subject, evaluation: Evaluation) -> t.Dict[str, t.Any]:
    content, loaded = subject.state_file.content, evaluation.loaded
    return {
        "path": subject.state_file.path,
        "exists": content is not None,
        "format": None if loaded is None else loaded.format,
        "policy": None if loaded is None else loaded.state.policy_name,
        "sha256": None if content is None else hashlib.sha256(content).hexdigest(),
        "size": None if content is None else len(content),
    }


def _present_node(node: NumaNode, state: t.Optional[MemoryManagerState]) -> t.Dict[str, t.Any]:
    recorded = None if state is None else state.nodes.get(node.id)
    tables = {} if recorded is None else {k: v for k, v in (recorded.memory_map or {}).items() if v is not None}
    return {
        "numa_node": node.id,
        "memory": node.memory,
        "hugepages": {pool.resource: pool.total for pool in node.hugepages},
        "recorded": {name: dict(table.__dict__) for name, table in sorted(tables.items())},
        "assignments": None if recorded is None else recorded.number_of_assignments,
        "group": None if recorded is None else list(recorded.cells or ()),
    }


def _groups(state: t.Optional[MemoryManagerState]) -> t.List[t.List[int]]:
    nodes = (node for node in (state.nodes if state else {}).values() if node is not None)
    return [list(cells) for cells in sorted({tuple(sorted(node.cells or ())) for node in nodes})]


def _assignments(state: t.Optional[MemoryManagerState], names: t.Mapping[str, str]) -> t.List[t.Dict[str, t.Any]]:
    if state is None:
        return []
    return [
        {
            "pod_uid": pod,
            "pod": names.get(pod),
            "container": container,
            "numa_affinity": list(block.numa_affinity or ()),
            "resource": block.type,
            "bytes": block.size,
        }
        for pod, container, block in state.assignments()
    ]
