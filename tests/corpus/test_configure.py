# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every capture survives a set, a second set and a removal, or is refused for a stated reason."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from configure_node import HEADER, ConfiguredNode

from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.plugin_utils._yaml_edit import EditError, edit_document

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "kubelet-config"
CAPTURES = sorted(path.name for path in CORPUS.glob("*") if not path.name.endswith(".meta.yaml"))

# Text that is no YAML, for the editor; and, as a whole configuration, what keeps it from being one.
NO_YAML = {
    "bottlerocket-karpenter-727.toml": "mapping",
    "bottlerocket-userdata.toml": "mapping|cannot read",
    "gdc-kubelet-extra-args.txt": "mapping",
    "local-up-cluster-flags.txt": "mapping|cannot read",
    "okd-docs-kubeletconfig-with-callouts.txt": "cannot read",
    "rke2-terraform-list.tf": "mapping|cannot read",
}
EDITS = [
    Edit(("kernelMemcgNotification",), True),
    Edit(("evictionSoft", "memory.available"), "1Gi"),
    Edit(("evictionSoftGracePeriod", "memory.available"), "1m"),
    Edit(("reservedMemory",), [{"numaNode": 0, "limits": {"memory": "7Gi"}}]),
]

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the captures in ../shared/corpus are not here")


@pytest.mark.parametrize("name", CAPTURES)
def test_the_text_survives_edits(name: str) -> None:
    text = (CORPUS / name).read_bytes().decode()
    if name in NO_YAML:
        with pytest.raises(EditError, match=NO_YAML[name]):
            edit_document(text, EDITS)
        return
    edited = edit_document(text, EDITS)
    assert edit_document(edited, EDITS) == edited
    missing = [line for line in text.splitlines() if line.strip().startswith("#") and line not in edited]
    assert missing == []


@pytest.mark.parametrize("name", CAPTURES)
def test_a_node_with_it_is_set_and_given_back(name: str, tmp_path: Path) -> None:
    text = (CORPUS / name).read_bytes().decode()
    whole = text if "kubelet.config.k8s.io" in text and "\nkind: KubeletConfiguration" in text else HEADER + text
    node = ConfiguredNode(tmp_path, whole)
    if name in NO_YAML:
        with pytest.raises((NodeError, EditError), match="cannot read"):
            node.set(kernelMemcgNotification=True)
        return
    outcome = node.set(kernelMemcgNotification=True)
    if outcome.decision.refused:
        assert {one.severity for one in outcome.decision.refused} == {"stops_start"}
        assert all(one.kubelet_error for one in outcome.decision.refused)
        assert node.text == whole
        return
    assert not node.set(kernelMemcgNotification=True).decision.changed
    node.give_back()
    assert node.text == whole


def test_how_many_are_written(tmp_path: Path) -> None:
    written: t.List[str] = []
    for name in CAPTURES:
        node = ConfiguredNode(tmp_path / name, HEADER + (CORPUS / name).read_bytes().decode())
        try:
            written += [name] if node.set(kernelMemcgNotification=True).written else []
        except (NodeError, EditError):
            continue
    assert len(written) >= 5
