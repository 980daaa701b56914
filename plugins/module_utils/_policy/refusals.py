# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Why a change of the configuration is not written: the kubelet would stop at it, or silently ignore it."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .configuration import EffectiveConfiguration
from .decode import go_quote
from .document_edit import Edit, is_same
from .evaluation import Evaluation
from .feature_gates import knows_gate
from .findings import Finding, stops_start, warning
from .kubelet_start import eviction_findings
from .memory_settings import field_of, value_in_force
from .subject import STATIC, Subject
from .tolerance import GATE

OPTIONS = "memoryManagerPolicyOptions"
MERGE_DEFAULTS = "mergeDefaultEvictionSettings"


@dataclass(frozen=True)
class Comparison:
    """A node before a change, after it, and after it without its state file (what the configuration alone does).

    `source` is what `KubeletConfiguration.sources` says of our settings; a drop-in is not the kubelet's main file.
    """

    before: Evaluation
    before_effective: EffectiveConfiguration
    after: Evaluation
    after_effective: EffectiveConfiguration
    without_state: Evaluation
    subject: Subject
    source: str
    is_drop_in: bool


def refusals(change: Comparison, edits: t.Sequence[Edit], gives_back: bool = False) -> t.Tuple[Finding, ...]:
    """Every reason not to write. Giving values back is refused only for what it would newly break."""
    found = _stopping(change.without_state, change.after_effective)
    if gives_back:
        known = {_key(finding) for finding in _stopping(change.before, change.before_effective)}
        return tuple(finding for finding in found if _key(finding) not in known)
    return (*found, *_ignored(change, edits), *_unverified(change, edits), *_percentages(change, edits))


def _stopping(evaluation: Evaluation, effective: EffectiveConfiguration) -> t.List[Finding]:
    findings = (*evaluation.findings, *eviction_findings(effective.configuration))
    by_text = {_key(finding): finding for finding in findings if finding.stops_start}
    return list(by_text.values())


def _key(finding: Finding) -> t.Tuple[t.Any, ...]:
    return (finding.code, finding.numa_node, finding.resource, finding.kubelet_error)


def reset_reasons(change: Comparison) -> t.Tuple[Finding, ...]:
    """What the present state file would be refused for after the change, and is not refused for now."""
    if change.without_state.will_start is False or change.after.will_start is not False:
        return ()
    known = {_key(finding) for finding in change.before.findings if finding.stops_start}
    return tuple(one for one in change.after.findings if one.stops_start and _key(one) not in known)


def _ignored(change: Comparison, edits: t.Sequence[Edit]) -> t.Iterator[Finding]:
    """Settings that this kubelet reads nowhere, or not in this file, and says nothing about."""
    fields = {str(edit.path[0]) for edit in edits if not edit.removes}
    unknown = {one.name for one in change.after_effective.unknown_fields if one.source == change.source}
    if _knows_gate(change.subject, GATE):
        unknown.discard(OPTIONS)
    release = change.subject.rules
    for name in sorted(fields & unknown):
        text = f"strict decoding error: unknown field {go_quote(name)}"
        message = f"Kubelet {release} does not know the field {name} and would ignore it without a word"
        if name == OPTIONS:
            message += ", so that no drift is tolerated. The guard does the same for it (playbook install_guard)"
        yield stops_start("field_unknown", message + ".", field=name, path=change.source, kubelet_error=text)
    if MERGE_DEFAULTS in fields and change.is_drop_in:
        message = f"The kubelet looks at {MERGE_DEFAULTS} in its main file only. Ask for the place in_place."
        yield stops_start("field_ignored", message, field=MERGE_DEFAULTS, path=change.source)


def _knows_gate(subject: Subject, name: str) -> bool:
    return knows_gate(subject.rules, name, subject.listed_gates) is True


def _unverified(change: Comparison, edits: t.Sequence[Edit]) -> t.Iterator[Finding]:
    """An unknown gate stops the kubelet, so that "not known" is not good enough to write one."""
    subject = change.subject
    for edit in edits:
        if edit.path[0] != "featureGates" or edit.removes or len(edit.path) < 2:
            continue
        name = str(edit.path[1])
        if knows_gate(subject.rules, name, subject.listed_gates) is None:
            message = (
                f"Nothing proves that kubelet {subject.rules} has the feature gate {name}, and an unknown gate stops "
                "it. Let the binary be asked, or pass known_feature_gates."
            )
            yield stops_start("gate_unverified", message, field=field_of(edit.path))


def _percentages(change: Comparison, edits: t.Sequence[Edit]) -> t.Iterator[Finding]:
    concerned = any(field_of(edit.path) in ("evictionHard.memory.available", "reservedMemory") for edit in edits)
    if change.subject.policy != STATIC or not concerned:
        return
    for finding in change.without_state.findings:
        if finding.code == "eviction_percentage":
            yield stops_start(finding.code, finding.message, field=finding.field, found=finding.found)


def overridden(change: Comparison, wanted: t.Sequence[Edit]) -> t.Tuple[Finding, ...]:
    """Settings that are written, but that a flag or a later file sets to something else."""
    return tuple(_override(change, edit) for edit in wanted if _is_overridden(change, edit))


def _source(change: Comparison, edit: Edit) -> str:
    sources = change.after_effective.configuration.sources
    return sources.get(field_of(edit.path)) or sources.get(str(edit.path[0])) or "the default"


def _is_overridden(change: Comparison, edit: Edit) -> bool:
    if edit.removes or _source(change, edit) == change.source:
        return False
    return not is_same(value_in_force(change.after_effective.configuration, edit.path), edit.value)


def _override(change: Comparison, edit: Edit) -> Finding:
    name, source = field_of(edit.path), _source(change, edit)
    return warning(
        "overridden",
        f"{name} in {change.source} has no effect: {source} sets it to something else. Change it there.",
        field=name,
        path=source,
        expected=str(edit.value),
        found=str(value_in_force(change.after_effective.configuration, edit.path)),
    )
