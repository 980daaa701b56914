# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory threshold notifier: which thresholds, at which usage, and when not at all."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import KubeletConfiguration
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kubelet_start import (
    HYBRID,
    NONE,
    V1,
    V2,
    CgroupFacts,
    eviction_findings,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import (
    EvictionThreshold,
    GroupStatistics,
    ImplausibleCounters,
    MemoryCounters,
    assess,
    memory_thresholds,
    notification_threshold,
    obstacle,
    pods_group,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import Threshold, parse_threshold

MIB = 1024 * 1024
WORKING = CgroupFacts(HYBRID, "/sys/fs/cgroup/memory", usage_file=True, event_control=True)
COUNTERS = MemoryCounters(25276063744, 5810089984, 2639159296)
NODE = GroupStatistics("/", COUNTERS)
PODS = GroupStatistics("/kubepods", MemoryCounters(24000000000, 3000000, 1000000))


def configured(**fields: t.Any) -> KubeletConfiguration:
    return KubeletConfiguration(**{"eviction_hard": {"memory.available": "100Mi"}, **fields})


def threshold(text: str) -> Threshold:
    parsed = parse_threshold("memory.available", text, "evictionHard")
    assert parsed is not None
    return parsed


# --- which thresholds ------------------------------------------------------------------------------------------------


def names(configuration: KubeletConfiguration) -> t.List[str]:
    return [f"{one.description}: {one.text}" for one in memory_thresholds(configuration)]


HARD = "hard memory eviction threshold: 100Mi"
SOFT = "soft memory eviction threshold: 1Gi"
SOFT_1GI = {"eviction_soft": {"memory.available": "1Gi"}, "eviction_soft_grace_period": {"memory.available": "90s"}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [HARD, "hard allocatable memory eviction threshold: 100Mi"]),
        ({"enforce_node_allocatable": ()}, [HARD]),
        ({"allocatable_ignore_eviction": True}, [HARD]),
        ({"enforce_node_allocatable": (), **SOFT_1GI}, [HARD, SOFT]),
        ({"eviction_hard": {}, **SOFT_1GI}, [SOFT]),
        ({"eviction_hard": None}, []),
        ({"eviction_hard": {"memory.available": "0%"}}, []),
        ({"eviction_hard": {"nodefs.available": "10%"}}, []),
        (
            # without any grace it is a hard one, and gets an allocatable twin
            {"eviction_hard": {}, **SOFT_1GI, "eviction_soft_grace_period": {"memory.available": "0s"}},
            ["hard memory eviction threshold: 1Gi", "hard allocatable memory eviction threshold: 1Gi"],
        ),
        (
            {"eviction_hard": {"allocatableMemory.available": "5%"}},
            ["hard allocatable memory eviction threshold: 5%"],
        ),
    ],
)
def test_which_thresholds_get_a_notifier(fields: t.Dict[str, t.Any], expected: t.List[str]) -> None:
    assert names(configured(**fields)) == expected


@pytest.mark.parametrize(
    ("fields", "kubelet_error"),
    [
        ({"eviction_hard": {"memory.free": "1Gi"}}, "unsupported eviction signal memory.free"),
        (
            {"eviction_soft": {"memory.available": "101%"}},
            "eviction percentage threshold memory.available must be <= 100%: 101%",
        ),
        (
            {"eviction_soft": {"memory.available": "1Gi"}},
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            {**SOFT_1GI, "eviction_soft_grace_period": {"memory.available": "90"}},
            'time: missing unit in duration "90"',
        ),
        (
            {**SOFT_1GI, "eviction_soft_grace_period": {"memory.available": "-1m"}},
            "invalid eviction grace period specified: -1m, must be a positive value",
        ),
        ({"eviction_soft_grace_period": {"memory": "1m"}}, "unsupported eviction signal memory"),
    ],
)
def test_what_the_kubelet_refuses(fields: t.Dict[str, t.Any], kubelet_error: str) -> None:
    findings = eviction_findings(configured(**fields))
    assert [(one.code, one.kubelet_error) for one in findings] == [("eviction_invalid", kubelet_error)]
    assert assess(configured(**fields), WORKING, NODE, PODS).thresholds == ()


# --- arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "counters", "expected"),
    [
        ("100Mi", COUNTERS, 25276063744 - 100 * MIB + 2639159296),
        # 5% in float32: 0.05000000074505806 of the capacity, truncated
        ("5%", COUNTERS, 25276063744 - 1263803206 + 2639159296),
        ("1.5", MemoryCounters(100, 50, 20), 119),
        # cAdvisor's working set stops at zero, so inactive file is the usage
        ("10", MemoryCounters(100, 30, 40), 120),
    ],
)
def test_the_usage_to_notify_at(text: str, counters: MemoryCounters, expected: int) -> None:
    assert notification_threshold(threshold(text), counters) == expected


COUNTER = st.integers(0, 1 << 48)


@given(COUNTER, COUNTER, COUNTER, st.integers(1, 1 << 48))
def test_it_is_crossed_when_less_than_the_threshold_is_available(
    capacity: int, usage: int, inactive: int, eviction: int
) -> None:
    counters = MemoryCounters(capacity, usage, inactive)
    try:
        notify_at = notification_threshold(Threshold(parse_quantity(str(eviction))), counters)
    except ImplausibleCounters:
        assert capacity == 0 or usage > capacity
    else:
        assert (usage > notify_at) == (counters.available < eviction)


@pytest.mark.parametrize(
    ("counters", "problem"),
    [
        (MemoryCounters(1000, 1001, 500), "usage is above capacity"),
        (MemoryCounters(1000, 3000, 500), "available memory would be -1500 bytes"),
        (MemoryCounters(0, 0, 0), "a counter is negative, or the capacity is zero"),
        (MemoryCounters(1000, -1, 0), "a counter is negative"),
    ],
)
def test_contradicting_counters_give_no_threshold(counters: MemoryCounters, problem: str) -> None:
    with pytest.raises(ImplausibleCounters, match=problem):
        notification_threshold(threshold("100"), counters)
    found = assess(configured(), WORKING, GroupStatistics("/", counters), PODS)
    assert [finding.code for finding in found.findings] == ["memcg_counters_implausible"]
    assert (found.thresholds[0].notify_at, found.thresholds[0].distance) == (None, None)
    assert found.thresholds[1].notify_at is not None


# --- a node ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cgroups", "code"),
    [
        (WORKING, None),
        (CgroupFacts(V1, "/m", True, True), None),
        (CgroupFacts(V2, "/sys/fs/cgroup"), "cgroup_v2"),
        (CgroupFacts(HYBRID), "no_memory_controller"),
        (CgroupFacts(NONE), "no_memory_controller"),
        (CgroupFacts(HYBRID, "/m"), "no_memory_controller"),
        (CgroupFacts(V1, "/m", usage_file=True), "no_event_control"),
        (CgroupFacts(V1, "/m", True, True, realtime=True), "preempt_rt"),
    ],
)
def test_obstacles(cgroups: CgroupFacts, code: t.Optional[str]) -> None:
    found = obstacle(cgroups)
    assert (None if found is None else found.code) == code


@pytest.mark.parametrize(
    ("on", "fail_cgroup_v1", "cgroups", "active", "codes"),
    [
        (True, False, WORKING, True, []),
        (True, None, WORKING, True, []),
        (False, False, WORKING, False, []),
        (True, True, WORKING, False, ["cgroup_v1_refused"]),
        (True, True, CgroupFacts(V2, "/sys/fs/cgroup"), False, ["notifier_without_effect"]),
        (False, True, CgroupFacts(V2, "/sys/fs/cgroup"), False, []),
        (True, False, CgroupFacts(HYBRID), False, ["notifier_without_effect"]),
    ],
)
def test_the_answer_for_a_node(
    on: bool, fail_cgroup_v1: t.Optional[bool], cgroups: CgroupFacts, active: bool, codes: t.List[str]
) -> None:
    configuration = configured(kernel_memcg_notification=on, fail_cgroup_v1=fail_cgroup_v1)
    found = assess(configuration, cgroups, NODE, PODS)
    assert (found.active, [finding.code for finding in found.findings]) == (active, codes)


def test_each_threshold_is_computed_from_its_own_group() -> None:
    node, pods = assess(configured(), WORKING, NODE, PODS).thresholds
    assert (node.statistics.group, node.distance) == ("/", 25276063744 - 100 * MIB + 2639159296 - 5810089984)
    assert (pods.statistics.group, pods.notify_at) == ("/kubepods", 24000000000 - 100 * MIB + 1000000)


def test_a_group_without_statistics_gives_its_reason() -> None:
    found = assess(configured(), WORKING, NODE, GroupStatistics("/kubepods", reason="no such group"))
    assert (found.thresholds[1].notify_at, found.thresholds[1].reason) == (None, "no such group")
    assert found.findings == ()


@pytest.mark.parametrize(
    ("root", "qos", "driver", "expected"),
    [
        ("", True, "cgroupfs", "/kubepods"),
        ("/", True, "systemd", "/kubepods.slice"),
        ("/a/b-c", True, "cgroupfs", "/a/b-c/kubepods"),
        ("/a/b-c", True, "systemd", "/a.slice/a-b_c.slice/a-b_c-kubepods.slice"),
        ("", False, "systemd", "/"),
        ("/a", False, "cgroupfs", "/a"),
    ],
)
def test_the_pods_control_group(root: str, qos: bool, driver: str, expected: str) -> None:
    assert pods_group(root, qos, driver) == expected


@given(st.text(max_size=20), st.sampled_from(["evictionHard", "evictionSoft"]))
def test_any_statement_is_a_threshold_or_a_finding(text: str, field: str) -> None:
    name = {"evictionHard": "eviction_hard", "evictionSoft": "eviction_soft"}[field]
    configuration = configured(
        **{name: {"memory.available": text}}, eviction_soft_grace_period={"memory.available": text}
    )
    found = assess(configuration, WORKING, NODE, PODS)
    assert all(isinstance(one.origin, EvictionThreshold) for one in found.thresholds)
    assert all(finding.kubelet_error for finding in found.findings if finding.stops_start)
