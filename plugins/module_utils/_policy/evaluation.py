# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The judgement of one node from plain values: verdict, `will_start` and every finding (design, section 4)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from . import feature_gates
from .checkpoint import NIL_DEREFERENCE, CheckpointError, Loaded, load
from .configuration import MemoryReservation
from .explain import bound_findings, inconsistent_free, judgement_findings, margin_findings
from .findings import Finding, info, stops_start, warning
from .fit import FitMargin, fit_margins
from .hints import BootContext, Hint, hints, interrupted_write
from .kernel_image import KernelImageUnavailable, crash_kernel_ranges, derive_kernel_image, trusted_kernel_image
from .machine import MachineInfo
from .machine_state import default_machine_state
from .release import NEWEST, OLDEST, Release
from .reservation import ReservationFault, ResourceList, reservation_faults, system_reserved
from .state import MachineState, MemoryManagerState
from .static_policy import MATCH, REFUSE, TOLERABLE, Judgement, Outcome, judge
from .tolerance import GATE, OPTION, Bound, ToleranceError, ToleranceSetting, derive_bound, drift, parse_tolerance

UNREADABLE = "unreadable"
ABSENT = "absent"
NOT_APPLICABLE = "not_applicable"
VERDICTS = (MATCH, TOLERABLE, REFUSE, UNREADABLE, ABSENT, NOT_APPLICABLE)

STATIC = "Static"
NONE = "None"
_UNKNOWN_RELEASES = (Release(1, 34), Release(1, 36), Release(1, 37))


@dataclass(frozen=True)
class StateFile:
    """The state file: its path as the kubelet names it, and its bytes; None where there is no file."""

    path: str
    content: t.Optional[bytes] = None


@dataclass(frozen=True)
class Subject:
    """Everything that a judgement is made of.

    `reservation` is what Node Allocatable reserves; None where the configuration does not let it be computed.
    `findings` are those that reading the node and its configuration gave already. `iomem` is the text of /proc/iomem,
    None where `iomem_reason` says why it could not be read. `listed_gates` are those of `kubelet --help`.
    """

    machine: MachineInfo
    state_file: StateFile
    policy: str = NONE
    release: t.Optional[Release] = None
    reserved_memory: t.Tuple[MemoryReservation, ...] = ()
    reservation: t.Optional[ResourceList] = None
    policy_options: t.Mapping[str, str] = field(default_factory=dict)
    feature_gates: t.Mapping[str, bool] = field(default_factory=dict)
    overridden_gates: t.Mapping[str, bool] = field(default_factory=dict)
    gate_sources: t.Mapping[str, str] = field(default_factory=dict)
    listed_gates: t.Optional[t.FrozenSet[str]] = None
    iomem: t.Optional[str] = None
    iomem_reason: str = ""
    memory_block_size: t.Optional[int] = None
    kernel_release: t.Optional[str] = None
    context: BootContext = field(default_factory=BootContext)
    findings: t.Tuple[Finding, ...] = ()

    @property
    def rules(self) -> Release:
        """The release whose rules are used where the kubelet's is not known."""
        return self.release or Release(*NEWEST)

    @property
    def pod_level(self) -> bool:
        return feature_gates.is_enabled(self.rules, self.feature_gates, feature_gates.POD_LEVEL_RESOURCE_MANAGERS)


@dataclass(frozen=True)
class Evaluation:
    """The answer.

    `drift` is bytes by NUMA node (negative: memory is missing); `kubelet_errors` are the texts with which the installed
    kubelet can stop, the one it meets first in front. `machine_state_after` is what the kubelet, or the re-baselined
    file, then holds; None where it does not start.
    """

    verdict: str
    will_start: t.Optional[bool]
    findings: t.Tuple[Finding, ...] = ()
    bound: Bound = Bound(0, "off")  # noqa: RUF009
    kubelet_bound: int = 0
    kubelet_errors: t.Tuple[str, ...] = ()
    loaded: t.Optional[Loaded] = None
    judgement: t.Optional[Judgement] = None
    drift: t.Mapping[int, int] = field(default_factory=dict)
    margins: t.Tuple[FitMargin, ...] = ()
    hints: t.Tuple[Hint, ...] = ()
    machine_state_after: t.Optional[MachineState] = None

    @property
    def state(self) -> t.Optional[MemoryManagerState]:
        return None if self.loaded is None else self.loaded.state


def evaluate(subject: Subject, setting: ToleranceSetting) -> Evaluation:
    """Judge a node: `verdict` with the tolerance `setting`, `will_start` with what the kubelet itself will do."""
    bound = derive_bound(setting, subject.iomem, subject.iomem_reason)
    kubelet_bound, option_findings = _kubelet_tolerance(subject)
    # In the order in which a start meets them.
    before_state = _gate_findings(subject) + subject.findings + _policy_findings(subject)
    reservation_findings, faults = _reservation_findings(subject)
    before_state += _option_policy_findings(subject) + reservation_findings + option_findings
    base = Evaluation(NOT_APPLICABLE, True, bound=bound, kubelet_bound=kubelet_bound)
    base = replace(base, findings=_release_findings(subject) + before_state)
    evaluation = _evaluate_state(subject, base, bool(faults))
    return _with_configuration(evaluation, before_state, faults)


def _evaluate_state(subject: Subject, base: Evaluation, faulty: bool) -> Evaluation:
    if subject.policy not in (NONE, STATIC):
        return replace(base, verdict=REFUSE, will_start=False)
    if subject.state_file.content is None:
        return _evaluate_absent(subject, base)
    try:
        loaded = _load(subject, subject.state_file.content)
    except CheckpointError as error:
        return _unreadable(subject, base, error)
    if subject.policy == NONE:
        return replace(_policy_none(base), loaded=loaded, machine_state_after=loaded.state.nodes)
    if faulty:
        return replace(base, verdict=REFUSE, loaded=loaded)
    return _evaluate_loaded(subject, base, loaded)


def _evaluate_absent(subject: Subject, base: Evaluation) -> Evaluation:
    if subject.policy == NONE:
        return _policy_none(base)
    defaults = default_machine_state(subject.machine, system_reserved(subject.reserved_memory))
    return replace(
        base,
        verdict=ABSENT,
        findings=base.findings + bound_findings(base.bound, subject.memory_block_size),
        machine_state_after=defaults,
    )


def _policy_none(base: Evaluation) -> Evaluation:
    finding = info("policy_none", "memoryManagerPolicy is None: the kubelet compares nothing and pins nothing.")
    return replace(base, findings=base.findings + (finding,))


def _load(subject: Subject, content: bytes) -> Loaded:
    """Load as the kubelet's release does; where that is not known, only a file that all of them load is loaded."""
    if subject.release is not None:
        return load(content, subject.release, subject.pod_level, subject.policy)
    return [load(content, release, False, subject.policy) for release in _UNKNOWN_RELEASES][-1]


def _unreadable(subject: Subject, base: Evaluation, error: CheckpointError) -> Evaluation:
    path = subject.state_file.path
    text = error.kubelet_error(path)
    steps = {
        "state_policy_mismatch": "Drain the node and accept the policy change with the role's entry point reset",
        "state_corrupt": "Keep a copy, look who wrote it, then drain the node and use the entry point reset",
    }
    finding = stops_start(
        error.code,
        "{0}: the kubelet {1} this file: {2}{3}. {4}.".format(
            path,
            "crashes on" if error.cause == NIL_DEREFERENCE else "cannot load",
            error.cause,
            f" ({error.where})" if error.where else "",
            steps.get(error.code, "Restore a backup, or drain the node and use the entry point reset"),
        ),
        path=path,
        kubelet_error=text,
    )
    return replace(
        base, verdict=UNREADABLE, will_start=False, findings=base.findings + (finding,), kubelet_errors=(text,)
    )


def _evaluate_loaded(subject: Subject, base: Evaluation, loaded: Loaded) -> Evaluation:
    defaults = default_machine_state(subject.machine, system_reserved(subject.reserved_memory))
    group_sums = subject.rules.at_least(1, 32)
    judgement = judge(loaded.state, defaults, base.bound.bytes, subject.pod_level, group_sums)
    own = judgement.exact
    if base.kubelet_bound:
        tolerant = judge(loaded.state, defaults, base.kubelet_bound, subject.pod_level, group_sums)
        own = Outcome(None if tolerant.ambiguous else tolerant.verdict != REFUSE, tolerant.errors)
    expected = judgement.expected or {}
    moved = {} if judgement.filled_in else drift(loaded.state.nodes, expected)
    killed = interrupted_write(loaded.state.nodes, expected)
    looks = hints(moved, _boot_context(subject)) + ((killed,) if killed else ())
    margins = () if judgement.bad_blocks or judgement.shortfalls else fit_margins(expected)
    verdict = judgement.verdict
    pod_entries = _pod_entries_finding(subject, loaded)
    if pod_entries and verdict in (MATCH, TOLERABLE):
        verdict = REFUSE
    findings = (
        judgement_findings(judgement, base.bound.bytes, own.starts is not True, looks)
        + pod_entries
        + inconsistent_free(loaded.state.nodes)
        + bound_findings(base.bound, subject.memory_block_size)
        + margin_findings(margins, base.bound.bytes)
    )
    return replace(
        base,
        verdict=verdict,
        will_start=own.starts,
        findings=base.findings + findings,
        kubelet_errors=() if own.starts else own.errors,
        loaded=loaded,
        judgement=judgement,
        drift=moved,
        margins=margins,
        hints=looks,
        machine_state_after=judgement.machine_state if verdict in (MATCH, TOLERABLE) else None,
    )


def _boot_context(subject: Subject) -> BootContext:
    """The given context, completed from /proc/iomem."""
    if subject.iomem is None:
        return replace(subject.context, memory_block_size=subject.memory_block_size)
    try:
        image = trusted_kernel_image(subject.iomem)
    except KernelImageUnavailable:
        image = None
    return replace(
        subject.context,
        kernel_image=image,
        crash_kernels=crash_kernel_ranges(subject.iomem),
        memory_block_size=subject.memory_block_size,
        kernel_release=subject.kernel_release,
    )


def _pod_entries_finding(subject: Subject, loaded: Loaded) -> t.Tuple[Finding, ...]:
    """Pod-level entries that this kubelet drops, so that it misreads the assignments (semantics 4.4; 5.9, 9)."""
    content = subject.state_file.content or b""
    if subject.pod_level or b"podEntries" not in content:
        return ()
    try:
        pods = load(content, Release(*NEWEST), True, subject.policy).state.pod_entries
    except CheckpointError:
        return ()
    if not pods:
        return ()
    return (
        warning(
            "pod_entries_dropped",
            f"{subject.state_file.path} records pod-level assignments of {len(pods)} pods, which this kubelet drops "
            f"without the gate {feature_gates.POD_LEVEL_RESOURCE_MANAGERS}: it would charge their containers instead. "
            "Switch the gate on, or drain these pods.",
            path=subject.state_file.path,
            field="podEntries",
            pod_uid=sorted(pods)[0],
        ),
    )


# --- configuration ---------------------------------------------------------------------------------------------------


def _with_configuration(
    evaluation: Evaluation, before_state: t.Tuple[Finding, ...], faults: t.Sequence[ReservationFault]
) -> Evaluation:
    """A configuration finding that stops the start decides, whatever the state file says."""
    stopping = [finding for finding in before_state if finding.stops_start]
    if not stopping:
        return evaluation
    errors = tuple(finding.kubelet_error for finding in stopping if finding.kubelet_error)
    # Of several reservation faults the kubelet meets any sum first: their order is random.
    return replace(
        evaluation,
        verdict=REFUSE,
        will_start=False,
        kubelet_errors=errors + evaluation.kubelet_errors,
        machine_state_after=None,
    )


def _release_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    release = subject.release
    if release is None:
        return (
            warning(
                "version_unknown",
                "The kubelet's version is not known; the file counts as readable only if 1.34, 1.36 and 1.37 all read "
                "it. Pass kubelet_version.",
                field="kubelet_version",
            ),
        )
    if release.proof == "source":
        return (
            info(
                "release_unproven",
                f"The rules for kubelet {release} come from its source; they were not compared with the binary.",
            ),
        )
    if release.series > NEWEST or release.series < OLDEST:
        return (
            warning(
                "release_unknown",
                f"Kubelet {release} is outside {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}, whose rules are "
                "known; those of the nearest are used.",
                field="kubelet_version",
            ),
        )
    return ()


def _gate_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    return tuple(
        feature_gates.gate_findings(
            subject.rules, subject.feature_gates, subject.gate_sources, subject.listed_gates, subject.overridden_gates
        )
    )


def _policy_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    policy = subject.policy
    if policy in (NONE, STATIC):
        return ()
    where = {"field": "memoryManagerPolicy", "found": policy, "path": subject.gate_sources.get("memoryManagerPolicy")}
    if policy == "BestEffort" and subject.rules.at_least(1, 32):
        text = 'policy "BestEffort" is not available for platform "linux"'
        message = "memoryManagerPolicy BestEffort exists on Windows only. Set Static or None."
        return (stops_start("policy_unavailable", message, kubelet_error=text, **where),)
    message = f"memoryManagerPolicy is {policy!r}; the kubelet knows Static and None, spelt just so."
    return (stops_start("policy_unknown", message, kubelet_error=f'unknown policy: "{policy}"', **where),)


def _option_policy_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    """Options with a policy that has none (semantics 5.5); only kubelets that know the gate look at options."""
    if subject.policy == STATIC or not subject.policy_options or not _knows_drift_gate(subject):
        return ()
    text = 'policy "{0}" does not support policy options map[{1}]'.format(
        subject.policy, " ".join("{0}:{1}".format(*item) for item in sorted(subject.policy_options.items()))
    )
    message = (
        f"memoryManagerPolicyOptions needs memoryManagerPolicy Static, it is {subject.policy}. Remove the options."
    )
    return (stops_start("option_policy", message, field="memoryManagerPolicyOptions", kubelet_error=text),)


def _knows_drift_gate(subject: Subject) -> bool:
    return feature_gates.knows_gate(subject.rules, GATE, subject.listed_gates) is True


def tolerates_by_itself(subject: Subject) -> bool:
    """Whether the installed kubelet has KEP-6232's gate and option: then drift is its own matter (design, 6)."""
    return (
        subject.policy == STATIC
        and OPTION in subject.policy_options
        and _knows_drift_gate(subject)
        and not _option_findings(subject)
    )


def _kubelet_tolerance(subject: Subject) -> t.Tuple[int, t.Tuple[Finding, ...]]:
    """(the bound that the installed kubelet itself applies, findings about gate and option)"""
    options = subject.policy_options
    if not _knows_drift_gate(subject):
        return 0, (_option_ignored(subject),) if options else ()
    findings = _option_findings(subject)
    if findings or subject.policy != STATIC or OPTION not in options:
        return 0, findings
    setting = parse_tolerance(options[OPTION])
    if not setting.is_auto:
        return setting.quantity or 0, ()
    try:
        # The kubelet trusts a partly hidden image; this predicts the kubelet.
        return (derive_kernel_image(subject.iomem).bound if subject.iomem is not None else 0), ()
    except KernelImageUnavailable:
        return 0, ()


def _option_ignored(subject: Subject) -> Finding:
    return warning(
        "option_ignored",
        f"memoryManagerPolicyOptions is set, but kubelet {subject.rules} does not know the field and ignores it "
        "without a word: no drift is tolerated. The guard gives this kubelet the same behaviour (playbook "
        "install_guard).",
        field="memoryManagerPolicyOptions",
    )


def _option_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    options, field_name = subject.policy_options, "memoryManagerPolicyOptions"
    if not options or subject.policy != STATIC:
        return ()
    gates = subject.feature_gates
    if not gates.get(GATE, gates.get("AllAlpha", False)):
        text = f'memory manager policy option "{sorted(options)[0]}" requires the {GATE} feature gate'
        message = f"memoryManagerPolicyOptions is set without the feature gate {GATE}. Set both, or neither."
        return (stops_start("option_without_gate", message, field=field_name, kubelet_error=text),)
    found = []
    for name, value in sorted(options.items()):
        if name != OPTION:
            text = f'unknown Memory Manager Policy option: "{name}"'
            message = f"memoryManagerPolicyOptions has the unknown option {name}. Remove it."
            found.append(stops_start("option_unknown", message, field=field_name, found=name, kubelet_error=text))
            continue
        try:
            parse_tolerance(value)
        except ToleranceError as error:
            message = f"{OPTION} is {value!r}; it takes auto, off or a quantity such as 128Mi."
            found.append(
                stops_start("option_invalid", message, field=field_name, found=value, kubelet_error=str(error))
            )
    return tuple(found)


def _reservation_findings(subject: Subject) -> t.Tuple[t.Tuple[Finding, ...], t.Tuple[ReservationFault, ...]]:
    if subject.policy != STATIC or subject.reservation is None:
        return (), ()
    faults = tuple(reservation_faults(subject.machine, subject.reservation, subject.reserved_memory))
    return tuple(fault_finding(fault) for fault in faults), faults


def fault_finding(fault: ReservationFault) -> Finding:
    """A reservation fault as a finding."""
    steps = {
        "reserved_memory_sum": "Make reservedMemory add up to kubeReserved + systemReserved + evictionHard",
        "reserved_memory_not_int64": f"Write it as a whole number of a smaller unit, such as {fault.expected}",
        "reserved_memory_unknown_node": "Remove the entry, or find out where the node went",
        "reserved_memory_missing": "Static needs reservedMemory; give it the node's reservation",
    }
    where = "" if fault.numa_node is None else f" of NUMA node {fault.numa_node}"
    what = "" if fault.resource is None else f" {fault.resource}"
    return stops_start(
        fault.code,
        "{0}{1}{2}: {3}. {4}.".format(
            fault.field, what, where, fault.kubelet_error, steps.get(fault.code, "Correct the value")
        ),
        numa_node=fault.numa_node,
        resource=fault.resource,
        field=fault.field,
        found=fault.found,
        expected=fault.expected,
        kubelet_error=fault.kubelet_error,
    )
