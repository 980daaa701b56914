# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What a person asks the guard on the node. Raises NodeError and InputError as what it calls."""

from __future__ import annotations

import time
import typing as t
from dataclasses import asdict, replace

from ._guard_memory import Kept, judged_of, mode_of, recall, remember
from ._guard_options import DONE, ERROR, REFUSED, Answer, Options
from ._node.backups import list_backups
from ._node.boot import read_boot_facts
from ._node.history import present_record, read_history
from ._node.root import HostRoot
from ._node.settings import switched_off_by
from ._policy.evaluation import UNREADABLE
from ._policy.guard_metrics import OBSERVE
from ._policy.history import BootRecord
from ._policy.starts import Ledger, Start
from ._policy.static_policy import REFUSE
from ._policy.tolerance import Bound, ToleranceSetting, derive_bound
from ._policy.units import mebibytes
from ._preflight import NodeReading, Report, validate
from ._present_bound import bound_sentence, present_bound
from ._present_outcome import present_outcome
from ._present_report import present_report, summary
from ._rebaseline import REBASELINE, RESTORE, Plan, parse_limit, run

OFF = "off"
"""The mode under the kill switch, beside those of the metrics."""

_SOURCES = {
    "argument": "given on the command line",
    "guard": "set in /etc/kubenode-memory/tolerance",
    "configuration": "set in the kubelet's configuration",
    "default": "nothing is set",
}


def status(options: Options) -> Answer:
    root = HostRoot(options.host_root)
    switch = switched_off_by(root)
    report = validate(options.request())
    kept = _kept(root, options, report, switch is None)
    ledger = kept.after.ledger
    lines = [
        _in_force(report, switch),
        f"verdict     {summary(report.evaluation)}",
        f"kubelet     {_kubelet(report.reading)}",
        f"last start  {_last_start(ledger.last)}",
        f"this boot   {_attempts(ledger)}",
        f"counted     {_counts(ledger)}",
        *(f"problem     {problem}" for problem in kept.problems),
    ]
    data = {
        **present_report(report),
        "switched_off_by": switch,
        "mode": mode_of(report) if switch is None else OFF,
        "ledger": asdict(ledger),
        "problems": list(kept.problems),
        "in_force": lines[0],
    }
    return Answer(data, "\n".join(lines))


def _in_force(report: Report, switch: t.Optional[str]) -> str:
    """The first line: what is in force on this node, and why."""
    if switch is not None:
        return f"off: switched off by {switch}"
    reading = report.reading
    setting = f"tolerance {reading.tolerance.text} ({_SOURCES[reading.tolerance_source]})"
    acts = "observes: the kubelet has gate and option itself" if mode_of(report) == OBSERVE else "guards"
    return f"{acts}; {setting}, {_bound(report.evaluation.bound)}"


def _bound(bound: Bound) -> str:
    if bound.bytes:
        return bound_sentence(bound) if bound.kernel_image else f"bound {mebibytes(bound.bytes)}"
    return f"no drift is tolerated{': ' + bound.reason if bound.reason else ''}"


def _kubelet(reading: NodeReading) -> str:
    kubelet = reading.kubelet
    if not kubelet.found:
        return "none on this node"
    return f"{kubelet.version or 'of unknown release'}, {kubelet.unit or 'without a unit'}, {kubelet.root_dir}"


def _last_start(start: t.Optional[Start]) -> str:
    return "none seen" if start is None else f"{start.outcome}, {_stamp(start.time)}"


def _attempts(ledger: Ledger) -> str:
    state = "the memory manager has started" if ledger.started else "not settled yet"
    return f"attempts: {ledger.attempts}, {state}"


def _counts(ledger: Ledger) -> str:
    counted = (f"{name} {count}" for name, count in {**ledger.starts, **ledger.boots}.items())
    return ", ".join((f"re-baselined {ledger.rebaselines}", *counted))


def _stamp(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _kept(root: HostRoot, options: Options, report: Report, enabled: bool) -> Kept:
    """What is remembered; with a directory for them, the metrics of a judgement of now, which is no start."""
    if not options.textfile_directory:
        return recall(root)
    judged = judged_of(report, report.evaluation, report.reading.history.records) if enabled else None
    return remember(root, options, lambda metrics: replace(metrics, judged=judged, enabled=enabled))


def _validate(options: Options) -> Answer:
    report = validate(options.request())
    findings = (f"{one.severity}  {one.code}: {one.message}" for one in report.evaluation.findings)
    return Answer(present_report(report), "\n".join((summary(report.evaluation), *findings)), "", _status(report))


def _status(report: Report) -> int:
    return REFUSED if report.evaluation.verdict in (REFUSE, UNREADABLE) else DONE


def _write(options: Options) -> Answer:
    outcome = run(
        options.request(),
        Plan(
            action=RESTORE if options.command == "restore" else REBASELINE,
            backup=options.backup,
            check=options.check,
            kubelet_is_stopped=options.kubelet_is_stopped,
            max_cumulative_drift=parse_limit(options.max_cumulative_drift),
        ),
    )
    report = outcome.decision.report
    code = ERROR if outcome.failed else DONE if outcome.changed else _status(report)
    done = "would be changed" if options.check and outcome.changed else "changed" if outcome.changed else "unchanged"
    lines = (f"{done} ({outcome.reason}): {summary(report.evaluation)}", outcome.message, *outcome.warnings)
    return Answer({**present_outcome(outcome), "warnings": list(outcome.warnings)}, "\n".join(lines), "", code)


def _bound_command(options: Options) -> Answer:
    boot = read_boot_facts(HostRoot(options.host_root))
    bound = derive_bound(ToleranceSetting("auto"), boot.iomem.value, boot.iomem.reason)
    return Answer(
        present_bound(boot, bound), bound_sentence(bound), "", DONE if bound.kernel_image is not None else REFUSED
    )


def _history(options: Options) -> Answer:
    root = HostRoot(options.host_root)
    history, backups = read_history(root), list_backups(root)
    lines = [_record_line(record) for record in history.records] + [f"backup {name}" for name in backups]
    data = {
        "records": [present_record(record) for record in history.records],
        "damaged": history.damaged,
        "problem": history.problem,
        "backups": list(backups),
    }
    return Answer(data, "\n".join(lines) or "nothing is remembered yet")


def _record_line(record: BootRecord) -> str:
    totals = ", ".join(f"node {node} {mebibytes(size)}" for node, size in sorted(record.totals.items()))
    written = "written" if record.replaces else "found"
    return f"{_stamp(record.time)}  {record.boot_id}  epoch {record.epoch}  {written}  {record.verdict}  {totals}"


COMMANDS: t.Mapping[str, t.Callable[[Options], Answer]] = {
    "status": status,
    "validate": _validate,
    "rebaseline": _write,
    "restore": _write,
    "bound": _bound_command,
    "history": _history,
}
