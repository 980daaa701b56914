# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel image in /proc/iomem, and the bound (semantics 5.4; 5.10, I1 to I3)."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given, strategies as st
from vectors import Row, each

from ansible_collections.kubenode.memory.plugins.module_utils._policy.kernel_image import (
    GRACE,
    KERNEL_ROWS,
    KernelImageUnavailable,
    crash_kernel_ranges,
    derive_kernel_image,
    parse_iomem,
    trusted_kernel_image,
)

REAL = "1000000-1ffffff : Kernel code\n2000000-2ffffff : Kernel data\n"
ADDRESSES = st.integers(0, (1 << 64) - 1)


def iomem(text: str) -> str:
    """`@70000 times x@` stands for that many `x`."""
    return text.replace("@70000 times x@", "x" * 70000)


@each("iomem.json")
def test_vectors(row: Row) -> None:
    if not row["ok"]:
        with pytest.raises(KernelImageUnavailable):
            derive_kernel_image(iomem(row["iomem"]))
        return
    image = derive_kernel_image(iomem(row["iomem"]))
    assert (image.span, image.bound) == (row.get("span_bytes", 0), row["bound_bytes"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_rows"),
        ("00100000-b7ffffff : System RAM\n  c0000000-cfffffff : PCI Bus 0000:00\n", "no_rows"),
        ("0-0 : Kernel code\n0-0 : Kernel data\n", "hidden"),
        (REAL + "00000000-00000000 : Kernel bss\n", "partly_hidden"),
    ],
)
def test_reasons_without_a_bound(text: str, reason: str) -> None:
    with pytest.raises(KernelImageUnavailable) as error:
        trusted_kernel_image(text)
    assert error.value.reason == reason
    assert len(str(error.value)) > 40


def test_the_kubelet_would_trust_a_partly_hidden_image() -> None:
    assert derive_kernel_image(REAL + "0-0 : Kernel bss\n").span == 0x3000000


def test_two_rows_are_enough_and_need_no_parent() -> None:
    """arm64 has no `Kernel bss`; an image across a node border stands without a `System RAM` row."""
    assert trusted_kernel_image(REAL).bound == 0x2000000 + GRACE


@pytest.mark.parametrize("name", ["Kernel rodata", "Kernel image", "Crash kernel", "kernel code", "Kernel code (x)"])
def test_other_names_do_not_count(name: str) -> None:
    assert trusted_kernel_image(REAL + f"0000100000-00ffffffff : {name}\n").span == 0x2000000


def test_crash_kernels_in_order_and_not_hidden() -> None:
    text = "10-1f : Crash kernel\n0-0 : Crash kernel\n  40-4f : Crash kernel\n"
    assert [(row.start, row.size) for row in crash_kernel_ranges(text)] == [(0x10, 16), (0x40, 16)]


@given(
    st.text()
    | st.lists(st.sampled_from(["-", ":", "0", "ff", " ", "\n", "Kernel code", "\x00", "\ud800"])).map("".join)
)
def test_any_text_gives_an_image_or_a_reason(text: str) -> None:
    try:
        image = trusted_kernel_image(text)
    except KernelImageUnavailable:
        return
    assert 0 <= image.span < 1 << 64
    assert not any(row.hidden for row in image.rows)


@given(st.lists(st.tuples(ADDRESSES, ADDRESSES, st.sampled_from((*KERNEL_ROWS, "System RAM"))), max_size=6))
def test_rows_that_are_written_are_read(rows: t.List[t.Tuple[int, int, str]]) -> None:
    text = "".join(f"  {start:08x}-{end:08x} : {name}\n" for start, end, name in rows)
    assert [(row.start, row.end, row.name) for row in parse_iomem(text)] == [row for row in rows if row[0] <= row[1]]
