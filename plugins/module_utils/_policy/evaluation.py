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
from .configuration_findings import (
    gate_findings,
    kubelet_tolerance,
    option_policy_findings,
    policy_findings,
    release_findings,
    reservation_findings,
)
from .explain import bound_findings, inconsistent_free, judgement_findings, margin_findings
from .findings import Finding, info, stops_start, warning
from .fit import FitMargin, fit_margins
from .hints import BootContext, Hint, hints, interrupted_write
from .kernel_image import KernelImageUnavailable, crash_kernel_ranges, trusted_kernel_image
from .machine_state import default_machine_state
from .release import NEWEST, Release
from .reservation import ReservationFault, system_reserved
from .state import MachineState, MemoryManagerState
from .static_policy import MATCH, REFUSE, TOLERABLE, Judgement, Outcome, judge
from .subject import NONE, STATIC, Subject
from .tolerance import Bound, ToleranceSetting, derive_bound, drift

UNREADABLE = "unreadable"
ABSENT = "absent"
NOT_APPLICABLE = "not_applicable"
VERDICTS = (MATCH, TOLERABLE, REFUSE, UNREADABLE, ABSENT, NOT_APPLICABLE)

_UNKNOWN_RELEASES = (Release(1, 34), Release(1, 36), Release(1, 37))


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
    kubelet_bound, option_findings = kubelet_tolerance(subject)
    # In the order in which a start meets them.
    before_state = gate_findings(subject) + subject.findings + policy_findings(subject)
    about_reservation, faults = reservation_findings(subject)
    before_state += option_policy_findings(subject) + about_reservation + option_findings
    base = Evaluation(NOT_APPLICABLE, True, bound=bound, kubelet_bound=kubelet_bound)
    base = replace(base, findings=release_findings(subject) + before_state)
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
