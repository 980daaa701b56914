# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Control groups of the node: versions, the memory controller, and its counters (semantics 7).

The controller's own files decide, never a directory: a kernel without CONFIG_MEMCG_V1 may have an empty one.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._policy.notifier import HYBRID, INCOMPLETE, NONE, V1, V2, CgroupFacts, GroupStatistics, MemoryCounters
from .root import HostRoot, NodeError, NotFound, PermissionMissing
from .topology import MEMINFO, parse_mem_total

CGROUPS = "/sys/fs/cgroup"
MOUNT_TABLES = ("/proc/1/mountinfo", "/proc/1/mounts", "/proc/mounts")
REALTIME = "/sys/kernel/realtime"
USAGE = "memory.usage_in_bytes"
EVENT_CONTROL = "cgroup.event_control"

_FALLBACK_MEMORY = CGROUPS + "/memory"
# Limits above this count as "no limit" to the kubelet (pkg/kubelet/stats).
_UNLIMITED = 1 << 62
_OCTAL = re.compile(r"\\([0-7]{3})")
_COUNTER = re.compile(r"\s*([0-9]{1,20})\s*\Z", re.ASCII)
_STAT_ROW = re.compile(r"^([a-z0-9_]+) ([0-9]{1,20})$", re.ASCII | re.MULTILINE)


@dataclass(frozen=True)
class CgroupMount:
    """A mounted hierarchy: mount point, version (1 or 2) and, for version 1, its options (controllers among them)."""

    path: str
    version: int
    options: t.FrozenSet[str]


# --- parsers ---------------------------------------------------------------------------------------------------------


def parse_mounts(text: str) -> t.Tuple[CgroupMount, ...]:
    """The hierarchies in /proc/mounts or /proc/PID/mountinfo, in order; rows that are neither are passed over."""
    found = [_mount(line.split(" ")) for line in text.splitlines()]
    return tuple(mount for mount in found if mount is not None)


def _mount(fields: t.Sequence[str]) -> t.Optional[CgroupMount]:
    if "-" in fields[6:]:
        # mountinfo: ... root mount-point options [optional...] - type source super-options
        separator = fields.index("-", 6)
        path, tail = fields[4], fields[separator + 1 :]
        kind, options = tail[0] if tail else "", tail[2] if len(tail) > 2 else ""
    elif len(fields) >= 4:
        path, kind, options = fields[1:4]
    else:
        return None
    version = {"cgroup": 1, "cgroup2": 2}.get(kind)
    return None if version is None else CgroupMount(_unescaped(path), version, frozenset(options.split(",")))


def _unescaped(path: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), path)


def parse_stat(text: str) -> t.Dict[str, int]:
    """memory.stat: one counter a row; other rows are passed over."""
    return {name: int(value) for name, value in _STAT_ROW.findall(text)}


def parse_counter(text: str) -> t.Optional[int]:
    """A file that is one number; None for `max` and for anything else."""
    match = _COUNTER.match(text)
    return None if match is None else int(match.group(1))


# --- the node --------------------------------------------------------------------------------------------------------


def read_cgroups(root: HostRoot) -> CgroupFacts:
    """:raises NodeError: where a file cannot be read (PermissionMissing) or is no text"""
    table = _mount_table(root)
    mounts = _guessed_mounts(root) if table is None else parse_mounts(table)
    mode = _mode(mounts)
    memory = CGROUPS if mode == V2 else next((one.path for one in mounts if "memory" in one.options), None)
    if memory is None:
        return CgroupFacts(mode)
    usage, control = (root.exists(f"{memory}/{name}") for name in (USAGE, EVENT_CONTROL))
    return CgroupFacts(mode, memory, usage, control, _first_line(root, REALTIME) == "1")


def _mount_table(root: HostRoot) -> t.Optional[str]:
    for path in MOUNT_TABLES:
        try:
            return root.read_text(path, errors="surrogateescape")
        except (NotFound, PermissionMissing):
            continue
    return None


def _guessed_mounts(root: HostRoot) -> t.Tuple[CgroupMount, ...]:
    """Without a mount table, as in a captured tree: what lies at the customary places."""
    found = []
    if root.exists(f"{CGROUPS}/cgroup.controllers"):
        found.append(CgroupMount(CGROUPS, 2, frozenset()))
    if root.exists(_FALLBACK_MEMORY):
        found.append(CgroupMount(_FALLBACK_MEMORY, 1, frozenset(["memory"])))
    if root.exists(f"{CGROUPS}/unified"):
        found.append(CgroupMount(f"{CGROUPS}/unified", 2, frozenset()))
    return tuple(found)


def _mode(mounts: t.Sequence[CgroupMount]) -> str:
    versions = {mount.version for mount in mounts}
    if [mount.version for mount in mounts if mount.path == CGROUPS][-1:] == [2]:
        return V2
    if versions == {1, 2}:
        return HYBRID
    return {frozenset([1]): V1}.get(frozenset(versions), NONE)


def _first_line(root: HostRoot, path: str) -> str:
    try:
        return root.read_text(path, errors="replace").strip()
    except NotFound:
        return ""


def read_statistics(root: HostRoot, cgroups: CgroupFacts, group: str) -> GroupStatistics:
    """The counters of a control group (`/` is the root), as cAdvisor reads them; a reason where it has none."""
    if cgroups.memory_mount is None:
        return GroupStatistics(group, reason="there is no memory hierarchy")
    folder = cgroups.memory_mount + group.rstrip("/")
    read = _read_v2 if cgroups.mode == V2 else _read_v1
    try:
        limit, usage, inactive = read(root, folder, group == "/")
    except NotFound as error:
        return GroupStatistics(group, reason=str(error))
    if limit is None or limit > _UNLIMITED:
        return GroupStatistics(group, reason=f"{folder} has no memory limit (the kubelet: {INCOMPLETE})")
    if usage is None or inactive is None:
        return GroupStatistics(
            group, reason=f"the counters in {folder} do not have the form that the kernel gives them"
        )
    return GroupStatistics(group, MemoryCounters(limit, usage, inactive))


_Numbers = t.Tuple[t.Optional[int], t.Optional[int], t.Optional[int]]


def _read_v1(root: HostRoot, folder: str, is_root: bool) -> _Numbers:
    limit = _capacity(root) if is_root else _counter(root, f"{folder}/memory.limit_in_bytes")
    usage = _counter(root, f"{folder}/{USAGE}")
    return limit, usage, parse_stat(root.read_text(f"{folder}/memory.stat")).get("total_inactive_file")


def _read_v2(root: HostRoot, folder: str, is_root: bool) -> _Numbers:
    statistics = parse_stat(root.read_text(f"{folder}/memory.stat"))
    inactive = statistics.get("inactive_file")
    if is_root:
        # The root has no memory.current; libcontainer adds these two up instead.
        return _capacity(root), statistics.get("anon", 0) + statistics.get("file", 0), inactive
    limit = root.read_text(f"{folder}/memory.max").strip()
    return (
        _UNLIMITED + 1 if limit == "max" else parse_counter(limit),
        _counter(root, f"{folder}/memory.current"),
        inactive,
    )


def _capacity(root: HostRoot) -> t.Optional[int]:
    return parse_mem_total(root.read_bytes(MEMINFO))


def _counter(root: HostRoot, path: str) -> t.Optional[int]:
    return parse_counter(root.read_text(path))


def first_existing(root: HostRoot, cgroups: CgroupFacts, groups: t.Sequence[str]) -> str:
    """The first of the groups that has a directory in the memory hierarchy; the first of all where none has."""
    for group in groups if cgroups.memory_mount else ():
        try:
            root.stat(f"{cgroups.memory_mount}{group}")
        except NodeError:
            continue
        return group
    return groups[0]
