# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet that knows the gate: proven against the KEP's text, by a stand-in, since no release has it."""

from __future__ import annotations

import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from configure_node import HEADER, STATIC, ConfiguredNode

from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet_binary import parse_gates
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.plugin_utils._yaml_edit import edit_document

STAND_IN = Path(__file__).with_name("stand_in_kubelet.py")
GATE = "featureGates/MemoryManagerDriftTolerance"
OPTION = "memoryManagerPolicyOptions/memory-drift-tolerance"


def stand_in(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(STAND_IN), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def overrides() -> KubeletOverrides:
    gates = parse_gates(stand_in("--help").stdout)
    return KubeletOverrides(version=stand_in("--version").stdout.strip(), known_feature_gates=tuple(gates))


@pytest.mark.parametrize(
    ("config", "wanted", "written"),
    [
        *((STATIC, {GATE: True, OPTION: value}, True) for value in ("auto", "off", "0", "128Mi", "1.5Gi", "1e8")),
        *((STATIC, {GATE: True, OPTION: value}, False) for value in ("AUTO", "on", "", "-1Mi", "128MB", " 1Mi", "1K")),
        (STATIC, {GATE: True}, True),
        (STATIC, {OPTION: "auto"}, False),
        (STATIC, {OPTION: "off"}, False),
        (STATIC, {GATE: False, OPTION: "auto"}, False),
        (STATIC, {GATE: True, OPTION: "auto", "memoryManagerPolicyOptions/other": "1"}, False),
        (HEADER, {GATE: True}, True),
        (HEADER, {GATE: True, OPTION: "auto"}, False),
        (HEADER, {OPTION: "off"}, False),
    ],
)
def test_two_columns(
    tmp_path: Path, overrides: KubeletOverrides, config: str, wanted: t.Mapping[str, t.Any], written: bool
) -> None:
    node = ConfiguredNode(tmp_path, config)
    node.overrides = overrides
    outcome = node.set(**wanted)
    assert outcome.written is written
    if not written:
        edits = [Edit(tuple(path.split("/")), value) for path, value in wanted.items()]
        node.config.write_text(edit_document(node.text, edits))
    answer = stand_in(str(node.config))
    assert (answer.returncode == 0) is written, answer.stdout
    if not written:
        texts = [one.kubelet_error or "" for one in outcome.decision.refused]
        assert any(text.startswith(answer.stdout.strip()) for text in texts), (texts, answer.stdout)


def test_it_moves_over_once_the_kubelet_knows_the_gate(tmp_path: Path, overrides: KubeletOverrides) -> None:
    node = ConfiguredNode(tmp_path, STATIC)
    assert not node.set(**{GATE: True, OPTION: "auto"}).written
    node.overrides = overrides
    assert node.set(**{GATE: True, OPTION: "auto"}).written
    assert not node.set(**{GATE: True, OPTION: "auto"}).decision.changed
    assert node.set(**{GATE: True, OPTION: "64Mi"}).written
    node.give_back()
    assert node.text == STATIC
