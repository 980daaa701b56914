# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts of the kubelet's unit: what each event settles, and what is counted."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.starts import (
    FAILED,
    INTERRUPTED,
    PENDING,
    REFUSED,
    STARTED,
    Ledger,
    Start,
    began,
    ended,
    outcome_of,
)

BOOT, NEXT_BOOT = "boot-1", "boot-2"


def start(name: str, at: int, boot: str = BOOT, will_start: t.Optional[bool] = True) -> Start:
    return Start(name, boot, at, 1_770_000_000 + at, will_start)


@pytest.mark.parametrize(
    ("will_start", "seconds", "clean", "outcome"),
    [
        (True, 3600, True, STARTED),
        (True, 60, False, STARTED),
        (True, 59, False, FAILED),
        (None, 59, False, FAILED),
        (True, 59, True, INTERRUPTED),
        (False, 2, False, REFUSED),
        (False, 300, False, REFUSED),
        (False, 300, True, STARTED),
        (False, 2, True, INTERRUPTED),
    ],
)
def test_outcome(will_start: t.Optional[bool], seconds: int, clean: bool, outcome: str) -> None:
    assert outcome_of(start("a", 0, will_start=will_start), seconds, clean) == outcome


def test_a_start_is_pending_until_the_next_event() -> None:
    ledger = began(Ledger(), start("a", 20))
    assert (ledger.pending, ledger.attempts, ledger.started) == (True, 1, False)
    assert ledger.last is not None
    assert ledger.last.outcome == PENDING


def test_first_attempt() -> None:
    ledger = ended(began(Ledger(), start("a", 20)), "a", 90, clean=True)
    assert (ledger.starts, ledger.boots, ledger.started) == ({STARTED: 1}, {"first_attempt": 1}, True)


def test_later_attempt_and_a_boot_is_counted_once() -> None:
    ledger = ended(began(Ledger(), start("a", 20, will_start=False)), "a", 22, clean=False)
    ledger = ended(began(ledger, start("b", 32)), "b", 3632, clean=True)
    assert (ledger.starts, ledger.boots) == ({REFUSED: 1, STARTED: 1}, {"later_attempt": 1})
    ledger = ended(began(ledger, start("c", 3640)), "c", 7000, clean=True)
    assert ledger.attempts == 2
    assert (ledger.starts[STARTED], ledger.boots) == (2, {"later_attempt": 1})


def test_not_started_is_counted_at_the_next_boot() -> None:
    ledger = ended(began(Ledger(), start("a", 20, will_start=False)), "a", 22, clean=False)
    assert ledger.boots == {}
    ledger = began(ledger, start("b", 19, NEXT_BOOT))
    assert (ledger.boots, ledger.attempts, ledger.started) == ({"not_started": 1}, 1, False)


def test_a_kubelet_that_ran_until_its_boot_ended_had_started() -> None:
    ledger = began(began(Ledger(), start("a", 20)), start("b", 19, NEXT_BOOT))
    assert (ledger.starts, ledger.boots) == ({STARTED: 1}, {"first_attempt": 1})


@pytest.mark.parametrize(("at", "outcome"), [(30, FAILED), (80, STARTED)])
def test_an_end_that_was_not_seen_is_told_by_the_next_start(at: int, outcome: str) -> None:
    ledger = began(began(Ledger(), start("a", 20)), start("b", at))
    assert ledger.starts == {outcome: 1}


def test_a_stop_on_request_is_no_attempt() -> None:
    ledger = ended(began(Ledger(), start("a", 20)), "a", 25, clean=True)
    assert (ledger.starts, ledger.attempts) == ({INTERRUPTED: 1}, 0)
    ledger = ended(began(ledger, start("b", 30)), "b", 100, clean=True)
    assert ledger.boots == {"first_attempt": 1}


def test_a_stop_on_request_later_in_the_boot_takes_no_attempt_away() -> None:
    ledger = ended(began(Ledger(), start("a", 20)), "a", 90, clean=True)
    ledger = ended(began(ledger, start("b", 100)), "b", 105, clean=True)
    assert ledger.attempts == 1


def test_a_boot_with_nothing_but_stops_on_request_is_not_counted() -> None:
    ledger = ended(began(Ledger(), start("a", 20)), "a", 25, clean=True)
    assert began(ledger, start("b", 20, NEXT_BOOT)).boots == {}


def test_an_end_of_another_start_changes_nothing() -> None:
    ledger = began(Ledger(), start("a", 20))
    assert ended(ledger, "other", 90, clean=True) == ledger
    settled = ended(ledger, "a", 90, clean=True)
    assert ended(settled, "a", 95, clean=False) == settled
    assert ended(Ledger(), "a", 90, clean=True) == Ledger()


def test_the_same_start_twice_is_one() -> None:
    ledger = began(Ledger(), start("a", 20))
    assert began(ledger, start("a", 21)) == ledger
