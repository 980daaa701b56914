# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The machine's NUMA topology, read from sysfs as cAdvisor reads it (semantics 3.1)."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._policy.findings import Finding, warning
from .._policy.machine import KIB, HugePagesInfo, MachineInfo, NumaNode
from .root import HostRoot, NotFound

MEMINFO = "/proc/meminfo"
NODES = "/sys/devices/system/node/node*[0-9]"
CPUS = "/sys/devices/system/cpu/cpu*[0-9]"

_MEM_TOTAL = re.compile(rb"MemTotal:[\t\n\f\r ]*([0-9]+) kB")
_NODE_ID = re.compile(r"node/node([0-9]*)")
_HUGEPAGES = re.compile(r"[^-]*-([0-9]+)(?:kB|-|\Z)")
_COUNT = re.compile(rb"([0-9]+)")
_PACKAGE = re.compile(rb"[+-]?[0-9]+\Z")
_UINT64 = 2**64
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class TopologyReading:
    """The machine as the kubelet would be told of it, and what is odd about that."""

    machine: MachineInfo
    findings: t.Tuple[Finding, ...] = ()


class _DiscoveryFailed(Exception):
    """cAdvisor gives up here ("Failed to get topology information") and goes on with no nodes at all."""


def parse_mem_total(meminfo: bytes) -> t.Optional[int]:
    """MemTotal of a meminfo file in bytes; None if there is none that fits 64 bits. The product wraps, as in Go."""
    match = _MEM_TOTAL.search(meminfo)
    kib = _uint64(match.group(1)) if match else None
    return None if kib is None else kib * KIB % _UINT64


def _uint64(digits: bytes) -> t.Optional[int]:
    value = int(digits.lstrip(b"0")[:21] or b"0")  # more digits are too large anyway, and slow to convert
    return value if value < _UINT64 else None


def read_machine(root: HostRoot) -> TopologyReading:
    """Read what cAdvisor would report.

    What cAdvisor swallows is a finding: `numa_memory_unreadable`, `numa_from_packages`, `topology_unreadable`.
    :raises PermissionMissing: where cAdvisor, running as root, would have read a file and this process may not
    :raises NodeError: if a file is too large or no regular file
    """
    capacity = _memory_capacity(root)
    findings: t.List[Finding] = []
    try:
        nodes = _numa_nodes(root, findings) or _cpu_packages(root, findings)
    except _DiscoveryFailed as error:
        findings.append(_discovery_finding(str(error)))
        nodes = ()
    return TopologyReading(MachineInfo(nodes, capacity), tuple(findings))


def _discovery_finding(reason: str) -> Finding:
    return warning(
        "topology_unreadable",
        f"The kubelet sees no NUMA node at all, because {reason}. Look at /sys/devices/system/node on the node.",
        path="/sys/devices/system/node",
        kubelet_error="Failed to get topology information",
    )


def _memory_capacity(root: HostRoot) -> t.Optional[int]:
    try:
        return parse_mem_total(root.read_bytes(MEMINFO))
    except NotFound:
        return None


def _numa_nodes(root: HostRoot, findings: t.List[Finding]) -> t.Tuple[NumaNode, ...]:
    return tuple(_numa_node(root, directory, findings) for directory in root.glob(NODES))


def _numa_node(root: HostRoot, directory: str, findings: t.List[Finding]) -> NumaNode:
    node = _node_id(directory)
    memory = _node_memory(root, node, directory + "/meminfo", findings)
    hugepages = _node_hugepages(root, directory + "/hugepages")
    _check_distances(root, directory + "/distance")
    return NumaNode(node, memory, hugepages)


def _node_id(directory: str) -> int:
    match = _NODE_ID.search(directory)
    node = _uint64(match.group(1).encode()) if match and match.group(1) else None
    if node is None or node > _INT64_MAX:
        raise _DiscoveryFailed(f"{directory} has no node number")
    return node


def _node_memory(root: HostRoot, node: int, path: str, findings: t.List[Finding]) -> int:
    try:
        memory = parse_mem_total(root.read_bytes(path))
    except NotFound:
        findings.append(_memory_finding(root, node, path))
        return 0
    if memory is None:
        raise _DiscoveryFailed(f"{root.display(path)} has no line `MemTotal: NUMBER kB`")
    return memory


def _memory_finding(root: HostRoot, node: int, path: str) -> Finding:
    shown = root.display(path)
    message = (
        "The kubelet takes NUMA node {0} for a node without memory, because there is no {1}. Look at it on the node."
    )
    return warning("numa_memory_unreadable", message.format(node, shown), numa_node=node, path=shown)


def _node_hugepages(root: HostRoot, directory: str) -> t.Tuple[HugePagesInfo, ...]:
    try:
        names = root.listdir(directory)
    except NotFound:
        return ()
    return tuple(_hugepages(root, directory, name) for name in names)


def _hugepages(root: HostRoot, directory: str, name: str) -> HugePagesInfo:
    match = _HUGEPAGES.match(name)
    size = _uint64(match.group(1).encode()) if match else None
    path = f"{directory}/{name}/nr_hugepages"
    pages = _COUNT.match(_read_or_fail(root, path).strip()) if size is not None else None
    count = _uint64(pages.group(1)) if pages else None
    if size is None or count is None:
        raise _DiscoveryFailed(f"{root.display(path)} is not a number of huge pages")
    return HugePagesInfo(size, count)


def _read_or_fail(root: HostRoot, path: str) -> bytes:
    try:
        return root.read_bytes(path)
    except NotFound as error:
        raise _DiscoveryFailed(f"there is no {root.display(path)}") from error


def _check_distances(root: HostRoot, path: str) -> None:
    try:
        distances = root.read_bytes(path).strip().split(b" ")
    except NotFound:
        return
    if not all(word.isdigit() and _uint64(word) is not None for word in distances):
        raise _DiscoveryFailed(f"{root.display(path)} is not a list of numbers")


def _cpu_packages(root: HostRoot, findings: t.List[Finding]) -> t.Tuple[NumaNode, ...]:
    """The nodes that cAdvisor makes up where the kernel has no NUMA: one per CPU package, without memory."""
    cpus = root.glob(CPUS)
    if not cpus:
        raise _DiscoveryFailed(f"there is neither a {NODES} nor a {CPUS}")
    packages = sorted({package for package in (_package(root, cpu) for cpu in cpus) if package is not None})
    message = (
        "The kernel shows no NUMA node, so the kubelet makes up {0} from the CPU packages, each without memory, "
        "and Static has nothing to manage. Use a kernel with CONFIG_NUMA, or memoryManagerPolicy None."
    )
    findings.append(warning("numa_from_packages", message.format(len(packages)), path="/sys/devices/system/node"))
    return tuple(NumaNode(package, 0) for package in packages)


def _package(root: HostRoot, cpu: str) -> t.Optional[int]:
    path = cpu + "/topology/physical_package_id"
    try:
        text = root.read_bytes(path).strip()
    except NotFound:
        return None
    if not _PACKAGE.match(text) or len(text) > 18:
        raise _DiscoveryFailed(f"{root.display(path)} is not a number")
    return int(text)
