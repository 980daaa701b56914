# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The lines that a judgement, and what is written after it, add to the history (design, section 5)."""

from __future__ import annotations

import hashlib
import typing as t
from dataclasses import replace

from ._node.history import UNKNOWN_BOOT, numa_nodes_of
from ._policy.history import BootRecord, Range, Records, bounded, observed, recorded_totals, rewritten
from ._policy.kernel_image import KernelImageUnavailable, crash_kernel_ranges, trusted_kernel_image
from ._policy.rewrite import Rewrite
from ._policy.state import MachineState
from ._preflight import Report


def records_after(report: Report, now: float, limit: int, rewrite: t.Optional[Rewrite] = None) -> Records:
    """The history with the file that was found, and the one that is written in its place.

    :param now: seconds since the epoch
    :param limit: see `bounded`
    """
    records, state = report.reading.history.records, report.evaluation.state
    content = report.reading.subject.state_file.content
    found = None if state is None or content is None else _record(report, now, content, state.nodes)
    if found is not None and found.totals:
        records = observed(records, found)
    if rewrite is not None and rewrite.after.state is not None:
        written = _record(report, now, rewrite.content, rewrite.after.state.nodes)
        if found is not None and found.totals:
            records = rewritten(records, replace(written, replaces=found.content_sha256))
        else:
            records = observed(records, written)
    return bounded(records, limit)


def _record(report: Report, now: float, content: bytes, nodes: MachineState) -> BootRecord:
    reading, subject = report.reading, report.reading.subject
    crashes = tuple((one.start, one.end) for one in crash_kernel_ranges(subject.iomem or ""))
    image = _kernel_image(subject.iomem)
    block = subject.memory_block_size
    return BootRecord(
        boot_id=reading.boot.boot_id.value or UNKNOWN_BOOT,
        content_sha256=hashlib.sha256(content).hexdigest(),
        totals=recorded_totals(nodes),
        kernel_release=subject.kernel_release,
        kernel_image=image,
        crash_kernels=crashes,
        bound=report.evaluation.bound.bytes,
        verdict=report.evaluation.verdict,
        time=int(now),
        kernel_image_nodes=() if image is None else numa_nodes_of(reading.root, image, block),
        crash_kernel_nodes=tuple(numa_nodes_of(reading.root, one, block) for one in crashes),
    )


def _kernel_image(iomem: t.Optional[str]) -> t.Optional[Range]:
    try:
        image = trusted_kernel_image(iomem or "")
    except KernelImageUnavailable:
        return None
    return image.start, image.end
