# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook configure over trees: a kubelet that knows the gate, one that does not, one with policy None."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from configure_node import HEADER, STATIC, ConfiguredNode
from kubelet.harness.host import plain_python

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 400
KNOWS = {
    "memmgr_validate_kubelet_version": "v1.38.0",
    "memmgr_validate_known_feature_gates": ["MemoryManagerDriftTolerance"],
}
KNOWS_NOT = {"memmgr_validate_kubelet_version": "v1.37.2"}


def inventory(nodes: t.Mapping[str, t.Tuple[ConfiguredNode, t.Mapping[str, t.Any]]]) -> str:
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "memmgr_become": False,
    }
    hosts = {
        name: {**common, **variables, "memmgr_validate_host_root": str(node.tree.base)}
        for name, (node, variables) in nodes.items()
    }
    return json.dumps({"all": {"hosts": hosts}})


def configure(directory: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = ["ansible-playbook", "kubenode.memory.configure", "-i", str(directory / "inventory.json")]
    settings = {"memmgr_serial": "100%", "memmgr_report_dir": str(directory / "runs")}
    return subprocess.run(
        [*command, "-e", json.dumps(settings), *more],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def results(directory: Path) -> t.Dict[str, t.Dict[str, t.Any]]:
    """What the last run recorded of each host."""
    run = max((directory / "runs").glob("*-*"), key=lambda path: path.stat().st_mtime_ns)
    return {file.stem: json.loads(file.read_text().splitlines()[-1]) for file in run.glob("hosts/*.jsonl")}


@pytest.fixture
def nodes(tmp_path: Path) -> t.Mapping[str, t.Tuple[ConfiguredNode, t.Mapping[str, t.Any]]]:
    made = {
        "knows": (ConfiguredNode(tmp_path / "knows", STATIC), KNOWS),
        "knows-not": (ConfiguredNode(tmp_path / "knows-not", STATIC), KNOWS_NOT),
        "policy-none": (ConfiguredNode(tmp_path / "policy-none", HEADER), KNOWS),
    }
    (tmp_path / "inventory.json").write_text(inventory(made))
    return made


def test_only_the_kubelet_that_knows_the_gate_is_configured(nodes: t.Mapping[str, t.Any], tmp_path: Path) -> None:
    texts = {name: node.text for name, (node, _rest) in nodes.items()}
    done = configure(tmp_path)
    assert done.returncode == 0, done.stdout
    text = nodes["knows"][0].text
    assert "MemoryManagerDriftTolerance: true" in text
    assert "memory-drift-tolerance: auto" in text
    assert nodes["knows-not"][0].text == texts["knows-not"]
    assert nodes["policy-none"][0].text == texts["policy-none"]
    said = results(tmp_path)["knows-not"]["configure"]
    assert (said["status"], said["needs_guard"]) == ("unsupported", True)
    assert "install_guard" in said["summary"]
    removed = configure(tmp_path, "-e", "memmgr_drift_tolerance_state=absent")
    assert removed.returncode == 0, removed.stdout
    assert {name: node.text for name, (node, _rest) in nodes.items()} == texts


def test_a_node_moves_over_once_its_kubelet_knows_the_gate(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path / "node", STATIC)
    node.tree.write("/usr/local/sbin/another", "")
    guarded = {
        "memmgr_guard_tolerance": "96Mi",
        "memmgr_guard_interpreter": plain_python(tmp_path),
        "memmgr_drift_tolerance_when_unsupported": "guard",
    }
    (tmp_path / "inventory.json").write_text(inventory({"node": (node, {**KNOWS_NOT, **guarded})}))
    before = configure(tmp_path)
    assert before.returncode == 0, before.stdout
    assert results(tmp_path)["node"]["configure"]["needs_guard"] is False
    assert node.path("/usr/local/sbin/kubenode-memory-guard").exists()
    assert node.path("/etc/kubenode-memory/tolerance").read_text().endswith("96Mi\n")
    assert node.text == STATIC

    (tmp_path / "inventory.json").write_text(inventory({"node": (node, {**KNOWS, **guarded})}))
    after = configure(tmp_path)
    assert after.returncode == 0, after.stdout
    said = results(tmp_path)["node"]["configure"]
    assert (said["status"], said["moved_over"]) == ("configured", True)
    assert "kubelet 1.38.0 knows the gate" in said["summary"]
    assert "moved over from the guard" in said["summary"]
    assert "memory-drift-tolerance: 96Mi" in node.text


def test_settings_fail_a_node_where_they_would_stop_its_kubelet(tmp_path: Path) -> None:
    node, other = ConfiguredNode(tmp_path / "node", HEADER), ConfiguredNode(tmp_path / "other", STATIC)
    (tmp_path / "inventory.json").write_text(inventory({"node": (node, KNOWS_NOT), "other": (other, KNOWS_NOT)}))
    settings = json.dumps({"memmgr_settings": {"eviction_hard": {"memory.available": "300Mi"}}})
    done = configure(tmp_path, "-e", settings)
    assert done.returncode != 0, done.stdout
    assert "memory.available: 300Mi" in node.text
    assert other.text == STATIC
    said = {name: record["configure"]["status"] for name, record in results(tmp_path).items()}
    assert said == {"node": "unsupported", "other": "failed"}


def test_an_unsupported_kubelet_may_be_made_a_failure(nodes: t.Mapping[str, t.Any], tmp_path: Path) -> None:
    more = ["--limit", "knows-not,localhost", "-e", "memmgr_drift_tolerance_when_unsupported=fail"]
    done = configure(tmp_path, *more)
    assert done.returncode != 0, done.stdout
    assert "install_guard" in " ".join(done.stdout.split())
