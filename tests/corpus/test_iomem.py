# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/iomem of many machines: the span and the bound that each gives, or none."""

from __future__ import annotations

import re
from pathlib import Path

from corpus_captures import CORPUS, each, meta, needs_corpus

from ansible_collections.kubenode.memory.plugins.module_utils._policy.kernel_image import GRACE, crash_kernel_ranges
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import derive_bound, parse_tolerance

pytestmark = needs_corpus

SPAN = "span_bytes_lowest_start_to_highest_end_inclusive"


def text(capture: Path) -> str:
    return capture.read_bytes().decode("utf-8", "replace")


@each("iomem")
def test_bound(capture: Path) -> None:
    known = meta(capture)
    bound = derive_bound(parse_tolerance("auto"), text(capture))
    span = known[SPAN] or 0
    assert bound.bytes == (span + GRACE if span else 0)
    if span:
        expected = known.get(
            "bound_bytes_span_plus_64MiB", known.get("bound_bytes_only_if_the_project_accepts_missing_lines")
        )
        assert bound.bytes == expected
        assert bound.unavailable is None
    else:
        assert bound.unavailable == ("no_rows" if known[SPAN] is None else "hidden")
        assert "no bound" in known["expect"]


def test_the_bound_does_not_depend_on_where_the_image_landed() -> None:
    names = ("x86_64-amd-apu-boot-kaslr.txt", "x86_64-amd-apu-boot-other.txt")
    images = [derive_bound(parse_tolerance("auto"), text(CORPUS / "iomem" / name)).kernel_image for name in names]
    assert images[0] is not None
    assert images[1] is not None
    assert images[0].span == images[1].span
    assert images[0].start != images[1].start


def test_crash_kernels() -> None:
    ranges = crash_kernel_ranges(text(CORPUS / "iomem" / "x86_64-crashkernel-high-low.txt"))
    assert [row.size >> 20 for row in ranges] == [256, 200]
    for capture in (CORPUS / "iomem").glob("*.txt"):
        rows = re.findall(r"^\s*([0-9a-f]+)-([0-9a-f]+) : Crash kernel", text(capture), re.MULTILINE)
        assert len(crash_kernel_ranges(text(capture))) == len([row for row in rows if int(row[1], 16)]), capture.name
