# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine state that a start expects, and the exact comparison (semantics 3.3, 4.2)."""

from __future__ import annotations

import itertools
import typing as t
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from policy_builders import GIB, MIB, block, defaults, machine, pods, recorded

from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import (
    MAX_ORDERS,
    _orders,
    _orders_towards,
    _telling_orders,
    bad_blocks,
    compare,
    default_machine_state,
    replay,
    replay_outcomes,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    AssignmentUnit,
    Block,
    MachineState,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
    assignment_units,
)

TWO = machine(2 * GIB, 2 * GIB, pages=10)


def table(of: MachineState, node: int, resource: str = "memory") -> MemoryTable:
    return ((of[node] or NumaNodeState()).memory_map or {})[resource] or MemoryTable()


def units(*blocks: Block) -> t.Tuple[AssignmentUnit, ...]:
    return assignment_units(MemoryManagerState("Static", {}, pods(*blocks)), False)


def changed(of: MachineState, node: int, resource: str = "memory", **fields: int) -> MachineState:
    """A machine state in which fields of one table have other values."""
    old = of[node]
    assert old is not None
    tables = {**(old.memory_map or {}), resource: replace(table(of, node, resource), **fields)}
    return {**of, node: replace(old, memory_map=tables)}


# --- defaults --------------------------------------------------------------------------------------------------------


def test_default_state_of_a_node() -> None:
    state = defaults(TWO)
    assert table(state, 0) == MemoryTable(2048 * MIB, 512 * MIB, 1516 * MIB, 0, 1516 * MIB)
    assert table(state, 0, "hugepages-2Mi") == MemoryTable(20 * MIB, 0, 20 * MIB, 0, 20 * MIB)
    assert (state[1] or NumaNodeState()).cells == (1,)


def test_reserved_huge_pages_come_from_their_pool_alone() -> None:
    state = default_machine_state(TWO, {0: {"hugepages-2Mi": 2 * MIB}})
    assert table(state, 0, "hugepages-2Mi") == MemoryTable(20 * MIB, 2 * MIB, 18 * MIB, 0, 18 * MIB)
    assert table(state, 0).allocatable == 2028 * MIB


def test_more_reserved_than_there_is_wraps() -> None:
    assert table(defaults(machine(256 * MIB)), 0).free == (1 << 64) - 256 * MIB


# --- replay ----------------------------------------------------------------------------------------------------------


def test_a_block_fills_its_nodes_in_the_order_of_the_list() -> None:
    for order, reserved in (([0, 1], (1516, 84)), ([1, 0], (84, 1516))):
        state = replay(defaults(TWO), units(block(order, 1600))).machine_state
        assert (table(state, 0).reserved, table(state, 1).reserved) == tuple(size * MIB for size in reserved)
        assert [(node.number_of_assignments, node.cells) for node in state.values() if node] == [(1, tuple(order))] * 2


def test_a_node_that_no_block_uses_stays_as_it_is() -> None:
    assert replay(defaults(TWO), units(block([0], 1))).machine_state[1] == defaults(TWO)[1]


def test_zero_bytes_count_and_no_affinity_does_not() -> None:
    state = replay(defaults(TWO), units(block([0], 0), Block((), "nothing", 5))).machine_state
    assert [node.number_of_assignments for node in state.values() if node] == [1, 0]


def test_what_does_not_fit_is_missing_and_the_rest_is_charged() -> None:
    result = replay(defaults(TWO), units(block([0], 1000), block([0], 600)))
    assert [(one.pod, one.missing) for one in result.shortfalls] == [("pod2", 84 * MIB)]
    assert (table(result.machine_state, 0).free, table(result.machine_state, 0).reserved) == (0, 1516 * MIB)


@pytest.mark.parametrize(
    ("bad", "code"),
    [(block([0, 2], 1), "assignment_unknown_node"), (block([1], 1, "hugepages-1Gi"), "assignment_unknown_resource")],
)
def test_bad_blocks(bad: Block, code: str) -> None:
    found = bad_blocks(defaults(TWO), units(block([0], 1), bad))
    assert [(one.code, one.pod) for one in found] == [(code, "pod2")]
    assert found[0].error.startswith("[memorymanager] (pod: pod2, container: container1) the memory assignment uses ")


@pytest.mark.parametrize(
    ("affinities", "group_sums", "outcomes"),
    [
        (([0], [1], [0]), True, 1),
        (([0], [0, 1]), True, 2),
        (([0], [0], [0, 1]), True, 2),
        (([0, 1], [1, 0]), True, 1),
        (([0, 1], [1, 0]), False, 2),
    ],
)
def test_orders_only_where_the_order_matters(
    affinities: t.Sequence[t.Sequence[int]], group_sums: bool, outcomes: int
) -> None:
    found = replay_outcomes(defaults(TWO), units(*(block(list(one), 1) for one in affinities)), {}, group_sums)
    assert (len(found.replays), found.exhaustive) == (outcomes, True)


def test_by_default_free_and_reserved_count_as_sums() -> None:
    assert len(replay_outcomes(defaults(TWO), units(block([0, 1], 1), block([1, 0], 1)), {}).replays) == 1


@pytest.mark.parametrize(
    ("pod_count", "containers", "exhaustive"), [(6, 1, True), (7, 1, False), (1, 6, True), (4, 3, False)]
)
def test_as_many_orders_as_six_blocks_have_are_tried(pod_count: int, containers: int, exhaustive: bool) -> None:
    entangled = [
        AssignmentUnit(f"pod{pod}", f"container{number}", (block([0] if pod + number else [0, 1], 1),))
        for pod in range(pod_count)
        for number in range(containers)
    ]
    assert replay_outcomes(defaults(TWO), entangled, {}).exhaustive is exhaustive


def test_of_too_many_orders_every_kind_and_every_two_kinds_come_last() -> None:
    kinds = [(0,), (1,), (0, 1), (1, 0)]
    each_a_pod = tuple(
        (AssignmentUnit(f"pod{number}", "", (block(kind, 1),)),) for number, kind in enumerate(kinds * 2)
    )
    last = [tuple(unit.blocks[0].numa_affinity for unit in order[-2:]) for order in _telling_orders(each_a_pod, {})]
    assert len(last) == 4 + 4 * 3
    assert {pair[1] for pair in last[:4]} == set(kinds)
    assert set(last[4:]) == set(itertools.permutations(kinds, 2))


def test_of_too_many_orders_the_telling_ones_are_tried() -> None:
    blocks = [block([0], 1 + number) for number in range(40)]
    found = replay_outcomes(defaults(TWO), units(*blocks, block([1], 0), block([0, 1], 0)), {})
    assert not found.exhaustive
    cells = {tuple(one.machine_state[node].cells for node in (0, 1)) for one in found.replays}
    assert ((0, 1), (1,)) in cells  # only where [0, 1] is last but one, one order in 1722
    assert MAX_ORDERS < 40320


def unit(pod: t.Any, number: int, *affinities: t.Sequence[int]) -> AssignmentUnit:
    return AssignmentUnit(f"pod{pod}", f"container{number}", tuple(block(list(one), 0) for one in affinities))


def in_groups(*groups: t.Sequence[int]) -> MachineState:
    return {node: NumaNodeState(0, {}, tuple(cells)) for node, cells in enumerate(groups)}


def groups_after(order: t.Sequence[AssignmentUnit]) -> t.Tuple[t.Tuple[int, ...], ...]:
    after = replay(defaults(TWO), order).machine_state
    return tuple(tuple(sorted((after[node] or NumaNodeState()).cells or ())) for node in (0, 1))


def test_of_too_many_orders_the_one_that_leads_to_the_recorded_groups_is_tried() -> None:
    """[0, 1] has to come after every [1] and before a [0], whose pod has no [1] of its own."""
    others = [unit(pod, number, [number]) for pod in range(8) for number in (0, 1)]
    found = replay_outcomes(defaults(TWO), [unit("a", 0, [0]), unit("b", 0, [0, 1]), *others], in_groups([0], [0, 1]))
    assert not found.exhaustive
    cells = {tuple(one.machine_state[node].cells for node in (0, 1)) for one in found.replays}
    assert ((0,), (0, 1)) in cells


AFFINITIES = st.sampled_from([(0,), (1,), (0, 1)])
CONTAINERS = st.lists(AFFINITIES, min_size=1, max_size=2)
PODS = st.lists(st.lists(CONTAINERS, min_size=1, max_size=2), min_size=1, max_size=4)


@given(PODS, AFFINITIES, AFFINITIES)
def test_an_order_towards_the_recorded_groups_is_found_where_there_is_one(
    drawn: t.Sequence[t.Sequence[t.Sequence[t.Sequence[int]]]], first: t.Sequence[int], second: t.Sequence[int]
) -> None:
    every = tuple(
        tuple(unit(number, place, *affinities) for place, affinities in enumerate(pod))
        for number, pod in enumerate(drawn)
    )
    used = {node for pod in drawn for container in pod for affinity in container for node in affinity}
    wanted = tuple(tuple(cells) if node in used else (node,) for node, cells in enumerate((first, second)))
    found = [groups_after(order) for order in _orders_towards(every, in_groups(*wanted))]
    possible = any(groups_after(order) == wanted for order in _orders(every))
    assert found == ([wanted] if possible else [])


# --- comparison ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "kinds"),
    [
        ("total", ["total"]),
        ("system_reserved", ["system_reserved"]),
        ("allocatable", ["allocatable"]),
        ("free", ["group_free"]),
        ("reserved", ["group_reserved"]),
    ],
)
def test_each_field_counts(field: str, kinds: t.List[str]) -> None:
    state = recorded(TWO, block([0], 100)).nodes
    off = changed(state, 0, **{field: getattr(table(state, 0), field) + 1})
    assert [(one.kind, one.numa_node, one.resource) for one in compare(off, state)] == [(kinds[0], 0, "memory")]
    assert compare(state, state) == ()


def test_group_sums_since_1_32_node_by_node_before() -> None:
    """Semantics 5.10: 210/40 reserved in the file, 220/30 after the replay."""
    state = recorded(machine(240 * MIB, 240 * MIB), block([0, 1], 250), reserved=20).nodes
    split = changed(changed(state, 0, reserved=210 * MIB, free=10 * MIB), 1, reserved=40 * MIB, free=180 * MIB)
    assert compare(split, state) == ()
    assert [(one.kind, one.numa_node) for one in compare(split, state, group_sums=False)] == [
        ("reserved", 0),
        ("free", 0),
        ("reserved", 1),
        ("free", 1),
    ]


def test_group_sums_wrap() -> None:
    state = recorded(TWO, block([0, 1], 1)).nodes
    off = changed(changed(state, 0, free=(1 << 64) - 1), 1, free=table(state, 0).free + table(state, 1).free + 1)
    assert compare(off, state) == ()


PAGES = "hugepages-2Mi"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"cells": (0, 0)}, [("cells", None, (0, 0), (0,))]),
        ({"cells": ()}, [("cells", None, (), (0,))]),
        ({"cells": None}, [("cells", None, (), (0,))]),
        ({"number_of_assignments": 3}, [("assignment_count", None, 3, 0)]),
        (
            {"memory_map": {}},
            [("resource_count", None, 0, 2), ("resource_missing", PAGES, False, True)]
            + [("resource_missing", "memory", False, True)],
        ),
    ],
)
def test_each_field_of_a_node_counts(change: t.Dict[str, t.Any], found: t.List[t.Any]) -> None:
    state = dict(defaults(TWO))
    other = {**state, 0: replace(state[0] or NumaNodeState(), **change)}
    assert [(one.kind, one.resource, one.recorded, one.expected) for one in compare(other, state)] == found
    turned = [(one.kind, one.resource, one.expected, one.recorded) for one in compare(state, other)]
    assert turned == found


def test_nodes() -> None:
    one, two = defaults(machine(GIB)), defaults(machine(GIB, GIB))
    assert [(d.kind, d.recorded, d.expected) for d in compare(one, two)] == [
        ("node_count", 1, 2),
        ("node_missing", False, True),
    ]
    assert [(d.kind, d.crashes) for d in compare({0: None}, one)] == [("node_null", True)]


def test_a_group_without_the_resource_everywhere_crashes_the_kubelet() -> None:
    state = recorded(TWO, block([0, 1], 1)).nodes
    half = {**state, 1: replace(state[1] or NumaNodeState(), memory_map={"memory": table(state, 1)})}
    assert {one.resource for one in compare(half, state) if one.crashes} == {"hugepages-2Mi"}
