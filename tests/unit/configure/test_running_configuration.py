# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet runs with, by its log, and where that is not what is expected."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.kubenode.memory.plugins.action.kubelet_memory_config_info import (
    compared,
    running_configuration,
    seen_from,
)
from ansible_collections.kubenode.memory.plugins.plugin_utils._running_configuration import (
    differences,
    logged_configuration,
)

TEXT = """I1129 22:00:00.000000       7 server.go:1] "Effective KubeletConfiguration" config=<
\tapiVersion: kubelet.config.k8s.io/v1beta1
\tevictionHard:
\t  imagefs.available: 15%
\t  memory.available: 500Mi
\tmemoryManagerPolicy: Static
\treservedMemory:
\t- limits:
\t    memory: 1Gi
\t  numaNode: 0
 >
I1129 22:00:01.000000       7 server.go:2] "Started"
"""
RUNNING = {"evictionHard": {"memory.available": "500Mi"}, "kernelMemcgNotification": True}
RESERVED = [{"numaNode": 1, "limits": {"memory": "1024Mi"}}, {"numaNode": 0, "limits": {"memory": "512Mi"}}]


def test_log_as_text() -> None:
    running = logged_configuration(TEXT)
    assert running is not None
    assert running["evictionHard"] == {"imagefs.available": "15%", "memory.available": "500Mi"}


def test_log_as_json() -> None:
    line = json.dumps({"ts": 1.5, "msg": "Effective KubeletConfiguration", "config": "memoryManagerPolicy: Static\n"})
    assert logged_configuration(f"{line}\n{{broken\n") == {"memoryManagerPolicy": "Static"}


@pytest.mark.parametrize("log", ["", "Started\n", "{}\n", TEXT.replace(" >\n", "")])
def test_no_configuration_in_the_log(log: str) -> None:
    assert logged_configuration(log) is None


@pytest.mark.parametrize(
    ("field", "value", "running"),
    [
        ("evictionHard.memory.available", "500Mi", RUNNING),
        ("evictionHard.nodefs.available", None, RUNNING),
        ("kernelMemcgNotification", True, RUNNING),
        ("kernelMemcgNotification", False, {}),
        ("featureGates.X", None, {"featureGates": None}),
        (
            "memoryManagerPolicyOptions.memory-drift-tolerance",
            "auto",
            {"memoryManagerPolicyOptions": {"memory-drift-tolerance": "auto"}},
        ),
        (
            "reservedMemory",
            RESERVED,
            {"reservedMemory": [{"limits": {"memory": "512Mi"}}, {"numaNode": 1, "limits": {"memory": "1Gi"}}]},
        ),
        ("reservedMemory", [], {}),
        ("evictionHard", {"a": "1", "b": "2"}, {"evictionHard": {"b": 2, "a": "1"}}),
        ("evictionSoft", {}, {}),
    ],
)
def test_equal(field: str, value: t.Any, running: t.Mapping[str, t.Any]) -> None:
    assert differences([(field, value)], running) == ()


@pytest.mark.parametrize(
    ("field", "value", "running"),
    [
        ("evictionHard.memory.available", "100Mi", RUNNING),
        ("evictionHard.nodefs.available", "10%", RUNNING),
        ("evictionHard.memory.available", None, RUNNING),
        ("kernelMemcgNotification", False, RUNNING),
        ("featureGates.X", False, {"featureGates": {"X": True}}),
        ("evictionHard", {}, RUNNING),
        ("evictionHard", {"memory.available": "1"}, RUNNING),
        ("reservedMemory", RESERVED, {"reservedMemory": RESERVED[:1]}),
        ("reservedMemory", [{"numaNode": 0, "limits": {"memory": "lots"}}], {}),
    ],
)
def test_different(field: str, value: t.Any, running: t.Mapping[str, t.Any]) -> None:
    (found,) = differences([(field, value)], running)
    assert (found.field, found.expected) == (field, value)


def test_an_api_that_does_not_answer_leaves_the_log() -> None:
    source, running, notes = running_configuration({"host": "https://127.0.0.1:1"}, "worker-1", TEXT)
    assert source == "log"
    assert len(notes) == 1
    assert compared([("memoryManagerPolicy", "Static")], running)["in_force"] is True


def test_nobody_says() -> None:
    source, running, notes = running_configuration({}, "worker-1", "")
    assert source is None
    assert "1.37" in notes[0]
    assert compared([("memoryManagerPolicy", "Static")], running)["in_force"] is None


def test_what_the_node_prints() -> None:
    assert seen_from("Worker-1\r\n===\r\nlog\r\n").node_name == "worker-1"
    seen = seen_from("Worker-1\nfirst\nsecond\n===\nlog\n")
    assert (seen.node_name, seen.log) == ("second", "log\n")
