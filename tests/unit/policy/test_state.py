# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start replays of the recorded assignments (semantics 4.2, 3)."""

from __future__ import annotations

import typing as t

import pytest
from policy_builders import block

from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    AssignmentUnit,
    MemoryManagerState,
    assignment_units,
)

ONE, TWO, ALL = block([0], 1), block([0], 2), block([0, 1], 3)
STATE = MemoryManagerState(
    "Static", {}, {"b": {"c1": (ONE,)}, "a": {"z": (TWO,), "c0": None}}, {"b": (ALL,), "gone": (ALL,)}
)


@pytest.mark.parametrize(
    ("pod_level", "units"),
    [
        (False, [("a", "c0", ()), ("a", "z", (TWO,)), ("b", "c1", (ONE,))]),
        # The pod's own blocks in place of its containers'; a pod without containers is not replayed.
        (True, [("a", "c0", ()), ("a", "z", (TWO,)), ("b", "", (ALL,))]),
    ],
)
def test_units(pod_level: bool, units: t.List[t.Tuple[str, str, t.Any]]) -> None:
    assert assignment_units(STATE, pod_level) == tuple(AssignmentUnit(*unit) for unit in units)


def test_a_pod_entry_without_blocks_counts_for_nothing() -> None:
    state = MemoryManagerState("Static", {}, {"b": {"c1": (ONE,)}}, {"b": ()})
    assert assignment_units(state, True) == (AssignmentUnit("b", "c1", (ONE,)),)


def test_assignments_for_people() -> None:
    assert list(STATE.assignments()) == [("a", "z", TWO), ("b", "c1", ONE)]
