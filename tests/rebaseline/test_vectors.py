# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every tolerable row of the drift vectors, rewritten: who accepts the file, and whether it is the kubelet's own."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from vectors import Row, rows

from ansible_collections.kubenode.memory.plugins.module_utils._mapping import subject_from_mapping
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import (
    V1,
    V2,
    V3,
    CheckpointError,
    encode,
    read,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import evaluate
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.rewrite import Rewrite, RewriteRefused, rebaseline
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MachineState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.subject import Subject
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import ToleranceSetting, parse_tolerance
from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_machine_state

NEWEST = Release(1, 37, 2)
RELEASES = (Release(1, 21), Release(1, 31), Release(1, 32), Release(1, 34, 4), Release(1, 35, 4), Release(1, 36, 3))


class Case(t.NamedTuple):
    """A row with one bound, its file in one of the formats."""

    name: str
    row: Row
    bound: int
    after: t.Dict[str, t.Any]

    @property
    def setting(self) -> ToleranceSetting:
        return parse_tolerance(str(self.bound))

    def subject(self, release: Release) -> Subject:
        return subject_from_mapping(self.row, f"v{release}")


def cases(fmt: str) -> t.Iterator[Case]:
    """All rows are V3 as recorded; V1 and V2 are the same states, as older kubelets would have written them."""
    for row in rows("drift.jsonl"):
        for expected in row["expected"]:
            if expected["outcome"] == "tolerable":
                file = in_format(row, fmt)
                if file is not None:
                    name = f"{row['name']}-{fmt}-{expected['bound']}"
                    yield Case(name, {**row, "file_text": file}, expected["bound"], expected["machine_state_after"])


def in_format(row: Row, fmt: str) -> t.Optional[str]:
    """The row's file in another format; None where it has pod entries that the format has no place for."""
    loaded = read(row["file_text"].encode(), NEWEST, True)
    assert loaded.format == V3
    if fmt == V3:
        return str(row["file_text"])
    return None if fmt == V1 and loaded.state.pod_entries else encode(loaded.state, fmt, True)


CASES = {fmt: list(cases(fmt)) for fmt in (V1, V2, V3)}
ONE_EACH = {fmt: list({case.row["name"]: case for case in found}.values()) for fmt, found in CASES.items()}
each_format = pytest.mark.parametrize("fmt", sorted(CASES))


def rewritten(case: Case, release: Release = NEWEST) -> Rewrite:
    subject = case.subject(release)
    return rebaseline(subject, case.setting, evaluate(subject, case.setting))


def reading(content: bytes, subject: Subject) -> t.Optional[MachineState]:
    """The machine state as a release reads it, None where it does not."""
    try:
        return read(content, subject.rules, subject.pod_level).state.machine_state
    except CheckpointError:
        return None


def with_content(subject: Subject, content: bytes) -> Subject:
    return replace(subject, state_file=replace(subject.state_file, content=content))


def group_sums(machine_state: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """The state, with reserved and free as sums over the groups."""
    result: t.Dict[str, t.Any] = {}
    for node, content in machine_state.items():
        result[node] = {"assignments": content["numberOfAssignments"], "cells": sorted(content["cells"])}
        for resource, table in content["memoryMap"].items():
            group = [machine_state[str(cell)]["memoryMap"][resource] for cell in content["cells"]]
            sums = [sum(one[name] for one in group) for name in ("reserved", "free")]
            result[node][resource] = [table["total"], table["systemReserved"], table["allocatable"], *sums]
    return result


def test_how_many_rows_there_are() -> None:
    assert {fmt: len(found) for fmt, found in CASES.items()} == {V1: 199, V2: 199, V3: 199}


def test_the_file_does_not_depend_on_the_bound() -> None:
    by_row: t.Dict[str, t.Set[bytes]] = {}
    for case in CASES[V3]:
        by_row.setdefault(case.row["name"], set()).add(rewritten(case).content)
    assert {len(contents) for contents in by_row.values()} == {1}


@each_format
def test_the_machine_state_is_the_expected_one(fmt: str) -> None:
    for case in ONE_EACH[fmt]:
        after = rewritten(case).after.state
        assert after is not None
        assert group_sums(present_machine_state(after.nodes)) == group_sums(case.after), case.name


@each_format
def test_entries_and_format_stay_and_the_bytes_are_the_kubelets(fmt: str) -> None:
    for case in ONE_EACH[fmt]:
        rewrite, subject = rewritten(case), case.subject(NEWEST)
        old = read(subject.state_file.content or b"", NEWEST, True)
        new = read(rewrite.content, NEWEST, True)
        assert (new.format, rewrite.format) == (fmt, fmt), case.name
        assert (new.state.entries, new.state.pod_entries) == (old.state.entries, old.state.pod_entries), case.name
        assert encode(new.state, fmt, subject.pod_level).encode() == rewrite.content, case.name


@each_format
def test_a_second_run_has_nothing_to_do(fmt: str) -> None:
    for case in ONE_EACH[fmt]:
        subject = with_content(case.subject(NEWEST), rewritten(case).content)
        again = evaluate(subject, case.setting)
        assert (again.verdict, again.will_start) == ("match", True), case.name
        with pytest.raises(RewriteRefused):
            rebaseline(subject, case.setting, again)


@each_format
def test_each_release_that_could_read_the_original_accepts_the_file(fmt: str) -> None:
    """By the exact comparison, whichever release it was written for; and each of them would write the same."""
    exact, tried = parse_tolerance("off"), 0
    for case in ONE_EACH[fmt]:
        content = rewritten(case).content
        for release in (*RELEASES, NEWEST):
            subject = case.subject(release)
            if reading(subject.state_file.content or b"", subject) is None:
                continue
            tried += 1
            assert evaluate(with_content(subject, content), exact).will_start is True, (case.name, release)
            if evaluate(subject, case.setting).verdict == "tolerable":
                assert rewritten(case, release).content == content, (case.name, release)
    assert tried >= (6 if fmt != V2 else 1) * len(ONE_EACH[fmt])
