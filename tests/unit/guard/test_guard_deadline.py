# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The deadline: what takes too long is ended, with all that it has started; what fails says so and is no failure."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._guard_deadline import within_deadline


def fields(text: str) -> str:
    (line,) = text.splitlines()
    return line.partition(" msg=")[0]


def test_work_in_time_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    within_deadline(lambda: (tmp_path / "done").write_text("x"), "run", 60)
    assert (tmp_path / "done").exists()
    assert capfd.readouterr() == ("", "")


def test_work_without_an_end_is_killed_with_its_children(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / "pids").write_text(f"{os.getpid()} {child.pid}")
        child.wait()

    within_deadline(work, "run", 2)
    assert fields(capfd.readouterr().err) == "<4>kubenode-memory-guard: code=deadline command=run"
    pid, child = map(int, (tmp_path / "pids").read_text().split())
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    while is_running(child):
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("error", [ValueError("what"), MemoryError(), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_work_that_fails_says_so(error: BaseException, capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise error

    within_deadline(work, "stopped", 60)
    line = capfd.readouterr().err
    assert fields(line) == "<4>kubenode-memory-guard: code=error command=stopped"
    assert type(error).__name__ in line


def test_work_that_is_killed_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    within_deadline(lambda: os.kill(os.getpid(), signal.SIGKILL), "run", 60)
    assert "ended by signal 9" in capfd.readouterr().err


def test_no_process_left(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    within_deadline(lambda: None, "run", 60)
    assert "cannot start a process: Resource temporarily unavailable" in capfd.readouterr().err
