# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""reservedMemory against Node Allocatable: the checks before the state file is looked at (semantics 3.4, 6.5)."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st
from policy_builders import GIB, machine
from vectors import Row, each

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import (
    KubeletConfiguration,
    MemoryReservation,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import (
    NOT_INT64,
    NOT_SPECIFIED,
    ReservationError,
    float32,
    hard_eviction_reservation,
    node_allocatable_reservation,
    parse_threshold,
    reservation_faults,
    static_validation,
    system_reserved,
)

CAPACITY = 64 * GIB


def threshold(text: str) -> KubeletConfiguration:
    return KubeletConfiguration(eviction_hard={"memory.available": text})


def reserve(*limits: t.Tuple[int, t.Dict[str, str]]) -> t.List[MemoryReservation]:
    return [MemoryReservation(node, each_) for node, each_ in limits]


def texts(memory: str, *limits: t.Tuple[int, t.Dict[str, str]]) -> t.List[str]:
    """What stops a node with NUMA nodes 0 and 1 where Node Allocatable reserves so much memory."""
    faults = reservation_faults(machine(GIB, GIB), {"memory": parse_quantity(memory)}, reserve(*limits))
    return [fault.kubelet_error for fault in faults]


# --- Node Allocatable ------------------------------------------------------------------------------------------------


@each("eviction_percent.json", "percent")
def test_percentages(row: Row) -> None:
    quantity = hard_eviction_reservation(threshold(row["percent"]), row["capacity_bytes"])
    assert (0 if quantity is None else quantity.value()) == row["threshold_bytes"]


def test_float64_would_be_wrong() -> None:
    assert float32(0.05) != 0.05
    # 0.7 is made a float32 before the division, too: 32 bytes of 64 GiB
    quantity = hard_eviction_reservation(threshold("0.7%"), CAPACITY)
    assert quantity is not None
    assert quantity.value() == 481036320


@pytest.mark.parametrize(
    ("configuration", "memory"),
    [
        (KubeletConfiguration(), None),
        (KubeletConfiguration(eviction_hard={}), None),
        (KubeletConfiguration(eviction_hard={"nodefs.available": "10%"}), None),
        (threshold("0%"), None),
        (threshold("100%"), None),
        (threshold("100Mi"), "100Mi"),
        (
            KubeletConfiguration(kube_reserved={"memory": "1Gi", "cpu": "1"}, system_reserved={"memory": "512Mi"}),
            "1536Mi",
        ),
        (
            KubeletConfiguration(kube_reserved={"memory": "893Mi"}, eviction_hard={"memory.available": "100Mi"}),
            "993Mi",
        ),
        (KubeletConfiguration(eviction_hard={"memory.available": "1Gi"}, allocatable_ignore_eviction=True), None),
        (KubeletConfiguration(eviction_soft={"memory.available": "1Gi"}), None),
    ],
)
def test_what_node_allocatable_reserves(configuration: KubeletConfiguration, memory: t.Optional[str]) -> None:
    found = node_allocatable_reservation(configuration, CAPACITY)
    assert {name: str(quantity) for name, quantity in found.items()} == ({"memory": memory} if memory else {})


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        (KubeletConfiguration(kube_reserved={"hugepages-2Mi": "2Mi"}), 'cannot reserve "hugepages-2Mi" resource'),
        (KubeletConfiguration(system_reserved={"memory": "-1Gi"}), "cannot be negative: -1Gi"),
        (KubeletConfiguration(system_reserved={"memory": "1GB"}), 'failed to parse quantity "1GB"'),
        (threshold("-1%"), "eviction percentage threshold memory.available must be >= 0%: -1%"),
        (threshold("101%"), "eviction percentage threshold memory.available must be <= 100%: 101%"),
        (threshold("0"), "eviction threshold memory.available must be positive: 0"),
        (threshold("x%"), 'strconv.ParseFloat: parsing "x": invalid syntax'),
        (KubeletConfiguration(eviction_hard={"memory.free": "1Gi"}), "unsupported eviction signal memory.free"),
    ],
)
def test_values_that_cannot_be_used(configuration: KubeletConfiguration, text: str) -> None:
    with pytest.raises(ReservationError) as error:
        node_allocatable_reservation(configuration, CAPACITY)
    assert text in error.value.fault.kubelet_error


@given(st.text(max_size=12) | st.from_regex(r"[-+]?[0-9.eE]{0,8}(inf|nan)?%{0,2}", fullmatch=True))
def test_any_threshold_is_parsed_or_refused(text: str) -> None:
    try:
        found = parse_threshold("memory.available", text, "evictionHard")
    except ReservationError:
        return
    assert found is None or found.quantity(CAPACITY).value() >= 0


# --- reservedMemory --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        [(0, {"memory": "512Mi"}), (1, {"memory": "512Mi"})],
        [(0, {"memory": "1024Mi"})],
        [(1, {"memory": "1073741824"})],
    ],
)
def test_sums_that_fit(limits: t.Any) -> None:
    assert texts("1Gi", *limits) == []


def not_equal(total: str, resource: str, value: str) -> str:
    return (
        f'the total amount "{total}" of type "{resource}" is not equal to the value "{value}" determined by Node '
        "Allocatable feature"
    )


@pytest.mark.parametrize(
    ("memory", "limits", "found"),
    [
        ("16484Mi", [], [not_equal("0", "memory", "16484Mi")]),
        ("16484Mi", [(0, {"memory": "16548Mi"})], [not_equal("16548Mi", "memory", "16484Mi")]),
        ("1Gi", [(0, {"memory": "1Gi", "hugepages-2Mi": "10Mi"})], [not_equal("10Mi", "hugepages-2Mi", "0")]),
        ("1Gi", [(0, {"memory": "1Gi"}), (1, {"memory": "1"})], [not_equal("1073741825", "memory", "1Gi")]),
        ("1536Mi", [(0, {"memory": "1.5Gi"})], [NOT_INT64]),
        ("0", [], [NOT_SPECIFIED]),
        (
            "1Gi",
            [(2, {"memory": "1Gi"})],
            ["the reserved memory configuration references a NUMA node 2 that does not exist on this machine"],
        ),
    ],
)
def test_faults_in_the_words_of_the_kubelet(memory: str, limits: t.Any, found: t.List[str]) -> None:
    assert texts(memory, *limits) == found


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (
            [(0, {"cpu": "1"})],
            'the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted',
        ),
        ([(0, {"memory": "0"})], 'reserved memory may not be zero for NUMA node 0 and resource "memory"'),
        (
            [(0, {"memory": "1Gi"}), (0, {"memory": "2Gi"})],
            'the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
        ),
    ],
)
def test_static_validation(limits: t.Any, text: str) -> None:
    assert [fault.kubelet_error for fault in static_validation(reserve(*limits))] == ["invalid configuration: " + text]


def test_static_validation_lets_pass() -> None:
    """Negative amounts, and a node in two entries of different types."""
    assert not static_validation(reserve((0, {"memory": "-1Gi"}), (0, {"hugepages-2Mi": "2Mi"})))


def test_bytes_by_node() -> None:
    """A later entry overwrites; a negative amount is read as unsigned."""
    limits = reserve((0, {"memory": "1Gi"}), (0, {"memory": "2Gi"}), (1, {"memory": "-1"}))
    assert system_reserved(limits) == {0: {"memory": 2 * GIB}, 1: {"memory": (1 << 64) - 1}}
