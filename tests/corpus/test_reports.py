# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators reported: each report of ../shared/corpus/reports.md with the verdict that its test idea asks for.

EXACT-OK is `match`, TOLERABLE `tolerable`, REJECT `refuse`, CORRUPT `unreadable`.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

import pytest
from corpus_captures import CORPUS, needs_corpus
from policy_builders import GIB, MIB, block, codes, judged, machine, pods, recorded, subject

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V1, V2, encode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MemoryManagerState, NumaNodeState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.subject import StateFile, Subject

pytestmark = needs_corpus

TWO = machine(2 * GIB, 2 * GIB)
STATE = recorded(TWO, block([0], 100))
PODS = "PodLevelResourceManagers"
IMAGE_50 = "1000000-41fffff : Kernel code\n"


def now(*memory: int, **changes: t.Any) -> Subject:
    """The node of TWO, whose file was written before, as it is now."""
    return subject(machine(*memory), STATE, **changes)


def with_pods() -> Subject:
    """A V2 file, of a 1.36 with the gate on."""
    text = encode(replace(STATE, pod_entries={"pod1": (block([0], 100),)}), V2)
    return subject(TWO, STATE, state_file=StateFile("/f", text.encode()))


def orphan() -> Subject:
    text = encode(replace(STATE, pod_entries={"gone": (block([0], 100),)}), V2)
    return subject(TWO, STATE, state_file=StateFile("/f", text.encode()), feature_gates={PODS: True})


def asymmetric() -> Subject:
    """Node 0 has cells [0], node 1 [0 1]."""
    state = recorded(TWO, block([0, 1], 100))
    first = state.nodes[0] or NumaNodeState()
    return subject(TWO, replace(state, machine_state={**state.nodes, 0: replace(first, cells=(0,))}))


def split(release: Release) -> Subject:
    """Group sums as a replay gives them, another split between the nodes."""
    state = recorded(TWO, block([0, 1], 1600))
    nodes = {}
    for i, sign in ((0, 1), (1, -1)):
        node = state.nodes[i] or NumaNodeState()
        table = (node.memory_map or {})["memory"]
        assert table is not None
        moved = replace(table, reserved=table.reserved - sign * 8 * MIB, free=table.free + sign * 8 * MIB)
        nodes[i] = replace(node, memory_map={"memory": moved})
    text = encode(MemoryManagerState("Static", nodes, pods(block([0, 1], 1600))), V1)
    return subject(TWO, state, state_file=StateFile("/f", text.encode()), release=release)


G, M = GIB, MIB
# (report, subject, verdict, code of a finding that has to be there)
CASES: t.List[t.Tuple[int, Subject, str, t.Optional[str]]] = [
    (3, now(2 * G - 44 * M, 2 * G + 30 * M, kernel_release="6.12"), "tolerable", "memory_drift"),
    (4, now(2 * G + 40 * M, 2 * G - 40 * M), "tolerable", "memory_drift"),
    (5, now(2 * G - 53760000 // 4096 * 4096, 2 * G, iomem=IMAGE_50), "tolerable", "memory_drift"),
    (7, now(2 * G - 4096, 2 * G, iomem=None), "refuse", "bound_unavailable"),
    (
        9,
        subject(
            TWO,
            STATE,
            policy_options={"memory-drift-tolerance": "off"},
            release=Release(1, 38),
            listed_gates=frozenset(("MemoryManagerDriftTolerance",)),
        ),
        "refuse",
        "option_without_gate",
    ),
    (10, subject(TWO, None), "absent", None),
    (14, now(2 * G - 6656 * 4096, 2 * G), "tolerable", "memory_drift"),
    (15, now(2 * G - 20 * M, 2 * G - 20 * M), "tolerable", "memory_drift"),
    (16, now(2 * G - 12 * 4096, 2 * G), "tolerable", "memory_drift"),
    (19, replace(with_pods(), release=Release(1, 35)), "unreadable", "state_corrupt"),
    (19, replace(with_pods(), feature_gates={PODS: True}), "match", None),
    (
        25,
        subject(TWO, STATE, state_file=StateFile("/f", encode(STATE, V2).encode() + b'"')),
        "unreadable",
        "state_not_json",
    ),
    # The line asks for REJECT, but the kubelet ignores pod entries without container entries (semantics 4.2, 3).
    (26, orphan(), "match", None),
    (27, asymmetric(), "refuse", "groups_differ"),
    (28, split(Release(1, 35)), "match", None),
    # The kubelet of 2022 refuses it, and starts with the re-baselined file.
    (28, split(Release(1, 24)), "tolerable", "usage_split"),
    (31, subject(TWO, MemoryManagerState("None")), "unreadable", "state_policy_mismatch"),
    (40, subject(TWO, STATE, policy="static"), "refuse", "policy_unknown"),
    (46, subject(TWO, STATE, feature_gates={"MemoryManagerDriftTolerance": True}), "refuse", "gate_unknown"),
    (46, subject(TWO, STATE, feature_gates={"MemoryManager": True}), "refuse", "gate_removed"),
    (47, subject(TWO, STATE, policy_options={"memory-drift-tolerance": "auto"}), "match", "option_ignored"),
    (50, now(4 * G - 1, 1), "refuse", "memory_changed"),
    (51, now(2 * G, 2 * G, 2 * G, 2 * G), "refuse", "numa_nodes_changed"),
    (52, now(2 * G, G), "refuse", "memory_changed"),
    (53, now(2 * G, 2 * G + 128 * M, memory_block_size=128 * M), "refuse", "memory_changed"),
    (
        55,
        subject(machine(2 * G, 2 * G, pages=11), recorded(machine(2 * G, 2 * G, pages=10))),
        "refuse",
        "hugepages_changed",
    ),
    (
        57,
        now(2 * G, 2 * G - 161 * M, iomem=IMAGE_50 + "50000000-5a0fffff : Crash kernel\n"),
        "refuse",
        "memory_changed",
    ),
    (59, now(2 * G, 2 * G, 64 * G), "refuse", "numa_nodes_changed"),
]
ELSEWHERE = {
    "logs of old kubelets cannot be judged, the files are": (2, 17),
    "vectors, test_tolerance.py and test_kernel_image.py": (8,),
    "Guaranteed pods beside a missing file: tests of _preflight": (11,),
    "distributions that manage their own state: tests of _preflight": (12, 30),
    "we name no other manager's file": (13,),
    "test_states.py": (20, 21, 23, 24, 29),
    "the remedy and its backups": (22,),
    "test_reservation.py and test_logs.py": (32, 33, 36, 43, 44),
    "configuration: test_kubelet_config.py and the tests of _node": (34, 35, 38, 39, 41, 42, 45),
    "test_numa.py and test_topology.py: nodes without CPUs, MemTotal alone": (49, 56),
    "a MemTotal that grows while the kubelet runs is the same to the comparison": (58,),
    "the notifier: test_notifier.py": (62, 63, 64, 65),
}


@pytest.mark.parametrize(("report", "of", "verdict", "code"), CASES, ids=[str(case[0]) for case in CASES])
def test_verdict(report: int, of: Subject, verdict: str, code: t.Optional[str]) -> None:
    evaluation = judged(of)
    assert evaluation.verdict == verdict, evaluation.findings
    assert code is None or code in codes(evaluation)


def test_what_a_lost_crash_kernel_and_a_hot_plugged_block_look_like() -> None:
    looks = {report: [hint.kind for hint in judged(of).hints] for report, of, _rest, _rest in CASES}
    assert (looks[57], looks[53], looks[59]) == (["crash_kernel_on"], ["memory_blocks"], [])


def test_every_report_is_answered() -> None:
    reports = {int(number) for number in re.findall(r"^([0-9]+)\. ", (CORPUS / "reports.md").read_text(), re.MULTILINE)}
    told = {case[0] for case in CASES} | {number for numbers in ELSEWHERE.values() for number in numbers}
    assert reports - told == set()
