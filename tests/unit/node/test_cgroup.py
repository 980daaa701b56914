# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups of trees: the controller's files decide, a directory does not."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from node_tree import NodeTree

from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup import (
    CgroupMount,
    parse_mounts,
    read_cgroups,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup_statistics import (
    parse_counter,
    parse_stat,
    read_statistics,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.notifier import read_notifier
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kubelet_start import CgroupFacts
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import MemoryCounters

MEMORY = "/sys/fs/cgroup/memory"
MOUNTS_V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"
MOUNTS_HYBRID = (
    "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
)
MOUNTS_HYBRID_MEMORY = MOUNTS_HYBRID + f"cgroup {MEMORY} cgroup rw,memory 0 0\n"
MOUNTINFO = (
    "23 1 0:5 / /proc rw,relatime - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw shared:7 master:1 - tmpfs tmpfs rw,mode=755\n"
    f"32 31 0:29 / {MEMORY} rw,relatime shared:9 - cgroup cgroup rw,memory\n"
)
STAT = "cache 11714560\ninactive_file 100\ntotal_inactive_file 2639159296\nhierarchical_memory_limit 9\n"


@pytest.fixture
def tree(tmp_path: Path) -> NodeTree:
    return NodeTree(tmp_path)


def facts(tree: NodeTree) -> CgroupFacts:
    return read_cgroups(HostRoot(str(tree.base)))


def controller(tree: NodeTree, folder: str = MEMORY) -> None:
    tree.write(f"{folder}/memory.usage_in_bytes", "5810089984\n")
    tree.write(f"{folder}/memory.stat", STAT)
    tree.write(f"{folder}/cgroup.event_control", "")
    tree.write("/proc/meminfo", "MemTotal:       24683656 kB\n")


# --- which version, which controller ---------------------------------------------------------------------------------


def test_cgroup_v2(tree: NodeTree) -> None:
    tree.write("/proc/1/mounts", MOUNTS_V2)
    assert facts(tree) == CgroupFacts("v2", "/sys/fs/cgroup")


def test_hybrid_with_a_memory_controller(tree: NodeTree) -> None:
    tree.write("/proc/mounts", MOUNTS_HYBRID_MEMORY)
    controller(tree)
    assert facts(tree) == CgroupFacts("hybrid", MEMORY, usage_file=True, event_control=True)


def test_hybrid_without_a_memory_controller_has_an_empty_directory(tree: NodeTree) -> None:
    tree.write("/proc/mounts", MOUNTS_HYBRID)
    (tree.base / MEMORY[1:]).mkdir(parents=True)
    assert facts(tree) == CgroupFacts("hybrid")


def test_a_mount_without_the_files_is_told(tree: NodeTree) -> None:
    tree.write("/proc/mounts", MOUNTS_HYBRID_MEMORY)
    (tree.base / MEMORY[1:]).mkdir(parents=True)
    assert facts(tree) == CgroupFacts("hybrid", MEMORY)


def test_version_1_only_from_mountinfo(tree: NodeTree) -> None:
    tree.write("/proc/1/mountinfo", MOUNTINFO)
    tree.write("/proc/mounts", MOUNTS_V2)
    tree.write("/sys/kernel/realtime", "1\n")
    controller(tree)
    assert facts(tree) == CgroupFacts("v1", MEMORY, usage_file=True, event_control=True, realtime=True)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/sys/fs/cgroup/cgroup.controllers", CgroupFacts("v2", "/sys/fs/cgroup")),
        (f"{MEMORY}/memory.usage_in_bytes", CgroupFacts("v1", MEMORY, usage_file=True)),
        (f"{MEMORY}/README", CgroupFacts("v1", MEMORY)),
        ("/etc/hostname", CgroupFacts("none")),
    ],
)
def test_a_captured_tree_without_a_mount_table(tree: NodeTree, file: str, expected: CgroupFacts) -> None:
    tree.write(file, "1\n")
    assert facts(tree) == expected


# --- counters --------------------------------------------------------------------------------------------------------


def test_the_root_group_of_version_1(tree: NodeTree) -> None:
    controller(tree)
    found = read_statistics(HostRoot(str(tree.base)), facts(tree), "/")
    assert found.counters == MemoryCounters(24683656 * 1024, 5810089984, 2639159296)


def test_another_group_of_version_1_has_its_limit(tree: NodeTree) -> None:
    controller(tree)
    controller(tree, MEMORY + "/kubepods")
    tree.write(f"{MEMORY}/kubepods/memory.limit_in_bytes", "24000000000\n")
    found = read_statistics(HostRoot(str(tree.base)), facts(tree), "/kubepods")
    assert found.counters == MemoryCounters(24000000000, 5810089984, 2639159296)


def test_version_2(tree: NodeTree) -> None:
    tree.write("/proc/mounts", MOUNTS_V2)
    tree.write("/proc/meminfo", "MemTotal:       1000 kB\n")
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/kubepods.slice"):
        tree.write(f"{folder}/memory.stat", "anon 300\nfile 200\ninactive_file 50\n")
    tree.write("/sys/fs/cgroup/kubepods.slice/memory.current", "400\n")
    tree.write("/sys/fs/cgroup/kubepods.slice/memory.max", "900\n")
    root = HostRoot(str(tree.base))
    assert read_statistics(root, facts(tree), "/").counters == MemoryCounters(1024000, 500, 50)
    assert read_statistics(root, facts(tree), "/kubepods.slice").counters == MemoryCounters(900, 400, 50)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "cannot read /sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes"),
        ({"memory.limit_in_bytes": "9223372036854771712\n"}, "has no memory limit"),
        ({"memory.limit_in_bytes": "many\n"}, "has no memory limit"),
        ({"memory.limit_in_bytes": "100\n", "memory.usage_in_bytes": "?\n"}, "do not have the form"),
        ({"memory.limit_in_bytes": "100\n", "memory.stat": "inactive_file 7\n"}, "do not have the form"),
    ],
)
def test_a_group_without_usable_counters_gives_the_reason(tree: NodeTree, files: t.Dict[str, str], reason: str) -> None:
    controller(tree)
    if files:
        controller(tree, MEMORY + "/kubepods")
    for name, text in files.items():
        tree.write(f"{MEMORY}/kubepods/{name}", text)
    found = read_statistics(HostRoot(str(tree.base)), facts(tree), "/kubepods")
    assert found.counters is None
    assert reason in (found.reason or "")


# --- a whole node ----------------------------------------------------------------------------------------------------


def test_a_node_from_its_unit_to_its_thresholds(tree: NodeTree) -> None:
    controller(tree)
    controller(tree, MEMORY + "/kubepods.slice")
    tree.write(f"{MEMORY}/kubepods.slice/memory.limit_in_bytes", "24000000000\n")
    unit = "[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubelet.json --fail-cgroupv1=false\n"
    tree.write("/etc/systemd/system/kubelet.service", unit)
    header = '"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"'
    tree.write("/etc/kubelet.json", f'{{{header}, "kernelMemcgNotification": true}}')
    reading = read_notifier(HostRoot(str(tree.base)), KubeletOverrides(version="v1.37.2"))
    assert reading.assessment.active
    assert [(one.statistics.group, one.notify_at) for one in reading.assessment.thresholds] == [
        ("/", 24683656 * 1024 - 104857600 + 2639159296),
        ("/kubepods.slice", 24000000000 - 104857600 + 2639159296),
    ]
    candidate = '{"evictionHard": {"memory.available": "1Gi"}}'
    changed = read_notifier(HostRoot(str(tree.base)), KubeletOverrides(version="v1.37.2"), candidate)
    assert changed.assessment.thresholds[0].eviction == 1 << 30


def test_a_node_without_a_kubelet(tree: NodeTree) -> None:
    controller(tree)
    assessment = read_notifier(HostRoot(str(tree.base)), KubeletOverrides()).assessment
    assert (assessment.supported, assessment.active, assessment.thresholds) == (True, False, ())
    assert [finding.code for finding in assessment.findings] == ["no_kubelet"]


# --- parsers ---------------------------------------------------------------------------------------------------------


@given(st.text(max_size=200))
def test_no_text_breaks_a_parser(text: str) -> None:
    assert all(mount.version in (1, 2) for mount in parse_mounts(text))
    assert all(value >= 0 for value in parse_stat(text).values())
    assert parse_counter(text) is None or int(text) == parse_counter(text)


PATH = st.text(st.sampled_from("abc/ \\\t\n-"), min_size=1, max_size=12).map(lambda text: "/" + text)
ESCAPES = {" ": "\\040", "\t": "\\011", "\n": "\\012", "\\": "\\134"}


@given(PATH, st.sampled_from([1, 2]), st.booleans())
def test_a_mount_point_is_read_as_the_kernel_writes_it(path: str, version: int, mountinfo: bool) -> None:
    escaped = "".join(ESCAPES.get(char, char) for char in path)
    kind = {1: "cgroup", 2: "cgroup2"}[version]
    row = (
        f"31 23 0:28 / {escaped} rw shared:7 - {kind} x rw,memory" if mountinfo else f"x {escaped} {kind} rw,memory 0 0"
    )
    assert parse_mounts(row + "\n") == (CgroupMount(path, version, frozenset(["rw", "memory"])),)


@given(st.dictionaries(st.sampled_from(["cache", "inactive_file", "total_inactive_file"]), st.integers(0, 2**63)))
def test_memory_stat_is_read_as_the_kernel_writes_it(counters: t.Dict[str, int]) -> None:
    assert parse_stat("".join(f"{name} {value}\n" for name, value in counters.items())) == counters
