# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What the guard and the writer remember of earlier boots: one record a boot and state file (design, section 5).

An epoch is a run of files of which each one's totals are those that we recorded last. A file whose totals we do not
know (the kubelet's after a reset, somebody's own) begins a new epoch, and is its first baseline.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from .findings import Finding, warning
from .machine import MEMORY, MachineInfo
from .state import MachineState
from .units import mebibytes

Range = t.Tuple[int, int]
"""Physical addresses, first and last."""

Totals = t.Mapping[int, int]
"""Bytes of memory by NUMA node."""


@dataclass(frozen=True)
class BootRecord:
    """One line of `history.jsonl`. `totals` are the file's recorded memory totals in bytes by NUMA node.

    `time` is seconds since the epoch; `kernel_image_nodes` and `crash_kernel_nodes` are the NUMA nodes that those
    ranges lie on, empty where that is not known. `replaces` is the content hash of the file in whose place this one
    was written by us; None for a file that was found.
    """

    boot_id: str
    content_sha256: str
    totals: Totals
    kernel_release: t.Optional[str] = None
    kernel_image: t.Optional[Range] = None
    crash_kernels: t.Tuple[Range, ...] = field(default_factory=tuple)
    bound: int = 0
    verdict: str = ""
    epoch: int = 0
    time: int = 0
    kernel_image_nodes: t.Tuple[int, ...] = ()
    crash_kernel_nodes: t.Tuple[t.Tuple[int, ...], ...] = ()
    replaces: t.Optional[str] = None

    @property
    def key(self) -> t.Tuple[str, str]:
        return (self.boot_id, self.content_sha256)


Records = t.Tuple[BootRecord, ...]


def recorded_totals(machine_state: MachineState) -> Totals:
    """The memory totals of a state file."""
    tables = {node_id: (node.memory_map or {}).get(MEMORY) for node_id, node in machine_state.items() if node}
    return {node_id: table.total for node_id, table in sorted(tables.items()) if table is not None}


def machine_totals(machine: MachineInfo) -> Totals:
    """The memory totals of a machine."""
    return {node.id: node.memory for node in machine.topology}


def settled(records: Records, totals: Totals) -> Records:
    """The records without a last one that never became the file.

    The writer records before it renames. If it died in between, the file still has the totals of the record before.
    """
    if len(records) < 2 or records[-1].replaces is None or dict(records[-1].totals) == dict(totals):
        return records
    return records[:-1] if dict(records[-2].totals) == dict(totals) else records


def current_epoch(records: Records, totals: Totals) -> Records:
    """The records of the epoch to which a file with these totals belongs, its first baseline in front."""
    known = settled(records, totals)
    if not known or dict(known[-1].totals) != dict(totals):
        return ()
    return tuple(record for record in known if record.epoch == known[-1].epoch)


def observed(records: Records, found: BootRecord) -> Records:
    """The records with a file that was found. Nothing changes where its boot and content are the last line's."""
    known = settled(records, found.totals)
    epoch = current_epoch(known, found.totals)
    if epoch and epoch[-1].key == found.key:
        return known
    number = epoch[-1].epoch if epoch else (known[-1].epoch + 1 if known else 1)
    return _appended(known, epoch[:1], replace(found, epoch=number))


def rewritten(records: Records, written: BootRecord) -> Records:
    """The records with a file that we write in place of the last one: the same epoch."""
    epoch = tuple(record for record in records if record.epoch == records[-1].epoch)
    return _appended(records, epoch[:1], replace(written, epoch=records[-1].epoch))


def _appended(records: Records, baseline: Records, record: BootRecord) -> Records:
    """One line per boot and content: an older one goes, unless it is the epoch's first baseline."""
    return tuple(old for old in records if old.key != record.key or old in baseline) + (record,)


def bounded(records: Records, limit: int) -> Records:
    """The newest `limit` records (2 or more); the present epoch's first baseline is always one of them."""
    if len(records) <= limit:
        return records
    first = next(index for index, record in enumerate(records) if record.epoch == records[-1].epoch)
    start = len(records) - limit
    return records[start:] if first >= start else (records[first],) + records[start + 1 :]


def last_of_another_boot(records: Records, boot_id: t.Optional[str]) -> t.Optional[BootRecord]:
    """The newest record that is not of this boot."""
    return next((record for record in reversed(records) if record.boot_id != boot_id), None)


def cumulative_drift(records: Records, totals: Totals, machine: Totals) -> t.Mapping[int, int]:
    """Bytes that each NUMA node of the machine has more (less, if negative) than the epoch's first baseline.

    :param totals: those of the present file, which tell the epoch
    :returns: nothing where no epoch is known for the file
    """
    epoch = current_epoch(records, totals)
    if not epoch:
        return {}
    first = epoch[0].totals
    return {node: machine[node] - first[node] for node in sorted(set(first) & set(machine))}


def cumulative_findings(distances: t.Mapping[int, int], limit: int) -> t.Tuple[Finding, ...]:
    """A warning for each NUMA node that is further from its first baseline than `limit` bytes; 0 is no limit."""
    return tuple(
        warning(
            "cumulative_drift",
            f"NUMA node {node} is {mebibytes(size, signed=True)} away from its first baseline, more than "
            f"{mebibytes(limit)}: drifts that were tolerable one by one add up. Find out where the memory goes.",
            numa_node=node,
            resource=MEMORY,
            expected=limit,
            found=size,
        )
        for node, size in distances.items()
        if limit and abs(size) > limit
    )
