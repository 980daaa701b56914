# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A judged node as plain dicts and lists: what the modules return, and the line for people."""

from __future__ import annotations

import hashlib
import typing as t

from ._policy.evaluation import NOT_APPLICABLE, Evaluation
from ._policy.findings import Finding
from ._policy.machine import NumaNode
from ._policy.state import MachineState, MemoryManagerState
from ._policy.static_policy import REFUSE
from ._policy.subject import Subject
from ._policy.units import mebibytes
from ._preflight import Report


def present_report(report: Report) -> t.Dict[str, t.Any]:
    """What the module returns: plain dicts and lists."""
    reading, kubelet = report.reading, report.reading.kubelet
    result = present(report.evaluation, reading.subject, report.pod_names)
    result["tolerance"] = {"value": reading.tolerance.text, "source": reading.tolerance_source}
    result["kubelet"] = {
        "version": None if kubelet.version is None else str(kubelet.version),
        "rules": "unknown" if kubelet.version is None else kubelet.version.proof,
        "layout": kubelet.layout,
        "unit": kubelet.unit,
        "config": kubelet.config_path,
        "config_dir": kubelet.config_dir,
        "root_dir": kubelet.root_dir,
        "node_name": kubelet.node_name,
        "running": kubelet.running_pid is not None,
    }
    result["boot"] = {
        "boot_id": reading.boot.boot_id.value,
        "kernel": reading.boot.kernel_release.value,
        "architecture": reading.boot.architecture.value,
    }
    return result


def present(evaluation: Evaluation, subject: Subject, names: t.Mapping[str, str]) -> t.Dict[str, t.Any]:
    """The part of a result that does not depend on where the data came from."""
    bound, state = evaluation.bound, evaluation.state
    return {
        "verdict": evaluation.verdict,
        "will_start": evaluation.will_start,
        "summary": summary(evaluation),
        "findings": [present_finding(finding) for finding in evaluation.findings],
        "kubelet_error": evaluation.kubelet_errors[0] if evaluation.kubelet_errors else None,
        "kubelet_errors": list(evaluation.kubelet_errors),
        "policy": subject.policy,
        "bound": {
            "bytes": bound.bytes,
            "source": bound.source,
            "reason": bound.reason,
            "kernel_image_bytes": None if bound.kernel_image is None else bound.kernel_image.span,
        },
        "drift_bytes": {str(node): size for node, size in evaluation.drift.items()},
        "drift_total_bytes": sum(evaluation.drift.values()),
        "fit_margins": [{"numa_nodes": list(one.numa_nodes), "bytes": one.bytes} for one in evaluation.margins],
        "hints": [hint.message for hint in evaluation.hints],
        "state_file": _present_file(subject, evaluation),
        "numa_nodes": [_present_node(node, state) for node in subject.machine.topology],
        "groups": _groups(state),
        "assignments": _assignments(state, names),
    }


def present_finding(finding: Finding) -> t.Dict[str, t.Any]:
    """A finding without the attributes that do not apply to it."""
    return {key: value for key, value in finding.__dict__.items() if value is not None}


def present_machine_state(machine_state: MachineState) -> t.Dict[str, t.Any]:
    """A machine state in the form of the state file."""
    return {
        str(node_id): {
            "numberOfAssignments": node.number_of_assignments,
            "memoryMap": {
                name: {
                    "total": table.total,
                    "systemReserved": table.system_reserved,
                    "allocatable": table.allocatable,
                    "reserved": table.reserved,
                    "free": table.free,
                }
                for name, table in (node.memory_map or {}).items()
                if table is not None
            },
            "cells": list(node.cells or ()),
        }
        if node is not None
        else None
        for node_id, node in machine_state.items()
    }


def summary(evaluation: Evaluation) -> str:
    """One short line: `tolerable: node 0 -43.2 MiB, node 1 +43.2 MiB, bound 116.0 MiB`."""
    parts = [f"node {node} {mebibytes(size, signed=True)}" for node, size in evaluation.drift.items() if size]
    if parts and evaluation.bound.bytes:
        parts.append(f"bound {mebibytes(evaluation.bound.bytes)}")
    codes = _deciding_codes(evaluation)
    if codes:
        parts.insert(0, ", ".join(codes))
    return "{0}: {1}".format(evaluation.verdict, ", ".join(parts)) if parts else evaluation.verdict


def _deciding_codes(evaluation: Evaluation) -> t.List[str]:
    """The codes that a person looks at first; a tolerable drift is told by its numbers."""
    if evaluation.verdict == "tolerable":
        return []
    stopping = [finding.code for finding in evaluation.findings if finding.stops_start]
    if not stopping and evaluation.verdict == REFUSE:
        stopping = [finding.code for finding in evaluation.findings if finding.severity == "warning"]
    if not stopping and evaluation.verdict == NOT_APPLICABLE:
        stopping = [finding.code for finding in evaluation.findings[:1]]
    return list(dict.fromkeys(stopping))


def _present_file(subject: Subject, evaluation: Evaluation) -> t.Dict[str, t.Any]:
    content, loaded = subject.state_file.content, evaluation.loaded
    return {
        "path": subject.state_file.path,
        "exists": content is not None,
        "format": None if loaded is None else loaded.format,
        "policy": None if loaded is None else loaded.state.policy_name,
        "sha256": None if content is None else hashlib.sha256(content).hexdigest(),
        "size": None if content is None else len(content),
    }


def _present_node(node: NumaNode, state: t.Optional[MemoryManagerState]) -> t.Dict[str, t.Any]:
    recorded = None if state is None else state.nodes.get(node.id)
    tables = {} if recorded is None else {k: v for k, v in (recorded.memory_map or {}).items() if v is not None}
    return {
        "numa_node": node.id,
        "memory": node.memory,
        "hugepages": {pool.resource: pool.total for pool in node.hugepages},
        "recorded": {name: dict(table.__dict__) for name, table in sorted(tables.items())},
        "assignments": None if recorded is None else recorded.number_of_assignments,
        "group": None if recorded is None else list(recorded.cells or ()),
    }


def _groups(state: t.Optional[MemoryManagerState]) -> t.List[t.List[int]]:
    nodes = (node for node in (state.nodes if state else {}).values() if node is not None)
    return [list(cells) for cells in sorted({tuple(sorted(node.cells or ())) for node in nodes})]


def _assignments(state: t.Optional[MemoryManagerState], names: t.Mapping[str, str]) -> t.List[t.Dict[str, t.Any]]:
    if state is None:
        return []
    return [
        {
            "pod_uid": pod,
            "pod": names.get(pod),
            "container": container,
            "numa_affinity": list(block.numa_affinity or ()),
            "resource": block.type,
            "bytes": block.size,
        }
        for pod, container, block in state.assignments()
    ]
