# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `memory-drift-tolerance`, the bound, and the drafts' own cases (semantics 5.4, 5.5, 5.10)."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st
from policy_builders import GIB, KERNEL, MIB, block, defaults, machine, pods
from vectors import Row, each

from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import STATES_DIFFER
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.static_policy import (
    MATCH,
    REFUSE,
    TOLERABLE,
    Judgement,
    judge,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import (
    ToleranceError,
    ToleranceSetting,
    derive_bound,
    drift,
    parse_tolerance,
)

# --- grammar ---------------------------------------------------------------------------------------------------------


# The kubelet would take these for 0 or for 2^63 (semantics 5.5); we refuse them (5.9, 4).
OVERFLOWING = ("10E", "9223372036854775808", "18446744073709551616", "1e1000")


@each("quantity.json", "text")
def test_vectors(row: Row) -> None:
    answer = row["memory_drift_tolerance"]
    if answer.startswith("error") or row["text"] in OVERFLOWING:
        with pytest.raises(ToleranceError):
            parse_tolerance(row["text"])
    elif answer in ("derived bound", "0 (exact)"):
        assert parse_tolerance(row["text"]) == ToleranceSetting({"derived bound": "auto", "0 (exact)": "off"}[answer])
    else:
        assert parse_tolerance(row["text"]).quantity == int(answer)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128Mi", 128 * MIB),
        ("134217728", 128 * MIB),
        ("128M", 128000000),
        ("1.5Gi", 1536 * MIB),
        ("1e8", 100000000),
        ("0", 0),
        ("0.5", 1),
        ("1500m", 2),
        ("auto", None),
        ("off", None),
    ],
)
def test_values(text: str, size: t.Optional[int]) -> None:
    assert parse_tolerance(text).quantity == size
    assert parse_tolerance(text).is_auto == (text == "auto")


@pytest.mark.parametrize(
    "text", ["AUTO", "Off", "on", "true", "128MB", "", " 1Mi", "1K", "lots", "10E", "9223372036854775808"]
)
def test_other_values(text: str) -> None:
    with pytest.raises(ToleranceError, match=r'^bad value for option "memory-drift-tolerance": '):
        parse_tolerance(text)


def test_a_negative_value() -> None:
    with pytest.raises(ToleranceError, match=r'option "memory-drift-tolerance": "-1Mi" is negative$'):
        parse_tolerance("-1Mi")


@given(st.text(max_size=30) | st.from_regex(r"[+-]?[0-9.]{1,25}[eEinumkKMGTP]{0,2}[0-9]{0,6}", fullmatch=True))
def test_any_text_is_a_setting_or_an_error(text: str) -> None:
    try:
        setting = parse_tolerance(text)
    except ToleranceError:
        return
    assert setting.quantity is None or 0 <= setting.quantity < 1 << 63


# --- bound -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "iomem", "size", "source", "unavailable"),
    [
        ("auto", KERNEL, 116 * MIB, "kernel_image", None),
        ("auto", None, 0, "unavailable", "no_iomem"),
        ("auto", "", 0, "unavailable", "no_rows"),
        ("auto", "0-0 : Kernel code\n", 0, "unavailable", "hidden"),
        ("auto", KERNEL + "0-0 : Kernel bss\n", 0, "unavailable", "partly_hidden"),
        ("off", KERNEL, 0, "off", None),
        ("8Mi", None, 8 * MIB, "quantity", None),
        ("0", KERNEL, 0, "quantity", None),
    ],
)
def test_bounds(setting: str, iomem: t.Optional[str], size: int, source: str, unavailable: t.Optional[str]) -> None:
    bound = derive_bound(parse_tolerance(setting), iomem)
    assert (bound.bytes, bound.source, bound.unavailable) == (size, source, unavailable)
    assert bool(bound.reason) == bool(unavailable)


# --- the cases of the drafts (5.10) ----------------------------------------------------------------------------------


def table(allocatable: int, free: int, reserved: int, system_reserved: int, total: int) -> MemoryTable:
    """The column order of semantics 5.10, in MiB."""
    return MemoryTable(total * MIB, system_reserved * MIB, allocatable * MIB, reserved * MIB, free * MIB)


def stored(*tables: MemoryTable, blocks: t.Tuple[Block, ...] = (), cells: t.Tuple[int, ...] = ()) -> MemoryManagerState:
    """A state whose nodes have 1 GiB of huge pages each."""
    pool = MemoryTable(GIB, 0, GIB, 0, GIB)
    nodes = {
        node: NumaNodeState(len(blocks), {"memory": memory, "hugepages-2Mi": pool}, cells or (node,))
        for node, memory in enumerate(tables)
    }
    return MemoryManagerState("Static", nodes, pods(*blocks))


def start(state: MemoryManagerState, bound: int, reserved: int, *memory: int) -> Judgement:
    """A start on nodes of so many MiB with such huge pages, where `bound` MiB of drift are tolerated."""
    on = machine(*(size * MIB for size in memory), pages=512)
    return judge(state, defaults(on, reserved), bound * MIB)


def memory_of(judgement: Judgement, node: int) -> t.Optional[MemoryTable]:
    found = (judgement.machine_state or {})[node]
    assert found is not None
    return (found.memory_map or {})["memory"]


D1 = stored(table(512, 512, 0, 512, 2048))


def test_d1_drift_without_assignments() -> None:
    judgement = start(D1, 256, 512, 2044)
    assert judgement.verdict == TOLERABLE
    assert memory_of(judgement, 0) == table(508, 508, 0, 512, 2044)


def test_d2_drift_with_an_assignment_that_fits() -> None:
    judgement = start(stored(table(512, 312, 200, 512, 2048), blocks=(block([0], 200),)), 256, 512, 2044)
    assert judgement.verdict == TOLERABLE
    assert memory_of(judgement, 0) == table(508, 308, 200, 512, 2044)


def test_d3_an_assignment_that_no_longer_fits() -> None:
    judgement = start(stored(table(512, 12, 500, 512, 2048), blocks=(block([0], 500),)), 256, 512, 1600)
    assert judgement.verdict == REFUSE
    assert judgement.errors == (
        "[memorymanager] (pod: pod1, container: container1) the memory assignment does not fit the machine state",
    )


def test_d4_g1_more_than_the_bound_and_gate_off() -> None:
    for bound, memory in ((256, 2048 - 300), (0, 2044)):
        judgement = start(D1, bound, 512, memory)
        assert (judgement.verdict, judgement.errors) == (REFUSE, (STATES_DIFFER,))
        assert judgement.machine_state == D1.machine_state


@pytest.mark.parametrize(
    ("lost", "verdict"), [(0, MATCH), (4, TOLERABLE), (200, TOLERABLE), (256, TOLERABLE), (257, REFUSE), (1024, REFUSE)]
)
def test_b1_to_b6_the_edge_of_the_bound(lost: int, verdict: str) -> None:
    state = stored(table(6144, 6144, 0, 1024, 8192))
    assert start(state, 256, 1024, 8192 - lost).verdict == verdict


def test_x1_a_pod_across_two_nodes() -> None:
    tables = (table(6144, 0, 6144, 1024, 8192), table(6144, 5120, 1024, 1024, 8192))
    judgement = start(stored(*tables, blocks=(block([0, 1], 7168),), cells=(0, 1)), 256, 1024, 8188, 8192)
    assert judgement.verdict == TOLERABLE
    assert memory_of(judgement, 0) == table(6140, 0, 6140, 1024, 8188)
    assert memory_of(judgement, 1) == table(6144, 5116, 1028, 1024, 8192)


@pytest.mark.parametrize(
    ("option", "lost", "verdict"), [("off", 4, REFUSE), ("8Mi", 4, TOLERABLE), ("8Mi", 12, REFUSE)]
)
def test_s1_to_s3_start_with_the_option(option: str, lost: int, verdict: str) -> None:
    bound = derive_bound(parse_tolerance(option), None).bytes // MIB
    assert start(D1, bound, 512, 2048 - lost).verdict == verdict


# --- drift -----------------------------------------------------------------------------------------------------------


def test_drift_is_signed_and_by_node() -> None:
    before, after = defaults(machine(GIB, GIB, GIB)), defaults(machine(GIB - 4096, GIB + 4096))
    assert drift(before, after) == {0: -4096, 1: 4096}
    assert drift({0: None, 1: NumaNodeState()}, after) == {}
