# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Make the kernel send one real memory threshold event (cgroup v1), on a control group made for it and removed again.

Registers as the kubelet does (semantics 7). Writes nothing but this group's files; a child, killed when its parent
dies, does the allocating below a hard limit. What SIGKILL leaves behind is an empty group, which the next run removes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import re
import select
import signal
import struct
import time
import typing as t
from dataclasses import dataclass

from .cgroup import EVENT_CONTROL, USAGE
from .cgroup_statistics import parse_counter

PREFIX = "kubenode-memory-probe-"
MIB = 1024 * 1024
# Beside the child's allocation: the pages of the interpreter that it copies.
HEADROOM = 32 * MIB

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_EFD_CLOEXEC = 0o2000000
_REMOVAL_SECONDS = 5.0
_CHILD_SECONDS = 10.0
_OWN = re.compile(re.escape(PREFIX) + r"\d+\Z")


class ProbeFailed(Exception):
    """The probe could not be made; `refused` where it is the kernel that does not register such events."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Interrupted(Exception):
    """A signal arrived; everything was cleaned up."""


@dataclass(frozen=True)
class ProbeResult:
    """What the kernel did. Sizes are bytes; `latency` is seconds from before the child's first byte to the event,
    so an upper bound; None where no event came within the time."""

    fired: bool
    threshold: int
    usage: int
    latency: t.Optional[float] = None


def probe(mount: str, size: int, timeout: float) -> ProbeResult:
    """Let a child cross a threshold of half of `size` bytes, and wait for the event for up to `timeout` seconds.

    :raises ProbeFailed: where the kernel refuses
    :raises Interrupted: after SIGTERM, SIGINT or SIGHUP, with everything cleaned up
    """
    with _interruptible():
        try:
            remove_stale(mount)
            with _scratch_group(mount, size + HEADROOM) as group, _child(group, size) as child:
                return _watch(group, child, size // 2, timeout)
        except OSError as error:
            raise ProbeFailed(_explain(error), error.errno == errno.EOPNOTSUPP) from error


def _explain(error: OSError) -> str:
    if error.errno == errno.EOPNOTSUPP:
        return f"the kernel refuses to register a memory threshold event ({error.strerror}), as PREEMPT_RT kernels do"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no scratch control group can be made ({error}); run the task with become: true, not in a container"
    return f"the probe failed: {error}"


def remove_stale(mount: str) -> None:
    """Remove what killed probes left behind; a group in which a process lives refuses to go."""
    for name in os.listdir(mount):
        if _OWN.match(name):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(mount, name))


# --- the event -------------------------------------------------------------------------------------------------------


def _watch(group: str, child: _Child, distance: int, timeout: float) -> ProbeResult:
    usage_file = os.path.join(group, USAGE)
    threshold = _usage(usage_file) + distance
    with _opened(usage_file) as usage_fd, _eventfd() as event:
        _write(os.path.join(group, EVENT_CONTROL), f"{event} {usage_fd} {threshold}")
        child.go()
        started, deadline = child.started(), time.monotonic() + timeout
        while _readable(event, deadline - time.monotonic()):
            arrived = time.monotonic()
            os.read(event, 8)
            usage = _usage(usage_file)
            # The kernel also signals when a group goes away: only usage above the threshold is the event.
            if usage >= threshold:
                return ProbeResult(True, threshold, usage, arrived - started)
        return ProbeResult(False, threshold, _usage(usage_file))


def _usage(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return parse_counter(file.read()) or 0


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


@contextlib.contextmanager
def _opened(path: str) -> t.Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _eventfd() -> t.Iterator[int]:
    fd = _new_eventfd()
    try:
        yield fd
    finally:
        os.close(fd)


def _new_eventfd() -> int:
    if hasattr(os, "eventfd"):  # Python 3.10
        return int(os.eventfd(0, _EFD_CLOEXEC))
    return eventfd_of_libc()


def eventfd_of_libc() -> int:
    """eventfd(2) for a Python that has none. :raises OSError:"""
    fd = ctypes.CDLL(None, use_errno=True).eventfd(0, _EFD_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(fd)


def _readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(seconds > 0 and poll.poll(int(seconds * 1000) + 1))


# --- the control group -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _scratch_group(mount: str, limit: int) -> t.Iterator[str]:
    group = os.path.join(mount, PREFIX + str(os.getpid()))
    try:
        os.mkdir(group, 0o755)
        _write(os.path.join(group, "memory.limit_in_bytes"), str(limit))
        yield group
    finally:
        _uninterruptible()
        _remove(group)


def _remove(group: str) -> None:
    deadline = time.monotonic() + _REMOVAL_SECONDS
    while os.path.isdir(group):
        try:
            os.rmdir(group)
        except OSError as error:
            # A process that has just been reaped can hold the group for a moment.
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


# --- the child -------------------------------------------------------------------------------------------------------


class _Child:
    """The process that allocates, seen from its parent."""

    def __init__(self, pid: int, commands: int, reports: int) -> None:
        self.pid = pid
        self._commands = commands
        self._reports = reports

    def go(self) -> None:
        os.write(self._commands, b"g")

    def started(self) -> float:
        """The clock, monotonic, before the child's first byte."""
        return float(struct.unpack("d", self._report(8))[0])

    def joined(self) -> None:
        """:raises ProbeFailed: if the child could not enter the group"""
        self._report(1)

    def _report(self, length: int) -> bytes:
        data = os.read(self._reports, length) if _readable(self._reports, _CHILD_SECONDS) else b""
        if len(data) != length:
            raise ProbeFailed("the probe's child ended, or hung, before it allocated; look for OOM kills in dmesg")
        return data

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for fd in (self._commands, self._reports):
            os.close(fd)


@contextlib.contextmanager
def _child(group: str, size: int) -> t.Iterator[_Child]:
    child = None
    try:
        with _blocked():
            child = _spawn(group, size)
        child.joined()
        yield child
    finally:
        _uninterruptible()
        if child is not None:
            child.end()


def _spawn(group: str, size: int) -> _Child:
    command_read, command_write = os.pipe()
    report_read, report_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(command_write)
        _run_child(group, size, parent, command_read, report_write)
    os.close(command_read)
    os.close(report_write)
    return _Child(pid, command_write, report_read)


def _run_child(group: str, size: int, parent: int, commands: int, reports: int) -> t.NoReturn:
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:
            _allocate(group, size, commands, reports)
    finally:
        os._exit(0)


def _allocate(group: str, size: int, commands: int, reports: int) -> None:
    _write(os.path.join(group, "cgroup.procs"), "0")
    os.write(reports, b"j")
    if not os.read(commands, 1):
        return
    os.write(reports, struct.pack("d", time.monotonic()))
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for offset in range(0, size, mmap.PAGESIZE):
            memory[offset] = 1
        # Holds the memory until the parent is done: the crossing downwards would be an event too.
        os.read(commands, 1)


# --- signals ---------------------------------------------------------------------------------------------------------


def _interrupt(number: int, _frame: t.Any) -> t.NoReturn:
    raise Interrupted(f"interrupted by {signal.Signals(number).name}; the scratch control group was removed")


@contextlib.contextmanager
def _interruptible() -> t.Iterator[None]:
    previous = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _uninterruptible() -> None:
    """From here on there is only cleaning up, which a second signal must not cut short."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _blocked() -> t.Iterator[None]:
    """Hold signals back, so that none falls between fork and the moment when the child is known."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
