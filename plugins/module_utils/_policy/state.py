# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The memory manager's state: the types of the kubelet's package `memorymanager/state` (semantics 1.2).

Sizes are bytes, unsigned 64 bit. Optional maps and lists are None where Go has nil: the checksum tells it from empty.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

UINT64_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class MemoryTable:
    """What one NUMA node has of one resource, in bytes."""

    total: int = 0
    system_reserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


@dataclass(frozen=True)
class NumaNodeState:
    """One node of the machine state; `cells` is the group of nodes that its assignments span."""

    number_of_assignments: int = 0
    memory_map: t.Optional[t.Mapping[str, t.Optional[MemoryTable]]] = None
    cells: t.Optional[t.Tuple[int, ...]] = None


@dataclass(frozen=True)
class Block:
    """`size` bytes of resource `type` that are pinned to the nodes of `numa_affinity`, filled in its order."""

    numa_affinity: t.Optional[t.Tuple[int, ...]] = None
    type: str = ""
    size: int = 0


MachineState = t.Mapping[int, t.Optional[NumaNodeState]]
Blocks = t.Optional[t.Tuple[Block, ...]]
ContainerMemoryAssignments = t.Mapping[str, t.Optional[t.Mapping[str, Blocks]]]
PodMemoryAssignments = t.Mapping[str, Blocks]


@dataclass(frozen=True)
class MemoryManagerState:
    """What a state file holds. `entries`: pod UID, container, blocks; `pod_entries`: pod UID, blocks (pod level)."""

    policy_name: str = ""
    machine_state: t.Optional[MachineState] = field(default_factory=dict)
    entries: t.Optional[ContainerMemoryAssignments] = field(default_factory=dict)
    pod_entries: t.Optional[PodMemoryAssignments] = field(default_factory=dict)

    @property
    def nodes(self) -> MachineState:
        return self.machine_state or {}

    def assignments(self) -> t.Iterator[t.Tuple[str, str, Block]]:
        """Every container block as (pod UID, container, block): pods and containers by name, blocks as listed."""
        for pod, containers in sorted((self.entries or {}).items()):
            for container, blocks in sorted((containers or {}).items()):
                for block in blocks or ():
                    yield pod, container, block


@dataclass(frozen=True)
class AssignmentUnit:
    """The blocks that the kubelet replays in one go: a container's, or a pod's with pod-level resources."""

    pod: str
    container: str
    blocks: t.Tuple[Block, ...]


def assignment_units(state: MemoryManagerState, pod_level: bool) -> t.Tuple[AssignmentUnit, ...]:
    """What a start replays (semantics 4.2, 3), pods by UID and containers by name.

    `pod_level` is the gate PodLevelResourceManagers. Pod entries without container entries are not replayed.
    """
    units = []
    for pod, containers in sorted((state.entries or {}).items()):
        pod_blocks = ((state.pod_entries or {}).get(pod) or ()) if pod_level else ()
        if pod_blocks:
            units.append(AssignmentUnit(pod, "", pod_blocks))
            continue
        units.extend(AssignmentUnit(pod, name, blocks or ()) for name, blocks in sorted((containers or {}).items()))
    return tuple(units)
