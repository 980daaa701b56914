# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A deadline for what runs in a start of the kubelet's unit: the start is not held up, and does not fail."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import typing as t

from ._policy.journal import WARNING, journal_line

SECONDS = 1.5
"""Of the two for which a start may be held up; the rest is for the interpreter's own start and end."""


def within_deadline(work: t.Callable[[], object], command: str, seconds: float = SECONDS) -> None:
    """Do the work in a process of its own; when the time is over, kill it and what it has started, and say so.

    A killed process leaves the old or the new state file, whole (`_node.writer`). One that the kernel does not let go
    is not waited for: it never runs again.
    """
    try:
        ours, theirs = os.pipe()
        child = os.fork()
    except OSError as error:
        _complain("error", command, f"cannot start a process: {error.strerror}; nothing was done.")
        return
    if child == 0:
        _work_and_exit(work, command)
    os.close(theirs)
    if select.select([ours], [], [], seconds)[0]:
        _rest, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            _complain("error", command, f"the guard was ended by signal {os.WTERMSIG(status)}; look for an OOM kill.")
        return
    import signal  # it makes classes of all signals, which takes its time

    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _complain(
        "deadline",
        command,
        f"not done after {seconds:g} seconds, so that the start of the kubelet goes on without it; the state file is "
        "whole, and the next start tries again. Run `kubenode-memory-guard status` to see what takes so long.",
    )


def _work_and_exit(work: t.Callable[[], object], command: str) -> t.NoReturn:
    """In the child. Its end closes the pipe that the parent waits for."""
    try:
        os.setsid()
        work()
    except BaseException as error:
        _complain("error", command, f"{type(error).__name__}: {error}; nothing was written. Report this as a bug.")
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _complain(code: str, command: str, message: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(journal_line(WARNING, {"code": code, "command": command}, message) + "\n")
        sys.stderr.flush()
