# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which gates a kubelet knows, and what naming the others does to it (semantics 6.4)."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.feature_gates import (
    Gate,
    find_gate,
    gate_findings,
    is_enabled,
    knows_gate,
    was_removed,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.findings import Finding
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release, parse_release

PODS, LEVEL, DRIFT = "PodLevelResourceManagers", "PodLevelResources", "MemoryManagerDriftTolerance"


def findings(release: str, gates: t.Dict[str, bool], source: str = "/etc/k.yaml", **listed: t.Any) -> t.List[Finding]:
    sources = {"featureGates." + name: source for name in gates}
    return gate_findings(parse_release(release), gates, sources, listed.get("listed"))


@pytest.mark.parametrize(
    ("release", "name", "gate"),
    [
        ("1.21", "MemoryManager", Gate("ALPHA", False, False)),
        ("1.31", "MemoryManager", Gate("BETA", True, False)),
        ("1.32", "MemoryManager", Gate("GA", True, True)),
        ("1.36", "MemoryManager", None),
        ("1.28", "TopologyManager", Gate("GA", True, True)),
        ("1.29", "TopologyManager", None),
        ("1.32", "CPUManager", None),
        ("1.33", LEVEL, Gate("ALPHA", False, False)),
        ("1.37", LEVEL, Gate("BETA", True, False)),
        ("1.37", PODS, Gate("BETA", False, False, (LEVEL,))),
        ("1.37", DRIFT, None),
    ],
)
def test_history(release: str, name: str, gate: t.Optional[Gate]) -> None:
    assert find_gate(parse_release(release), name) == gate


@pytest.mark.parametrize(
    ("release", "name", "listed", "known"),
    [
        ("1.37", PODS, None, True),
        ("1.37", DRIFT, None, False),
        ("1.37", DRIFT, {DRIFT}, True),
        ("1.38", DRIFT, None, None),
        ("1.38", DRIFT, {DRIFT}, True),
        # --help hides GA gates: not listed proves nothing
        ("1.38", DRIFT, {"Other"}, None),
        ("1.25", "SomeGate", None, None),
        ("1.38", "MemoryManager", None, False),
        ("1.25", "AllAlpha", None, True),
    ],
)
def test_known_gates(release: str, name: str, listed: t.Optional[t.Set[str]], known: t.Optional[bool]) -> None:
    assert knows_gate(parse_release(release), name, None if listed is None else frozenset(listed)) is known


@pytest.mark.parametrize(
    ("configured", "enabled"),
    [
        ({}, False),
        ({PODS: True}, True),
        ({PODS: False, "AllBeta": True}, False),
        ({"AllBeta": True}, True),
        ({"AllAlpha": True}, False),
    ],
)
def test_value_of_a_gate(configured: t.Dict[str, bool], enabled: bool) -> None:
    assert is_enabled(Release(1, 37), configured, PODS) is enabled


def test_a_locked_gate_and_an_unknown_one_cannot_be_switched() -> None:
    assert is_enabled(Release(1, 34), {"MemoryManager": False}, "MemoryManager")
    assert not is_enabled(Release(1, 34), {PODS: True}, PODS)


PANIC = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
EXIT = "failed to set feature gates from initial flags-based config: "


@pytest.mark.parametrize(
    ("release", "name", "source", "code", "error"),
    [
        ("1.37.2", "MemoryManager", "/etc/k.yaml", "gate_removed", PANIC + "unrecognized feature gate: MemoryManager"),
        ("1.37.2", DRIFT, "/etc/k.yaml", "gate_unknown", PANIC + "unrecognized feature gate: " + DRIFT),
        ("1.37.2", DRIFT, "flag --feature-gates", "gate_unknown", EXIT + "unrecognized feature gate: " + DRIFT),
        (
            "1.31.0",
            "TopologyManager",
            "/etc/k.yaml",
            "gate_removed",
            EXIT + "unrecognized feature gate: TopologyManager",
        ),
    ],
)
def test_unknown_gates_stop_the_kubelet(release: str, name: str, source: str, code: str, error: str) -> None:
    found = findings(release, {name: True}, source)
    assert [(one.code, one.stops_start, one.kubelet_error) for one in found] == [(code, True, error)]
    assert found[0].path == source
    assert name in found[0].message


@pytest.mark.parametrize(
    ("release", "gates", "code", "stops"),
    [
        ("1.33", {"MemoryManager": False}, "gate_locked", True),
        ("1.33", {"MemoryManager": True}, "gate_ga", False),
        ("1.38", {DRIFT: True}, "gate_unverified", False),
        ("1.37", {PODS: True, LEVEL: False}, "gate_dependency", True),
    ],
)
def test_other_findings(release: str, gates: t.Dict[str, bool], code: str, stops: bool) -> None:
    assert {(one.code, one.stops_start) for one in findings(release, gates)} == {(code, stops)}


def test_text_of_a_locked_gate_and_of_a_dependency() -> None:
    locked = findings("1.33", {"MemoryManager": False})[0].kubelet_error
    assert locked == PANIC + "cannot set feature gate MemoryManager to false, feature is locked to true"
    dependencies = [one.kubelet_error for one in findings("1.37", {PODS: True, LEVEL: False})]
    assert f"{PODS} is enabled, but depends on features that are disabled: [{LEVEL}]" in dependencies


def test_a_gate_that_is_on_by_default_needs_another_one() -> None:
    assert [one.code for one in findings("1.34", {LEVEL: False})] == []
    fields = [one.field for one in findings("1.37", {LEVEL: False})]
    assert "featureGates.InPlacePodLevelResourcesVerticalScaling" in fields


def test_gates_by_flag_come_first() -> None:
    sources = {"featureGates.X": "/etc/k.yaml", "featureGates.Y": "flag --feature-gates"}
    assert [one.field for one in gate_findings(Release(1, 37), {"X": True, "Y": True}, sources, None)] == [
        "featureGates.Y",
        "featureGates.X",
    ]


def test_ordinary_gates_say_nothing() -> None:
    assert findings("1.37", {PODS: True, LEVEL: True}) == []


def test_removed_means_that_an_older_release_knew_it() -> None:
    assert was_removed(Release(1, 36), "MemoryManager")
    assert not was_removed(Release(1, 35), "MemoryManager")
    assert not was_removed(Release(1, 37), "NoSuchGate")


def test_a_flag_does_not_mend_what_a_file_says() -> None:
    sources = {"featureGates.MemoryManager": "flag --feature-gates", "featureGates." + LEVEL: "flag --feature-gates"}
    found = gate_findings(Release(1, 34), {"MemoryManager": True}, sources, None, {"MemoryManager": False})
    assert [one.code for one in found if one.stops_start] == ["gate_locked"]
    assert found[-1].kubelet_error == PANIC + (
        "cannot set feature gate MemoryManager to false, feature is locked to true"
    )
    codes = {one.code for one in gate_findings(Release(1, 37), {LEVEL: True}, sources, None, {LEVEL: False})}
    assert codes == {"gate_dependency"}
