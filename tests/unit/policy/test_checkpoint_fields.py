# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a state file: the numbers that they can hold, and what they hold where a file leaves them out."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import CheckpointError, read
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
)

NEWEST = Release(1, 37, 2)


def state_with(machine_state: str, entries: str = "{}") -> MemoryManagerState:
    """A file without a checksum, which is not verified."""
    text = f'{{"policyName":"Static","machineState":{machine_state},"entries":{entries}}}'
    return read(text.encode(), NEWEST, False).state


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_an_int_holds_64_bits(number: int) -> None:
    assert state_with(f'{{"0":{{"numberOfAssignments":{number}}}}}').nodes[0] == NumaNodeState(number, None, None)


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63])
def test_an_int_holds_no_more(number: int) -> None:
    with pytest.raises(CheckpointError, match=f"cannot unmarshal number {number} into .* of type int"):
        state_with(f'{{"0":{{"numberOfAssignments":{number}}}}}')


@pytest.mark.parametrize("number", [0, 2**64 - 1])
def test_a_size_holds_64_bits(number: int) -> None:
    node = state_with(f'{{"0":{{"memoryMap":{{"memory":{{"total":{number}}}}}}}}}').nodes[0]
    assert node == NumaNodeState(0, {"memory": MemoryTable(number, 0, 0, 0, 0)}, None)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_size_holds_no_more(number: int) -> None:
    with pytest.raises(CheckpointError, match=f"cannot unmarshal number {number} into .* of type uint64"):
        state_with(f'{{"0":{{"memoryMap":{{"memory":{{"total":{number}}}}}}}}}')


def test_what_is_left_out_is_zero() -> None:
    state = state_with('{"0":{},"1":{"memoryMap":{"memory":{}}}}', '{"pod1":{"container1":[{}]}}')
    assert state.nodes == {
        0: NumaNodeState(0, None, None),
        1: NumaNodeState(0, {"memory": MemoryTable(0, 0, 0, 0, 0)}, None),
    }
    assert state.entries == {"pod1": {"container1": (Block(None, "", 0),)}}
