# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data from any source: what cannot be used is named, and no malformed mapping is ever a wrong `match`."""

from __future__ import annotations

import base64
import copy
import typing as t

import pytest
from hypothesis import given, settings, strategies as st
from policy_builders import GIB, KERNEL, MIB, machine, recorded
from vectors import rows

from ansible_collections.kubenode.memory.plugins.module_utils._mapping import evaluate_mapping, subject_from_mapping
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V1, V3, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import VERDICTS, evaluate
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import Block, MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import parse_tolerance
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

Mapping = t.Dict[str, t.Any]
EXAMPLES = [row for row in rows("drift.jsonl") if row["policy"] == "Static" and len(row["file_text"] or "") < 4000][:60]
GOOD = next(row for row in EXAMPLES if row["verdict"]["ok"] and row["kind"] == "format")


def changed(**values: t.Any) -> Mapping:
    return {**copy.deepcopy(GOOD), **values}


def without(key: str) -> Mapping:
    return {name: value for name, value in GOOD.items() if name != key}


# --- what cannot be used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "takes a mapping, not list"),
        (without("machine"), "machine is missing"),
        (without("policy"), "policy is missing"),
        (without("file_text"), "file_text (or file_base64) is missing"),
        (changed(machine={"nodes": {}}), "machine.nodes is {}, it has to be list"),
        (changed(machine={"nodes": [{"id": 0}]}), "machine.nodes[0].memory is None, it has to be a whole number"),
        (changed(machine={"nodes": [{"id": 0, "memory": -1}]}), "machine.nodes[0].memory is -1"),
        (changed(machine={"nodes": [{"id": True, "memory": 1}]}), "machine.nodes[0].id is True"),
        (changed(machine={"nodes": [{"id": 0, "memory": 1}] * 2}), "each id stands once"),
        (changed(machine={"nodes": [None]}), "machine.nodes[0] is None"),
        (changed(policy=1), "policy is 1, it has to be str"),
        (changed(file_text=5), "file_text is 5"),
        (changed(file_base64="*"), "file_base64 is not base64"),
        (
            changed(reserved_memory=[{"numa_node": 0, "limits": {"memory": "1GB"}}]),
            "reserved_memory limits memory is '1GB'",
        ),
        (changed(node_allocatable_reservation={"memory": None}), "node_allocatable_reservation memory is None"),
        (changed(node_allocatable_reservation={"memory": 10**5000}), "node_allocatable_reservation memory is"),
        (changed(pod_level_resource_managers_gate="yes"), "pod_level_resource_managers_gate is 'yes'"),
        (changed(memory_block_size_bytes=-1), "memory_block_size_bytes is -1"),
        (changed(iomem_text=["x"]), "iomem_text is ['x']"),
    ],
)
def test_input_errors_name_the_key_and_the_value(data: t.Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        evaluate_mapping(data, "1.37.2")
    assert words in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("version", ["x", "1", "v1.37.2 or so", 1.37 + 1j, "1.\u0663\u0667"])
def test_versions_that_are_none(version: t.Any) -> None:
    with pytest.raises(InputError, match=r"^kubelet_version: "):
        evaluate_mapping(GOOD, version)


@pytest.mark.parametrize("tolerance", ["", "32MB", "-1Mi", "AUTO", False, None, 5])
def test_tolerances_that_are_none(tolerance: t.Any) -> None:
    with pytest.raises(InputError, match=r"^tolerance is "):
        evaluate_mapping(GOOD, "1.37.2", tolerance)


# --- what can --------------------------------------------------------------------------------------------------------


def test_the_answer_is_plain_data() -> None:
    result = evaluate_mapping(changed(iomem_text=KERNEL, memory_block_size_bytes=64 * MIB), "v1.37.2")
    assert (result["verdict"], result["will_start"], result["kubelet_error"]) == ("match", True, None)
    assert result["bound"]["kernel_image_bytes"] == 52 * MIB
    assert {finding["code"] for finding in result["findings"]} >= {"bound_exceeds_memory_block"}
    assert result["tolerance"] == {"value": "auto", "source": "argument"}


def test_a_file_that_is_not_text() -> None:
    encoded = base64.b64encode(b"\xff" + GOOD["file_text"].encode()).decode()
    assert evaluate_mapping(changed(file_base64=encoded), "1.37.2")["verdict"] == "unreadable"
    assert evaluate_mapping(changed(file_base64=encoded[4:]), "1.37.2")["verdict"] == "unreadable"
    encoded = base64.b64encode(GOOD["file_text"].encode()).decode()
    assert evaluate_mapping({**without("file_text"), "file_base64": encoded}, "1.37.2")["verdict"] == "match"


def test_null_is_no_file() -> None:
    assert evaluate_mapping(changed(file_text=None), "1.37.2")["verdict"] == "absent"


# --- properties ------------------------------------------------------------------------------------------------------

VALUES = st.one_of(
    st.sampled_from(
        [None, True, "", "1Gi", "\ud800", [], {}, [None], {"0": None}, 1.5, float("nan"), b"x", -1, 1 << 64, 1 << 200]
    ),
    st.integers(0, 1 << 66),
    st.text(max_size=5),
)
KEYS = ("machine", "policy", "reserved_memory", "node_allocatable_reservation", "file_text", "iomem_text")


def places(value: t.Any) -> t.Iterator[t.Tuple[t.Any, t.Any]]:
    """(container, key) of everything below `value`."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


@given(st.sampled_from(EXAMPLES), st.data(), st.sampled_from(["off", "auto", "1Mi", "16Ei"]))
@settings(max_examples=150)
def test_a_malformed_mapping_is_an_error_or_a_result(row: Mapping, draw: st.DataObject, tolerance: str) -> None:
    data = {key: copy.deepcopy(row.get(key)) for key in KEYS}
    data["iomem_text"] = KERNEL
    container, key = draw.draw(st.sampled_from(list(places(data))))
    container[key] = draw.draw(VALUES)
    try:
        result = evaluate_mapping(data, "1.37.2", tolerance)
    except InputError as error:
        assert str(error)  # noqa: PT017
        return
    assert result["verdict"] in VERDICTS
    if result["verdict"] == "match" and result["assignments"]:
        agrees_with_the_machine(result)


def agrees_with_the_machine(result: Mapping) -> None:
    """What a match means, without the code that decides it: every node's pools are the recorded ones."""
    for node in result["numa_nodes"]:
        totals = {name: table["total"] for name, table in node["recorded"].items()}
        assert totals == {"memory": node["memory"], **node["hugepages"]}


@given(st.sampled_from(EXAMPLES), st.lists(st.integers(1, 1 << 40), min_size=2, max_size=4).map(sorted))
def test_a_larger_bound_never_refuses_what_a_smaller_one_lets_pass(row: Mapping, bounds: t.List[int]) -> None:
    passed = [evaluate_mapping(row, "1.37.2", str(bound))["verdict"] in ("match", "tolerable") for bound in bounds]
    assert passed == sorted(passed)


DRIFTS = st.lists(st.integers(-64, 64).map(lambda pages: pages * 4096), min_size=3, max_size=3)
BLOCKS = st.lists(
    st.builds(lambda node, size: Block((node,), "memory", size * MIB), st.integers(0, 2), st.integers(0, 200)),
    max_size=6,
)


def mapping(on: t.Sequence[int], state: MemoryManagerState, fmt: str) -> Mapping:
    return {
        "machine": {"nodes": [{"id": node, "memory": memory} for node, memory in enumerate(on)]},
        "policy": "Static",
        "reserved_memory": [{"numa_node": node, "limits": {"memory": "512Mi"}} for node, _rest in enumerate(on)],
        "node_allocatable_reservation": {"memory": f"{512 * len(on)}Mi"},
        "file_text": encode(state, fmt),
    }


@given(DRIFTS, BLOCKS, st.sampled_from([V1, V3]))
def test_a_rebaselined_file_matches_without_a_tolerance(drifts: t.List[int], blocks: t.List[Block], fmt: str) -> None:
    old, now = [2 * GIB] * 3, [2 * GIB + drift for drift in drifts]
    state = recorded(machine(*old), *blocks)
    data = mapping(now, state, fmt)
    verdict = evaluate_mapping(data, "1.37.2", "256Ki")["verdict"]
    assert verdict == ("tolerable" if any(drifts) else "match")
    after = evaluate(subject_from_mapping(data, "1.37.2"), parse_tolerance("256Ki")).machine_state_after
    again = evaluate_mapping(mapping(now, MemoryManagerState("Static", after, state.entries), fmt), "1.37.2", "off")
    assert (again["verdict"], again["will_start"]) == ("match", True)
    conserved(after or {}, now, blocks)


def conserved(after: t.Any, memory: t.Sequence[int], blocks: t.Sequence[Block]) -> None:
    """Each node's memory is reserved for the system, reserved for pods or free; the pods keep what they had."""
    for node, total in enumerate(memory):
        table = after[node].memory_map["memory"]
        assert table.total == total == table.system_reserved + table.reserved + table.free
        assert table.reserved == sum(block.size for block in blocks if block.numa_affinity == (node,))
