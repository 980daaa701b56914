# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change that the present state file does not fit is announced, and not written without consent."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from configure_node import STATIC, ConfiguredNode

from ansible_collections.kubenode.memory.plugins.module_utils._configure import Wish
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V3, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import MachineInfo, NumaNode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import default_machine_state
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation_plan import Rule
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._present_configuration import present_outcome

GIB = 1 << 30
LARGER = (Edit(("evictionHard", "memory.available"), "200Mi"),)


@pytest.fixture
def node(tmp_path: Path) -> ConfiguredNode:
    """A node whose state file fits its machine and its reservation of 1 GiB on NUMA node 0."""
    machine = MachineInfo((NumaNode(0, 8 * GIB), NumaNode(1, 8 * GIB)))
    state = MemoryManagerState("Static", default_machine_state(machine, {0: {"memory": GIB}}), {})
    made = ConfiguredNode(tmp_path, STATIC)
    made.tree.write("/var/lib/kubelet/memory_manager_state", encode(state, V3))
    return made


@pytest.mark.parametrize(
    "wish", [Wish(edits=LARGER, rule=Rule("one_node", 0)), Wish(edits=(Edit(("memoryManagerPolicy",), "None"),))]
)
def test_it_is_not_written_without_consent(node: ConfiguredNode, wish: Wish) -> None:
    outcome = node.run(wish)
    result = present_outcome(outcome)
    assert result["reset_needed"] is True
    assert result["reset_reasons"] == result["refused"]
    assert all(one["kubelet_error"] for one in result["reset_reasons"])
    assert "entry point reset" in " ".join(result["notes"])
    assert not outcome.written
    assert node.text == STATIC


def test_it_is_written_with_consent(node: ConfiguredNode) -> None:
    outcome = node.run(Wish(edits=LARGER, rule=Rule("one_node", 0), accepts_reset=True))
    assert outcome.written
    assert present_outcome(outcome)["will_start"] is False
    assert "memory: 1124Mi" in node.text


@pytest.mark.parametrize("value", [True, False])
def test_what_does_not_concern_the_state_needs_no_reset(node: ConfiguredNode, value: t.Any) -> None:
    outcome = node.set(kernelMemcgNotification=value)
    assert outcome.written
    assert present_outcome(outcome)["reset_needed"] is False
