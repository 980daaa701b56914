# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a group of NUMA nodes can lose before an assignment no longer fits."""

from __future__ import annotations

import typing as t

import pytest
from policy_builders import GIB, MIB, block, defaults, machine, recorded

from ansible_collections.kubenode.memory.plugins.module_utils._policy.fit import FitMargin, fit_margins
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import Block, MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.static_policy import REFUSE, TOLERABLE, judge

FOUR = machine(GIB, GIB, GIB, GIB)


@pytest.mark.parametrize(
    ("blocks", "margins"),
    [
        ((), []),
        ((block([1], 500),), [((1,), 12)]),
        ((block([0, 2], 600), block([1], 512)), [((0, 2), 424), ((1,), 0)]),
        ((block([2, 0], 600),), [((0, 2), 424)]),
        ((block([3], 0),), []),
    ],
)
def test_margins(blocks: t.Tuple[Block, ...], margins: t.List[t.Tuple[t.Tuple[int, ...], int]]) -> None:
    assert fit_margins(recorded(FOUR, *blocks).nodes) == tuple(FitMargin(nodes, size * MIB) for nodes, size in margins)


@pytest.mark.parametrize(("lost", "verdict"), [(12, TOLERABLE), (13, REFUSE)])
def test_the_margin_is_what_the_judgement_stands(lost: int, verdict: str) -> None:
    state = recorded(FOUR, block([1], 500))
    assert fit_margins(state.nodes)[0].bytes == 12 * MIB
    assert judge(state, defaults(machine(GIB, GIB - lost * MIB, GIB, GIB)), 116 * MIB).verdict == verdict


def test_odd_states() -> None:
    assert fit_margins({0: None}) == ()
    assert fit_margins(MemoryManagerState().nodes) == ()
