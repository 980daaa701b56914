# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdict, `will_start` and findings of one node from plain values (design, section 4; semantics 5.5)."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from policy_builders import GIB, KERNEL, MIB, block, codes, defaults, judged, machine, recorded, subject

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V1, V2, V3, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import VERDICTS, Evaluation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.findings import stops_start
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import STATES_DIFFER
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release, parse_release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.subject import StateFile, Subject

TWO = machine(2 * GIB, 2 * GIB)
MOVED = machine(2 * GIB - 40 * MIB, 2 * GIB + 40 * MIB)
STATE = recorded(TWO, block([0], 100))
GATE, OPTION, PODS = "MemoryManagerDriftTolerance", "memory-drift-tolerance", "PodLevelResourceManagers"


def node(on: t.Any = TWO, **changes: t.Any) -> Subject:
    return subject(on, STATE, **changes)


def file(text: str) -> StateFile:
    return StateFile("/state", text.encode())


def stopping(evaluation: Evaluation) -> t.List[str]:
    return [finding.code for finding in evaluation.findings if finding.stops_start]


# --- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "tolerance", "verdict", "will_start", "stops"),
    [
        (node(), "auto", "match", True, []),
        (node(MOVED), "auto", "tolerable", False, ["memory_drift", "memory_drift"]),
        (node(MOVED), "off", "refuse", False, ["memory_changed", "memory_changed"]),
        (node(MOVED), "32Mi", "refuse", False, ["memory_changed", "memory_changed"]),
        (node(MOVED, iomem=None), "auto", "refuse", False, ["memory_changed", "memory_changed"]),
        (subject(TWO, None), "auto", "absent", True, []),
        (subject(MOVED, MemoryManagerState("Static")), "auto", "match", True, []),
        (node(state_file=file("")), "auto", "unreadable", False, ["state_not_json"]),
        (node(state_file=file('{"checksum":1}')), "auto", "unreadable", False, ["state_corrupt"]),
        (node(policy="None"), "auto", "unreadable", False, ["state_policy_mismatch"]),
        (subject(TWO, MemoryManagerState("None")), "auto", "unreadable", False, ["state_policy_mismatch"]),
        (subject(TWO, MemoryManagerState("None"), policy="None"), "auto", "not_applicable", True, []),
        (subject(TWO, None, policy="None"), "auto", "not_applicable", True, []),
        (node(policy="static"), "auto", "refuse", False, ["policy_unknown"]),
        (node(policy="BestEffort"), "auto", "refuse", False, ["policy_unavailable"]),
    ],
)
def test_verdicts(of: Subject, tolerance: str, verdict: str, will_start: bool, stops: t.List[str]) -> None:
    evaluation = judged(of, tolerance)
    assert (evaluation.verdict, evaluation.will_start, stopping(evaluation)) == (verdict, will_start, stops)
    assert verdict in VERDICTS
    assert bool(evaluation.kubelet_errors) is not will_start
    if verdict in ("refuse", "unreadable"):
        assert evaluation.machine_state_after is None


def test_the_state_afterwards() -> None:
    assert judged(node()).machine_state_after == STATE.machine_state
    assert judged(subject(TWO, None)).machine_state_after == defaults(TWO)
    after = judged(node(MOVED)).machine_state_after
    assert after == recorded(MOVED, block([0], 100)).machine_state


def test_drift_margin_and_hint() -> None:
    evaluation = judged(node(MOVED))
    assert evaluation.drift == {0: -40 * MIB, 1: 40 * MIB}
    assert [(one.numa_nodes, one.bytes) for one in evaluation.margins] == [((0,), 1396 * MIB)]
    assert [hint.kind for hint in evaluation.hints] == ["image_moved"]


def test_a_missing_bound_and_a_small_margin_are_told_at_a_match_too() -> None:
    assert codes(judged(node(iomem=None))) == ["bound_unavailable"]
    tight = subject(TWO, recorded(TWO, block([0], 1500)))
    assert codes(judged(tight)) == ["fit_margin_below_bound"]
    assert codes(judged(node(memory_block_size=64 * MIB))) == ["bound_exceeds_memory_block"]


def test_an_order_dependent_file() -> None:
    evaluation = judged(subject(TWO, recorded(TWO, block([0], 100), block([0, 1], 1))))
    assert (evaluation.verdict, evaluation.will_start) == ("refuse", None)
    assert "ambiguous" in codes(evaluation)


def test_before_1_32_each_node_is_compared_by_itself() -> None:
    split = recorded(machine(2 * GIB + 8 * MIB, 2 * GIB - 8 * MIB), block([0, 1], 1600))
    tables = recorded(TWO, block([0, 1], 1600)).nodes
    moved = {i: replace(tables[i] or _none(), memory_map=_usage(tables, split.nodes, i)) for i in (0, 1)}
    text = encode(replace(split, machine_state=moved), V1)
    verdicts = [judged(node(release=parse_release(r), state_file=file(text)), "off").verdict for r in ("1.31", "1.32")]
    assert verdicts == ["refuse", "match"]


def _none() -> t.NoReturn:
    raise AssertionError


def _usage(tables: t.Any, other: t.Any, i: int) -> t.Any:
    """Node i's table with `reserved` and `free` 8 MiB away; the group's sums stay."""
    memory, by = tables[i].memory_map["memory"], 8 * MIB * (1 - 2 * i)
    return {"memory": replace(memory, reserved=memory.reserved - by, free=memory.free + by)}


# --- what comes before the state file --------------------------------------------------------------------------------


def test_a_reservation_fault_decides_whatever_the_file_says() -> None:
    for of in (node(), subject(TWO, None), node(state_file=file("{"))):
        evaluation = judged(replace(of, reserved_memory=(MemoryReservation(0, {"memory": "1Gi"}),) * 2))
        assert (evaluation.verdict, evaluation.will_start) == ("refuse", False)
        assert evaluation.kubelet_errors[0].startswith('the total amount "2Gi" of type "memory" is not equal')
        assert evaluation.machine_state_after is None


def test_a_configuration_finding_stops_a_node_with_policy_none_too() -> None:
    finding = stops_start("gate_unknown", "Unknown. Remove it.", kubelet_error="unrecognized feature gate: X")
    evaluation = judged(subject(TWO, None, policy="None", findings=(finding,)))
    assert (evaluation.verdict, evaluation.will_start, evaluation.kubelet_errors[0]) == (
        "refuse",
        False,
        finding.kubelet_error,
    )


def test_a_gate_that_the_release_does_not_know() -> None:
    evaluation = judged(
        node(feature_gates={"MemoryManager": True}, gate_sources={"featureGates.MemoryManager": "/k.yaml"})
    )
    assert (evaluation.verdict, stopping(evaluation)) == ("refuse", ["gate_removed"])


# --- option and gate (semantics 5.5) ---------------------------------------------------------------------------------


def options(value: t.Dict[str, str], gate: t.Optional[bool] = True, **changes: t.Any) -> Evaluation:
    """A node whose drift is 40 MiB, with a kubelet that knows the gate, judged with tolerance `off`."""
    gates = {} if gate is None else {GATE: gate}
    known = {"release": Release(1, 38), "listed_gates": frozenset((GATE, PODS)), **changes}
    return judged(node(MOVED, policy_options=value, feature_gates=gates, **known), "off")


@pytest.mark.parametrize(
    ("value", "gate", "bound", "will_start"),
    [
        ({}, None, 0, False),
        ({}, True, 0, False),
        ({OPTION: "auto"}, True, 116 * MIB, True),
        ({OPTION: "off"}, True, 0, False),
        ({OPTION: "40Mi"}, True, 40 * MIB, True),
        ({OPTION: "39Mi"}, True, 39 * MIB, False),
        ({OPTION: "0"}, True, 0, False),
    ],
)
def test_will_start_is_what_the_kubelet_itself_tolerates(
    value: t.Dict[str, str], gate: t.Optional[bool], bound: int, will_start: bool
) -> None:
    evaluation = options(value, gate)
    assert (evaluation.verdict, evaluation.kubelet_bound, evaluation.will_start) == ("refuse", bound, will_start)
    assert bool(evaluation.kubelet_errors) is not will_start


WITHOUT_GATE = f'memory manager policy option "{OPTION}" requires the {GATE} feature gate'
BAD = f'bad value for option "{OPTION}": '
FORMAT = BAD + "quantities must match the regular expression"


@pytest.mark.parametrize(
    ("value", "gate", "policy", "code", "error"),
    [
        ({OPTION: "off"}, None, "Static", "option_without_gate", WITHOUT_GATE),
        ({OPTION: "off"}, False, "Static", "option_without_gate", WITHOUT_GATE),
        ({"x": "true"}, True, "Static", "option_unknown", 'unknown Memory Manager Policy option: "x"'),
        ({OPTION: "-1Mi"}, True, "Static", "option_invalid", BAD + '"-1Mi" is negative'),
        ({OPTION: "AUTO"}, True, "Static", "option_invalid", FORMAT),
        ({OPTION: ""}, True, "Static", "option_invalid", FORMAT),
        (
            {OPTION: "off"},
            True,
            "None",
            "option_policy",
            f'policy "None" does not support policy options map[{OPTION}:off]',
        ),
    ],
)
def test_options_that_stop_the_kubelet(
    value: t.Dict[str, str], gate: t.Optional[bool], policy: str, code: str, error: str
) -> None:
    evaluation = options(value, gate, policy=policy)
    assert (evaluation.verdict, evaluation.will_start, evaluation.kubelet_bound) == ("refuse", False, 0)
    assert stopping(evaluation)[0] == code
    assert evaluation.kubelet_errors[0].startswith(error)


def test_all_alpha_switches_the_gate_on() -> None:
    evaluation = judged(
        node(
            MOVED,
            policy_options={OPTION: "auto"},
            feature_gates={"AllAlpha": True},
            release=Release(1, 38),
            listed_gates=frozenset((GATE,)),
        )
    )
    assert evaluation.will_start is True


def test_a_release_without_the_field_ignores_the_option() -> None:
    evaluation = judged(node(MOVED, policy_options={OPTION: "auto"}))
    assert (evaluation.verdict, evaluation.will_start, evaluation.kubelet_bound) == ("tolerable", False, 0)
    assert codes(evaluation)[0] == "option_ignored"


def test_the_kubelet_trusts_a_partly_hidden_image_and_we_do_not() -> None:
    known = {"release": Release(1, 38), "listed_gates": frozenset((GATE,)), "feature_gates": {GATE: True}}
    of = node(MOVED, iomem=KERNEL + "0-0 : Kernel bss\n", policy_options={OPTION: "auto"}, **known)
    evaluation = judged(of)
    assert (evaluation.verdict, evaluation.will_start, evaluation.bound.unavailable) == (
        "refuse",
        True,
        "partly_hidden",
    )


# --- releases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "code"),
    [
        ("1.31.0", "release_unproven"),
        ("1.34.0", None),
        ("1.38.0", "release_unknown"),
        ("1.20.0", "release_unknown"),
        (None, "version_unknown"),
    ],
)
def test_how_sure_the_rules_are(release: t.Optional[str], code: t.Optional[str]) -> None:
    evaluation = judged(node(release=parse_release(release) if release else None))
    assert codes(evaluation) == ([code] if code else [])
    assert evaluation.verdict == "match"


@pytest.mark.parametrize(("fmt", "verdict"), [(V1, "match"), (V2, "unreadable"), (V3, "match")])
def test_with_an_unknown_release_a_file_must_be_readable_by_all(fmt: str, verdict: str) -> None:
    of = node(release=None, state_file=file(encode(STATE, fmt)))
    assert judged(of).verdict == verdict


@pytest.mark.parametrize(
    ("release", "gates", "fmt", "verdict", "code"),
    [
        ("1.36", {}, V2, "unreadable", "state_corrupt"),
        ("1.36", {PODS: True}, V2, "match", None),
        ("1.37", {}, V2, "refuse", "pod_entries_dropped"),
        ("1.37", {}, V3, "refuse", "pod_entries_dropped"),
        ("1.37", {PODS: True}, V3, "match", None),
        ("1.34", {}, V3, "refuse", "pod_entries_dropped"),
    ],
)
def test_pod_entries(release: str, gates: t.Dict[str, bool], fmt: str, verdict: str, code: t.Optional[str]) -> None:
    """Semantics 4.4 and 5.9, 9: a kubelet that drops them charges the containers instead."""
    state = replace(STATE, pod_entries={"pod1": (block([0], 100),)})
    sources = {"featureGates." + PODS: "/k.yaml"}
    of = node(release=parse_release(release), feature_gates=gates, gate_sources=sources)
    evaluation = judged(replace(of, state_file=file(encode(state, fmt, pod_level=True))))
    assert evaluation.verdict == verdict
    assert code is None or code in codes(evaluation)


def test_the_kubelets_text_names_the_file() -> None:
    evaluation = judged(node(state_file=StateFile("/data/kubelet/memory_manager_state", b"x")))
    assert '"/data/kubelet/memory_manager_state"' in evaluation.kubelet_errors[0]
    assert judged(node(MOVED), "off").kubelet_errors == (STATES_DIFFER,)
