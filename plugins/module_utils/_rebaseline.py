# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Judges, decides and writes: what module `memmgr_rebaseline` and the guard call (design, section 5).

The node is judged without the lock, under the lock, and read once more immediately before the rename: all three have
to see the same. Everything that can fail (backup, history, temporary file) is done before the rename.
"""

from __future__ import annotations

import contextlib
import posixpath
import time
import typing as t
from dataclasses import dataclass, field, replace

from ._node.backups import read_backup
from ._node.directories import UnsafePath
from ._node.history import UNKNOWN_BOOT, history_text
from ._node.in_use import Units, Usage, find_usage
from ._node.pods import guaranteed_pods
from ._node.root import NodeError
from ._node.writer import Busy, Identity, NotDurable, StateDirectory, Store, WriteError
from ._policy.configuration_findings import tolerates_by_itself
from ._policy.evaluation import UNREADABLE, Evaluation, evaluate
from ._policy.findings import INFO
from ._policy.history import (
    Records,
    cumulative_findings,
)
from ._policy.quantity import QuantityError, parse_quantity
from ._policy.rewrite import Rewrite, RewriteRefused, as_it_is, assigned_containers, rebaseline
from ._policy.static_policy import REFUSE, TOLERABLE
from ._policy.subject import Subject
from ._preflight import NodeReading, Report, distance_to_first_baseline, judge_reading, read_node, with_pod_names
from ._remember import records_after
from ._request import InputError, Request

REBASELINE = "rebaseline"
RESTORE = "restore"
SUCCESS = {REBASELINE: "rebaselined", RESTORE: "restored"}

BLOCKED = ("kubelet_in_use", "kubelet_unproven", "busy", "changed_meanwhile", "unsafe_path", "write_failed")
"""Reasons for which a file that should have been written was not: a failure, where others are results."""

POINTS = ("judged", "locked", "judged_under_lock", "backed_up", "recorded", "staged", "judged_last")
"""Where the world may change, in order. After the last one comes the rename: the window that remains."""


def _nothing(_point: str) -> None:
    pass


@dataclass(frozen=True)
class Plan:
    """What to do, and how.

    `backup` is the id or the path of what is restored. `kubelet_is_stopped` is the user's word for a root whose
    processes cannot be seen; it counts for no other. `own_unit_starts` is for the guard, which is the pre-start of the
    kubelet's own unit, and only observes a kubelet that tolerates drift itself. `max_cumulative_drift` is bytes,
    `patience` (for the lock) seconds. `record` keeps a history line also where nothing is written. `at` is called at
    each of POINTS; `show_units` asks systemd.
    """

    action: str = REBASELINE
    backup: str = ""
    check: bool = False
    kubelet_is_stopped: bool = False
    own_unit_starts: bool = False
    max_cumulative_drift: t.Optional[int] = None
    record: bool = False
    patience: float = 10.0
    keep_backups: int = 10
    keep_history: int = 1000
    now: t.Callable[[], float] = time.time
    at: t.Callable[[str], None] = _nothing
    show_units: t.Optional[t.Callable[[t.Sequence[str]], Units]] = None


@dataclass(frozen=True)
class Decision:
    """A judged node and what follows. Without `rewrite` nothing is to be written; `reason` and `message` say why."""

    report: Report
    reason: str
    message: str
    rewrite: t.Optional[Rewrite] = None
    usage: Usage = field(default_factory=Usage)
    identity: t.Optional[Identity] = None

    @property
    def reading(self) -> NodeReading:
        return self.report.reading

    @property
    def evaluation(self) -> Evaluation:
        return self.report.evaluation

    @property
    def path(self) -> str:
        return self.report.reading.subject.state_file.path


@dataclass(frozen=True)
class Outcome:
    """What became of a decision. `changed` says in check mode what would be. `backup` is the id of the copy made.

    `records` is the history afterwards.
    """

    decision: Decision
    reason: str
    message: str
    changed: bool = False
    backup: t.Optional[str] = None
    warnings: t.Tuple[str, ...] = ()
    records: Records = ()
    durable: bool = True

    @property
    def failed(self) -> bool:
        """Whether something that had to be done was not done."""
        return self.reason in BLOCKED or not self.durable


class _BlockedError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse_limit(text: t.Optional[str]) -> t.Optional[int]:
    """The argument `max_cumulative_drift` in bytes.

    :raises InputError: if it is no quantity above zero
    """
    if text is None:
        return None
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        raise InputError(f"max_cumulative_drift is {text!r}: {error}") from None
    if quantity.unscaled <= 0:
        raise InputError(f"max_cumulative_drift is {text!r}; it has to be above zero, such as 256Mi")
    return quantity.ceil()


def run(request: Request, plan: Plan) -> Outcome:
    """Re-baseline or restore the state file of a node, if that is right.

    :raises NodeError: if something cannot be read, a backup included
    :raises InputError: if an argument cannot be used
    """
    first = decide(request, plan)
    plan.at("judged")
    outcome = _predict(first, plan) if plan.check else _act(request, first, plan)
    return replace(outcome, decision=replace(outcome.decision, report=with_pod_names(outcome.decision.report)))


def _act(request: Request, first: Decision, plan: Plan) -> Outcome:
    try:
        if first.rewrite is None:
            return _without_writing(_asking_once(request, first), first, plan)
        _require_unused(first, plan)
        return _write(_asking_once(request, first), first, plan)
    except _BlockedError as error:
        reason, message = error.reason, str(error)
    except Busy as error:
        reason, message = "busy", f"{error}. Nothing was written."
    except UnsafePath as error:
        reason, message = "unsafe_path", f"{error}. Nothing was written."
    except WriteError as error:
        reason, message = "write_failed", str(error)
    return Outcome(first, reason, message, records=first.reading.history.records)


def _asking_once(request: Request, first: Decision) -> Request:
    """The same request, with the answers that the kubelet's binary gave, or did not give in time."""
    kubelet = first.reading.kubelet
    overrides = replace(request.overrides, known_feature_gates=tuple(sorted(kubelet.known_gates or ())))
    if kubelet.version is not None:
        overrides = replace(overrides, version=str(kubelet.version))
    return replace(request, overrides=overrides)


# --- judging ---------------------------------------------------------------------------------------------------------


def decide(request: Request, plan: Plan) -> Decision:
    """Judge a node and say what is to be written. Raises as `run`."""
    reading = read_node(request)
    report = Report(reading, judge_reading(reading))
    try:
        report = _within_cumulative_limit(report, plan.max_cumulative_drift)
        rewrite = _restoration(report, plan.backup) if plan.action == RESTORE else _rebaselining(report, plan)
    except _CumulativeDriftError as error:
        return Decision(error.report, "cumulative_drift", str(error))
    except RewriteRefused as refusal:
        return Decision(report, refusal.code, str(refusal))
    path = reading.subject.state_file.path
    try:
        with StateDirectory(reading.root, path) as directory:
            identity = directory.identity()
    except UnsafePath as error:
        return Decision(report, "unsafe_path", f"{error}. Nothing is written.")
    usage = find_usage(
        reading.root, posixpath.dirname(path), reading.kubelet.unit, plan.own_unit_starts, plan.show_units
    )
    return Decision(report, SUCCESS[plan.action], _success(plan, path), rewrite, usage, identity)


def _success(plan: Plan, path: str) -> str:
    if plan.action == RESTORE:
        return f"{path} is restored from {plan.backup}; the kubelet starts with it."
    return f"{path} is re-baselined to the memory that the machine has now; every assignment is kept."


class _CumulativeDriftError(Exception):
    def __init__(self, report: Report, message: str) -> None:
        super().__init__(message)
        self.report = report


def _within_cumulative_limit(report: Report, limit: t.Optional[int]) -> Report:
    """:raises _CumulativeDriftError: with the report of a refusal, where a tolerable drift adds up to too much"""
    if limit is None or report.evaluation.verdict != TOLERABLE:
        return report
    distances = distance_to_first_baseline(report.reading, report.evaluation)
    found = cumulative_findings(distances, limit)
    if not found:
        return report
    others = tuple(one for one in report.evaluation.findings if one.code != "cumulative_drift")
    refused = replace(report.evaluation, verdict=REFUSE, findings=found + others, machine_state_after=None)
    raise _CumulativeDriftError(replace(report, evaluation=refused), found[0].message)


_WHY_NOT = {
    "match": "The recorded state is this machine's; there is nothing to do.",
    "refuse": "The file is left as it is; a person has to decide.",
    "unreadable": "The kubelet cannot load this file; a person has to decide.",
    "absent": "There is no state file; the kubelet writes a fresh one when it starts.",
    "not_applicable": "There is nothing to re-baseline on this node.",
}


def _rebaselining(report: Report, plan: Plan) -> Rewrite:
    """:raises RewriteRefused: with the verdict as its code where that is why"""
    verdict = report.evaluation.verdict
    if verdict != TOLERABLE:
        raise RewriteRefused(verdict, _why_not(report.evaluation))
    if plan.own_unit_starts and tolerates_by_itself(report.reading.subject):
        raise RewriteRefused("observed", "This kubelet has the gate and the option itself; the file is left to it.")
    return rebaseline(report.reading.subject, report.reading.tolerance, report.evaluation)


def _why_not(evaluation: Evaluation) -> str:
    """Why nothing is written, with the finding that decides."""
    text = _WHY_NOT[evaluation.verdict]
    deciding = sorted((one for one in evaluation.findings if one.severity != INFO), key=lambda one: not one.stops_start)
    return f"{text} {deciding[0].message}" if deciding and evaluation.verdict in (REFUSE, UNREADABLE) else text


def _restoration(report: Report, backup: str) -> Rewrite:
    """What restoring a backup writes: its bytes, or where the machine has drifted since, those re-baselined.

    :raises RewriteRefused: if a kubelet would not start with it, a pod would lose its assignment, or it does not help
    :raises NodeError: if the backup cannot be read
    """
    reading, present = report.reading, report.evaluation
    if reading.not_applicable or reading.managed:
        raise RewriteRefused(present.verdict, _why_not(present))
    subject = replace(
        reading.subject, state_file=replace(reading.subject.state_file, content=read_backup(reading.root, backup))
    )
    evaluation = evaluate(subject, reading.tolerance)
    try:
        if evaluation.will_start is True:
            rewrite = as_it_is(subject, evaluation)
        else:
            rewrite = rebaseline(subject, reading.tolerance, evaluation)
    except RewriteRefused as refusal:
        why = next((one.message for one in evaluation.findings if one.stops_start), str(refusal))
        raise RewriteRefused(
            "backup_" + refusal.code, f"{backup} is not restored ({evaluation.verdict}): {why}"
        ) from None
    _require_restoring_helps(report, backup, rewrite)
    return rewrite


def _require_restoring_helps(report: Report, backup: str, rewrite: Rewrite) -> None:
    """:raises RewriteRefused: see `_restoration`"""
    content = report.reading.subject.state_file.content
    if content == rewrite.content:
        raise RewriteRefused(
            "same_content", "The state file is what the restored backup would be; there is nothing to do."
        )
    kept = assigned_containers(rewrite.content) or frozenset()
    today = None if content is None else assigned_containers(content)
    if today is None:
        pods = {pod for pod, _rest in kept}
        missing = [f"pod {pod}" for pod in guaranteed_pods(report.reading.root) if pod not in pods]
    else:
        missing = [f"container {name} of pod {pod}" if name else f"pod {pod}" for pod, name in sorted(today - kept)]
    if missing:
        raise RewriteRefused(
            "pods_missing",
            f"{backup} is not restored: it knows nothing of {', '.join(missing[:5])}, admitted since. Drain what is "
            "missing, or keep the present file.",
        )
    if report.evaluation.will_start is True and today is not None and kept <= today:
        raise RewriteRefused(
            "not_needed", "The kubelet starts with the present file, and the backup has no assignment that it lacks."
        )


def _predict(first: Decision, plan: Plan) -> Outcome:
    """What a run would do; a kubelet in the way is a warning, unless somebody says that it is stopped by then."""
    warnings: t.Tuple[str, ...] = ()
    try:
        if not (plan.kubelet_is_stopped and first.reading.root.is_live):
            _require_unused(first, plan)
    except _BlockedError as error:
        warnings = (f"Without check mode this fails: {error}",)
    records = first.reading.history.records
    return Outcome(first, first.reason, first.message, first.rewrite is not None, None, warnings, records)


def _require_unused(decision: Decision, plan: Plan) -> None:
    """:raises _BlockedError: unless it is certain that no kubelet uses the file"""
    usage, root = decision.usage, decision.reading.root
    if usage.by:
        text = f"{decision.path} is in use: {', '.join(usage.by)}. Stop the kubelet's unit first. Nothing was written."
        raise _BlockedError("kubelet_in_use", text)
    if usage.unproven and (root.is_live or not plan.kubelet_is_stopped):
        step = "Look at it on the node" if root.is_live else "Show the node's /proc there, or set kubelet_is_stopped"
        text = (
            f"It cannot be told whether a kubelet uses {decision.path}: {usage.unproven}. {step}. Nothing was written."
        )
        raise _BlockedError("kubelet_unproven", text)


# --- writing ---------------------------------------------------------------------------------------------------------


def _write(request: Request, first: Decision, plan: Plan) -> Outcome:
    """Raises _BlockedError and the errors of `writer`; the state file is then as it was."""
    with Store(first.reading.root, plan.patience) as store:
        plan.at("locked")
        second = decide(request, plan)
        if second.rewrite is None:
            return Outcome(second, second.reason, second.message, records=second.reading.history.records)
        _require_unused(second, plan)
        plan.at("judged_under_lock")
        with StateDirectory(second.reading.root, second.path) as directory:
            directory.discard()
            return _write_locked(request, second, plan, store, directory)


def _write_locked(request: Request, second: Decision, plan: Plan, store: Store, directory: StateDirectory) -> Outcome:
    if second.rewrite is None:
        raise _BlockedError("changed_meanwhile", "The node changed while it was judged. Nothing was written.")
    before = second.reading.history.records
    backup = _back_up(second, plan, store)
    plan.at("backed_up")
    records = _records_after(second, plan, second.rewrite)
    store.write_history(history_text(records))
    try:
        plan.at("recorded")
        directory.stage(second.rewrite.content)
        plan.at("staged")
        _require_unchanged(request, second, plan, directory)
        plan.at("judged_last")
        directory.commit()
    except NotDurable as error:
        return Outcome(second, second.reason, str(error), True, backup, (), records, durable=False)
    except BaseException:
        # Nothing became of it: neither the file nor the line of the history.
        with contextlib.suppress(WriteError):
            directory.discard()
            store.write_history(history_text(before))
        raise
    return Outcome(second, second.reason, second.message, True, backup, (), records)


def _back_up(second: Decision, plan: Plan, store: Store) -> t.Optional[str]:
    content = second.reading.subject.state_file.content
    if content is None:
        return None
    boot_id = second.reading.boot.boot_id.value or UNKNOWN_BOOT
    return store.save_backup(content, plan.now(), boot_id, plan.keep_backups, posixpath.basename(plan.backup))


def _require_unchanged(request: Request, second: Decision, plan: Plan, directory: StateDirectory) -> None:
    """:raises _BlockedError: if anything of the judgement, the file or its use is not as it was"""
    third = read_node(request)
    usage = find_usage(
        third.root, posixpath.dirname(second.path), third.kubelet.unit, plan.own_unit_starts, plan.show_units
    )
    _require_unused(replace(second, usage=usage), plan)
    changed = [
        name
        for name in Subject.__dataclass_fields__
        # The context is what the history says of earlier boots, for hints; we have just written the history.
        if name != "context" and getattr(third.subject, name) != getattr(second.reading.subject, name)
    ]
    if third.tolerance != second.reading.tolerance:
        changed.append("tolerance")
    if directory.identity() != second.identity or not directory.is_still_there():
        changed.append("state_file")
    if changed:
        what = ", ".join(name.replace("_", " ") for name in dict.fromkeys(changed))
        text = f"The node changed while it was judged ({what}). Nothing was written; run it again."
        raise _BlockedError("changed_meanwhile", text)


# --- remembering -----------------------------------------------------------------------------------------------------


def _without_writing(request: Request, first: Decision, plan: Plan) -> Outcome:
    """Nothing to write: remove what a killed run left, and keep a line of the history where that is asked for.

    What fails is a warning: the judgement stands.
    """
    outcome = Outcome(first, first.reason, first.message, records=first.reading.history.records)
    record = plan.record and _records_after(first, plan) != outcome.records
    leftover = _has_leftover(first)
    if not leftover and not record:
        return outcome
    try:
        with Store(first.reading.root, plan.patience) as store:
            if leftover:
                with StateDirectory(first.reading.root, first.path) as directory:
                    directory.discard()
            return replace(outcome, records=_observe(request, plan, store)) if record else outcome
    except (Busy, UnsafePath, WriteError) as error:
        return replace(outcome, warnings=(str(error),))


def _observe(request: Request, plan: Plan, store: Store) -> Records:
    """Keep a line of the history, under the lock."""
    second = decide(request, replace(plan, action=REBASELINE))
    records = _records_after(second, plan)
    store.write_history(history_text(records))
    return records


def _has_leftover(decision: Decision) -> bool:
    try:
        with StateDirectory(decision.reading.root, decision.path) as directory:
            return directory.has_leftover()
    except NodeError:
        return False


def _records_after(decision: Decision, plan: Plan, rewrite: t.Optional[Rewrite] = None) -> Records:
    return records_after(decision.report, plan.now(), plan.keep_history, rewrite)
