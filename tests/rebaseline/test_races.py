# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that starts, or anything that writes, between judging and writing leads to no write and a clear message."""

from __future__ import annotations

import fcntl
import os
import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._rebaseline import POINTS
from rebaseline.node import (
    BOOT,
    GIB,
    LATE_POD,
    MIB,
    OURS,
    PINNED,
    POINTS_BEFORE_THE_LAST_LOOK,
    RECORDED,
    STATE_FILE,
    DriftedNode,
    state_of,
)

EACH_POINT = pytest.mark.parametrize("point", POINTS_BEFORE_THE_LAST_LOOK)


@pytest.fixture
def node(tmp_path: Path) -> DriftedNode:
    return DriftedNode(tmp_path, "V3", release="v1.37.2")


def once(point: str, action: t.Callable[[], t.Any]) -> t.Callable[[str], None]:
    """A hook that does something at a point."""

    def hook(here: str) -> None:
        if here == point:
            action()

    return hook


def kubelet_writes(node: DriftedNode) -> bytes:
    """As a kubelet does at an admission: another file in place of the old one."""
    node.state_file.unlink()
    node.record(state_of(RECORDED, {**PINNED, LATE_POD: (((1,), GIB),)}), "V3")
    return node.content


def require_nothing_left(node: DriftedNode) -> None:
    assert os.listdir(node.state_file.parent) == ["memory_manager_state"]


@EACH_POINT
def test_a_kubelet_that_starts(node: DriftedNode, point: str) -> None:
    old = node.content
    outcome = node.run(at=once(point, node.start_kubelet))
    assert (outcome.reason, outcome.changed, outcome.failed) == ("kubelet_in_use", False, True)
    assert "process 77 (kubelet). Stop the kubelet's unit first. Nothing was written." in outcome.message
    assert node.content == old
    require_nothing_left(node)


@EACH_POINT
def test_a_unit_that_starts(node: DriftedNode, point: str) -> None:
    state = ["inactive"]
    old = node.content
    outcome = node.run(
        at=once(point, lambda: state.insert(0, "activating")), show_units=lambda units: dict.fromkeys(units, state[0])
    )
    assert outcome.reason == "kubelet_in_use"
    assert "kubelet.service is activating" in outcome.message
    assert node.content == old


@EACH_POINT
def test_a_kubelet_that_writes(node: DriftedNode, point: str) -> None:
    """Before the lock the run simply judges what is there then; later it gives up."""
    outcome = node.run(at=once(point, lambda: kubelet_writes(node)))
    require_nothing_left(node)
    if point in ("judged", "locked"):
        assert outcome.reason == "rebaselined"
        assert set(node.loaded().entries or {}) == {*PINNED, LATE_POD}
        return
    assert (outcome.reason, outcome.changed, outcome.failed) == ("changed_meanwhile", False, True)
    assert "The node changed while it was judged (state file). Nothing was written; run it again." in outcome.message
    assert node.loaded() == state_of(RECORDED, {**PINNED, LATE_POD: (((1,), GIB),)})
    assert node.run().reason == "rebaselined"


@pytest.mark.parametrize("point", POINTS_BEFORE_THE_LAST_LOOK[2:])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda node: node.drift((-45 * MIB, 45 * MIB)), "machine"),
        (lambda node: node.drift((-GIB, 0)), "machine"),
        (lambda node: node.write("/proc/iomem", ""), "iomem"),
        (lambda node: node.configure(reservedMemory=[]), "reserved memory"),
        (lambda node: node.configure(memoryManagerPolicy="None"), "policy"),
        (lambda node: node.write("/etc/kubenode-memory/tolerance", "off\n"), "tolerance"),
        (lambda node: node.state_file.unlink(), "state file"),
        (lambda node: os.utime(node.state_file, ns=(1, 1)), "state file"),
        (lambda node: node.write(STATE_FILE, node.content + b" "), "state file"),
    ],
    ids="drift DIMM iomem reservation policy tolerance removed touched blank".split(),
)
def test_a_node_that_changes(
    node: DriftedNode, point: str, change: t.Callable[[DriftedNode], t.Any], what: str
) -> None:
    outcome = node.run(at=once(point, lambda: change(node)))
    assert (outcome.reason, outcome.changed, outcome.failed) == ("changed_meanwhile", False, True)
    assert what in outcome.message
    assert [path.name for path in node.state_file.parent.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_becomes_a_link(node: DriftedNode) -> None:
    def relink() -> None:
        node.state_file.rename(node.base / "var/lib/kubelet/other")
        node.state_file.symlink_to("other")

    outcome = node.run(at=once("staged", relink))
    assert outcome.reason == "unsafe_path"
    assert node.state_file.is_symlink()


def test_the_window_that_remains(node: DriftedNode) -> None:
    """A kubelet that is started after the last look compares exactly: it refuses the old file and writes nothing."""
    assert node.run(at=once(POINTS[-1], node.start_kubelet)).reason == "rebaselined"


def test_a_line_of_the_history_that_never_became_the_file_is_in_nobodys_way(node: DriftedNode) -> None:
    """A run that was killed just before the rename, or a person who put the old file back, and then another boot."""
    old = node.content
    assert node.run().changed
    node.state_file.write_bytes(old)
    node.boot("5f0f3b0e-6a53-4a3c-8d8b-0a0c7e6f1b22")
    node.drift((-4 * MIB, 4 * MIB))
    assert node.run().reason == "rebaselined"
    assert len(node.history) == 3


def test_a_run_that_gave_up_leaves_no_line_in_the_history(node: DriftedNode) -> None:
    node.run(at=once("staged", lambda: kubelet_writes(node)))
    assert node.history == []
    node.run()
    assert [(line["boot_id"], line["epoch"]) for line in node.history] == [(BOOT, 1), (BOOT, 1)]


# --- two runs at once ------------------------------------------------------------------------------------------------


def lock_of(node: DriftedNode) -> t.IO[str]:
    path = node.base / OURS[1:] / "lock"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path.open("w")


def test_a_second_run_refuses_after_a_bounded_wait(node: DriftedNode) -> None:
    old = node.content
    with lock_of(node) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = node.run(patience=0.2)
    assert (outcome.reason, outcome.changed, outcome.failed) == ("busy", False, True)
    assert "another run holds /var/lib/kubenode-memory/lock for more than 0.2 seconds" in outcome.message
    assert node.content == old


def test_check_mode_does_not_wait(node: DriftedNode) -> None:
    with lock_of(node) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert node.run(check=True, patience=0).reason == "rebaselined"


def test_a_second_run_waits_and_finds_nothing_to_do(node: DriftedNode) -> None:
    second: t.List[str] = []
    thread = threading.Thread(target=lambda: second.append(node.run(patience=60).reason))
    waits = threading.Event()

    def start_second() -> None:
        # It has judged, and stands before the lock, or will in a moment: either way it has to judge again.
        thread.start()
        waits.wait(0.3)

    assert node.run(at=once("staged", start_second)).reason == "rebaselined"
    thread.join(60)
    assert second == ["match"]
    assert len(node.backups) == 1
    assert len(node.history) == 2


def test_many_processes_at_once_write_once(node: DriftedNode) -> None:
    children = []
    for _rest in range(6):
        pid = os.fork()
        if pid == 0:
            outcome = node.run(patience=120)
            os._exit({"rebaselined": 10, "match": 11}.get(outcome.reason, 12))
        children.append(pid)
    codes = sorted(os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in children)
    assert codes == [10, 11, 11, 11, 11, 11]
    assert len(node.backups) == 1
