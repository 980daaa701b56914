# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NUMA trees of real machines, laid out as sysfs has them and read as a node is."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import pytest
from corpus_captures import CORPUS, each, meta, needs_corpus

from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._node.topology import TopologyReading, read_machine
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import default_machine_state

pytestmark = needs_corpus

GIB = 1 << 30


def lay_out(capture: Path, root: Path) -> HostRoot:
    """`nodeN/hugepages.txt` has a path and a number a line; the rest are the files themselves."""
    nodes = root / "sys/devices/system/node"
    shutil.copytree(capture, nodes, ignore=shutil.ignore_patterns("proc-*", ".meta.yaml"))
    for listing in nodes.glob("node*/hugepages.txt"):
        for line in listing.read_text().splitlines():
            path, pages = line.split()
            file = listing.parent / "hugepages" / path
            file.parent.mkdir(parents=True)
            file.write_text(pages + "\n")
        listing.unlink()
    (root / "proc").mkdir()
    shutil.copy(capture / "proc-meminfo", root / "proc/meminfo")
    return HostRoot(str(root))


def read(name: str, root: Path) -> TopologyReading:
    return read_machine(lay_out(CORPUS / "numa" / name, root))


@each("numa")
def test_totals(capture: Path, tmp_path: Path) -> None:
    reading = read_machine(lay_out(capture, tmp_path))
    found = {f"node{node.id}": node.memory // 1024 for node in reading.machine.topology}
    assert found == meta(capture)["memtotal_kb_per_node"]
    assert reading.findings == ()


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("x86_64-node0-offline", [1]),
        ("x86_64-amd-8node-sparse-ids", [0, 1, 2, 33, 34, 45, 72, 73]),
        ("ppc64le-power9-gpu-memory-nodes", [0, 8, 250, 251, 252, 253, 254, 255]),
    ],
)
def test_ids_are_keys_and_no_indices(name: str, ids: t.List[int], tmp_path: Path) -> None:
    machine = read(name, tmp_path).machine
    assert sorted(node.id for node in machine.topology) == ids
    assert sorted(default_machine_state(machine, {})) == ids


def test_huge_page_sizes_of_arm64(tmp_path: Path) -> None:
    node = read("arm64-kunpeng-4node", tmp_path).machine.topology[0]
    sizes = {"hugepages-64Ki", "hugepages-2Mi", "hugepages-32Mi", "hugepages-1Gi"}
    assert {pool.resource for pool in node.hugepages} == sizes


def test_huge_pages_come_off_the_allocatable_memory(tmp_path: Path) -> None:
    machine = read("x86_64-intel-2node-2048-hugepages", tmp_path).machine
    state = default_machine_state(machine, {0: {"memory": GIB}})
    tables = (state[0].memory_map or {}) if state[0] else {}
    memory = tables["memory"]
    assert memory is not None
    assert memory.allocatable == 47925628 * 1024 - GIB - 4 * GIB
