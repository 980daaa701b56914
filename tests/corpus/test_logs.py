# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubelets printed when they failed: the same situation, judged here, gives the same words."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
from corpus_captures import CORPUS, each, needs_corpus
from policy_builders import GIB, MIB, judged, machine, recorded, subject

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import MemoryManagerState
from ansible_collections.kubenode.memory.plugins.module_utils._policy.subject import StateFile, Subject

pytestmark = needs_corpus

TWO = machine(2 * GIB, 2 * GIB)
EMPTY = MemoryManagerState("Static")


def reserving(allocatable: str, **limits: str) -> Subject:
    """Static with so much reserved by Node Allocatable, and these limits on node 0."""
    entries = (MemoryReservation(0, {name.replace("_", "-"): text for name, text in limits.items()}),)
    return subject(TWO, EMPTY, reservation={"memory": parse_quantity(allocatable)}, reserved_memory=entries)


def gate(name: str) -> Subject:
    return subject(
        TWO, EMPTY, feature_gates={name: True}, gate_sources={"featureGates." + name: "flag --feature-gates"}
    )


SITUATIONS: t.Dict[str, t.List[Subject]] = {
    "checkpoint-invalid-json.log": [subject(TWO, EMPTY, state_file=StateFile("/f", b'{}"'))],
    "checksum-corrupt-cpu-kinder.log": [subject(TWO, EMPTY, state_file=StateFile("/f", b'{"checksum":1}'))],
    "policy-mismatch-memory-message.txt": [
        subject(TWO, EMPTY, policy="None", state_file=StateFile("<stateDir>/memorymanager_checkpoint_test", b"{}"))
    ],
    "reserved-mismatch-blog-two-tries.log": [reserving("16484Mi"), reserving("16484Mi", memory="16548Mi")],
    "reserved-mismatch-hugepages-bottlerocket.log": [reserving("1Gi", memory="1Gi", hugepages_2Mi="10Mi")],
    "reserved-mismatch-zero.log": [reserving("993Mi")],
    "state-mismatch-old-go-struct.log": [subject(machine(GIB, 2 * GIB), recorded(TWO), release=Release(1, 24))],
    "unknown-policy-lowercase.log": [subject(TWO, EMPTY, policy="static")],
    "unrecognized-feature-gate-test-infra.log": [gate("InTreePluginGCEUnregister")],
    "unrecognized-feature-gate-apiserver.log": [gate("UserNamespacesPodSecurityStandards")],
}
# What the part of a text that differs by nature is cut to before it is looked for.
CUTS = {
    "checkpoint-invalid-json.log": r"^(could not restore .* top-level value), ",
    "checksum-corrupt-cpu-kinder.log": r"^(could not restore state from checkpoint: checkpoint is corrupted), ",
    "policy-mismatch-memory-message.txt": r"(, please drain this node and delete the memory manager .*)$",
    "unrecognized-feature-gate-apiserver.log": r"(unrecognized feature gate: .*)$",
}
OTHERS = {
    "checksum-corrupt-memory-v3-messages.txt": "its refusals are in test_states.py, the rest accompanies good starts",
    "config-decode-nil-map.log": "decoding of the configuration: test_kubelet_config.py",
    "config-decode-number-for-string.log": "decoding of the configuration: test_kubelet_config.py",
    "ga-gate-warning-kubekey.log": "a warning, the kubelet starts: test_feature_gates.py",
    "memory-available-script-kylin.txt": "arithmetic of the notifier: test_notifier.py",
    "memory-manager-cpuset-mems-old.log": "a healthy line",
    "node-allocatable-larger-than-capacity.log": "another failure of the container manager",
    "notifier-cgroupv2-old-kubelet.log": "the notifier: test_notifier.py",
    "notifier-message-templates.txt": "the notifier: test_notifier.py",
    "policy-mismatch-cpu-bottlerocket.log": "the CPU manager's file, which nothing of ours names",
    "policy-mismatch-cpu-ci.log": "the CPU manager's file, which nothing of ours names",
    "policy-mismatch-cpu-talos.json.log": "the CPU manager's file, which nothing of ours names",
    "state-mismatch-gpu-operator.txt": "log lines without the error's text",
    "state-mismatch-structured-v1.32.log": "test_the_drift_of_a_log",
    "talos-kubelet-json-healthy-none.log": "test_reservation_of_a_healthy_node",
}


@each("logs")
def test_words(capture: Path) -> None:
    assert (capture.name in SITUATIONS) != (capture.name in OTHERS), "a new capture needs an answer"
    log = capture.read_text().replace('\\"', '"')
    for situation in SITUATIONS.get(capture.name, ()):
        evaluation = judged(situation)
        text = evaluation.kubelet_errors[0]
        cut = re.search(CUTS.get(capture.name, "^(.*)$"), text)
        assert cut is not None, text
        # journald cuts long lines
        assert cut.group(1)[:90] in log
        assert evaluation.will_start is False


def test_the_drift_of_a_log() -> None:
    """+43696128 bytes on node 2; the kubelet names the first node that differs, we name all."""
    log = (CORPUS / "logs" / "state-mismatch-structured-v1.32.log").read_text()
    before, after = (int(number) for number in re.findall(r"TotalMemSize[12]=([0-9]+)", log))
    state = recorded(machine(before, before, before), reserved=4429185024 // MIB)
    evaluation = judged(subject(machine(before - 4096, before, after), state, reserved=4429185024 // MIB))
    assert evaluation.drift == {0: -4096, 1: 0, 2: 43696128}
    assert (evaluation.verdict, evaluation.will_start) == ("tolerable", False)
    assert [finding.numa_node for finding in evaluation.findings] == [0, 2]


def test_another_failure_is_not_ours() -> None:
    log = (CORPUS / "logs" / "node-allocatable-larger-than-capacity.log").read_text()
    assert "start memory manager error" not in log


@pytest.mark.parametrize(("words", "memory"), [('"systemReserved"', "512Mi"), ('"HardEvictionThresholds"', "100Mi")])
def test_reservation_of_a_healthy_node(words: str, memory: str) -> None:
    log = (CORPUS / "logs" / "talos-kubelet-json-healthy-none.log").read_text()
    assert memory in log[log.lower().index(words.lower()) :]
    assert judged(subject(TWO, MemoryManagerState("None"), policy="None")).verdict == "not_applicable"
