# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness itself: it reads logs as they are written, and leaves nothing behind however it ends."""

from __future__ import annotations

import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from .cases import CONFIG_STATIC, V137
from .harness import host, lab, log
from .harness.process import until
from .harness.session import unnamed

TESTS = pathlib.Path(__file__).resolve().parents[1]
RUNNING = f"""
import signal
from kubelet.harness import kubelet, lab
from kubelet.harness.node import Node, NodeDirectory

with lab.directory() as root, lab.surroundings(root) as shared:
    directory = NodeDirectory(root / "node", Node(config={CONFIG_STATIC!r}))
    directory.lay_out(shared.flags())
    with kubelet.kubelet({V137!r}, directory, [*shared.flags(), *directory.node.own_flags]) as running:
        assert running.outcome().started
        print(root, flush=True)
        signal.pause()
"""


@pytest.mark.parametrize(
    ("lines", "errors"),
    [
        (['I1129 10:00:00.000000 1 a.go:1] "Fine" err="no"'], []),
        (['E1129 10:00:00.000000 1 a.go:1] "Bad" err="a \\"b\\" c" pod="x"'], ["Bad", 'a "b" c', "x"]),
        (['E1129 10:00:00.000000 1 a.go:1] "Bad" err=<', "\tone", "\ttwo", " >"], ["Bad", "one\ntwo"]),
        (["panic: it is over", "", "goroutine 1 [running]:"], ["it is over"]),
    ],
)
def test_errors_in_plain_words(lines: list[str], errors: list[str]) -> None:
    assert log.errors_of(lines) == errors


def remains(root: pathlib.Path) -> list[str]:
    """What a laboratory has left: directory, control groups, mounts, processes."""
    groups = [str(mount / root.name) for mount in host.hierarchies() if (mount / root.name).exists()]
    directory = [str(root)] if root.exists() else []
    return [*directory, *groups, *host.mounts_below(root), *map(str, host.processes_below(root))]


def interrupted(number: int) -> pathlib.Path:
    """Run a laboratory with a kubelet in a process of its own, send it a signal, wait for its end."""
    script = [sys.executable, "-c", RUNNING]
    with subprocess.Popen(script, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        root = pathlib.Path(process.stdout.readline().strip())
        assert host.processes_below(root), "containerd and a kubelet are running"
        process.send_signal(number)
        process.wait(30)
    return root


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.usefixtures("lab_directory")
def test_nothing_is_left_after_an_interrupt(number: int) -> None:
    assert remains(interrupted(number)) == []


@pytest.mark.usefixtures("lab_directory")
def test_no_process_outlives_a_killed_runner() -> None:
    root = interrupted(signal.SIGKILL)
    try:
        until("the kubelet and containerd have ended", lambda: not host.processes_below(root), 10)
    finally:
        shutil.rmtree(root)
        until("the control groups are gone", lambda: all(host.remove_cgroup(m / root.name) for m in host.hierarchies()))


def test_what_is_missing_is_named() -> None:
    assert host.missing_programs(["sh", "no-such-program"]) == ["no-such-program"]
    assert isinstance(lab.missing_capabilities(), list)


def test_a_skip_is_named_with_its_case() -> None:
    nodeids = ["tests/kubelet/test_a.py::test_a[one]", "tests/kubelet/test_a.py::test_a[two]"]
    assert unnamed(nodeids, ("test_a[one]",)) == nodeids[1:]
