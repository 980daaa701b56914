# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What the guard keeps from one run to the next, and shows as metrics."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ._guard_options import PATIENCE_SECONDS, Options
from ._node.guard_record import FILE_NAME, guard_record_text, read_guard_record
from ._node.root import HostRoot, NodeError
from ._node.textfile import write_textfile
from ._node.writer import Store
from ._policy.configuration_findings import tolerates_by_itself
from ._policy.evaluation import NOT_APPLICABLE, VERDICTS, Evaluation
from ._policy.guard_metrics import GUARD, OBSERVE, GuardMetrics, Judged, metrics_text
from ._policy.history import Records, cumulative_drift, machine_totals, recorded_totals
from ._policy.starts import Ledger
from ._policy.subject import STATIC
from ._preflight import Report

Change = t.Callable[[GuardMetrics], GuardMetrics]


@dataclass(frozen=True)
class Kept:
    """What was kept from one run to the next, and is now; `problems` say what could not be read or written."""

    before: GuardMetrics
    after: GuardMetrics
    problems: t.Tuple[str, ...]


def judged_of(report: Report, final: Evaluation, records: Records) -> Judged:
    """What is shown of a judgement: the file as it was found.

    :param final: the evaluation of the file as it is now
    :param records: the history as it is now
    """
    reading, evaluation = report.reading, report.evaluation
    compares = reading.subject.policy == STATIC and evaluation.verdict != NOT_APPLICABLE
    totals = {} if final.state is None else recorded_totals(final.state.nodes)
    return Judged(
        verdict=evaluation.verdict,
        will_start=final.will_start,
        bound=evaluation.bound.bytes if compares else None,
        drift=evaluation.drift,
        cumulative=cumulative_drift(records, totals, machine_totals(reading.subject.machine)),
        tolerance=reading.tolerance.text,
        source=reading.tolerance_source,
        mode=mode_of(report),
    )


def mode_of(report: Report) -> str:
    """A kubelet that tolerates drift by itself is only observed (design, section 6)."""
    return OBSERVE if tolerates_by_itself(report.reading.subject) else GUARD


def remember(root: HostRoot, options: Options, change: Change) -> Kept:
    """Change what is kept from one run to the next, and the metrics."""
    problems: t.List[str] = []
    before = after = GuardMetrics(0, Ledger())
    try:
        with Store(root, PATIENCE_SECONDS) as store:
            before = _recorded(root, problems)
            after = change(before)
            store.write_file(FILE_NAME, guard_record_text(after).encode("utf-8"))
    except NodeError as error:
        problems.append(str(error))
        before = _recorded(root, problems)
        after = change(before)
    if options.textfile_directory:
        try:
            write_textfile(root, options.textfile_directory, metrics_text(after, VERDICTS))
        except NodeError as error:
            problems.append(str(error))
    return Kept(before, after, tuple(dict.fromkeys(problems)))


def recall(root: HostRoot) -> Kept:
    """The same, without a change."""
    problems: t.List[str] = []
    metrics = _recorded(root, problems)
    return Kept(metrics, metrics, tuple(problems))


def _recorded(root: HostRoot, problems: t.List[str]) -> GuardMetrics:
    try:
        return read_guard_record(root)
    except NodeError as error:
        problems.append(str(error))
        return GuardMetrics(0, Ledger())
