# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Findings about the recorded state: each difference, bad block and misfit as a sentence with the next step."""

from __future__ import annotations

import typing as t

from .findings import INFO, STOPS_START, WARNING, Finding
from .fit import FitMargin
from .hints import INTERRUPTED_WRITE, Hint
from .machine import MEMORY, is_hugepages
from .machine_state import BadBlock, Difference, Shortfall
from .state import UINT64_MASK, MachineState
from .static_policy import Judgement
from .tolerance import OPTION, Bound
from .units import mebibytes

_RESET = "Drain the node, then accept the change with the role's entry point reset"
_REBASELINE = "Re-baseline the file with memmgr_rebaseline"

_STRUCTURE = ("node_count", "node_missing", "assignment_count", "cells", "resource_missing")
_HINTED = {INTERRUPTED_WRITE: ("assignments_differ",)}
_CAUSES_OF_FREE = ("total", "system_reserved", "allocatable", *_STRUCTURE)


def judgement_findings(
    judgement: Judgement, bound: int, stops: bool, hints: t.Sequence[Hint] = ()
) -> t.Tuple[Finding, ...]:
    """Everything that a judgement found.

    :param stops: whether the installed kubelet does not start for these differences
    """
    severity = STOPS_START if stops else WARNING if judgement.verdict == "refuse" else INFO
    error = judgement.exact.errors[0] if stops and judgement.exact.errors else None
    found = [_bad_block(bad) for bad in judgement.bad_blocks]
    # Without a tolerance no kubelet minds; a person still wants to know (semantics 5.9, 2).
    found.extend(_shortfall(one, severity if bound else WARNING, bool(bound)) for one in judgement.shortfalls)
    differences = _without_consequences(judgement)
    found.extend(_difference(difference, bound, severity, error, hints) for difference in differences)
    if judgement.ambiguous:
        found.append(_ambiguous(judgement))
    if not found and judgement.verdict == "refuse":
        found.append(_unexplained(judgement, error))
    return tuple(found)


def _bad_block(bad: BadBlock) -> Finding:
    what = f"NUMA node {bad.numa_node}, which this machine does not have"
    if bad.code == "assignment_unknown_resource":
        what = f"{bad.block.type} on NUMA node {bad.numa_node}, which has none"
    return Finding(
        bad.code,
        STOPS_START,
        f"{_who(bad.pod, bad.container)} is assigned {what}. {_RESET}.",
        numa_node=bad.numa_node,
        resource=bad.block.type,
        pod_uid=bad.pod,
        container=bad.container,
        expected=bad.block.size,
        kubelet_error=bad.error,
    )


def _who(pod: str, container: str) -> str:
    return f"Container {container} of pod {pod}" if container else f"Pod {pod}"


def _shortfall(shortfall: Shortfall, severity: str, decides: bool) -> Finding:
    block = shortfall.block
    nodes = tuple(block.numa_affinity or ())
    return Finding(
        "assignment_does_not_fit",
        severity,
        "{0} is assigned {1} of {2} on NUMA node {3}, {4} more than the machine has left. Drain that pod; "
        "its assignment cannot be kept.".format(
            _who(shortfall.pod, shortfall.container),
            mebibytes(block.size),
            block.type,
            ", ".join(map(str, nodes)) or "none",
            mebibytes(shortfall.missing),
        ),
        numa_node=nodes[0] if len(nodes) == 1 else None,
        resource=block.type,
        pod_uid=shortfall.pod,
        container=shortfall.container,
        expected=block.size,
        found=block.size - shortfall.missing,
        kubelet_error=shortfall.error if decides else None,
    )


def _without_consequences(judgement: Judgement) -> t.List[Difference]:
    """The differences that a person has to know of: a changed total also changes allocatable, free and group sums."""
    return [one for one in judgement.differences if not _is_consequence(one, judgement)]


def _is_consequence(difference: Difference, judgement: Judgement) -> bool:
    """Whether another difference of the same judgement is the cause of this one."""
    kind, others = difference.kind, judgement.differences
    if kind == "allocatable":
        return any(_moves_allocatable(other, difference) for other in others)
    if kind in ("group_free", "free"):
        return _has_kind(others, *_CAUSES_OF_FREE, kind.replace("free", "reserved"))
    if kind in ("group_reserved", "reserved"):
        return bool(judgement.shortfalls) or _has_kind(others, *_STRUCTURE)
    return kind in ("node_count", "resource_count") and _has_kind(others, kind.replace("count", "missing"))


def _moves_allocatable(cause: Difference, allocatable: Difference) -> bool:
    """Allocatable is the total without what is reserved, and memory's is also without the node's huge page pools."""
    if cause.numa_node != allocatable.numa_node:
        return False
    if cause.resource == allocatable.resource and cause.kind in ("total", "system_reserved"):
        return True
    return is_hugepages(cause.resource or "") and cause.kind in ("total", "resource_missing")


def _has_kind(differences: t.Iterable[Difference], *kinds: str) -> bool:
    return any(difference.kind in kinds for difference in differences)


def _difference(
    difference: Difference, bound: int, severity: str, error: t.Optional[str], hints: t.Sequence[Hint]
) -> Finding:
    code, sentence, step = _describe(difference, bound)
    fitting = [hint for hint in hints if code in _HINTED.get(hint.kind, ("memory_drift", "memory_changed"))]
    text = "; ".join(hint.message for hint in fitting)
    return Finding(
        code,
        severity,
        "{0}{1}. {2}.".format(sentence, f" ({text})" if text else "", step),
        numa_node=difference.numa_node,
        resource=difference.resource,
        expected=_plain(difference.recorded),
        found=_plain(difference.expected),
        kubelet_error=error,
        hint=fitting[0].kind if fitting else None,
    )


def _plain(value: t.Any) -> t.Any:
    return ",".join(map(str, value)) if isinstance(value, tuple) else None if isinstance(value, bool) else value


def _describe(d: Difference, bound: int) -> t.Tuple[str, str, str]:
    """(code, sentence, next step)"""
    node = f"NUMA node {d.numa_node}"
    if d.kind in ("total", "allocatable", "system_reserved"):
        return _describe_table(d, node, bound)
    if d.kind in ("node_missing", "node_count"):
        return _describe_nodes(d, node)
    if d.kind in ("resource_missing", "resource_count"):
        code = "hugepages_changed" if is_hugepages(d.resource or "") else "resources_changed"
        where = "is recorded, but the machine has none" if d.recorded else "is on the machine, but not recorded"
        return code, "{0}: {1} {2}".format(node, d.resource or "another number of resources", where), _RESET
    if d.kind == "assignment_count":
        text = f"{node}: {d.recorded} assignments are counted, but {d.expected} are listed"
        return "assignments_differ", text, _RESET
    if d.kind == "cells":
        text = f"{node}: the recorded group is {d.recorded}, its assignments span {d.expected}"
        return "groups_differ", text, _RESET
    if d.kind == "group_asymmetric":
        text = f"{node} is in a group of which not every node has {d.resource}; the kubelet crashes on that"
        return "group_asymmetric", text, _RESET
    if d.kind == "node_null":
        return "node_null", f"{node} is null in the file; the kubelet crashes on that", _RESET
    text = "{0}: {1} of {2} is recorded as {3}, its assignments add up to {4} bytes".format(
        node, d.kind.replace("group_", ""), d.resource, d.recorded, d.expected
    )
    if d.kind in ("free", "reserved"):
        text += "; a kubelet before 1.32 compares each node of a group by itself"
        return "usage_split", text, _REBASELINE if bound else _RESET
    return "group_reserved" if "reserved" in d.kind else "group_free", text, _RESET


def _describe_table(d: Difference, node: str, bound: int) -> t.Tuple[str, str, str]:
    change = mebibytes(d.expected - d.recorded, signed=True)
    if d.kind == "system_reserved":
        text = f"{node}: {d.expected} bytes of {d.resource} are reserved now, {d.recorded} are recorded"
        return "reservation_changed", text, _RESET
    if is_hugepages(d.resource or ""):
        return "hugepages_changed", f"{node}: the pool {d.resource} changed by {change}", _RESET
    what = "memory" if d.kind == "total" else "allocatable memory"
    if bound and abs(d.expected - d.recorded) <= bound:
        text = f"{node}: {what} changed by {change}, within the bound of {mebibytes(bound)}"
        return "memory_drift", text, _REBASELINE
    beyond = f"more than the bound of {mebibytes(bound)}" if bound else "and no drift is tolerated"
    step = f"Find out where it went before anything is accepted; {_RESET[0].lower() + _RESET[1:]}"
    return "memory_changed", f"{node}: {what} changed by {change}, {beyond}", step


def _describe_nodes(d: Difference, node: str) -> t.Tuple[str, str, str]:
    if d.kind == "node_count":
        return "numa_nodes_changed", f"{d.recorded} NUMA nodes are recorded, {d.expected} are there", _RESET
    where = "is recorded, but not on the machine" if d.recorded else "is on the machine, but not recorded"
    return "numa_nodes_changed", f"{node} {where}", _RESET


def _ambiguous(judgement: Judgement) -> Finding:
    return Finding(
        "ambiguous",
        STOPS_START if judgement.exact.starts is not True else WARNING,
        "Whether the kubelet accepts this file depends on the random order in which it walks the assignments: blocks "
        f"of one NUMA node are recorded with different groups. {_RESET}.",
        kubelet_error=judgement.exact.errors[0] if judgement.exact.errors else None,
    )


def _unexplained(judgement: Judgement, error: t.Optional[str]) -> Finding:
    text = judgement.errors[0] if judgement.errors else "The recorded state is refused"
    return Finding("state_refused", STOPS_START, f"{text}. {_RESET}.", kubelet_error=error or text)


# --- statements about the file and the next boot ---------------------------------------------------------------------


def inconsistent_free(recorded: MachineState) -> t.Tuple[Finding, ...]:
    """Groups whose free + reserved is not allocatable: no kubelet wrote that (semantics 5.9, 1)."""
    found = []
    for node_id, node in sorted(recorded.items()):
        for resource in sorted((node.memory_map or {}) if node is not None else ()):
            cells = (node.cells or ()) if node is not None else ()
            sums = _group_sums(recorded, cells, resource)
            if cells and min(cells) == node_id and sums is not None and sums[0] != sums[1]:
                found.append(
                    Finding(
                        "free_inconsistent",
                        WARNING,
                        f"NUMA node {node_id}: free and reserved {resource} of its group add up to {sums[0]}, "
                        f"allocatable to {sums[1]}; no kubelet wrote that. Find out who edited the file.",
                        numa_node=node_id,
                        resource=resource,
                        expected=sums[1],
                        found=sums[0],
                    )
                )
    return tuple(found)


def _group_sums(recorded: MachineState, cells: t.Sequence[int], resource: str) -> t.Optional[t.Tuple[int, int]]:
    """(free + reserved, allocatable) of a group, as 64 bit sums."""
    used, allocatable = 0, 0
    for cell in cells:
        node = recorded.get(cell)
        table = None if node is None else (node.memory_map or {}).get(resource)
        if table is None:
            return None
        used += table.free + table.reserved
        allocatable += table.allocatable
    return used & UINT64_MASK, allocatable & UINT64_MASK


def margin_findings(margins: t.Sequence[FitMargin], bound: int) -> t.Tuple[Finding, ...]:
    """A warning for each group that a drift within the bound could leave without room."""
    return tuple(
        Finding(
            "fit_margin_below_bound",
            WARNING,
            "NUMA node {0} can lose {1} before an assignment no longer fits, less than the bound of {2}: after the "
            "next boot this node may not come back even with the tolerance. Free memory there before a reboot.".format(
                ", ".join(map(str, margin.numa_nodes)), mebibytes(margin.bytes), mebibytes(bound)
            ),
            numa_node=margin.numa_nodes[0],
            resource=MEMORY,
            expected=bound,
            found=margin.bytes,
        )
        for margin in margins
        if margin.bytes < bound
    )


def bound_findings(bound: Bound, memory_block_size: t.Optional[int]) -> t.Tuple[Finding, ...]:
    """A missing bound, and one so large that it could hide a lost memory block (semantics 5.9, 4)."""
    if bound.source == "unavailable":
        return (
            Finding(
                "bound_unavailable",
                WARNING,
                "No drift bound can be derived: {0}. Until the option {1} is set to a quantity, every drift is "
                "refused.".format((bound.reason or "").rstrip("."), OPTION),
                path="/proc/iomem",
                field=OPTION,
            ),
        )
    if memory_block_size and bound.bytes >= memory_block_size:
        return (
            Finding(
                "bound_exceeds_memory_block",
                WARNING,
                f"The bound of {mebibytes(bound.bytes)} is not smaller than a memory block of "
                f"{mebibytes(memory_block_size)}: it could hide a lost block. Set {OPTION} to less if memory may be "
                "hot-plugged.",
                expected=memory_block_size,
                found=bound.bytes,
                field=OPTION,
            ),
        )
    return ()
