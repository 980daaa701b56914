# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Child processes that end with their test: started in a session of their own, killed if the test runner dies."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import typing as t

T = t.TypeVar("T")

POLL_INTERVAL = 0.02
STOP_SECONDS = 10.0


class HarnessError(AssertionError):
    """The surroundings of a test did not do what the test needs; says what was awaited and shows the end of the log."""


def until(what: str, condition: t.Callable[[], T | None], seconds: float = 30.0, interval: float = POLL_INTERVAL) -> T:
    """Return the first true value of `condition`; raise HarnessError if there is none within the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HarnessError(f"not within {seconds:g} s: {what}")
        time.sleep(interval)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Log:
    """The lines that a process has written so far, collected by a thread; waiting for one does not poll."""

    def __init__(self, stream: t.IO[bytes], copy: pathlib.Path) -> None:
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._closed = False
        self._stream = stream
        self._copy = copy
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        with self._stream, self._copy.open("ab", buffering=0) as copy:
            for raw in self._stream:
                copy.write(raw)
                with self._changed:
                    self._lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def lines(self) -> list[str]:
        """A copy of what there is now."""
        with self._changed:
            return list(self._lines)

    def tail(self, count: int = 15) -> str:
        return "\n".join(self.lines[-count:])

    def first(self, wanted: t.Callable[[str], bool], seconds: float) -> str | None:
        """The first line that is `wanted`, as soon as it is there; None if the log ends without one."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    if wanted(line):
                        return line
                seen = len(self._lines)
                if self._closed:
                    return None
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() > deadline:
                    raise HarnessError(f"neither the awaited line nor an end within {seconds:g} s:\n" + self._end())

    def _end(self) -> str:
        return "\n".join(self._lines[-15:])

    def join(self, seconds: float = STOP_SECONDS) -> None:
        """Wait until the process has closed its output."""
        self._thread.join(seconds)


class Process:
    """A child with its log; `stop` is safe to call at any time and more than once."""

    def __init__(self, name: str, command: t.Sequence[str], log: pathlib.Path, env: t.Mapping[str, str] | None = None):
        self.name = name
        self.popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ if env is None else env),
            start_new_session=True,
        )
        assert self.popen.stdout is not None
        self.log = Log(self.popen.stdout, log)

    def ready(self, what: str, condition: t.Callable[[], T | None], seconds: float = 30.0) -> T:
        """Wait for a condition that this process brings about; fail at once, with its log, when the process ends."""

        def alive_and() -> T | None:
            if self.popen.poll() is not None:
                raise HarnessError(f"{self.name} ended with {self.popen.returncode}")
            return condition()

        try:
            return until(f"{self.name}: {what}", alive_and, seconds)
        except HarnessError as error:
            raise HarnessError(f"{error}\n{self.log.tail()}") from None

    def wait(self, seconds: float) -> int:
        """The exit code, 128 + N after signal N, of a process that is about to end."""
        code = self.popen.wait(seconds)
        self.log.join()
        return code if code >= 0 else 128 - code

    def stop(self, graceful: bool = True) -> None:
        """End the process: SIGTERM, then SIGKILL for its whole session's process group."""
        if graceful and self.popen.poll() is None:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        self.log.join()
