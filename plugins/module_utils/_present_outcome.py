# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A re-baselining as plain dicts: what the module returns, and the diff of two state files as a table."""

from __future__ import annotations

import typing as t

from ._node.backups import BACKUPS
from ._policy.history import cumulative_drift, current_epoch, machine_totals, recorded_totals
from ._policy.rewrite import Rewrite
from ._policy.state import MachineState, MemoryManagerState
from ._policy.units import mebibytes
from ._present_report import present_machine_state, present_report
from ._rebaseline import RESTORE, SUCCESS, Outcome


def present_outcome(outcome: Outcome) -> t.Dict[str, t.Any]:
    """What the module returns: that of `memmgr_validate` for the file that was found, and what became of it."""
    result = present_report(outcome.decision.report)
    backup = outcome.backup
    result.update(
        reason=outcome.reason,
        msg=outcome.message,
        changed=outcome.changed,
        new_state_file=_present_new(outcome.decision.rewrite) if outcome.changed else None,
        backup=None if backup is None else {"id": backup, "path": f"{BACKUPS}/{backup}"},
        epoch=_present_epoch(outcome),
    )
    return result


def _present_new(rewrite: t.Optional[Rewrite]) -> t.Optional[t.Dict[str, t.Any]]:
    if rewrite is None or rewrite.after.state is None:
        return None
    return {
        "sha256": rewrite.sha256,
        "size": len(rewrite.content),
        "format": rewrite.format,
        "verdict": rewrite.after.verdict,
        "will_start": rewrite.after.will_start,
        "machine_state": present_machine_state(rewrite.after.state.nodes),
    }


def _present_epoch(outcome: Outcome) -> t.Optional[t.Dict[str, t.Any]]:
    """The epoch of the file that is there now; null where the history does not know it."""
    decision = outcome.decision
    written = decision.rewrite.after.state if outcome.changed and outcome.backup and decision.rewrite else None
    state = written or decision.evaluation.state
    epoch = () if state is None else current_epoch(outcome.records, recorded_totals(state.nodes))
    if not epoch or state is None:
        return None
    machine = machine_totals(decision.reading.subject.machine)
    distances = cumulative_drift(outcome.records, recorded_totals(state.nodes), machine)
    return {
        "number": epoch[-1].epoch,
        "records": len(epoch),
        "first_boot_id": epoch[0].boot_id,
        "first_baseline_bytes": {str(node): size for node, size in sorted(epoch[0].totals.items())},
        "distance_bytes": {str(node): size for node, size in distances.items()},
    }


def present_diff(outcome: Outcome) -> t.Dict[str, str]:
    """Before and after as text, a line for each number of each NUMA node; Ansible shows the lines that differ."""
    decision = outcome.decision
    before = decision.evaluation.state
    after = decision.rewrite.after.state if outcome.changed and decision.rewrite is not None else before
    assignments = outcome.reason == SUCCESS[RESTORE]
    return {
        "before_header": f"{decision.path} (recorded)",
        "after_header": f"{decision.path} ({outcome.reason})",
        "before": state_table(before, assignments),
        "after": state_table(after, assignments),
    }


def state_table(state: t.Optional[MemoryManagerState], assignments: bool = False) -> str:
    """A state as lines such as `NUMA node 0  memory  total  1970.3 MiB  2066071552`."""
    if state is None:
        return ""
    lines = [line for node_id in sorted(state.nodes) for line in _node_lines(state.nodes, node_id)]
    if assignments:
        lines.extend(
            f"pod {pod}  container {container}  {block.type}  {mebibytes(block.size)}  NUMA node "
            + ",".join(map(str, block.numa_affinity or ()))
            for pod, container, block in state.assignments()
        )
    return "".join(line + "\n" for line in lines)


def _node_lines(nodes: MachineState, node_id: int) -> t.Iterator[str]:
    node = nodes[node_id]
    for resource, table in sorted((node.memory_map or {}).items() if node is not None else ()):
        if table is not None and any(table.__dict__.values()):
            for name in ("total", "allocatable", "reserved", "free"):
                size = getattr(table, name)
                yield f"NUMA node {node_id}  {resource}  {name:<11}  {mebibytes(size):>12}  {size}"
