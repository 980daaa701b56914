# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The machine state that a start expects, and its comparison with the recorded one (semantics 3.3, 4.2).

The kubelet walks Go maps in random order. Where its answer depends on that order, every order is considered here:
`replay_outcomes` gives each machine state that a start can come to.
"""

from __future__ import annotations

import itertools
import math
import typing as t
from dataclasses import dataclass

from .machine import MEMORY, MachineInfo, NumaNode
from .state import UINT64_MASK, AssignmentUnit, Block, MachineState, MemoryTable, NumaNodeState

STATES_DIFFER = "[memorymanager] the expected machine state is different from the real one"
EMPTY_WITH_ASSIGNMENTS = "[memorymanager] machine state can not be empty when it has memory assignments"
UNKNOWN_NODE = "[memorymanager] (pod: {0}, container: {1}) the memory assignment uses the NUMA that does not exist"
UNKNOWN_RESOURCE = (
    "[memorymanager] (pod: {0}, container: {1}) the memory assignment uses memory resource that does not exist"
)
DOES_NOT_FIT = "[memorymanager] (pod: {0}, container: {1}) the memory assignment does not fit the machine state"

SystemReserved = t.Mapping[int, t.Mapping[str, int]]
"""Reserved memory in bytes by NUMA node and resource."""

MAX_ORDERS = 720
"""Orders that are tried before an order-dependent file is called ambiguous without trying the rest."""


def default_machine_state(machine: MachineInfo, reserved: SystemReserved) -> MachineState:
    """The state of a machine without assignments. Subtractions wrap at 64 bit, as the kubelet's do."""
    return {node.id: _default_node(node, reserved.get(node.id, {})) for node in machine.topology}


def _default_node(node: NumaNode, reserved: t.Mapping[str, int]) -> NumaNodeState:
    memory_map: t.Dict[str, MemoryTable] = {}
    for pool in node.hugepages:
        memory_map[pool.resource] = _unassigned(pool.total, reserved.get(pool.resource, 0), 0)
    in_hugepages = sum(pool.total for pool in node.hugepages)
    memory_map[MEMORY] = _unassigned(node.memory, reserved.get(MEMORY, 0), in_hugepages)
    return NumaNodeState(0, memory_map, (node.id,))


def _unassigned(total: int, system_reserved: int, elsewhere: int) -> MemoryTable:
    allocatable = (total - system_reserved - elsewhere) & UINT64_MASK
    return MemoryTable(total & UINT64_MASK, system_reserved & UINT64_MASK, allocatable, 0, allocatable)


# --- replay ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BadBlock:
    """A recorded block that the machine has no place for; `error` is the kubelet's text."""

    code: str
    pod: str
    container: str
    block: Block
    numa_node: int
    error: str


@dataclass(frozen=True)
class Shortfall:
    """A block of which `missing` bytes do not fit (semantics 5.3)."""

    pod: str
    container: str
    block: Block
    missing: int

    @property
    def error(self) -> str:
        return DOES_NOT_FIT.format(self.pod, self.container)


@dataclass(frozen=True)
class Replay:
    """The expected machine state after the recorded blocks, in one order of them."""

    machine_state: MachineState
    shortfalls: t.Tuple[Shortfall, ...] = ()


class _Node:
    """A node during a replay: counters that change, by resource."""

    __slots__ = ("assignments", "cells", "free", "reserved")

    def __init__(self, node: NumaNodeState) -> None:
        self.assignments = node.number_of_assignments
        self.cells = node.cells or ()
        tables = {name: table for name, table in (node.memory_map or {}).items() if table is not None}
        self.free = {name: table.free for name, table in tables.items()}
        self.reserved = {name: table.reserved for name, table in tables.items()}

    def freeze(self, start: NumaNodeState) -> NumaNodeState:
        memory_map = {
            name: MemoryTable(
                table.total, table.system_reserved, table.allocatable, self.reserved[name], self.free[name]
            )
            for name, table in (start.memory_map or {}).items()
            if table is not None
        }
        return NumaNodeState(self.assignments, memory_map, self.cells)


def bad_blocks(machine_state: MachineState, units: t.Sequence[AssignmentUnit]) -> t.Tuple[BadBlock, ...]:
    """The first bad block of each unit. Any of them may be the one that a start names: their order is random."""
    found = (_first_bad_block(machine_state, unit) for unit in units)
    return tuple(bad for bad in found if bad is not None)


def _first_bad_block(machine_state: MachineState, unit: AssignmentUnit) -> t.Optional[BadBlock]:
    for block in unit.blocks:
        for node_id in block.numa_affinity or ():
            node = machine_state.get(node_id)
            if node is None:
                text = UNKNOWN_NODE.format(unit.pod, unit.container)
                return BadBlock("assignment_unknown_node", unit.pod, unit.container, block, node_id, text)
            if block.type not in (node.memory_map or {}):
                text = UNKNOWN_RESOURCE.format(unit.pod, unit.container)
                return BadBlock("assignment_unknown_resource", unit.pod, unit.container, block, node_id, text)
    return None


def replay(machine_state: MachineState, units: t.Iterable[AssignmentUnit]) -> Replay:
    """Charge the units' blocks to a machine state, in order. There must be no `bad_blocks`."""
    nodes = {node_id: _Node(node) for node_id, node in machine_state.items() if node is not None}
    shortfalls = []
    for unit in units:
        for block in unit.blocks:
            missing = _charge(nodes, block)
            if missing:
                shortfalls.append(Shortfall(unit.pod, unit.container, block, missing))
    frozen = {node_id: node.freeze(t.cast(NumaNodeState, machine_state[node_id])) for node_id, node in nodes.items()}
    return Replay(frozen, tuple(shortfalls))


def _charge(nodes: t.Mapping[int, _Node], block: Block) -> int:
    """Fill the nodes in the order of the affinity; returns the bytes that found no place."""
    left = block.size
    affinity = block.numa_affinity or ()
    for node_id in affinity:
        node = nodes[node_id]
        node.assignments += 1
        node.cells = affinity
        take = min(left, node.free[block.type])
        node.reserved[block.type] += take
        node.free[block.type] -= take
        left -= take
    return left


@dataclass(frozen=True)
class ReplayOutcomes:
    """Different outcomes of the kubelet's random order, the sorted order's first.

    `exhaustive` says whether every order was tried; else the likeliest to differ were.
    """

    replays: t.Tuple[Replay, ...]
    exhaustive: bool = True


def replay_outcomes(
    machine_state: MachineState,
    units: t.Sequence[AssignmentUnit],
    recorded: MachineState,
    group_sums: bool = True,
) -> ReplayOutcomes:
    """What the kubelet's random order of pods and containers can come to.

    :param recorded: what the outcomes will be compared with
    :param group_sums: whether free and reserved count as sums over a group (see `compare`): then blocks of one group
        are no reason to try another order, in whatever order they list its nodes
    """
    entangled = _entangled_pods(units, group_sums)
    replays = [replay(machine_state, units)]
    if not entangled:
        return ReplayOutcomes(tuple(replays))
    exhaustive = _can_be_tried(entangled)
    chosen = {(unit.pod, unit.container) for pod in entangled for unit in pod}
    rest = tuple(unit for unit in units if (unit.pod, unit.container) not in chosen)
    for order in _orders(entangled) if exhaustive else _telling_orders(entangled, recorded):
        outcome = replay(machine_state, order + rest)
        if all(outcome.machine_state != seen.machine_state for seen in replays):
            replays.append(outcome)
    return ReplayOutcomes(tuple(replays), exhaustive)


_Pods = t.Tuple[t.Tuple[AssignmentUnit, ...], ...]


def _entangled_pods(units: t.Sequence[AssignmentUnit], group_sums: bool) -> _Pods:
    """Units whose order matters, grouped by pod: they touch a node that another block uses with other nodes."""
    affinities: t.Dict[int, t.Set[t.Tuple[int, ...]]] = {}
    for unit in units:
        for block in unit.blocks:
            affinity = block.numa_affinity or ()
            for node_id in affinity:
                affinities.setdefault(node_id, set()).add(tuple(sorted(affinity)) if group_sums else affinity)
    mixed = {node_id for node_id, seen in affinities.items() if len(seen) > 1}
    by_pod: t.Dict[str, t.List[AssignmentUnit]] = {}
    for unit in units if mixed else ():
        if any(node_id in mixed for block in unit.blocks for node_id in block.numa_affinity or ()):
            by_pod.setdefault(unit.pod, []).append(unit)
    return tuple(tuple(pod) for pod in by_pod.values())


def _can_be_tried(pods: _Pods) -> bool:
    sizes = [len(pods), *map(len, pods)]
    return max(sizes) <= 6 and math.prod(map(math.factorial, sizes)) <= MAX_ORDERS


def _orders(pods: _Pods) -> t.Iterator[t.Tuple[AssignmentUnit, ...]]:
    """Go walks pods in a random order, and each pod's containers in a random order of their own."""
    for pod_order in itertools.permutations(pods):
        within = (itertools.permutations(pod) for pod in pod_order)
        for container_orders in itertools.product(*within):
            yield tuple(itertools.chain.from_iterable(container_orders))


def _telling_orders(pods: _Pods, recorded: MachineState) -> t.Iterator[t.Tuple[AssignmentUnit, ...]]:
    """Where there are too many orders: the one that ends in the recorded groups, then each kind last, and every two.

    The last block of a node decides its group; units with the same affinities are of one kind.
    """
    yield from _orders_towards(pods, recorded)
    units = tuple(itertools.chain.from_iterable(pods))
    kinds = {tuple(block.numa_affinity for block in unit.blocks): unit for unit in units}
    pairs = itertools.permutations(kinds.values(), 2)
    for last in itertools.islice(itertools.chain(((unit,) for unit in kinds.values()), pairs), MAX_ORDERS):
        yield _with_last(pods, last)


def _orders_towards(pods: _Pods, recorded: MachineState) -> t.Iterator[t.Tuple[AssignmentUnit, ...]]:
    """An order that leaves each node in its recorded group; none where no order does."""
    wanted = {node_id: sorted(node.cells or ()) for node_id, node in recorded.items() if node is not None}

    def before_container(unit: AssignmentUnit, settled: t.FrozenSet[int]) -> t.Optional[_End]:
        nodes = _settle(unit, wanted, settled)
        return None if nodes is None else ((unit,), nodes)

    def before_pod(pod: t.Tuple[AssignmentUnit, ...], settled: t.FrozenSet[int]) -> t.Optional[_End]:
        return _from_the_end(pod, before_container, settled)

    found = _from_the_end(pods, before_pod, frozenset())
    if found is not None:
        yield found[0]


_End = t.Tuple[t.Tuple[AssignmentUnit, ...], t.FrozenSet[int]]
"""The end of an order, and the nodes whose group it decides."""

_Part = t.TypeVar("_Part")


def _from_the_end(
    parts: t.Sequence[_Part],
    put_before: t.Callable[[_Part, t.FrozenSet[int]], t.Optional[_End]],
    settled: t.FrozenSet[int],
) -> t.Optional[_End]:
    """All parts before what settles some nodes; None where one can be put nowhere.

    A part that leaves the nodes as they are to be never stands in the way of what comes before it.
    """
    found: t.Tuple[AssignmentUnit, ...] = ()
    left = list(parts)
    while left:
        ends = ((part, put_before(part, settled)) for part in left)
        chosen = next(((part, end) for part, end in ends if end is not None), None)
        if chosen is None:
            return None
        part, (order, settled) = chosen
        found = order + found
        left.remove(part)
    return found, settled


def _settle(
    unit: AssignmentUnit, wanted: t.Mapping[int, t.Sequence[int]], settled: t.FrozenSet[int]
) -> t.Optional[t.FrozenSet[int]]:
    """The nodes that are settled with this container before them; None if it leaves one in another group."""
    for block in reversed(unit.blocks):
        affinity = block.numa_affinity or ()
        if any(node_id not in settled and wanted.get(node_id) != sorted(affinity) for node_id in affinity):
            return None
        settled = settled.union(affinity)
    return settled


def _with_last(pods: _Pods, last: t.Sequence[AssignmentUnit]) -> t.Tuple[AssignmentUnit, ...]:
    """An order that the kubelet can walk, in which these units come last among their pods', and their pods last."""
    places = {(unit.pod, unit.container): place for place, unit in enumerate(last)}
    pod_places = {unit.pod: place for place, unit in enumerate(last)}
    ordered = sorted(pods, key=lambda pod: pod_places.get(pod[0].pod, -1))
    within = (sorted(pod, key=lambda unit: places.get((unit.pod, unit.container), -1)) for pod in ordered)
    return tuple(itertools.chain.from_iterable(within))


# --- comparison ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One field in which recorded and expected state differ.

    `kind` is one of `node_count`, `node_missing`, `node_null`, `assignment_count`, `cells`,
    `resource_count`, `resource_missing`, `total`, `system_reserved`, `allocatable`, `group_free`, `group_reserved`,
    `free`, `reserved` or `group_asymmetric`. With the last one, and with `node_null`, the kubelet crashes.
    """

    kind: str
    numa_node: t.Optional[int] = None
    resource: t.Optional[str] = None
    recorded: t.Any = None
    expected: t.Any = None

    @property
    def crashes(self) -> bool:
        return self.kind in ("group_asymmetric", "node_null")


def compare(recorded: MachineState, expected: MachineState, group_sums: bool = True) -> t.Tuple[Difference, ...]:
    """Every difference that makes an exact start fail.

    :param group_sums: since 1.32 free and reserved are compared as sums over a node's group; before, node by node
    """
    return tuple(_compare(recorded, expected, group_sums))


def _compare(recorded: MachineState, expected: MachineState, group_sums: bool) -> t.Iterator[Difference]:
    if len(recorded) != len(expected):
        yield Difference("node_count", None, None, len(recorded), len(expected))
    for node_id in sorted(set(recorded) | set(expected)):
        if node_id not in recorded or node_id not in expected:
            yield Difference("node_missing", node_id, None, node_id in recorded, node_id in expected)
            continue
        have, want = recorded[node_id], expected[node_id]
        if have is None or want is None:
            yield Difference("node_null", node_id)
            continue
        yield from _compare_node(node_id, have, want)
        yield from _compare_tables(node_id, have, want)
        if group_sums:
            yield from _compare_groups(node_id, have, want, recorded, expected)
        else:
            yield from _compare_usage(node_id, have, want)


def _compare_node(node_id: int, have: NumaNodeState, want: NumaNodeState) -> t.Iterator[Difference]:
    if have.number_of_assignments != want.number_of_assignments:
        counts = (have.number_of_assignments, want.number_of_assignments)
        yield Difference("assignment_count", node_id, None, counts[0], counts[1])
    if sorted(have.cells or ()) != sorted(want.cells or ()):
        yield Difference("cells", node_id, None, tuple(have.cells or ()), tuple(want.cells or ()))
    have_map, want_map = have.memory_map or {}, want.memory_map or {}
    if len(have_map) != len(want_map):
        yield Difference("resource_count", node_id, None, len(have_map), len(want_map))
    for resource in sorted(set(have_map) ^ set(want_map)):
        yield Difference("resource_missing", node_id, resource, resource in have_map, resource in want_map)


def _shared_tables(have: NumaNodeState, want: NumaNodeState) -> t.Iterator[t.Tuple[str, MemoryTable, MemoryTable]]:
    for resource in sorted(have.memory_map or {}):
        one, other = (have.memory_map or {})[resource], (want.memory_map or {}).get(resource)
        if one is not None and other is not None:
            yield resource, one, other


def _compare_tables(node_id: int, have: NumaNodeState, want: NumaNodeState) -> t.Iterator[Difference]:
    for resource, one, other in _shared_tables(have, want):
        if one.total != other.total:
            yield Difference("total", node_id, resource, one.total, other.total)
        if one.system_reserved != other.system_reserved:
            yield Difference("system_reserved", node_id, resource, one.system_reserved, other.system_reserved)
        if one.allocatable != other.allocatable:
            yield Difference("allocatable", node_id, resource, one.allocatable, other.allocatable)


def _compare_usage(node_id: int, have: NumaNodeState, want: NumaNodeState) -> t.Iterator[Difference]:
    for resource, one, other in _shared_tables(have, want):
        if one.reserved != other.reserved:
            yield Difference("reserved", node_id, resource, one.reserved, other.reserved)
        if one.free != other.free:
            yield Difference("free", node_id, resource, one.free, other.free)


def _compare_groups(
    node_id: int, have: NumaNodeState, want: NumaNodeState, recorded: MachineState, expected: MachineState
) -> t.Iterator[Difference]:
    cells = have.cells or ()
    # A resource that the node itself lacks ends the kubelet's comparison before any sum.
    for resource in sorted(set(have.memory_map or {}) & set(want.memory_map or {})):
        mine, theirs = group_tables(recorded, cells, resource), group_tables(expected, cells, resource)
        if mine is None or theirs is None:
            yield Difference("group_asymmetric", node_id, resource, cells, None)
            continue
        for kind, field in (("group_free", "free"), ("group_reserved", "reserved")):
            one, other = (sum(getattr(table, field) for table in tables) & UINT64_MASK for tables in (mine, theirs))
            if one != other:
                yield Difference(kind, node_id, resource, one, other)


def group_tables(machine_state: MachineState, cells: t.Iterable[int], resource: str) -> t.Optional[t.List[MemoryTable]]:
    """The tables of a group's nodes; None if a node is missing or has not the resource (the kubelet crashes)."""
    tables = []
    for cell in cells:
        node = machine_state.get(cell)
        table = None if node is None else (node.memory_map or {}).get(resource)
        if table is None:
            return None
        tables.append(table)
    return tables
