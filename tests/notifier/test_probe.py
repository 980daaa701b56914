# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe on this machine's kernel: the event comes, fast, and nothing stays behind whatever happens."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import pytest
from kubelet.harness.process import until

from ansible_collections.kubenode.memory.plugins.module_utils._node import memcg_probe
from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup import read_cgroups
from ansible_collections.kubenode.memory.plugins.module_utils._node.memcg_probe import MIB, PREFIX, ProbeFailed, probe
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import POLL_INTERVAL_SECONDS, obstacle

from .conftest import FIGURE

COLLECTIONS = pathlib.Path(__file__).resolve().parents[2] / ".work" / "collections"
CGROUPS = read_cgroups(HostRoot())
MOUNT = pathlib.Path(CGROUPS.memory_mount or "/nonexistent")
OBSTACLE = obstacle(CGROUPS)

pytestmark = pytest.mark.skipif(
    OBSTACLE is not None or os.geteuid() != 0 or not os.access(MOUNT, os.W_OK),
    reason=OBSTACLE.message if OBSTACLE else "needs root and a writable hierarchy",
)

# A probe that waits for an event which never comes: its child allocates nothing worth an event.
WAITING = """
import sys
sys.path.insert(0, {collections!r})
from ansible_collections.kubenode.memory.plugins.module_utils._node import memcg_probe
memcg_probe.HEADROOM = 64 << 20
memcg_probe._Child.go = lambda child: print("waiting", flush=True)
memcg_probe._Child.started = lambda child: 0.0
memcg_probe.probe({mount!r}, 8 << 20, 60)
"""


def left_behind() -> t.List[str]:
    return sorted(path.name for path in MOUNT.glob(PREFIX + "*"))


def processes_in(group: pathlib.Path) -> t.List[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def waiting_probe() -> t.Tuple[subprocess.Popen[bytes], pathlib.Path, int]:
    """A probe in a process of its own, its scratch group and its child."""
    program = WAITING.format(collections=str(COLLECTIONS), mount=str(MOUNT))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"waiting\n"
    group = MOUNT / f"{PREFIX}{process.pid}"
    (child,) = processes_in(group)
    return process, group, child


def test_the_event_comes_long_before_the_next_poll(record_property: t.Callable[[str, object], None]) -> None:
    results = [probe(str(MOUNT), 8 * MIB, POLL_INTERVAL_SECONDS) for _rest in range(5)]
    latencies = [result.latency for result in results if result.latency is not None]
    assert len(latencies) == 5
    assert max(latencies) < POLL_INTERVAL_SECONDS / 2
    assert all(result.fired and result.threshold <= result.usage <= 32 * MIB for result in results)
    assert left_behind() == []
    best, worst = (round(1000 * seconds, 1) for seconds in (min(latencies), max(latencies)))
    record_property(FIGURE, f"5 real events after {best} to {worst} ms; a poll takes up to {POLL_INTERVAL_SECONDS} s")


def test_a_python_without_eventfd_uses_libc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcg_probe, "_new_eventfd", memcg_probe.eventfd_of_libc)
    assert probe(str(MOUNT), 4 * MIB, POLL_INTERVAL_SECONDS).fired


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_nothing_behind(number: signal.Signals) -> None:
    process, group, child = waiting_probe()
    process.send_signal(number)
    _out, error = process.communicate(timeout=20)
    assert f"Interrupted: interrupted by {number.name}".encode() in error
    assert not group.exists()
    assert not pathlib.Path(f"/proc/{child}").exists()


def test_after_a_kill_the_child_dies_and_the_next_probe_cleans_up() -> None:
    process, group, _child = waiting_probe()
    process.kill()
    process.communicate(timeout=20)
    until("the child has died with its parent", lambda: not processes_in(group))
    assert group.exists()
    probe(str(MOUNT), 2 * MIB, POLL_INTERVAL_SECONDS)
    assert left_behind() == []


def test_a_child_that_dies_is_told_and_cleaned_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcg_probe, "_allocate", lambda *_: None)
    with pytest.raises(ProbeFailed, match="the probe's child ended"):
        probe(str(MOUNT), 4 * MIB, 2)
    assert left_behind() == []


def test_a_kernel_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    write = memcg_probe._write

    def refuse(path: str, text: str) -> None:
        if path.endswith("cgroup.event_control"):
            raise OSError(95, "Operation not supported")
        write(path, text)

    monkeypatch.setattr(memcg_probe, "_write", refuse)
    with pytest.raises(ProbeFailed, match="refuses to register") as caught:
        probe(str(MOUNT), 4 * MIB, 2)
    assert caught.value.refused
    assert left_behind() == []


def test_no_event_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcg_probe._Child, "go", lambda child: None)
    monkeypatch.setattr(memcg_probe._Child, "started", lambda child: 0.0)
    result = probe(str(MOUNT), 4 * MIB, 0.2)
    assert (result.fired, result.latency) == (False, None)
    assert left_behind() == []
