# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every boot captured on this project's machines: what is read is what the manifest of the captures says."""

from __future__ import annotations

import json
import tarfile
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._node.boot import read_boot_facts
from ansible_collections.kubenode.memory.plugins.module_utils._node.processes import read_kubelets
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._node.topology import TopologyReading, read_machine

CAPTURES = Path(__file__).resolve().parents[3] / "shared" / "captures"
NEEDED = ("/proc/", "/sys/devices/system/node/", "/block_size_bytes", "/physical_package_id")

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captured boots in ../shared/captures")


@pytest.fixture(scope="module", params=["captures", "captures-arm64"])
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The needed files of one tarball, unpacked."""
    base = tmp_path_factory.mktemp("boots")
    with tarfile.open(CAPTURES / f"{request.param}.tar.xz", "r|xz") as tar:
        for member in tar:
            if member.isfile() and any(part in member.name for part in NEEDED):
                target = base / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(t.cast(t.IO[bytes], tar.extractfile(member)).read())
    return base / str(request.param)


def manifest(captures: Path) -> t.List[t.Dict[str, t.Any]]:
    boots = json.loads((CAPTURES / captures.name.replace("captures", "manifest")).with_suffix(".json").read_text())
    return [boot for boot in boots if (captures / boot["path"]).is_dir()]


def nodes_kb(reading: TopologyReading) -> t.Dict[str, int]:
    return {str(node.id): node.memory // 1024 for node in reading.machine.topology}


def test_topology_and_kernel_are_those_of_the_manifest(captures: Path) -> None:
    boots = manifest(captures)
    assert len(boots) >= 57
    for boot in boots:
        root = HostRoot(str(captures / boot["path"]))
        reading, facts = read_machine(root), read_boot_facts(root)
        assert nodes_kb(reading) == boot["node_mem_total_kb"], boot["path"]
        assert reading.findings == ()
        assert reading.machine.memory_capacity == boot["mem_total_kb"] * 1024
        assert facts.kernel_release.value == boot["kernel"]
        assert facts.architecture.value == {"arm64": "aarch64"}.get(boot.get("arch", ""), "x86_64")
        assert str(facts.iomem.value).count(" : Kernel code\n") == 1
        assert read_kubelets(root).incomplete


def test_every_tree_reads_without_an_error(captures: Path) -> None:
    """Also the trees that stand in no manifest: each has nodes, or is one of s390x and has none of NUMA."""
    trees = [meminfo.parent.parent for meminfo in captures.rglob("proc/meminfo")]
    assert len(trees) >= 57
    for tree in trees:
        reading, facts = read_machine(HostRoot(str(tree))), read_boot_facts(HostRoot(str(tree)))
        assert reading.machine.topology, tree
        codes = [finding.code for finding in reading.findings]
        assert codes == (["numa_from_packages"] if facts.architecture.value == "s390x" else []), tree
        assert facts.architecture.value
        assert facts.boot_id.value
