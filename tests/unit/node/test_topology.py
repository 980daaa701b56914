# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysfs as cAdvisor reads it (semantics 3.1)."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError, PermissionMissing
from ansible_collections.kubenode.memory.plugins.module_utils._node.topology import (
    TopologyReading,
    parse_mem_total,
    read_machine,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (
    HugePagesInfo,
    MachineInfo,
    NumaNode,
)

NODE0 = "/sys/devices/system/node/node0"
PAGES = f"{NODE0}/hugepages/hugepages-2048kB/nr_hugepages"


@pytest.fixture
def tree(tmp_path: Path) -> NodeTree:
    """One node of 1000 KiB with 5 huge pages."""
    tree = NodeTree(tmp_path)
    tree.write("/proc/meminfo", "MemTotal:        4013100 kB\nMemFree: 1 kB\n")
    tree.numa_node(0, 1000, {2048: 5})
    return tree


def read(tree: NodeTree) -> TopologyReading:
    return read_machine(HostRoot(str(tree.base)))


def codes(reading: TopologyReading) -> t.List[str]:
    return [finding.code for finding in reading.findings]


def test_nodes_in_the_order_of_their_names(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    tree.write("/proc/meminfo", "MemTotal:        4013100 kB\n")
    for node in (0, 2, 10):
        tree.numa_node(node, 100 + node, {1048576: 0, 2048: node, 64: 1})
    tree.write("/sys/devices/system/node/possible", "0-10\n")
    pages = (HugePagesInfo(1048576, 0), HugePagesInfo(2048, 10), HugePagesInfo(64, 1))
    machine = read(tree).machine
    assert [(node.id, node.memory) for node in machine.topology] == [(0, 102400), (10, 112640), (2, 104448)]
    assert machine.topology[1].hugepages == pages
    assert machine.memory_capacity == 4013100 * 1024
    assert read(tree).findings == ()


@pytest.mark.parametrize(
    ("meminfo", "expected"),
    [
        (b"Node 0 MemTotal:       64296060 kB\n", 64296060 * 1024),
        (b"MemTotal:7 kB", 7 * 1024),
        (b"MemTotal:\n\t7 kB", 7 * 1024),
        (b"MemTotal: 7 MB\nMemTotal: 8 kB", 8 * 1024),
        (b"\xff\xfeSwapMemTotal: 0009 kB MemTotal: 3 kB", 9 * 1024),
        (b"MemTotal: 18446744073709551615 kB", 2**64 - 1024),
        (b"MemTotal: 18446744073709551616 kB", None),
        (b"MemTotal: " + b"9" * 100000 + b" kB", None),
        (b"MemTotal:\v7 kB", None),
        (b"MemTotal: -7 kB", None),
        (b"MemTotal: 7kB", None),
        ("MemTotal: \u0667 kB".encode(), None),
        (b"", None),
    ],
)
def test_mem_total(meminfo: bytes, expected: t.Optional[int]) -> None:
    assert parse_mem_total(meminfo) == expected


def test_node_without_meminfo_is_a_node_without_memory(tree: NodeTree) -> None:
    (tree.base / NODE0.lstrip("/") / "meminfo").unlink()
    assert read(tree).machine.topology == (NumaNode(0, 0, (HugePagesInfo(2048, 5),)),)
    (finding,) = read(tree).findings
    assert (finding.code, finding.numa_node, finding.path) == ("numa_memory_unreadable", 0, f"{NODE0}/meminfo")


def test_node_without_hugepages_or_distance(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    tree.write(f"{NODE0}/meminfo", "Node 0 MemTotal: 1 kB\n")
    assert read(tree) == TopologyReading(MachineInfo((NumaNode(0, 1024),), None))


@pytest.mark.parametrize(
    ("name", "size"),
    [("hugepages-64kB", 64), ("hugepages-0512kB", 512), ("x-7", 7), ("-7kBx", 7), ("hugepages-9-x", 9)],
)
def test_hugepage_names_as_go_splits_them(tree: NodeTree, name: str, size: int) -> None:
    tree.write(f"{NODE0}/hugepages/{name}/nr_hugepages", "3\n")
    assert HugePagesInfo(size, 3) in read(tree).machine.topology[0].hugepages


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        (f"{NODE0}/meminfo", "Node 0 MemFree: 5 kB\n", "node0/meminfo has no line `MemTotal"),
        (f"{NODE0}/meminfo", "", "node0/meminfo has no line `MemTotal"),
        (PAGES, "many\n", "hugepages-2048kB/nr_hugepages is not a number"),
        (PAGES, "", "hugepages-2048kB/nr_hugepages is not a number"),
        (PAGES, "18446744073709551616", "hugepages-2048kB/nr_hugepages is not a number"),
        (f"{NODE0}/hugepages/hugepages-2MB/nr_hugepages", "1\n", "hugepages-2MB/nr_hugepages is not a number"),
        (f"{NODE0}/hugepages/hugepages-64kB/free_hugepages", "1\n", "there is no .*hugepages-64kB/nr_hugepages"),
        (f"{NODE0}/hugepages/uevent", "1\n", "uevent/nr_hugepages is not a number"),
        (f"{NODE0}/distance", "10  20\n", "node0/distance is not a list of numbers"),
        ("/sys/devices/system/node/node_1/meminfo", "MemTotal: 1 kB\n", "node_1 has no node number"),
        ("/sys/devices/system/node/node9223372036854775808/meminfo", "MemTotal: 1 kB\n", "has no node number"),
    ],
)
def test_one_bad_file_loses_the_whole_topology(tree: NodeTree, path: str, data: str, reason: str) -> None:
    tree.write(path, data)
    reading = read(tree)
    assert reading.machine == MachineInfo((), 4013100 * 1024)
    assert codes(reading) == ["topology_unreadable"]
    assert re.search(reason, reading.findings[0].message)


def test_kernel_without_numa(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    for cpu, package in ((0, "0\n"), (1, "-1"), (10, "0\n")):
        tree.write(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", package)
    tree.write("/sys/devices/system/cpu/cpu2/online", "0\n")
    tree.write("/sys/devices/system/cpu/cpufreq/x", "")
    assert read(tree).machine.topology == (NumaNode(-1, 0), NumaNode(0, 0))
    assert codes(read(tree)) == ["numa_from_packages"]
    tree.write("/sys/devices/system/cpu/cpu3/topology/physical_package_id", "x")
    assert read(tree).machine.topology == ()
    assert codes(read(tree)) == ["topology_unreadable"]


def test_nothing_at_all(tmp_path: Path) -> None:
    reading = read(NodeTree(tmp_path))
    assert reading.machine == MachineInfo((), None)
    assert codes(reading) == ["topology_unreadable"]


@pytest.mark.parametrize(
    "path", [f"{NODE0}/meminfo", PAGES, f"{NODE0}/hugepages", f"{NODE0}/distance", "/proc/meminfo"]
)
def test_ordinary_user_gets_an_error_and_no_guess(path: str) -> None:
    with temporary_tree() as tree:
        tree.write("/proc/meminfo", "MemTotal: 5 kB\n")
        tree.numa_node(0, 1000, {2048: 5})
        root = HostRoot(str(tree.base))
        file = tree.base / path.lstrip("/")
        with ordinary_user():
            assert read_machine(root).machine.topology[0].memory == 1000 * 1024
        mode = file.stat().st_mode
        file.chmod(0)
        with ordinary_user(), pytest.raises(PermissionMissing, match=f"{path} .*become: true"):
            read_machine(root)
        file.chmod(mode)


def test_meminfo_that_is_no_file(tree: NodeTree) -> None:
    (tree.base / NODE0.lstrip("/") / "meminfo").unlink()
    tree.write(f"{NODE0}/meminfo/x", "")
    with pytest.raises(NodeError, match=r"node0/meminfo .*not a file"):
        read(tree)


_texts = st.one_of(
    st.binary(max_size=60),
    st.text("0123456789 \n\t-+xkBMemTotal:", max_size=30).map(str.encode),
    st.from_regex(rb"Node 0 MemTotal: *[0-9]{1,25} ?k?B?", fullmatch=True),
)
_names = st.one_of(
    st.from_regex(r"[a-z]*-?[0-9]{0,22}(kB)?-?", fullmatch=True), st.text("aB-0kn_.\n\u0667", min_size=1, max_size=8)
).filter(lambda name: name not in ("", ".", ".."))


@settings(max_examples=100)
@given(
    files=st.dictionaries(st.sampled_from(["meminfo", "distance"]), _texts),
    pages=st.dictionaries(_names, _texts, max_size=3),
    packages=st.lists(_texts, max_size=3),
    node=st.sampled_from(["node0", "node\u0663", "node1x2", "nodeX1", "node", "node00000000000000000000007"]),
    capacity=_texts,
)
def test_any_bytes_end_in_a_value_or_a_node_error(
    files: t.Mapping[str, bytes], pages: t.Mapping[str, bytes], packages: t.Sequence[bytes], node: str, capacity: bytes
) -> None:
    with temporary_tree() as tree:
        directory = f"/sys/devices/system/node/{node}"
        tree.write("/proc/meminfo", capacity)
        for name, data in files.items():
            tree.write(f"{directory}/{name}", data)
        for name, data in pages.items():
            tree.write(f"{directory}/hugepages/{name}/nr_hugepages", data)
        for cpu, data in enumerate(packages):
            tree.write(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", data)
        reading = read_machine(HostRoot(str(tree.base)))
        assert reading.machine.topology or reading.findings
        assert all(0 <= found.memory < 2**64 for found in reading.machine.topology)
