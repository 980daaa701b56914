# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A computed reservation adds up to the byte, in quantities that the kubelet converts."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import assume, given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (
    HugePagesInfo,
    MachineInfo,
    NumaNode,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import reservation_faults
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation_plan import (
    BY_SIZE,
    EVEN,
    ONE_NODE,
    PlanError,
    Rule,
    is_close,
    plan_reservation,
    reserved_memory_value,
)

GIB = 1 << 30


def machine(*sizes: int) -> MachineInfo:
    return MachineInfo(tuple(NumaNode(index, size) for index, size in enumerate(sizes)))


@given(
    st.lists(st.integers(GIB, 1 << 42), min_size=1, max_size=8),
    st.integers(1, 1 << 40),
    st.sampled_from([Rule(EVEN), Rule(BY_SIZE), Rule(ONE_NODE), Rule(ONE_NODE, 0)]),
)
def test_the_kubelet_finds_no_fault(sizes: t.List[int], total: int, rule: Rule) -> None:
    demanded = {"memory": parse_quantity(str(total))}
    try:
        shares = plan_reservation(machine(*sizes), demanded, rule)
    except PlanError:
        assume(False)
    entries = [MemoryReservation(one["numaNode"], one["limits"]) for one in reserved_memory_value(shares)]
    assert reservation_faults(machine(*sizes), demanded, entries) == []


@pytest.mark.parametrize(
    ("sizes", "quantity", "rule", "expected"),
    [
        ((8, 8), "1536Mi", Rule(EVEN), {0: "768Mi", 1: "768Mi"}),
        ((8, 8), "1.5Gi", Rule(ONE_NODE), {0: "1536Mi"}),
        ((8, 24), "4Gi", Rule(BY_SIZE), {0: "1Gi", 1: "3Gi"}),
        ((8, 8, 8), "100Mi", Rule(EVEN), {0: "34Mi", 1: "33Mi", 2: "33Mi"}),
        ((8, 0), "1Gi", Rule(EVEN), {0: "1Gi"}),
        ((8, 8), "1000000001", Rule(EVEN), {0: "500877825", 1: "476Mi"}),
    ],
)
def test_places(sizes: t.Tuple[int, ...], quantity: str, rule: Rule, expected: t.Dict[int, str]) -> None:
    shares = plan_reservation(machine(*(size * GIB for size in sizes)), {"memory": parse_quantity(quantity)}, rule)
    assert {one["numaNode"]: one["limits"]["memory"] for one in reserved_memory_value(shares)} == expected


@pytest.mark.parametrize(
    ("quantity", "rule", "reason"),
    [
        ("0", Rule(), "reserves no memory"),
        ("1500m", Rule(), "no whole number"),
        ("20Gi", Rule(), "would have to reserve"),
        ("1Gi", Rule(ONE_NODE, 5), "does not exist"),
    ],
)
def test_no_plan(quantity: str, rule: Rule, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        plan_reservation(machine(8 * GIB, 8 * GIB), {"memory": parse_quantity(quantity)}, rule)


def test_huge_pages_take_room() -> None:
    full = MachineInfo((NumaNode(0, 8 * GIB, (HugePagesInfo(1 << 20, 8),)), NumaNode(1, 8 * GIB)))
    assert plan_reservation(full, {"memory": parse_quantity("1Gi")}, Rule(EVEN)) == {1: GIB}


def test_shares_by_size_stay_while_the_memory_drifts() -> None:
    demanded = {"memory": parse_quantity("4Gi")}
    before = plan_reservation(machine(64 * GIB, 64 * GIB), demanded, Rule(BY_SIZE))
    drifted = machine(64 * GIB - (44 << 20), 64 * GIB + (44 << 20))
    assert is_close(before, plan_reservation(drifted, demanded, Rule(BY_SIZE)), Rule(BY_SIZE))
    assert not is_close({0: 4 * GIB}, before, Rule(BY_SIZE))
