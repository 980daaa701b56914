# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person is told of a judgement: each cause once, its consequences not at all, always the next step."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from policy_builders import GIB, MIB, block, defaults, machine, pods, recorded

from ansible_collections.kubenode.memory.plugins.module_utils._policy.explain import (
    bound_findings,
    inconsistent_free,
    judgement_findings,
    margin_findings,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.findings import Finding
from ansible_collections.kubenode.memory.plugins.module_utils._policy.fit import FitMargin
from ansible_collections.kubenode.memory.plugins.module_utils._policy.hints import Hint
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import MachineInfo
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MachineState,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.static_policy import judge
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import derive_bound, parse_tolerance

TWO = machine(2 * GIB, 2 * GIB, pages=10)
PINNED = recorded(TWO, block([0], 10), block([1], 10))
BOUND = 116 * MIB


def explain(
    state: MemoryManagerState, on: MachineInfo, bound: int = BOUND, reserved: int = 512, hints: t.Tuple[Hint, ...] = ()
) -> t.List[Finding]:
    judgement = judge(state, defaults(on, reserved), bound)
    return list(judgement_findings(judgement, bound, judgement.exact.starts is not True, hints))


def short(findings: t.List[Finding]) -> t.List[t.Tuple[str, t.Optional[int]]]:
    return [(finding.code, finding.numa_node) for finding in findings]


def node(of: MachineState, number: int, **changes: t.Any) -> MachineState:
    """A machine state with one node changed."""
    return {**of, number: replace(of[number] or NumaNodeState(), **changes)}


@pytest.mark.parametrize(
    ("on", "found"),
    [
        (machine(2 * GIB - 40 * MIB, 2 * GIB + 40 * MIB, pages=10), [("memory_drift", 0), ("memory_drift", 1)]),
        (machine(2 * GIB - 200 * MIB, 2 * GIB + 40 * MIB, pages=10), [("memory_changed", 0), ("memory_drift", 1)]),
        # memory's allocatable differs too, and free with it: consequences of the pool's size
        (machine(2 * GIB, 2 * GIB, pages=11), [("hugepages_changed", 0), ("hugepages_changed", 1)]),
        (machine(2 * GIB, 2 * GIB), [("hugepages_changed", 0), ("hugepages_changed", 1)]),
        (machine(2 * GIB, 2 * GIB, 2 * GIB, pages=10), [("numa_nodes_changed", 2)]),
        (machine(2 * GIB, pages=10), [("assignment_unknown_node", 1), ("numa_nodes_changed", 1)]),
        (TWO, []),
    ],
)
def test_a_changed_machine(on: MachineInfo, found: t.List[t.Tuple[str, int]]) -> None:
    assert short(explain(PINNED, on)) == found


def test_a_changed_reservation() -> None:
    found = explain(PINNED, TWO, reserved=600)
    assert short(found) == [("reservation_changed", 0), ("reservation_changed", 1)]
    assert (found[0].expected, found[0].found, found[0].resource) == (512 * MIB, 600 * MIB, "memory")


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (replace(PINNED, entries=pods(block([0], 10))), [("assignments_differ", 1)]),
        (replace(PINNED, entries=pods(block([0], 10), block([1], 9))), [("group_reserved", 1)]),
        (replace(PINNED, machine_state=node(PINNED.nodes, 0, cells=(0, 1))), [("groups_differ", 0)]),
        (replace(PINNED, machine_state=node(PINNED.nodes, 0, number_of_assignments=2)), [("assignments_differ", 0)]),
    ],
)
def test_a_changed_file(state: MemoryManagerState, found: t.List[t.Tuple[str, int]]) -> None:
    assert short(explain(state, TWO)) == found


def test_a_null_node() -> None:
    assert short(explain(MemoryManagerState("Static", {0: None, 1: PINNED.nodes[1]}), TWO))[0] == ("node_null", 0)


def test_blocks_with_their_pod() -> None:
    finding = explain(PINNED, machine(2 * GIB, pages=10))[0]
    assert (finding.pod_uid, finding.container, finding.expected) == ("pod2", "container1", 10 * MIB)
    assert finding.message.startswith("Container container1 of pod pod2 is assigned NUMA node 1, which this machine ")


@pytest.mark.parametrize(("bound", "severity"), [(BOUND, "warning"), (0, "warning")])
def test_a_misfit_is_always_told(bound: int, severity: str) -> None:
    finding = explain(recorded(TWO, block([0], 1600)), TWO, bound)[0]
    assert (finding.code, finding.severity, finding.resource) == ("assignment_does_not_fit", severity, "memory")
    assert (finding.expected, finding.found) == (1600 * MIB, 1516 * MIB)
    assert bool(finding.kubelet_error) == bool(bound)


@pytest.mark.parametrize(("stops", "severity"), [(True, "stops_start"), (False, "info")])
def test_severity_is_what_the_installed_kubelet_does(stops: bool, severity: str) -> None:
    judgement = judge(PINNED, defaults(machine(2 * GIB - MIB, 2 * GIB, pages=10)), BOUND)
    found = judgement_findings(judgement, BOUND, stops)
    assert [finding.severity for finding in found] == [severity]
    assert bool(found[0].kubelet_error) is stops


def test_a_drift_carries_what_it_looks_like() -> None:
    hints = (Hint("image_moved", "the kernel image moved"), Hint("other_kernel", "another kernel"))
    finding = explain(PINNED, machine(2 * GIB - 40 * MIB, 2 * GIB, pages=10), hints=hints)[0]
    assert finding.hint == "image_moved"
    assert finding.message == (
        "NUMA node 0: memory changed by -40.0 MiB, within the bound of 116.0 MiB (the kernel image moved; another "
        "kernel). Re-baseline the file with memmgr_rebaseline."
    )


@pytest.mark.parametrize(
    ("bound", "words"), [(BOUND, "more than the bound of 116.0 MiB"), (0, "no drift is tolerated")]
)
def test_a_loss_says_what_to_do(bound: int, words: str) -> None:
    message = explain(PINNED, machine(GIB, 2 * GIB, pages=10), bound)[0].message
    assert message.startswith(
        f"NUMA node 0: memory changed by -1024.0 MiB, {words}" if bound else "NUMA node 0: memory "
    )
    assert words in message
    assert "drain the node" in message


def test_an_ambiguous_file() -> None:
    blocks: t.Tuple[Block, ...] = (block([0], 100), block([0, 1], 1))
    codes = [finding.code for finding in explain(recorded(TWO, *blocks), TWO)]
    assert codes[-1] == "ambiguous"


def test_a_refusal_that_no_difference_explains_is_told() -> None:
    found = explain(MemoryManagerState("Static", {}, pods(block([0], 1))), TWO)
    assert [(one.code, one.stops_start) for one in found] == [("state_refused", True)]


def test_every_message_is_a_sentence_with_a_next_step() -> None:
    machines = (machine(GIB, pages=3), machine(GIB, 2 * GIB, 1, pages=10), machine(2 * GIB - MIB, 3 * GIB))
    for finding in [one for on in machines for one in explain(PINNED, on)]:
        assert finding.message[0].isupper()
        assert finding.message.count(". ") >= 1
        assert finding.message.endswith(".")


# --- statements about the file and the next boot ---------------------------------------------------------------------


def test_a_group_that_no_kubelet_wrote() -> None:
    table = MemoryTable(100, 0, 100, 30, 60)
    state: MachineState = {i: NumaNodeState(1, {"memory": table}, (1, 0)) for i in (0, 1)}
    assert [(one.numa_node, one.expected, one.found) for one in inconsistent_free(state)] == [(0, 200, 180)]
    assert inconsistent_free(PINNED.nodes) == ()
    assert inconsistent_free({0: None, 1: NumaNodeState(1, {"memory": None}, (1, 7))}) == ()


@pytest.mark.parametrize(("size", "told"), [(BOUND - 1, True), (BOUND, False)])
def test_a_margin_below_the_bound(size: int, told: bool) -> None:
    found = margin_findings([FitMargin((0, 1), size)], BOUND)
    assert [(one.code, one.severity) for one in found] == [("fit_margin_below_bound", "warning")] * told


@pytest.mark.parametrize(
    ("setting", "iomem", "block_size", "code"),
    [
        ("auto", None, None, "bound_unavailable"),
        ("128Mi", None, 128 * MIB, "bound_exceeds_memory_block"),
        ("127Mi", None, 128 * MIB, None),
        ("128Mi", None, None, None),
        ("off", None, 128 * MIB, None),
    ],
)
def test_bounds(setting: str, iomem: t.Optional[str], block_size: t.Optional[int], code: t.Optional[str]) -> None:
    found = bound_findings(derive_bound(parse_tolerance(setting), iomem), block_size)
    assert [one.code for one in found] == ([code] if code else [])
    assert all(one.field == "memory-drift-tolerance" for one in found)


def test_before_1_32_a_split_is_told_with_its_remedy() -> None:
    state = recorded(TWO, block([0, 1], 1600))
    tables = [(node.memory_map or {}).get("memory") or MemoryTable() for node in state.nodes.values() if node]
    off = [replace(table, reserved=table.reserved - by, free=table.free + by) for table, by in zip(tables, (MIB, -MIB))]
    pages = (state.nodes[0] or NumaNodeState()).memory_map or {}
    nodes = {i: NumaNodeState(1, {**pages, "memory": table}, (0, 1)) for i, table in enumerate(off)}
    judgement = judge(replace(state, machine_state=nodes), defaults(TWO), BOUND, group_sums=False)
    found = judgement_findings(judgement, BOUND, True)
    assert (judgement.verdict, [one.code for one in found]) == ("tolerable", ["usage_split", "usage_split"])
    assert found[0].message.endswith("Re-baseline the file with memmgr_rebaseline.")
