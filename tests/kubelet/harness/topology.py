# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NUMA topologies as sysfs shows them: what a kubelet in its own mount namespace, or a module below a root, will read.

Sizes are KiB, as in the kernel's files.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import typing as t

NODES = "sys/devices/system/node"
HUGEPAGES = "sys/kernel/mm/hugepages"
MEMINFO = "proc/meminfo"
GIB = 1024 * 1024
MIB = 1024


@dataclasses.dataclass(frozen=True)
class NumaNode:
    """One NUMA node: MemTotal in KiB and, by page size in KiB, the number of huge pages."""

    memory: int
    hugepages: t.Mapping[int, int] = dataclasses.field(default_factory=lambda: {2048: 0, 1048576: 0})

    def grown(self, kib: int) -> NumaNode:
        return dataclasses.replace(self, memory=self.memory + kib)

    def with_pages(self, **pages: int) -> NumaNode:
        """Other numbers of huge pages, as `with_pages(p2048=4)`."""
        return dataclasses.replace(self, hugepages={**self.hugepages, **{int(k[1:]): n for k, n in pages.items()}})


@dataclasses.dataclass(frozen=True)
class Topology:
    """A machine: its nodes by NUMA id, and MemTotal of /proc/meminfo in KiB (which is not the sum of the nodes)."""

    nodes: t.Mapping[int, NumaNode]
    memory_capacity: int = 64 * GIB - 307 * MIB

    def moved(self, **deltas: int) -> Topology:
        """The same machine with other sizes: `moved(n0=-45272, n1=45272)` is the kernel image on another node."""
        changed = {int(name[1:]): kib for name, kib in deltas.items()}
        return self.changed({i: self.nodes[i].grown(kib) for i, kib in changed.items()})

    def changed(self, nodes: t.Mapping[int, NumaNode]) -> Topology:
        return dataclasses.replace(self, nodes={**self.nodes, **nodes})

    def without(self, node: int) -> Topology:
        return dataclasses.replace(self, nodes={i: n for i, n in self.nodes.items() if i != node})


TWO_NODES = Topology({0: NumaNode(32 * GIB - 41 * MIB), 1: NumaNode(32 * GIB - 9 * MIB)})
ONE_NODE = Topology({0: NumaNode(64 * GIB - 301 * MIB)})
FOUR_NODES = Topology({i: NumaNode(16 * GIB - i * 13 * MIB) for i in range(4)})


def write(topology: Topology, root: pathlib.Path) -> None:
    """Lay the topology out below `root`, in place of what is there."""
    folder = root / NODES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ids = ",".join(str(i) for i in sorted(topology.nodes))
    for name in ("online", "possible", "has_memory", "has_normal_memory"):
        (folder / name).write_text(ids + "\n", encoding="ascii")
    for position, number in enumerate(sorted(topology.nodes)):
        _write_node(folder / f"node{number}", number, topology, _cpus_of(position, len(topology.nodes)))
    _write_machine(topology, root)


def _cpus_of(position: int, count: int) -> list[int]:
    """Deal the CPUs that this machine really has out to the nodes; a node may stay without."""
    return [cpu for index, cpu in enumerate(sorted(os.sched_getaffinity(0))) if index % count == position]


def _write_node(folder: pathlib.Path, number: int, topology: Topology, cpus: t.Sequence[int]) -> None:
    node = topology.nodes[number]
    folder.mkdir()
    (folder / "meminfo").write_text(
        f"\nNode {number} MemTotal:       {node.memory} kB\nNode {number} MemFree:        {node.memory // 2} kB\n",
        encoding="ascii",
    )
    distances = " ".join("10" if other == number else "20" for other in sorted(topology.nodes))
    (folder / "distance").write_text(distances + "\n", encoding="ascii")
    (folder / "cpulist").write_text(",".join(map(str, cpus)) + "\n", encoding="ascii")
    for cpu in cpus:
        (folder / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")
    _write_pools(folder / "hugepages", node.hugepages)


def _write_pools(folder: pathlib.Path, pools: t.Mapping[int, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for size, count in pools.items():
        pool = folder / f"hugepages-{size}kB"
        pool.mkdir()
        for name, value in (("nr_hugepages", count), ("free_hugepages", count), ("surplus_hugepages", 0)):
            (pool / name).write_text(f"{value}\n", encoding="ascii")


def _write_machine(topology: Topology, root: pathlib.Path) -> None:
    meminfo = root / MEMINFO
    meminfo.parent.mkdir(parents=True, exist_ok=True)
    total = topology.memory_capacity
    meminfo.write_text(
        f"MemTotal:       {total} kB\nMemFree:        {total // 2} kB\nMemAvailable:   {total // 2} kB\n"
        "Buffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\nSwapFree:  0 kB\n",
        encoding="ascii",
    )
    sums: dict[int, int] = {}
    for node in topology.nodes.values():
        for size, count in node.hugepages.items():
            sums[size] = sums.get(size, 0) + count
    shutil.rmtree(root / HUGEPAGES, ignore_errors=True)
    _write_pools(root / HUGEPAGES, sums)
