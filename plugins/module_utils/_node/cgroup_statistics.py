# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The memory counters of a control group, as cAdvisor reads them (semantics 7)."""

from __future__ import annotations

import re
import typing as t

from .._policy.kubelet_start import V2, CgroupFacts
from .._policy.notifier import INCOMPLETE, GroupStatistics, MemoryCounters
from .cgroup import USAGE
from .root import HostRoot, NodeError, NotFound
from .topology import MEMINFO, parse_mem_total

# Limits above this count as "no limit" to the kubelet (pkg/kubelet/stats).
_UNLIMITED = 1 << 62
_COUNTER = re.compile(r"\s*([0-9]{1,20})\s*\Z", re.ASCII)
_STAT_ROW = re.compile(r"^([a-z0-9_]+) ([0-9]{1,20})$", re.ASCII | re.MULTILINE)


def parse_stat(text: str) -> t.Dict[str, int]:
    """memory.stat: one counter a row; other rows are passed over."""
    return {name: int(value) for name, value in _STAT_ROW.findall(text)}


def parse_counter(text: str) -> t.Optional[int]:
    """A file that is one number; None for `max` and for anything else."""
    match = _COUNTER.match(text)
    return None if match is None else int(match.group(1))


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
