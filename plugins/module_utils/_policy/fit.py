# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""How much memory each NUMA group can lose before an assignment no longer fits: a statement about the next boot."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .machine import MEMORY
from .state import UINT64_MASK, MachineState


@dataclass(frozen=True)
class FitMargin:
    """`bytes` is what the nodes of the group can lose together; the group has assignments of memory."""

    numa_nodes: t.Tuple[int, ...]
    bytes: int


def fit_margins(machine_state: MachineState) -> t.Tuple[FitMargin, ...]:
    """The margin of every group that has memory reserved, by lowest node id.

    A loss on any node of a group is made up by the others, since a block fills them in order: what counts is what is
    free in the whole group (semantics 4.2, 4). Groups without assignments cannot fail to fit.
    """
    margins = []
    for cells in sorted({tuple(sorted(node.cells or ())) for node in machine_state.values() if node is not None}):
        tables = [_memory(machine_state, cell) for cell in cells]
        if any(table is not None and table[0] for table in tables):
            margins.append(FitMargin(cells, sum(table[1] for table in tables if table) & UINT64_MASK))
    return tuple(margins)


def _memory(machine_state: MachineState, node_id: int) -> t.Optional[t.Tuple[int, int]]:
    """(reserved, free) memory of a node."""
    node = machine_state.get(node_id)
    table = None if node is None else (node.memory_map or {}).get(MEMORY)
    return None if table is None else (table.reserved, table.free)
