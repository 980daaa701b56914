# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample fleet says what its inventory expects of it, and has what a demonstration needs."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._preflight import validate
from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_report
from ansible_collections.kubenode.memory.plugins.module_utils._request import Request

FLEET = Path(__file__).resolve().parents[2] / "playbooks" / "fleet"
INVENTORY = yaml.safe_load((FLEET / "inventory.yml").read_text())
HOSTS: t.Dict[str, t.Dict[str, t.Any]] = {
    name: variables
    for group in INVENTORY["sample_fleet"]["children"].values()
    for name, variables in group["hosts"].items()
}
ROOT = "/var/lib/kubelet"


def judge(host: str) -> t.Dict[str, t.Any]:
    overrides = KubeletOverrides(version=HOSTS[host].get("memmgr_validate_kubelet_version"))
    return present_report(validate(Request(host_root=str(FLEET / "nodes" / host), overrides=overrides)))


@pytest.fixture(scope="module")
def results() -> t.Dict[str, t.Dict[str, t.Any]]:
    return {host: judge(host) for host in HOSTS}


@pytest.mark.parametrize("host", HOSTS)
def test_verdict_is_the_expected_one(host: str, results: t.Dict[str, t.Dict[str, t.Any]]) -> None:
    result, expected = results[host], HOSTS[host]
    assert (result["verdict"], result["will_start"]) == (expected["sample_verdict"], expected["sample_will_start"])
    codes = [finding["code"] for finding in result["findings"]]
    assert not expected["sample_code"] or expected["sample_code"] in codes


def test_fleet_shows_every_kind_of_node(results: t.Dict[str, t.Dict[str, t.Any]]) -> None:
    hints = {finding.get("hint") for result in results.values() for finding in result["findings"]}
    assert {"image_moved", "pages_only", "memory_blocks", "crash_kernel_on", "crash_kernel_moved"} <= hints
    assert {result["boot"]["architecture"] for result in results.values()} == {"x86_64", "aarch64"}
    assert {result["state_file"]["format"] for result in results.values()} == {"V1", "V2", "V3", None}
    assert {result["kubelet"]["layout"] for result in results.values()} == {"kubeadm", "k3s", "plain", "none"}
    minors = {str(result["kubelet"]["version"]).rpartition(".")[0] for result in results.values()}
    assert minors >= {"1.34", "1.35", "1.36", "1.37"}


def test_every_assigned_pod_has_a_name(results: t.Dict[str, t.Dict[str, t.Any]]) -> None:
    assigned = [entry for result in results.values() for entry in result["assignments"]]
    assert len(assigned) > 20
    assert all(entry["pod"] for entry in assigned)
    assert any(len(entry["numa_affinity"]) == 2 for entry in assigned)


def test_fleet_is_small_and_made_of_plain_files() -> None:
    files = [path for path in FLEET.rglob("*") if not path.is_dir()]
    assert sum(path.stat().st_size for path in files) < 400_000
    assert not [path for path in files if path.is_symlink()]
    assert {path.name for path in (FLEET / "nodes").iterdir()} == set(HOSTS)
