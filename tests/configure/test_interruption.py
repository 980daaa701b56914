# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed before any of its system calls, a run leaves the old or the new file, whole; a rerun finishes the work."""

from __future__ import annotations

import os
import signal
import typing as t
from pathlib import Path

import pytest
from configure_node import HEADER, ConfiguredNode

CALLS = ("open", "rename", "fsync", "unlink", "mkdir")
BEFORE = HEADER + "# ours\nmaxPods: 110\n"
AFTER = BEFORE + "kernelMemcgNotification: true\n"
PATCH = "/etc/kubernetes/patches/kubeletconfiguration50-kubenode-memory+merge.json"


def killed_at(call: int, run: t.Callable[[], object]) -> bool:
    """Run in a child that dies before its `call`-th system call on files; whether it died."""
    child = os.fork()
    if child == 0:
        count = [0]

        def counted(real: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
            def wrapper(*args: t.Any, **more: t.Any) -> t.Any:
                flags = args[1] if len(args) > 1 and isinstance(args[1], int) else 0
                if real is not opened or flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                    count[0] += 1
                    if count[0] == call:
                        os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **more)

            return wrapper

        opened = os.open
        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            run()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def set_it(node: ConfiguredNode) -> t.Callable[[], object]:
    return lambda: node.set(kernelMemcgNotification=True)


def test_killed_while_setting(tmp_path: Path) -> None:
    call, died = 0, True
    while died:
        call += 1
        node = ConfiguredNode(tmp_path / str(call), BEFORE)
        died = killed_at(call, set_it(node))
        assert node.text in (BEFORE, AFTER)
        assert node.set(kernelMemcgNotification=True).decision.target.place.path
        assert node.text == AFTER
        assert node.path(PATCH).exists()
        assert not list(node.config.parent.glob(".*"))
        node.give_back()
        assert node.text == BEFORE
        assert not node.path(PATCH).exists()
    assert call > 15


@pytest.mark.parametrize("twice", [False, True])
def test_killed_while_giving_back(tmp_path: Path, twice: bool) -> None:
    call, died = 0, True
    while died:
        call += 1
        node = ConfiguredNode(tmp_path / str(call), BEFORE)
        node.set(kernelMemcgNotification=True)
        died = killed_at(call, node.give_back)
        assert node.text in (BEFORE, AFTER)
        if twice:
            killed_at(call, node.give_back)
        node.give_back()
        assert node.text == BEFORE
        assert not node.path(PATCH).exists()
        assert not node.give_back().decision.writes
    assert call > 10
