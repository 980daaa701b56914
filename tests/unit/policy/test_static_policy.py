# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""validateState with and without tolerance (semantics 4.2, 5.2, 5.3, 5.9)."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from policy_builders import GIB, MIB, block, defaults, machine, pods, recorded

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import NIL_DEREFERENCE
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import (
    DOES_NOT_FIT,
    EMPTY_WITH_ASSIGNMENTS,
    STATES_DIFFER,
    Difference,
    replay,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    MemoryManagerState,
    NumaNodeState,
    assignment_units,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.static_policy import (
    MATCH,
    REFUSE,
    TOLERABLE,
    Outcome,
    comparison_errors,
    judge,
    rebaselined,
)

TWO = machine(2 * GIB, 2 * GIB)
SMALLER = machine(2 * GIB - 4 * MIB, 2 * GIB)
BOUND = 8 * MIB


def test_an_empty_state_is_filled_in() -> None:
    judgement = judge(MemoryManagerState("Static"), defaults(TWO), 0)
    assert (judgement.verdict, judgement.filled_in, judgement.machine_state) == (MATCH, True, defaults(TWO))
    assert judgement.exact.starts is True


def test_an_empty_state_with_assignments_is_refused() -> None:
    judgement = judge(MemoryManagerState("Static", {}, pods(block([0], 1))), defaults(TWO), BOUND)
    assert (judgement.verdict, judgement.errors, judgement.exact.starts) == (REFUSE, (EMPTY_WITH_ASSIGNMENTS,), False)


@pytest.mark.parametrize(
    ("bound", "verdict", "errors"),
    [(0, REFUSE, (STATES_DIFFER,)), (4 * MIB - 1, REFUSE, (STATES_DIFFER,)), (4 * MIB, TOLERABLE, ())],
)
def test_drift_and_bound(bound: int, verdict: str, errors: t.Tuple[str, ...]) -> None:
    judgement = judge(recorded(TWO, block([0], 10)), defaults(SMALLER), bound)
    assert (judgement.verdict, judgement.errors) == (verdict, errors)
    assert judgement.exact.starts is False
    assert {d.kind for d in judgement.differences} == {"total", "allocatable", "group_free"}


def test_a_good_start_leaves_the_recorded_state() -> None:
    state = recorded(TWO, block([1, 0], 10))
    judgement = judge(state, defaults(TWO), BOUND)
    assert (judgement.verdict, judgement.machine_state, judgement.filled_in) == (MATCH, state.nodes, False)


@pytest.mark.parametrize(("gate", "verdict"), [({}, MATCH), ({"pod_level": True}, REFUSE)])
def test_what_is_recorded_for_whole_pods_counts_with_the_gate_only(gate: t.Dict[str, bool], verdict: str) -> None:
    state = replace(recorded(TWO, block([0], 10)), pod_entries={"pod1": (block([9], 1),)})
    assert judge(state, defaults(TWO), 0, **gate).verdict == verdict


def test_the_rebaselined_state_is_the_replayed_one_with_cells_ascending() -> None:
    judgement = judge(recorded(TWO, block([1, 0], 10)), defaults(SMALLER), BOUND)
    after = judgement.machine_state or {}
    assert [node.cells for node in after.values() if node] == [(0, 1), (0, 1)]
    assert after == rebaselined(judgement.expected or {})
    assert judge(MemoryManagerState("Static", after, pods(block([1, 0], 10))), defaults(SMALLER), 0).verdict == MATCH


@pytest.mark.parametrize(("bound", "verdict"), [(0, MATCH), (1, REFUSE)])
def test_a_misfit_decides_only_while_drift_is_tolerated(bound: int, verdict: str) -> None:
    judgement = judge(recorded(TWO, block([0], 1600)), defaults(TWO), bound)
    assert (judgement.verdict, judgement.exact.starts) == (verdict, True)
    assert [one.missing for one in judgement.shortfalls] == [64 * MIB]


def test_bad_blocks_come_before_the_comparison() -> None:
    judgement = judge(recorded(TWO, block([0, 1], 1), block([0, 1], 1)), defaults(machine(GIB)), BOUND)
    assert len(judgement.bad_blocks) == len(judgement.errors) == 2
    assert judgement.exact.starts is False
    assert {d.kind for d in judgement.differences} == {"node_count", "node_missing", "total", "allocatable"}


def test_reserved_sums_stay_exact_within_the_bound() -> None:
    """Semantics 5.9, 1: the drafts would let this pass."""
    off = recorded(TWO, block([0], 11))
    state = replace(off, entries=pods(block([0], 10)))
    assert {d.kind for d in judge(state, defaults(SMALLER), BOUND).unforgiven} == {"group_reserved"}


MIXED = (block([0], 100), block([0, 1], 1))


def mixed(tail: int) -> MemoryManagerState:
    """Blocks [0] and [0 1] on one node: which cells it ends with depends on the order."""
    entries = pods(*MIXED)
    units = assignment_units(MemoryManagerState("Static", {}, entries), False)

    return MemoryManagerState("Static", replay(defaults(TWO), units[::tail]).machine_state, entries)


@pytest.mark.parametrize("order", [1, -1])
def test_an_order_dependent_file_is_ambiguous(order: int) -> None:
    judgement = judge(mixed(order), defaults(TWO), 0)
    assert (judgement.verdict, judgement.ambiguous, judgement.exact.starts) == (REFUSE, True, None)
    assert judgement.exact.errors == (STATES_DIFFER,)


def test_a_file_that_every_order_refuses_is_not_ambiguous() -> None:
    judgement = judge(mixed(1), defaults(machine(GIB, GIB)), 0)
    assert (judgement.verdict, judgement.ambiguous, judgement.exact.starts) == (REFUSE, False, False)


def test_what_only_another_order_would_mind_is_told_beside_the_rest() -> None:
    judgement = judge(mixed(1), defaults(machine(GIB, GIB)), 0)
    assert ((judgement.expected or {})[0] or NumaNodeState()).cells == (0, 1)
    told = [(one.kind, one.numa_node, one.resource) for one in judgement.differences]
    assert ("cells", 0, None) in told
    assert ("total", 0, "memory") in told
    assert len(set(told)) == len(told)
    assert judgement.unforgiven == judgement.differences


def test_tolerable_in_one_order_is_not_tolerable() -> None:
    judgement = judge(mixed(1), defaults(SMALLER), BOUND)
    assert (judgement.verdict, judgement.ambiguous, judgement.exact.starts) == (REFUSE, True, False)


def test_what_fits_in_no_order_is_told_although_one_order_starts() -> None:
    judgement = judge(recorded(TWO, block([0], 1600), block([0, 1], 1)), defaults(TWO), BOUND)
    assert (judgement.verdict, judgement.ambiguous, judgement.exact.starts) == (REFUSE, True, None)
    assert judgement.errors == (DOES_NOT_FIT.format("pod1", "container1"),)


def test_what_only_the_exact_comparison_minds_is_told_where_orders_differ() -> None:
    """Before 1.32 reserved and free are compared node by node: here on which of nodes 1 and 2 the rest lands."""
    three = machine(2 * GIB, 2 * GIB, 2 * GIB)
    state = recorded(three, block([0, 1, 2], 1200), block([0, 2, 1], 1200))
    judgement = judge(state, defaults(three), BOUND, group_sums=False)
    assert (judgement.verdict, judgement.ambiguous, judgement.errors) == (REFUSE, True, (STATES_DIFFER,))


def test_a_match_in_every_order_that_was_tried_is_no_match_where_some_were_not() -> None:
    state = recorded(TWO, *[block([0, 1], 1)] * 7, block([1, 0], 1))
    judgement = judge(state, defaults(TWO), 0, group_sums=False)
    assert (judgement.verdict, judgement.ambiguous, judgement.errors) == (REFUSE, True, (STATES_DIFFER,))
    assert judgement.exact == Outcome(None, (STATES_DIFFER,))


@pytest.mark.parametrize(("on", "ambiguous"), [(TWO, True), (machine(GIB, GIB), False)])
def test_with_too_many_orders_only_what_holds_in_all_decides(on: t.Any, ambiguous: bool) -> None:
    blocks = [block([0], 1 + number) for number in range(7)] + [block([0, 1], 1)]
    judgement = judge(recorded(TWO, *blocks), defaults(on), 0)
    assert (judgement.verdict, judgement.ambiguous) == (REFUSE, ambiguous)
    assert judgement.exact.starts is (None if ambiguous else False)


@pytest.mark.parametrize(
    ("kinds", "errors"),
    [
        ((), ()),
        (("total",), (STATES_DIFFER,)),
        (("group_asymmetric",), (NIL_DEREFERENCE,)),
        (("total", "group_asymmetric"), (STATES_DIFFER, NIL_DEREFERENCE)),
        (("node_count", "node_null"), (STATES_DIFFER,)),
    ],
)
def test_texts_that_a_comparison_can_end_in(kinds: t.Tuple[str, ...], errors: t.Tuple[str, ...]) -> None:
    assert comparison_errors([Difference(kind) for kind in kinds]) == errors


def test_a_null_node_is_never_a_match() -> None:
    state = MemoryManagerState("Static", {0: None, 1: NumaNodeState()})
    for bound in (0, 1 << 62):
        assert judge(state, defaults(TWO), bound).verdict == REFUSE
