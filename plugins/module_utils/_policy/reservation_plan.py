# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A `reservedMemory` that adds up to what the kubelet demands, placed on the NUMA nodes by a rule (semantics 3.4)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .machine import MEMORY, MachineInfo, NumaNode
from .quantity import format_binary, parse_quantity
from .reservation import ResourceList
from .units import mebibytes

EVEN = "even"
BY_SIZE = "by_size"
ONE_NODE = "one_node"
RULES = (EVEN, BY_SIZE, ONE_NODE)

MIB = 1 << 20
CLOSE = 64
"""Shares by size may differ from the plan by this part of the sum before they are written anew."""


class PlanError(ValueError):
    """No such reservation exists on this machine; the message is for a person and names the next step."""


@dataclass(frozen=True)
class Rule:
    """How the sum is placed: in equal shares, in shares of each node's memory, or on the node `numa_node`."""

    name: str = EVEN
    numa_node: t.Optional[int] = None


def plan_reservation(machine: MachineInfo, reservation: ResourceList, rule: Rule) -> t.Dict[int, int]:
    """Bytes of memory to be reserved by NUMA node; nodes that get none are left out.

    :param reservation: what Node Allocatable reserves
    :raises PlanError: where nothing is demanded, or a node has less than its share
    """
    total = _demanded(reservation)
    shares = {node: share for node, share in _shares(machine, total, rule).items() if share}
    for node in machine.topology:
        free = _placeable(node)
        if shares.get(node.id, 0) >= max(free, 1):
            raise PlanError(
                f"NUMA node {node.id} would have to reserve {mebibytes(shares[node.id])} of the {mebibytes(free)} that "
                "are not huge pages. Reserve less, or place it by another rule."
            )
    return shares


def is_close(present: t.Mapping[int, int], plan: t.Mapping[int, int], rule: Rule) -> bool:
    """Whether a reservation that adds up already may stay: shares by size follow the memory, which drifts."""
    if rule.name != BY_SIZE or sum(present.values()) != sum(plan.values()) or present.keys() != plan.keys():
        return dict(present) == dict(plan)
    return all(abs(present[node] - plan[node]) * CLOSE <= sum(plan.values()) for node in plan)


def _demanded(reservation: ResourceList) -> int:
    quantity = reservation.get(MEMORY)
    if quantity is None or quantity.is_zero():
        raise PlanError(
            "the kubelet reserves no memory: Static needs some. Set kubeReserved, systemReserved or evictionHard "
            "memory.available."
        )
    total = quantity.ceil()
    if quantity.unscaled * 10 ** max(quantity.exponent, 0) != total * 10 ** max(-quantity.exponent, 0):
        raise PlanError(f"the kubelet reserves {quantity} of memory, which is no whole number of bytes")
    return total


def _placeable(node: NumaNode) -> int:
    return node.memory - sum(pool.total for pool in node.hugepages)


def _shares(machine: MachineInfo, total: int, rule: Rule) -> t.Dict[int, int]:
    if rule.name == ONE_NODE:
        return {_the_node(machine, rule): total}
    nodes = [node for node in machine.topology if _placeable(node) > 0]
    if not nodes:
        raise PlanError("no NUMA node has memory beside huge pages")
    weights = {node.id: _placeable(node) if rule.name == BY_SIZE else 1 for node in nodes}
    whole = sum(weights.values())
    shares = {node: total * weight // whole // MIB * MIB for node, weight in weights.items()}
    # What does not divide into whole MiB goes to the first node: which one has the most room changes from boot to boot.
    shares[nodes[0].id] += total - sum(shares.values())
    return shares


def _the_node(machine: MachineInfo, rule: Rule) -> int:
    known = [node.id for node in machine.topology]
    node = known[0] if rule.numa_node is None and known else rule.numa_node
    if node is None or node not in known:
        raise PlanError(f"NUMA node {node} does not exist on this machine; it has {', '.join(map(str, known))}")
    return node


def reserved_memory_value(shares: t.Mapping[int, int]) -> t.List[t.Dict[str, t.Any]]:
    """The field `reservedMemory`, in quantities that the kubelet can convert (semantics 3.4, point 3)."""
    return [{"numaNode": node, "limits": {MEMORY: readable_quantity(shares[node])}} for node in sorted(shares)]


def readable_quantity(size: int) -> str:
    """Bytes as a quantity that the kubelet converts to int64: `1536Mi`, or plain digits."""
    text = format_binary(size)
    return text if parse_quantity(text).as_int64() == size else str(size)
