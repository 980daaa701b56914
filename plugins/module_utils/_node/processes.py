# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The kubelets that run on the node, from its /proc (design, sections 4 and 5)."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass

from .root import HostRoot, NodeError, NotFound, PermissionMissing

DEFAULT_ROOT_DIR = "/var/lib/kubelet"
USER_HZ = 100  # the unit of /proc/PID/stat on every architecture that runs a kubelet

_KUBELETS = frozenset(["kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent", "rke2", "rke2-server", "rke2-agent"])
_STAT = re.compile(rb"\d+ \((.*)\) (\S)(?: -?\d+){18} (\d{1,20}) ", re.S)
_STAT_LIMIT = 64 * 1024
_DEAD = (b"Z", b"X", b"x")


@dataclass(frozen=True)
class KubeletProcess:
    """A live process that is, or contains, or supervises a kubelet.

    `name` is the kernel's name of the process (`kubelet`, `k3s-server`); `start_ticks` counts USER_HZ since the boot.
    `argv` is empty where the process hides it. `root_dir` is None where the command line does not tell it (a kubelet
    inside k3s, RKE2 or kubelite has its flags elsewhere). `in_node_namespace` says whether it sees the same mounts as
    the node's first process, None where that is not to be seen.
    """

    pid: int
    name: str
    start_ticks: int
    argv: t.Tuple[str, ...]
    root_dir: t.Optional[str]
    in_node_namespace: t.Optional[bool] = None

    def started_at(self, boot_time: int) -> int:
        """Seconds since the epoch, of the boot time in the same unit."""
        return boot_time + self.start_ticks // USER_HZ

    def may_use(self, root: HostRoot, directory: str) -> bool:
        """Whether this may be its root directory: anything but a proof of the contrary counts as yes."""
        return self.root_dir is None or _real(root, self.root_dir) == _real(root, directory)


@dataclass(frozen=True)
class ProcessReading:
    """The live kubelets. With `incomplete` there may be others, and it says why they cannot be seen."""

    kubelets: t.Tuple[KubeletProcess, ...]
    incomplete: t.Optional[str] = None


def read_kubelets(root: HostRoot) -> ProcessReading:
    """Look through /proc below the root; a process that vanishes meanwhile is not there."""
    try:
        pids = sorted(int(name) for name in root.listdir("/proc") if name.isdigit() and name.isascii())
    except NodeError as error:
        return ProcessReading((), str(error))
    if 1 not in pids:
        reason = "{0} does not show the node's first process; mount the node's /proc there, without hidepid"
        return ProcessReading(_kubelets(root, pids)[0], reason.format(root.display("/proc")))
    return ProcessReading(*_kubelets(root, pids))


def _kubelets(root: HostRoot, pids: t.Iterable[int]) -> t.Tuple[t.Tuple[KubeletProcess, ...], t.Optional[str]]:
    found, incomplete = [], None
    for pid in pids:
        try:
            process = _kubelet(root, pid)
        except NotFound:
            continue
        except NodeError as error:
            incomplete = str(error)
            continue
        if process is not None:
            found.append(process)
    return tuple(found), incomplete


def _kubelet(root: HostRoot, pid: int) -> t.Optional[KubeletProcess]:
    """:raises NodeError: if /proc/PID/stat cannot be read or is not one"""
    path = f"/proc/{pid}/stat"
    match = _STAT.match(root.read_bytes(path, limit=_STAT_LIMIT))
    if match is None:
        raise NodeError(f"{path} does not have the form that the kernel gives it; look at it on the node")
    name = match.group(1).decode("utf-8", "backslashreplace")
    if name not in _KUBELETS or match.group(2) in _DEAD:
        return None
    argv = _argv(root, pid)
    return KubeletProcess(pid, name, int(match.group(3)), argv, _root_dir(name, argv), _in_node_namespace(root, pid))


def _argv(root: HostRoot, pid: int) -> t.Tuple[str, ...]:
    text = root.read_text(f"/proc/{pid}/cmdline", errors="surrogateescape").rstrip("\0")
    return tuple(text.split("\0")) if text else ()


def _root_dir(name: str, argv: t.Sequence[str]) -> t.Optional[str]:
    if name != "kubelet" or not argv:
        return None
    directory = flag_value(argv, "root-dir") or DEFAULT_ROOT_DIR
    return directory if directory.startswith("/") else None


def flag_value(argv: t.Sequence[str], flag: str) -> t.Optional[str]:
    """The last value of `--flag=value` or `--flag value`; like the kubelet's parser, `_` is the same as `-`."""
    value = None
    for index, word in enumerate(argv):
        if word == "--":
            break
        name, equals, text = word.partition("=")
        if not word.startswith("--") or name[2:].replace("_", "-") != flag:
            continue
        value = text if equals else "".join(argv[index + 1 : index + 2])
    return value


def _in_node_namespace(root: HostRoot, pid: int) -> t.Optional[bool]:
    try:
        return root.readlink(f"/proc/{pid}/ns/mnt") == root.readlink("/proc/1/ns/mnt")
    except NodeError:
        return None


def _real(root: HostRoot, path: str) -> str:
    try:
        return root.realpath(path)
    except (NotFound, PermissionMissing):
        return posixpath.normpath(path)
