# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What systemd runs: before a start of the kubelet's unit, and after its end.

The state file comes first; what is counted and shown comes after it, and failing there is a warning.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ._guard_memory import judged_of, remember
from ._guard_options import PATIENCE_SECONDS, Answer, Clock, Options
from ._node.boot import BOOT_ID
from ._node.history import UNKNOWN_BOOT
from ._node.root import HostRoot, NodeError
from ._node.settings import switched_off_by
from ._policy.evaluation import Evaluation
from ._policy.guard_metrics import GuardMetrics, Judged
from ._policy.journal import ERROR, INFO, NOTICE, WARNING, Value, journal_line
from ._policy.starts import FAILED, INTERRUPTED, REFUSED, STARTED, Start, began, ended
from ._present_report import summary
from ._rebaseline import Outcome, Plan, run as rebaseline
from ._request import InputError

BINARY_SECONDS = 0.5
"""How long the kubelet may take for each of two questions, which it is asked only once."""

_ENDS = {
    STARTED: "The start that ended had brought up the memory manager.",
    REFUSED: "The kubelet ended with an error, as was foretold: its memory manager does not start.",
    FAILED: "The kubelet ended with an error before it had run for a minute; its own lines above say why.",
    INTERRUPTED: "The kubelet was stopped before it had run for a minute; the start is not counted as an attempt.",
    "unknown": "This end belongs to no start that the guard has seen; nothing is counted.",
}


def run(options: Options, environment: t.Mapping[str, str], clock: Clock) -> Answer:
    """Before a start: judge the node, and re-baseline its state file if that is right.

    :raises NodeError, InputError: if the node cannot be judged; that is counted
    """
    begin = clock.since_boot()
    root = HostRoot(options.host_root)
    switch = switched_off_by(root)
    if switch is not None:
        return _switched_off(root, options, clock, switch)
    try:
        outcome = rebaseline(options.request(unit=options.unit, timeout=BINARY_SECONDS), _plan(clock))
    except (NodeError, InputError):
        start = _start(root, environment, clock, None)
        remember(root, options, lambda metrics: _after_run(metrics, clock, start, None))
        raise
    judged = judged_of(outcome.decision.report, _final(outcome), outcome.records)
    start = _start(root, environment, clock, judged.will_start)
    kept = remember(root, options, lambda metrics: _after_run(metrics, clock, start, judged, outcome.changed))
    milliseconds = int((clock.since_boot() - begin) * 1000)
    return _answer(options, outcome, judged, outcome.warnings + kept.problems, milliseconds)


def stopped(options: Options, environment: t.Mapping[str, str], clock: Clock) -> Answer:
    """After an end: settle what became of the start."""
    root = HostRoot(options.host_root)
    if switched_off_by(root) is not None:
        return Answer()
    invocation, result = environment.get("INVOCATION_ID", ""), environment.get("SERVICE_RESULT", "")
    at, clean = int(clock.since_boot()), result == "success"
    kept = remember(
        root, options, lambda metrics: replace(metrics, ledger=ended(metrics.ledger, invocation, at, clean))
    )
    before, after = kept.before.ledger, kept.after.ledger
    if before == after and after.last is not None and after.last.invocation == invocation:
        return Answer()  # settled already: systemd stops a unit again that waits for its restart
    settled = after.last.outcome if after.last is not None and before != after else "unknown"
    fields: t.Dict[str, Value] = {
        "code": settled,
        "unit": options.unit,
        "service_result": result,
        "attempts": after.attempts,
    }
    message = " ".join((_ENDS[settled], *kept.problems))
    priority = WARNING if kept.problems or settled in (FAILED, REFUSED) else INFO
    return Answer({**fields, "msg": message}, "", journal_line(priority, fields, message))


def _plan(clock: Clock) -> Plan:
    return Plan(own_unit_starts=True, record=True, patience=PATIENCE_SECONDS, now=clock.now)


def _switched_off(root: HostRoot, options: Options, clock: Clock, switch: str) -> Answer:
    kept = remember(root, options, lambda metrics: replace(metrics, time=int(clock.now()), judged=None, enabled=False))
    message = " ".join((f"Switched off by {switch}: nothing was judged, nothing was written.", *kept.problems))
    fields: t.Dict[str, Value] = {"code": "disabled", "unit": options.unit}
    return Answer({**fields, "msg": message}, "", journal_line(NOTICE, fields, message))


# --- what a run found ------------------------------------------------------------------------------------------------


def _final(outcome: Outcome) -> Evaluation:
    """The evaluation of the file that is there now."""
    rewrite = outcome.decision.rewrite
    return rewrite.after if outcome.changed and rewrite is not None else outcome.decision.evaluation


def _answer(options: Options, outcome: Outcome, judged: Judged, warnings: t.Sequence[str], milliseconds: int) -> Answer:
    evaluation = outcome.decision.evaluation
    fields: t.Dict[str, Value] = {
        "code": outcome.reason if outcome.durable else "not_durable",
        "verdict": judged.verdict,
        "will_start": judged.will_start,
        "unit": options.unit or outcome.decision.reading.kubelet.unit or "",
        "findings": list(dict.fromkeys(one.code for one in evaluation.findings if one.severity != "info")),
        "ms": milliseconds,
    }
    reason = evaluation.bound.reason if judged.bound is not None else None
    why_exact = (f"No drift is tolerated: {reason}.",) if reason else ()
    message = " ".join((f"{summary(evaluation)}. {outcome.message}", *why_exact, *warnings))
    line = journal_line(_priority(outcome, judged, warnings), fields, message)
    data = {**fields, "changed": outcome.changed, "backup": outcome.backup, "mode": judged.mode, "msg": message}
    return Answer(data, "", line)


def _priority(outcome: Outcome, judged: Judged, warnings: t.Sequence[str]) -> int:
    if judged.will_start is False:
        return ERROR
    if outcome.failed or warnings or any(one.severity == "warning" for one in outcome.decision.evaluation.findings):
        return WARNING
    return NOTICE if outcome.changed else INFO


# --- what is remembered ----------------------------------------------------------------------------------------------


def _start(
    root: HostRoot, environment: t.Mapping[str, str], clock: Clock, will_start: t.Optional[bool]
) -> t.Optional[Start]:
    """The start that this run is part of; None where a person runs the command."""
    invocation = environment.get("INVOCATION_ID")
    if not invocation:
        return None
    try:
        boot_id = root.read_text(BOOT_ID).strip()
    except NodeError:
        boot_id = UNKNOWN_BOOT
    return Start(invocation, boot_id, int(clock.since_boot()), int(clock.now()), will_start)


def _after_run(
    metrics: GuardMetrics,
    clock: Clock,
    start: t.Optional[Start],
    judged: t.Optional[Judged],
    changed: bool = False,
) -> GuardMetrics:
    ledger = metrics.ledger if start is None else began(metrics.ledger, start)
    ledger = replace(ledger, rebaselines=ledger.rebaselines + changed)
    return GuardMetrics(int(clock.now()), ledger, judged)


HOOKS: t.Mapping[str, t.Callable[[Options, t.Mapping[str, str], Clock], Answer]] = {"run": run, "stopped": stopped}
