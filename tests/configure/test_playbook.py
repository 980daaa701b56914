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
    removed = configure(tmp_path, "-e", "memmgr_drift_tolerance_state=absent")
    assert removed.returncode == 0, removed.stdout
    assert {name: node.text for name, (node, _rest) in nodes.items()} == texts


def test_an_unsupported_kubelet_may_be_made_a_failure(nodes: t.Mapping[str, t.Any], tmp_path: Path) -> None:
    more = ["--limit", "knows-not,localhost", "-e", "memmgr_drift_tolerance_when_unsupported=fail"]
    done = configure(tmp_path, *more)
    assert done.returncode != 0, done.stdout
    assert "install_guard" in " ".join(done.stdout.split())
