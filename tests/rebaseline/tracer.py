# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a function in a child process and stops it at its system calls, to kill it there or to let the call fail.

ptrace(2) by ctypes: no compiler and no package is needed, and a run costs a fork instead of a Python start.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import typing as t

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long

_TRACEME, _CONT, _SYSCALL = 0, 7, 24
_SETOPTIONS, _GETREGSET, _SETREGSET, _GET_SYSCALL_INFO = 0x4200, 0x4204, 0x4205, 0x420E
_O_TRACESYSGOOD, _O_TRACESECCOMP, _O_EXITKILL = 1, 0x80, 0x100000
_SYSCALL_STOP, _SECCOMP_STOP = signal.SIGTRAP | 0x80, signal.SIGTRAP | 7 << 8
_NT_PRSTATUS, _NT_ARM_SYSTEM_CALL = 1, 0x404
_OP_ENTRY, _OP_SECCOMP = 1, 3
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38

MACHINE = platform.machine()
NAMES: t.Mapping[str, t.Mapping[int, str]] = {
    "x86_64": {
        1: "write", 3: "close", 18: "pwrite64", 73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate",
        82: "rename", 83: "mkdir", 84: "rmdir", 86: "link", 87: "unlink", 88: "symlink", 90: "chmod", 91: "fchmod",
        92: "chown", 93: "fchown", 188: "setxattr", 190: "fsetxattr", 257: "openat", 258: "mkdirat", 260: "fchownat",
        263: "unlinkat", 264: "renameat", 265: "linkat", 268: "fchmodat", 316: "renameat2",
    },
    "aarch64": {
        5: "setxattr", 7: "fsetxattr", 32: "flock", 34: "mkdirat", 35: "unlinkat", 37: "linkat", 38: "renameat",
        46: "ftruncate", 52: "fchmod", 53: "fchmodat", 54: "fchownat", 55: "fchown", 56: "openat", 57: "close",
        64: "write", 68: "pwrite64", 82: "fsync", 83: "fdatasync", 276: "renameat2",
    },
}  # fmt: skip


_WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR


class Call(t.NamedTuple):
    """A system call that is about to be made; `name` is empty for those that NAMES does not have."""

    number: int
    arguments: t.Tuple[int, ...]

    @property
    def name(self) -> str:
        return NAMES[MACHINE].get(self.number, "")

    @property
    def changes(self) -> bool:
        """Whether it may change something that outlives the process."""
        return self.name not in ("", "openat", "close") or (
            self.name == "openat" and bool(self.arguments[2] & _WRITING)
        )


Decide = t.Callable[[int, Call], t.Union[str, int, None]]
"""Given the index and the call: None lets it happen, KILL kills the process before it, an errno lets it fail."""

KILL = "kill"


def _ptrace(request: int, pid: int, address: int = 0, data: t.Any = 0) -> int:
    result = int(_LIBC.ptrace(request, pid, address, data))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def run_traced(function: t.Callable[[], t.Any], decide: Decide, every_call: bool = False) -> int:
    """Run a function in a child and stop at its calls: those that change something, or all; returns the wait status.

    With `every_call` a call can be the end of the process, but it cannot be made to fail.
    """
    pid = os.fork()
    if pid == 0:
        _child(function, every_call)
    os.waitpid(pid, 0)
    _ptrace(_SETOPTIONS, pid, 0, _O_EXITKILL | _O_TRACESYSGOOD | _O_TRACESECCOMP)
    index, deliver = 0, 0
    while True:
        _ptrace(_SYSCALL if every_call else _CONT, pid, 0, deliver)
        _rest, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return status
        stop, deliver = status >> 8, 0
        if stop not in (_SYSCALL_STOP, _SECCOMP_STOP):
            deliver = os.WSTOPSIG(status)
            continue
        call = _call(pid)
        if call is None:
            continue
        what = decide(index, call)
        index += 1
        if what == KILL:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        if isinstance(what, int):
            _fail(pid, what)


def _call(pid: int) -> t.Optional[Call]:
    """The call at whose entry the process stands; None where it stands at an exit."""
    info = ctypes.create_string_buffer(88)
    _ptrace(_GET_SYSCALL_INFO, pid, 88, info)
    if info.raw[0] not in (_OP_ENTRY, _OP_SECCOMP):
        return None
    number, *arguments = struct.unpack_from("<7Q", info, 24)
    return Call(number, tuple(arguments))


def _child(function: t.Callable[[], t.Any], every_call: bool) -> t.NoReturn:
    status = 1
    try:
        _ptrace(_TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        if not every_call:
            _filter_calls()
        status = function() or 0
    finally:
        os._exit(status)


def _filter_calls() -> None:
    """Let seccomp stop this process at the calls that `Call.changes`, so that all others run at full speed."""
    numbers = {name: number for number, name in NAMES[MACHINE].items()}
    openat = numbers.pop("openat")
    del numbers["close"]
    load, equal, bits, end = 0x20, 0x15, 0x45, 0x06
    program = [(load, 0, 0, 0)]
    for position, number in enumerate(sorted(numbers.values())):
        program.append((equal, len(numbers) - position + 2, 0, number))
    program += [(equal, 0, 3, openat), (load, 0, 0, 32), (bits, 0, 1, _WRITING)]
    trace, allow = (end, 0, 0, 0x7FF00000), (end, 0, 0, 0x7FFF0000)
    code = b"".join(struct.pack("<HBBI", *line) for line in [*program, trace, allow])
    buffer = ctypes.create_string_buffer(code)
    filter_program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.prctl(_PR_SET_SECCOMP, 2, filter_program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _fail(pid: int, error: int) -> None:
    """Let the call at whose entry the process stands return an error, without being made."""
    buffer = ctypes.create_string_buffer(512)
    vector = _Vector(ctypes.addressof(buffer), len(buffer))
    _ptrace(_GETREGSET, pid, _NT_PRSTATUS, ctypes.byref(vector))
    struct.pack_into("<q", buffer, (10 if MACHINE == "x86_64" else 0) * 8, -error)
    if MACHINE == "x86_64":
        struct.pack_into("<q", buffer, 15 * 8, -1)
    _ptrace(_SETREGSET, pid, _NT_PRSTATUS, ctypes.byref(vector))
    if MACHINE == "aarch64":
        number = ctypes.c_int(-1)
        _ptrace(_SETREGSET, pid, _NT_ARM_SYSTEM_CALL, ctypes.byref(_Vector(ctypes.addressof(number), 4)))
