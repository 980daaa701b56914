# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small machines, states and subjects for the tests of the policy core. Sizes are in MiB."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V3, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import Evaluation, evaluate
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (
    HugePagesInfo,
    MachineInfo,
    NumaNode,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import (
    default_machine_state,
    replay,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MachineState,
    MemoryManagerState,
    assignment_units,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.subject import StateFile, Subject
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import parse_tolerance

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
KERNEL = "1000000-1ffffff : Kernel code\n2000000-43fffff : Kernel data\n"
"""An image of 52 MiB: the bound is 116 MiB."""

Containers = t.Mapping[str, t.Tuple[Block, ...]]


def machine(*memory: int, pages: int = 0) -> MachineInfo:
    """Nodes 0, 1, ... with so many bytes each, and `pages` huge pages of 2 MiB on every node."""
    return MachineInfo(
        tuple(NumaNode(i, size, (HugePagesInfo(2048, pages),) if pages else ()) for i, size in enumerate(memory))
    )


def defaults(on: MachineInfo, reserved: int = 512) -> MachineState:
    """The state without assignments, `reserved` MiB of memory reserved on each node."""
    return default_machine_state(on, {node.id: {"memory": reserved * MIB} for node in on.topology})


def block(nodes: t.Sequence[int], size: int, resource: str = "memory") -> Block:
    return Block(tuple(nodes), resource, size * MIB)


def pods(*blocks: Block) -> t.Dict[str, Containers]:
    """Pods pod1, pod2, ... with one container and one block each."""
    return {f"pod{number}": {"container1": (one,)} for number, one in enumerate(blocks, 1)}


def recorded(on: MachineInfo, *blocks: Block, reserved: int = 512) -> MemoryManagerState:
    """What a kubelet on that machine recorded of such pods."""
    entries = pods(*blocks)
    state = MemoryManagerState("Static", {}, entries)
    return MemoryManagerState(
        "Static", replay(defaults(on, reserved), assignment_units(state, False)).machine_state, entries
    )


def subject(on: MachineInfo, state: t.Optional[MemoryManagerState], reserved: int = 512, **changes: t.Any) -> Subject:
    """A node with kubelet 1.37.2 and Static on machine `on`, whose state file holds `state` (None: no file)."""
    content = None if state is None else encode(state, V3).encode()
    values: t.Dict[str, t.Any] = {
        "machine": on,
        "state_file": StateFile("/var/lib/kubelet/memory_manager_state", content),
        "policy": "Static",
        "release": Release(1, 37, 2),
        "reserved_memory": tuple(MemoryReservation(node.id, {"memory": f"{reserved}Mi"}) for node in on.topology),
        "reservation": {"memory": parse_quantity(f"{reserved * len(on.topology)}Mi")},
        "iomem": KERNEL,
    }
    values.update(changes)
    return Subject(**values)


def judged(of: Subject, tolerance: str = "auto") -> Evaluation:
    return evaluate(of, parse_tolerance(tolerance))


def codes(evaluation: Evaluation) -> t.List[str]:
    return [finding.code for finding in evaluation.findings]
