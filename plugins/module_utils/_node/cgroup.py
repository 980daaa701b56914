# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Control groups of the node: versions and the memory controller (semantics 7).

The controller's own files decide, never a directory: a kernel without CONFIG_MEMCG_V1 may have an empty one.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .._policy.kubelet_start import HYBRID, NONE, V1, V2, CgroupFacts
from .root import HostRoot, NotFound, PermissionMissing

CGROUPS = "/sys/fs/cgroup"
MOUNT_TABLES = ("/proc/1/mountinfo", "/proc/1/mounts", "/proc/mounts")
REALTIME = "/sys/kernel/realtime"
USAGE = "memory.usage_in_bytes"
EVENT_CONTROL = "cgroup.event_control"

_FALLBACK_MEMORY = CGROUPS + "/memory"
_OCTAL = re.compile(r"\\([0-7]{3})")


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
