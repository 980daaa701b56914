# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Epochs: which files belong together, and how far the machine is from the first of them."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.history import (
    BootRecord,
    Records,
    bounded,
    cumulative_drift,
    cumulative_findings,
    current_epoch,
    last_of_another_boot,
    observed,
    rewritten,
    settled,
)


def record(boot: str, content: str, total: int, replaces: t.Optional[str] = None) -> BootRecord:
    return BootRecord(boot, content, {0: total}, replaces=replaces)


def after(*steps: t.Tuple[str, str, int, t.Optional[str]]) -> Records:
    """The history after files were found (no replaces) and written."""
    records: Records = ()
    for boot, content, total, replaces in steps:
        new = record(boot, content, total, replaces)
        records = observed(records, new) if replaces is None else rewritten(records, new)
    return records


def keys(records: Records) -> t.List[t.Tuple[str, str, int]]:
    return [(one.boot_id, one.content_sha256, one.epoch) for one in records]


def test_a_rewrite_stays_in_the_epoch() -> None:
    records = after(("1", "a", 100, None), ("1", "b", 90, "a"), ("2", "b", 90, None), ("2", "c", 80, "b"))
    assert keys(records) == [("1", "a", 1), ("1", "b", 1), ("2", "b", 1), ("2", "c", 1)]


def test_the_kubelets_own_writes_stay_in_the_epoch() -> None:
    """An admission changes the content, not the totals."""
    assert keys(after(("1", "a", 100, None), ("1", "b", 100, None))) == [("1", "a", 1), ("1", "b", 1)]


def test_unknown_totals_begin_an_epoch() -> None:
    records = after(("1", "a", 100, None), ("1", "b", 90, "a"), ("2", "x", 70, None))
    assert keys(records)[-1] == ("2", "x", 2)
    assert [one.content_sha256 for one in current_epoch(records, {0: 70})] == ["x"]
    assert current_epoch(records, {0: 90}) == ()


def test_the_same_boot_and_content_is_one_line() -> None:
    once = after(("1", "a", 100, None))
    assert after(("1", "a", 100, None), ("1", "a", 100, None)) == once
    again = after(("1", "a", 100, None), ("1", "b", 100, None), ("1", "c", 100, None), ("1", "b", 100, None))
    assert [one.content_sha256 for one in again] == ["a", "c", "b"]


def test_the_first_baseline_is_never_the_line_that_goes() -> None:
    again = after(("1", "a", 100, None), ("1", "b", 90, "a"), ("1", "a", 100, "b"))
    assert [one.totals[0] for one in again] == [100, 90, 100]


@pytest.mark.parametrize(("total", "left"), [(100, 1), (90, 2), (70, 2)])
def test_a_write_that_never_came_to_be_is_dropped(total: int, left: int) -> None:
    """The line is written before the rename; a kill in between leaves the file of the line before."""
    assert len(settled(after(("1", "a", 100, None), ("1", "b", 90, "a")), {0: total})) == left


def test_after_a_kill_the_epoch_goes_on() -> None:
    records = observed(after(("1", "a", 100, None), ("1", "b", 90, "a")), record("2", "a", 100))
    assert keys(records) == [("1", "a", 1), ("2", "a", 1)]


def test_distance_to_the_first_baseline() -> None:
    records = after(("1", "a", 100, None), ("1", "b", 90, "a"), ("2", "c", 80, "b"))
    assert cumulative_drift(records, {0: 80}, {0: 75}) == {0: -25}
    assert cumulative_drift(records, {0: 70}, {0: 75}) == {}
    assert cumulative_drift((), {0: 70}, {0: 75}) == {}


@pytest.mark.parametrize(("size", "limit", "found"), [(-25, 24, 1), (25, 24, 1), (-25, 25, 0), (-25, 0, 0)])
def test_findings_beyond_the_limit(size: int, limit: int, found: int) -> None:
    findings = cumulative_findings({0: size, 1: 0}, limit)
    assert [(one.code, one.severity, one.numa_node) for one in findings] == [("cumulative_drift", "warning", 0)] * found


@given(st.lists(st.tuples(st.sampled_from("12"), st.sampled_from("abc"), st.integers(1, 3)), max_size=30))
def test_bounded_keeps_the_newest_and_the_first_baseline(steps: t.List[t.Tuple[str, str, int]]) -> None:
    records = after(*((boot, content, total, None) for boot, content, total in steps))
    kept = bounded(records, 4)
    assert kept[-3:] == records[-3:]
    assert len(kept) == min(4, len(records))
    if records:
        totals = records[-1].totals
        assert current_epoch(kept, totals)[0] == current_epoch(records, totals)[0]


def test_the_previous_boot() -> None:
    records = after(("1", "a", 100, None), ("2", "b", 90, None), ("2", "c", 90, None))
    assert last_of_another_boot(records, "2") == records[0]
    assert last_of_another_boot(records, "3") == records[-1]
    assert last_of_another_boot((), "3") is None
