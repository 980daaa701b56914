# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State files from the field: loaded, or refused for the reason that their `expect` names."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
from corpus_captures import CORPUS, captures, each, meta, needs_corpus

from ansible_collections.kubenode.memory.plugins.module_utils._policy import checkpoint
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V1, V2, CheckpointError, load
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (
    HugePagesInfo,
    MachineInfo,
    NumaNode,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import default_machine_state
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.static_policy import judge

pytestmark = needs_corpus

GIB = 1 << 30
STATES = CORPUS / "states"
FIXTURE, TALOS = "k8s-fixture-", "talos-fixture-"

# name: (configured policy, gate, what 1.37 says: a format, or the code of a refusal)
ANSWERS: t.Dict[str, t.Tuple[str, bool, str]] = {
    "blog-540GB-node0-truncated.json.txt": ("Static", False, "state_not_json"),
    "k8s-docs-two-numa-pinned-pod.as-posted-with-comment.txt": ("Static", False, "state_not_json"),
    "k8s-docs-two-numa-pinned-pod.json": ("Static", False, "state_corrupt"),
    FIXTURE + "truncated.json": ("static", False, "state_not_json"),
    FIXTURE + "v1-bad-checksum.json": ("static", False, "state_corrupt"),
    FIXTURE + "v1-checksum-zero.json": ("static", False, "V1"),
    FIXTURE + "v1-valid.json": ("static", False, "V1"),
    FIXTURE + "v2-bad-checksum.json": ("static", True, "state_corrupt"),
    FIXTURE + "v2-checksum-zero.json": ("static", True, "V1"),
    FIXTURE + "v2-valid.json": ("static", True, "V2"),
    FIXTURE + "v3-bad-dataChecksum.json": ("static", False, "state_corrupt"),
    FIXTURE + "v3-data-not-json.json": ("static", False, "state_not_json"),
    FIXTURE + "v3-missing-data.json": ("static", False, "state_not_json"),
    FIXTURE + "v3-missing-dataChecksum.json": ("static", False, "state_corrupt"),
    FIXTURE + "v3-pod-entries.json": ("static", True, "V3"),
    FIXTURE + "v3-policy-mismatch.json": ("none", False, "state_policy_mismatch"),
    FIXTURE + "v3-unknown-field-in-data.json": ("static", False, "V3"),
    FIXTURE + "v3-valid-legacy-part-wrong.json": ("static", False, "V3"),
    # `expect` says policy mismatch. As it stands it is corrupt: the checksum is verified before the policy is compared.
    "kep-1769-draft-policy-lowercase-static.json": ("Static", False, "state_corrupt"),
    TALOS + "garbage.json": ("Static", False, "state_not_json"),
    # The other five `expect` something else, but their checksum is the placeholder 1: `test_without_the_placeholder`.
    TALOS + "one-node.json": ("Static", False, "state_corrupt"),
    TALOS + "policy-none.json": ("Static", False, "state_corrupt"),
    TALOS + "static-empty-with-entries.json": ("Static", False, "state_corrupt"),
    TALOS + "static-empty.json": ("Static", False, "state_corrupt"),
    TALOS + "two-nodes-hugepages.json": ("Static", False, "state_corrupt"),
}


def answer(content: bytes, policy: str, gate: bool) -> str:
    try:
        return load(content, Release(1, 37, 2), gate, policy).format
    except CheckpointError as error:
        return error.code


@each("states")
def test_answer(capture: Path) -> None:
    policy, gate, expected = ANSWERS[capture.name]
    assert answer(capture.read_bytes(), policy, gate) == expected


@pytest.mark.parametrize(
    "capture", [path for path in captures("states") if "checksum_recomputed" in meta(path)], ids=lambda path: path.name
)
def test_checksums_that_others_computed(capture: Path) -> None:
    """Three files have wrong keys: the numbers take `nodes` for `cells`, and `affinity` for an empty list."""
    expected = meta(capture)["checksum_recomputed"]
    content = capture.read_bytes().replace(b'"nodes":', b'"cells":').replace(b'"affinity":[0]', b'"numaAffinity":[]')
    value = checkpoint._parse(content)
    state = checkpoint._decode(value, "", checkpoint._V2_FIELDS).state
    if "data" not in dict(value):
        assert checkpoint.state_checksum(state, V2) == expected["v2_layout_with_podEntries"]
    assert checkpoint.state_checksum(state, V1) == expected["v1_layout"]
    if meta(capture).get("dataChecksum_recomputed"):
        assert checkpoint.data_checksum(dict(value)["data"]) == meta(capture)["dataChecksum_recomputed"]


def test_a_comment_is_refused_with_its_line() -> None:
    with pytest.raises(CheckpointError) as error:
        load(
            (STATES / "k8s-docs-two-numa-pinned-pod.as-posted-with-comment.txt").read_bytes(),
            Release(1, 37),
            False,
            "Static",
        )
    assert re.search(r"^line [0-9]+, column [0-9]+$", error.value.where)
    assert error.value.cause.startswith("invalid character '/'")


def test_what_counts_in_a_v3_file_is_its_data() -> None:
    content = (STATES / (FIXTURE + "v3-valid-legacy-part-wrong.json")).read_bytes()
    state = load(content, Release(1, 37), False, "static").state
    assert [table.total for node in state.nodes.values() for table in (node.memory_map or {}).values()] == [2048]  # type: ignore[union-attr]
    assert state.policy_name == "static"


def test_pod_entries_only_with_the_gate_and_a_right_checksum() -> None:
    for name, gate, pods in (("v3-pod-entries", True, 1), ("v3-pod-entries", False, 0), ("v2-checksum-zero", True, 0)):
        content = (STATES / (FIXTURE + name + ".json")).read_bytes()
        assert len(load(content, Release(1, 37), gate, "static").state.pod_entries or {}) == pods


def test_the_truncated_node_adds_up() -> None:
    text = (STATES / "blog-540GB-node0-truncated.json.txt").read_text()
    numbers = {key: int(value) for key, value in re.findall(r'"(\w+)": ?([0-9]{9,})', text)}
    assert numbers["total"] - numbers["systemReserved"] == numbers["allocatable"]
    assert numbers.get("reserved", 0) + numbers.get("free", 0) == numbers["allocatable"]


# --- with a checksum of 0, which 1.36 and 1.37 do not check ----------------------------------------------------------


def unchecked(name: str) -> bytes:
    text = (STATES / name).read_text()
    return re.sub(r'"checksum": ?[0-9]+', '"checksum":0', text).encode()


@pytest.mark.parametrize(
    ("name", "policy", "expected"),
    [
        ("kep-1769-draft-policy-lowercase-static.json", "Static", "state_policy_mismatch"),
        (TALOS + "policy-none.json", "Static", "state_policy_mismatch"),
        (TALOS + "static-empty.json", "Static", "V1"),
        (TALOS + "one-node.json", "Static", "V1"),
    ],
)
def test_without_the_placeholder(name: str, policy: str, expected: str) -> None:
    assert answer(unchecked(name), policy, False) == expected


def talos(
    name: str, nodes: int, reserved: t.Mapping[int, t.Mapping[str, int]]
) -> t.Tuple[str, t.List[t.Tuple[str, t.Optional[int]]]]:
    """Verdict and differences of a Talos fixture on nodes of 64 GiB with 2048 pages of 2 MiB."""
    machine = MachineInfo(tuple(NumaNode(node, 64 * GIB, (HugePagesInfo(2048, 2048),)) for node in range(nodes)))
    state = load(unchecked(TALOS + name), Release(1, 37), False, "Static").state
    judgement = judge(state, default_machine_state(machine, reserved), 0)
    kinds = ("system_reserved", "node_missing")
    return judgement.verdict, [(d.kind, d.numa_node) for d in judgement.differences if d.kind in kinds]


@pytest.mark.parametrize(
    ("nodes", "reserved", "differences"),
    [
        (2, {0: {"memory": GIB}}, []),
        (2, {0: {"memory": GIB, "hugepages-2Mi": 0}, 1: {"memory": 0}}, []),
        (2, {0: {"memory": 2 * GIB}}, [("system_reserved", 0)]),
        (2, {0: {"memory": GIB}, 1: {"memory": GIB}}, [("system_reserved", 1)]),
        (2, {0: {"memory": GIB, "hugepages-2Mi": 2 << 20}}, [("system_reserved", 0)]),
        (2, {0: {"memory": GIB, "hugepages-1Gi": GIB}}, []),
        (1, {0: {"memory": GIB}}, [("node_missing", 1)]),
        (3, {0: {"memory": GIB}}, [("node_missing", 2)]),
    ],
)
def test_two_nodes_with_huge_pages(nodes: int, reserved: t.Any, differences: t.List[t.Tuple[str, int]]) -> None:
    verdict, found = talos("two-nodes-hugepages.json", nodes, reserved)
    assert (verdict, found) == ("refuse" if differences else "match", differences)


def test_empty_states() -> None:
    assert talos("static-empty.json", 2, {})[0] == "match"
    assert talos("static-empty-with-entries.json", 2, {})[0] == "refuse"
