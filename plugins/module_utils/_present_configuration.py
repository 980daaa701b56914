# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What module `kubelet_memory_config` returns of a decision and what became of it."""

from __future__ import annotations

import typing as t

from ._configure import NEW_FILE, Decision, Outcome, changed_files
from ._node.processes import read_kubelets
from ._node.root import NotFound
from ._node.settings_record import sha256_of
from ._policy.document_edit import ABSENT, Edit, edits_to_json
from ._policy.evaluation import Evaluation
from ._policy.feature_gates import knows_gate
from ._policy.memory_settings import Remembered, field_of, value_in_force
from ._policy.refusals import Comparison
from ._policy.tolerance import GATE
from ._preflight import NodeReading
from ._present_report import present_finding


def restart_pending(decision: Decision) -> t.Optional[bool]:
    """Whether the running kubelet is older than the file; None where no kubelet runs or its start is not known."""
    reading = decision.reading
    boot_time, pid = reading.boot.boot_time.value, reading.kubelet.running_pid
    process = next((one for one in read_kubelets(reading.root).kubelets if one.pid == pid), None)
    if process is None or boot_time is None:
        return None
    try:
        modified = reading.root.stat(decision.target.place.path).st_mtime
    except NotFound:
        return False
    return modified >= process.started_at(boot_time)


def edit_request(outcome: Outcome) -> t.Optional[t.Dict[str, t.Any]]:
    """What the controller has to edit; None where nothing is missing."""
    decision = outcome.decision
    if not decision.change.needs_text or decision.refused:
        return None
    content = decision.target.content
    return {
        "sha256": sha256_of(content),
        "text": NEW_FILE if content is None else content.decode("utf-8"),
        "edits": edits_to_json(decision.change.edits),
    }


def present_outcome(outcome: Outcome) -> t.Dict[str, t.Any]:
    decision = outcome.decision
    reading, place, comparison = decision.reading, decision.target.place, decision.comparison
    return {
        "place": {
            "kind": place.kind,
            "path": place.path,
            "layout": reading.kubelet.layout,
            "kubeadm_patch": place.patch,
        },
        "settings": {one.field: _previous(one) for one in decision.change.settings},
        "files": [path for path, _rest in changed_files(decision)],
        "edits": [_present_edit(edit) for edit in decision.change.edits],
        "in_force": [_present_edit(edit) for edit in in_force(decision)],
        "kept": [one.field for one in decision.change.kept],
        "overridden": [present_finding(finding) for finding in decision.overridden],
        "refused": [present_finding(finding) for finding in decision.refused],
        "reset_needed": bool(decision.reset),
        "reset_reasons": [present_finding(finding) for finding in decision.reset],
        "reservation": _present_reservation(comparison),
        "backup": outcome.backup,
        "restore": [{key: value for key, value in one.__dict__.items() if value} for one in outcome.restore],
        "will_start": _will_start(comparison.after, decision),
        "knows_drift_tolerance": _knows_drift_tolerance(reading),
        "restart_pending": restart_pending(decision),
        "kubelet_version": None if reading.kubelet.version is None else str(reading.kubelet.version),
        "policy": comparison.subject.policy,
        "notes": list(_notes(decision)),
    }


def _previous(one: Remembered) -> t.Dict[str, t.Any]:
    known = {} if one.previous is ABSENT else {"previous": one.previous}
    return {"value": one.value, **known}


def _present_edit(edit: Edit) -> t.Dict[str, t.Any]:
    return {"field": field_of(edit.path), **({} if edit.removes else {"value": edit.value})}


def _will_start(after: Evaluation, decision: Decision) -> t.Optional[bool]:
    return False if decision.refusals else after.will_start


def in_force(decision: Decision) -> t.Iterator[Edit]:
    """Each setting that we have written, or change now, as the kubelet will run with it; ABSENT where it has none."""
    paths = [*(one.path for one in decision.change.settings), *(edit.path for edit in decision.change.edits)]
    configuration = decision.comparison.after_effective.configuration
    for path in dict.fromkeys(paths):
        value = value_in_force(configuration, path)
        yield Edit(path, ABSENT if value is None else value)


def _knows_drift_tolerance(reading: NodeReading) -> t.Optional[bool]:
    return knows_gate(reading.subject.rules, GATE, reading.subject.listed_gates)


def _present_reservation(comparison: Comparison) -> t.Dict[str, t.Any]:
    demanded = comparison.subject.reservation
    return {
        "demanded": {} if demanded is None else {name: str(quantity) for name, quantity in demanded.items()},
        "reserved_memory": [
            {"numaNode": one.numa_node, "limits": dict(one.limits)} for one in comparison.subject.reserved_memory
        ],
    }


def _notes(decision: Decision) -> t.Iterator[str]:
    """What somebody should know who has no error to read."""
    place = decision.target.place
    if place.patch is not None and decision.patch is not None:
        directory = place.patch.rpartition("/")[0]
        yield (
            f"kubeadm rewrites {place.path} at an upgrade. Run it with --patches {directory}, and these settings stay; "
            "without it they are lost."
        )
    if decision.reset and decision.change.edits:
        yield (
            "The present state file does not fit this configuration: drain the node, and use the entry point reset of "
            "the role memmgr_rebaseline before the kubelet is started."
        )
    for one in decision.change.kept:
        yield f"{one.field} in {place.path} was changed by somebody since, and stays as it is."


def present_diff(outcome: Outcome) -> t.List[t.Dict[str, str]]:
    """Before and after of each file that changes; empty where the new text is not known yet."""
    decision = outcome.decision
    change, target = decision.change, decision.target
    diffs = []
    if change.edits and not change.needs_text:
        after = None if change.removes else change.text
        diffs.append(_diff(target.place.path, target.content, after))
    if target.place.patch is not None and decision.patch != decision.patch_before:
        diffs.append(_diff(target.place.patch, decision.patch_before, decision.patch))
    return diffs


def _diff(path: str, before: t.Optional[bytes], after: t.Optional[bytes]) -> t.Dict[str, str]:
    return {
        "before_header": path,
        "after_header": path,
        "before": (before or b"").decode("utf-8", "replace"),
        "after": (after or b"").decode("utf-8", "replace"),
    }
