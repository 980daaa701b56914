# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Starts of the kubelet's unit after a boot, and what became of them: the guard's service level indicator.

A memory manager that refuses ends its kubelet, as a rule within a second of the container runtime's being there. So a
start is known to be good when it has lasted, and the outcome of one is settled by the next event: its own end, the
next start, the next boot.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

SETTLED_SECONDS = 60
"""A kubelet that has run for so long has a memory manager."""

PENDING = "pending"
STARTED = "started"
REFUSED = "refused"
FAILED = "failed"
INTERRUPTED = "interrupted"
START_OUTCOMES = (STARTED, REFUSED, FAILED, INTERRUPTED)

FIRST_ATTEMPT = "first_attempt"
LATER_ATTEMPT = "later_attempt"
NOT_STARTED = "not_started"
BOOT_OUTCOMES = (FIRST_ATTEMPT, LATER_ATTEMPT, NOT_STARTED)


@dataclass(frozen=True)
class Start:
    """One start of the kubelet's unit.

    `invocation` is systemd's id of it. `at` is seconds since the boot, `time` since the epoch. `will_start` is what
    was said of the memory manager beforehand.
    """

    invocation: str
    boot_id: str
    at: int
    time: int
    will_start: t.Optional[bool] = None
    outcome: str = PENDING


@dataclass(frozen=True)
class Ledger:
    """What the guard counts, over all boots.

    `attempts` are those of the last start's boot until the memory manager had started; `started` says whether it has.
    `starts` and `boots` count by outcome, `rebaselines` the files that the guard has written.
    """

    last: t.Optional[Start] = None
    attempts: int = 0
    started: bool = False
    starts: t.Mapping[str, int] = field(default_factory=dict)
    boots: t.Mapping[str, int] = field(default_factory=dict)
    rebaselines: int = 0

    @property
    def pending(self) -> bool:
        return self.last is not None and self.last.outcome == PENDING


def began(ledger: Ledger, start: Start) -> Ledger:
    """The ledger at a start. The one before, if its end was not seen, and the boot before are settled."""
    if ledger.last is not None and ledger.last.invocation == start.invocation:
        return ledger
    last = ledger.last
    if last is not None and ledger.pending:
        ledger = _settle(ledger, last, _unseen_outcome(last, start))
    if last is not None and last.boot_id != start.boot_id:
        if not ledger.started and ledger.attempts:
            ledger = replace(ledger, boots=_counted(ledger.boots, NOT_STARTED))
        ledger = replace(ledger, attempts=0, started=False)
    return replace(ledger, last=start, attempts=ledger.attempts + (not ledger.started))


def ended(ledger: Ledger, invocation: str, at: int, clean: bool) -> Ledger:
    """The ledger at the end of a start. `clean` says that it was asked to stop, or ended without an error.

    An end that belongs to no start of ours changes nothing.
    """
    last = ledger.last
    if last is None or not ledger.pending or last.invocation != invocation:
        return ledger
    return _settle(ledger, last, outcome_of(last, at - last.at, clean))


def outcome_of(start: Start, seconds: int, clean: bool) -> str:
    """What a start that lasted so long was worth.

    Where a refusal was foretold, an error confirms it however late: the kubelet waits for its container runtime first.
    """
    if not clean and start.will_start is False:
        return REFUSED
    if seconds >= SETTLED_SECONDS:
        return STARTED
    return INTERRUPTED if clean else FAILED


def _unseen_outcome(last: Start, following: Start) -> str:
    """A kubelet that ran until its boot ended had started; one that was started again soon had failed."""
    if last.boot_id != following.boot_id:
        return STARTED
    return outcome_of(last, following.at - last.at, False)


def _settle(ledger: Ledger, last: Start, outcome: str) -> Ledger:
    ledger = replace(ledger, last=replace(last, outcome=outcome), starts=_counted(ledger.starts, outcome))
    if outcome == INTERRUPTED and not ledger.started:
        return replace(ledger, attempts=ledger.attempts - 1)
    if outcome != STARTED or ledger.started:
        return ledger
    boot = FIRST_ATTEMPT if ledger.attempts == 1 else LATER_ATTEMPT
    return replace(ledger, started=True, boots=_counted(ledger.boots, boot))


def _counted(counts: t.Mapping[str, int], name: str) -> t.Mapping[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}
