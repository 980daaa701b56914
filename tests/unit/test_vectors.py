# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judgement of a mapping against what the real kubelet answered, and what the KEP's rules make of it.

`validate.jsonl` is the exact comparison of kubelet 1.37.2; `drift.jsonl` the same inputs under seven bounds.
"""

from __future__ import annotations

import typing as t

import pytest
from vectors import Row, each, rows

from ansible_collections.kubenode.memory.plugins.module_utils._mapping import evaluate_mapping, subject_from_mapping
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import NIL_DEREFERENCE, V3, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import evaluate
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import parse_tolerance

KUBELET = "1.37.2"
REWRITTEN = [row for row in rows("validate.jsonl") if row["file_rewritten"]]


def verdict_of(row: Row, good: str, stage: t.Optional[str]) -> str:
    """The verdict that an outcome means (design, end of section 4); `good` where the start succeeds."""
    if stage not in (None, "ok"):
        return "unreadable" if stage == "load" else "refuse"
    if row["policy"] == "None":
        return "not_applicable"
    return "absent" if row["file_text"] is None else good


def kubelet_texts(result: t.Dict[str, t.Any]) -> t.List[str]:
    return [
        text.replace('"memory_manager_state"', '"STATEDIR/memory_manager_state"') for text in result["kubelet_errors"]
    ]


def group_sums(machine_state: t.Any) -> t.Dict[str, t.Any]:
    """A machine state in which reserved and free of a node are those of its group."""
    sums: t.Dict[str, t.Any] = {}
    for node, content in machine_state.items():
        cells = sorted(content["cells"])
        sums[node] = {"cells": cells, "assignments": content["numberOfAssignments"]}
        for resource, table in content["memoryMap"].items():
            group = [machine_state[str(cell)]["memoryMap"][resource] for cell in cells]
            usage = {field: sum(each_[field] for each_ in group) for field in ("reserved", "free")}
            sums[node][resource] = {**table, **usage}
    return sums


@each("validate.jsonl")
def test_exact_comparison(row: Row) -> None:
    verdict = row["verdict"]
    seen = [text.partition(": ")[2] for text in row.get("all_verdicts_seen", ())] or [verdict.get("error", "")]
    result = evaluate_mapping(row, KUBELET, "off")
    assert result["will_start"] is (None if "" in seen and len(seen) > 1 else verdict["ok"])
    assert result["verdict"] == verdict_of(row, "match", verdict["stage"])
    assert {text for text in seen if text} <= set(kubelet_texts(result))
    if result["will_start"]:
        assert result["machine_state_after"] == row.get("machine_state_after", {})
        assert result["kubelet_errors"] == []


@pytest.mark.parametrize("row", REWRITTEN, ids=lambda row: row["name"])
def test_first_file_byte_for_byte(row: Row) -> None:
    """Where the kubelet fills in the defaults it writes the file that we would."""
    after = evaluate(subject_from_mapping(row, KUBELET), parse_tolerance("off")).machine_state_after
    assert encode(MemoryManagerState(row["policy"], after or {}), V3) == row["file_after"]


@each("drift.jsonl")
def test_tolerance(row: Row) -> None:
    assert len(row["expected"]) == 7
    for expected in row["expected"]:
        bound, stage = expected["bound"], expected.get("stage")
        result = evaluate_mapping(row, KUBELET, str(bound))
        assert result["verdict"] == verdict_of(row, expected["outcome"], stage), bound
        texts = expected.get("error_one_of") or [NIL_DEREFERENCE if stage == "panic" else expected.get("error")]
        if result["verdict"] == "tolerable":
            assert group_sums(result["machine_state_after"]) == group_sums(expected["machine_state_after"]), bound
        elif expected["outcome"] == "refuse" and not (row["verdict"]["ok"] or bound):
            assert set(texts) & set(kubelet_texts(result)), bound


@each("drift.jsonl")
def test_text_of_a_refusal_under_a_bound(row: Row) -> None:
    """What a kubelet with gate and option would say: the judgement's texts, not the installed kubelet's."""
    for expected in row["expected"][1::5]:
        if expected["outcome"] != "refuse" or expected["stage"] not in ("start", "panic"):
            continue
        judgement = evaluate(subject_from_mapping(row, KUBELET), parse_tolerance(str(expected["bound"]))).judgement
        texts = expected.get("error_one_of") or [expected.get("error", NIL_DEREFERENCE)]
        assert judgement is not None
        assert set(texts) & set(judgement.errors), expected["bound"]
