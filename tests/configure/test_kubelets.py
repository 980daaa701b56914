# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two columns: what is written starts; what is refused, and then written by hand, does not start or is ignored."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

import pytest
import yaml
from configure_node import run_module
from kubelet.cases import BALANCED, V134, V137, static
from kubelet.harness.kubelet import Outcome, Surroundings, try_start
from kubelet.harness.node import CONFIG, CONFIG_DIR, Node, NodeDirectory

from ansible_collections.kubenode.memory.plugins.module_utils._configure import NEW_FILE, Wish
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation_plan import Rule
from ansible_collections.kubenode.memory.plugins.module_utils._request import Request
from ansible_collections.kubenode.memory.plugins.plugin_utils._yaml_edit import edit_document

DISK_SIGNALS = ("nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")
IGNORED = "ignored"

STATIC = static()
NONE = "kubeReserved: {memory: 500Mi}\n"
DEFAULTS = "memoryManagerPolicy: Static\nkubeReserved: {memory: 500Mi}\n" + BALANCED.replace("400Mi", "0Mi")


@dataclasses.dataclass(frozen=True)
class Row:
    """`wanted` are values by path; `refused` is the code, or None where it is written."""

    name: str
    config: str
    wanted: t.Mapping[str, t.Any]
    refused: str | None = None
    rule: Rule | None = None
    dropins: t.Mapping[str, str] | None = None
    releases: tuple[str, ...] = (V137,)
    ignored: bool = False
    disk_signals: bool = True

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(Edit(tuple(path.split("/")), value) for path, value in self.wanted.items())


def reserved(*amounts: str, resource: str = "memory") -> list[dict[str, t.Any]]:
    return [{"numaNode": node, "limits": {resource: text}} for node, text in enumerate(amounts)]


BOTH = (V134, V137)
HARD = "evictionHard/memory.available"
POLICY = {"memoryManagerPolicy": "Static"}
SOFT = {"evictionSoft/memory.available": "1Gi", "evictionSoftGracePeriod/memory.available": "1m30s"}

ROWS = [
    Row("static, computed, even", NONE, POLICY, rule=Rule("even"), releases=BOTH),
    Row("static, computed, by size", NONE, POLICY, rule=Rule("by_size")),
    Row("static, computed, one node", NONE, POLICY, rule=Rule("one_node", 1)),
    Row("static, computed, odd threshold", NONE, {**POLICY, HARD: "100000001"}, rule=Rule("even"), releases=BOTH),
    Row("static, computed, half a Gi", NONE, {**POLICY, HARD: "1.5Gi"}, rule=Rule("even"), releases=BOTH),
    Row("static, given", NONE, {**POLICY, "reservedMemory": reserved("300Mi", "300Mi")}, releases=BOTH),
    Row(
        "threshold and reservation",
        STATIC,
        {HARD: "300Mi", "reservedMemory": reserved("600Mi", "500Mi")},
        disk_signals=False,
    ),
    Row("default threshold raised, None", "", {HARD: "300Mi"}, releases=BOTH),
    Row("default threshold raised, JSON", "raw:json", {HARD: "300Mi"}),
    Row("default threshold raised, drop-in", NONE, {**POLICY, HARD: "300Mi"}, rule=Rule(), dropins={}, releases=BOTH),
    Row("drop-in beside others", NONE, {HARD: "300Mi"}, dropins={"10-a.conf": "maxPods: 50\n"}),
    Row("soft eviction", STATIC, SOFT, releases=BOTH, disk_signals=False),
    Row("notification", STATIC, {"kernelMemcgNotification": True}, releases=BOTH, disk_signals=False),
    Row(
        "merge defaults",
        "evictionHard: {memory.available: 200Mi}\n",
        {"mergeDefaultEvictionSettings": True},
        releases=BOTH,
    ),
    Row("known gate", STATIC, {"featureGates/MemoryQoS": False}, disk_signals=False),
    Row("back to None", STATIC, {"memoryManagerPolicy": "None"}, disk_signals=False),
    Row("drift gate", STATIC, {"featureGates/MemoryManagerDriftTolerance": True}, "gate_unknown", releases=BOTH),
    Row("drift gate off", STATIC, {"featureGates/MemoryManagerDriftTolerance": False}, "gate_unknown"),
    Row("drift gate, drop-in", STATIC, {"featureGates/MemoryManagerDriftTolerance": True}, "gate_unknown", dropins={}),
    Row("gone gate", STATIC, {"featureGates/MemoryManager": True}, "gate_removed"),
    Row("locked gate", STATIC, {"featureGates/MemoryManager": False}, "gate_locked", releases=(V134,)),
    Row(
        "gate without what it needs",
        STATIC,
        {"featureGates/PodLevelResourceManagers": True, "featureGates/PodLevelResources": False},
        "gate_dependency",
    ),
    Row(
        "option",
        STATIC,
        {"memoryManagerPolicyOptions/memory-drift-tolerance": "auto"},
        "field_unknown",
        releases=BOTH,
        ignored=True,
        disk_signals=False,
    ),
    Row(
        "merge defaults in a drop-in",
        "evictionHard: {memory.available: 200Mi}\n",
        {"mergeDefaultEvictionSettings": True},
        "field_ignored",
        dropins={},
        ignored=True,
    ),
    Row("static without a reservation", NONE, POLICY, "reserved_memory_sum", releases=BOTH),
    Row("threshold without reservation", STATIC, {HARD: "300Mi"}, "reserved_memory_sum", releases=BOTH),
    Row("sum too small", STATIC, {"reservedMemory": reserved("600Mi")}, "reserved_memory_sum"),
    Row(
        "unknown NUMA node",
        STATIC,
        {"reservedMemory": [{"numaNode": 7, "limits": {"memory": "1000Mi"}}]},
        "reserved_memory_unknown_node",
        releases=BOTH,
    ),
    Row("fraction", STATIC, {"reservedMemory": reserved("0.5Gi", "488Mi")}, "reserved_memory_not_int64"),
    Row("zero", STATIC, {"reservedMemory": reserved("1000Mi", "0")}, "reserved_memory_invalid"),
    Row("cpu", STATIC, {"reservedMemory": reserved("1", resource="cpu")}, "reserved_memory_invalid"),
    Row(
        "huge pages",
        STATIC,
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1000Mi", "hugepages-2Mi": "2Mi"}}]},
        "reserved_memory_sum",
    ),
    Row("no quantity", "", {HARD: "lots"}, "eviction_invalid", releases=BOTH),
    Row("negative threshold", "", {HARD: "-1Mi"}, "eviction_invalid"),
    Row("more than all", "", {HARD: "120%"}, "eviction_invalid"),
    Row("unknown signal", "", {"evictionHard/memory.free": "1Gi"}, "eviction_invalid"),
]
CASES = {f"{row.name} {release}": (row, release) for row in ROWS for release in row.releases}


def laid_out(row: Row, root: pathlib.Path, surroundings: Surroundings) -> NodeDirectory:
    config = row.config
    if config == "raw:json":
        config = 'raw:{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}\n'
    directory = NodeDirectory(root, Node(config=config, dropins=row.dropins))
    directory.lay_out(surroundings.flags())
    return directory


def by_hand(row: Row, directory: NodeDirectory, edits: t.Sequence[Edit]) -> None:
    """What somebody would do who is not told."""
    path = directory.path(CONFIG if row.dropins is None else CONFIG_DIR + "/50-by-hand.conf")
    path.write_text(edit_document(path.read_text() if path.exists() else NEW_FILE, edits))


def effective(root: pathlib.Path) -> t.Mapping[str, t.Any] | None:
    """What the kubelet logs as its configuration, since 1.37."""
    log = (root / "kubelet.log").read_text(errors="replace")
    found = re.search(r'"Effective KubeletConfiguration" config=<\n(.*?)\n >', log, re.DOTALL)
    text = "" if found is None else "\n".join(line[1:] for line in found.group(1).split("\n"))
    return yaml.load(text, Loader=yaml.BaseLoader) if text else None


def is_in_force(edit: Edit, configuration: t.Mapping[str, t.Any]) -> bool:
    value: t.Any = configuration
    for key in edit.path:
        value = value.get(key, {}) if isinstance(value, dict) else {}
    if edit.path == ("reservedMemory",):
        return bool(len(value) == len(edit.value))
    return bool(str(value).lower() == str(edit.value).lower())


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_starts_and_what_is_refused_does_not(
    name: str, node_root: pathlib.Path, surroundings: Surroundings, record_property: t.Callable[[str, object], None]
) -> None:
    row, release = CASES[name]
    directory = laid_out(row, node_root, surroundings)
    request = Request(host_root=str(node_root), overrides=KubeletOverrides(version=release))
    decided = run_module(request, Wish(edits=row.edits, rule=row.rule))
    codes = [finding.code for finding in decided.decision.refused]
    assert decided.written is (row.refused is None), codes
    if row.refused is not None:
        by_hand(row, directory, row.edits)
    outcome = try_start(release, directory, surroundings)
    record_property("module", f"refused: {codes[0]}" if codes else "written")
    record_property("kubelet", str(outcome))
    assert outcome.started is (row.refused is None or row.ignored), str(outcome)
    if row.refused is None:
        check_written(row, node_root)
    else:
        check_refused(row, codes, [one.kubelet_error for one in decided.decision.refused], outcome, node_root)


def check_written(row: Row, root: pathlib.Path) -> None:
    configuration = effective(root)
    if configuration is None:
        return
    assert [edit for edit in row.edits if not is_in_force(edit, configuration)] == []
    if row.disk_signals:
        assert set(DISK_SIGNALS) <= set(configuration["evictionHard"])


def check_refused(
    row: Row, codes: t.Sequence[str], texts: t.Sequence[str | None], outcome: Outcome, root: pathlib.Path
) -> None:
    assert row.refused in codes
    if not row.ignored:
        assert any(text is not None and outcome.says(text) for text in texts), (texts, str(outcome))
        return
    configuration = effective(root)
    # The field may be shown; what counts is that nothing comes of it.
    if configuration is not None and "mergeDefaultEvictionSettings" in row.wanted:
        assert not set(DISK_SIGNALS) <= set(configuration["evictionHard"])
    elif configuration is not None:
        assert "memoryManagerPolicyOptions" not in configuration


def test_the_table_is_large_enough() -> None:
    assert len(CASES) >= 30
