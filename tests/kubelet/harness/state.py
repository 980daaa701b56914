# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory manager state files of every format, written down from the description of the format alone.

Independent of the collection's own code on purpose: a fault there must not hide itself here. The kubelet's checksum
test is the judge of this file.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .topology import Topology

KIB = 1024
WRAP = 1 << 64
MEMORY = "memory"
SUFFIXES = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


@dataclasses.dataclass
class Table:
    """The numbers of one resource on one node, in bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int = 0

    @property
    def free(self) -> int:
        return self.allocatable - self.reserved


@dataclasses.dataclass
class NodeState:
    memory_map: dict[str, Table]
    cells: list[int]
    assignments: int = 0


@dataclasses.dataclass(frozen=True)
class Block:
    """What one container was given: bytes of one resource on the nodes of an affinity."""

    affinity: tuple[int, ...]
    size: int
    resource: str = MEMORY


Entries = t.Mapping[str, t.Mapping[str, t.Sequence[Block]]]


@dataclasses.dataclass
class State:
    """What a state file says."""

    policy: str
    nodes: dict[int, NodeState]
    entries: Entries = dataclasses.field(default_factory=dict)


def resource_name(page_kib: int) -> str:
    size = page_kib * KIB
    return next(f"hugepages-{size // unit}{suffix}" for suffix, unit in SUFFIXES if size % unit == 0)


def of_machine(topology: Topology, reserved: t.Mapping[int, int], entries: Entries | None = None) -> State:
    """The state that a Static kubelet records for a machine, `reserved` bytes of memory by node, and assignments.

    Amounts wrap at 64 bits, as the kubelet's do.
    """
    nodes = {number: _default(topology, number, reserved.get(number, 0)) for number in topology.nodes}
    for containers in (entries or {}).values():
        for blocks in containers.values():
            for block in blocks:
                _charge(nodes, block)
    return State("Static", nodes, entries or {})


def _default(topology: Topology, number: int, reserved: int) -> NodeState:
    node = topology.nodes[number]
    pools = {resource_name(size): size * KIB * count for size, count in node.hugepages.items()}
    tables = {name: Table(total, 0, total) for name, total in pools.items()}
    total = node.memory * KIB
    tables[MEMORY] = Table(total, reserved % WRAP, (total - reserved - sum(pools.values())) % WRAP)
    return NodeState(tables, [number])


def _charge(nodes: t.Mapping[int, NodeState], block: Block) -> None:
    left = block.size
    for number in block.affinity:
        node = nodes[number]
        node.assignments += 1
        node.cells = list(block.affinity)
        taken = min(left, node.memory_map[block.resource].free)
        node.memory_map[block.resource].reserved += taken
        left -= taken


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _body(state: State) -> dict[str, object]:
    body: dict[str, object] = {"policyName": state.policy, "machineState": _machine_state(state)}
    if state.entries:
        body["entries"] = {
            pod: {name: [_block(b) for b in blocks] for name, blocks in sorted(containers.items())}
            for pod, containers in sorted(state.entries.items())
        }
    return body


def _machine_state(state: State) -> dict[str, object]:
    return {
        str(number): {
            "numberOfAssignments": node.assignments,
            "memoryMap": {name: _table(table) for name, table in sorted(node.memory_map.items())},
            "cells": node.cells,
        }
        for number, node in sorted(state.nodes.items(), key=lambda item: str(item[0]))
    }


def _table(table: Table) -> dict[str, int]:
    return {
        "total": table.total,
        "systemReserved": table.system_reserved,
        "allocatable": table.allocatable,
        "reserved": table.reserved,
        "free": table.free,
    }


def _block(block: Block) -> dict[str, object]:
    return {"numaAffinity": list(block.affinity), "type": block.resource, "size": block.size}


def fnv1a(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def _spew(state: State, pod_entries: bool) -> str:
    nodes = " ".join(f"{number}:{_spew_node(state.nodes[number])}" for number in sorted(state.nodes))
    pods = " ".join(f"{pod}:map[{_spew_containers(state.entries[pod])}]" for pod in sorted(state.entries))
    tail = " PodEntries:(state.PodMemoryAssignments)map[]" if pod_entries else ""
    return (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){state.policy} "
        f"MachineState:(state.NUMANodeMap)map[{nodes}] "
        f"Entries:(state.ContainerMemoryAssignments)map[{pods}]{tail} Checksum:(checksum.Checksum)0}}"
    )


def _spew_node(node: NodeState) -> str:
    tables = " ".join(f"{name}:{_spew_table(table)}" for name, table in sorted(node.memory_map.items()))
    return (
        f"<*>{{NumberOfAssignments:(int){node.assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[{tables}] Cells:([]int){_spew_ints(node.cells)}}}"
    )


def _spew_table(table: Table) -> str:
    return (
        f"<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system_reserved} "
        f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} Free:(uint64){table.free}}}"
    )


def _spew_containers(containers: t.Mapping[str, t.Sequence[Block]]) -> str:
    return " ".join(f"{name}:[{' '.join(map(_spew_block, containers[name]))}]" for name in sorted(containers))


def _spew_block(block: Block) -> str:
    affinity = _spew_ints(block.affinity)
    return f"{{NUMAAffinity:([]int){affinity} Type:(v1.ResourceName){block.resource} Size:(uint64){block.size}}}"


def _spew_ints(numbers: t.Iterable[int]) -> str:
    return "[" + " ".join(map(str, numbers)) + "]"


def v1(state: State, checksum: int | None = None) -> str:
    """The file as 1.21 to 1.35 write it."""
    real = fnv1a(_spew(state, pod_entries=False))
    return _json({**_body(state), "checksum": real if checksum is None else checksum})


def v2(state: State) -> str:
    """The file as 1.36 writes it with the gate PodLevelResourceManagers."""
    return _json({**_body(state), "checksum": fnv1a(_spew(state, pod_entries=True))})


def v3(state: State, data: State | None = None) -> str:
    """The file as 1.37 writes it; with `data`, a file whose two halves say different things."""
    text = _json(_body(state if data is None else data))
    legacy = {**_body(state), "checksum": fnv1a(_spew(state, pod_entries=False))}
    return _json({**legacy, "data": text, "dataChecksum": fnv1a("(string)" + text)})
