# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The kernel image in /proc/iomem and the drift bound that KEP-6232 derives from it (semantics 5.4).

Only the names count: a kernel image across a node border stands without indentation and without a `System RAM`
parent, and arm64 has no `Kernel bss` (drift evidence, 3 and 7).
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

GRACE = 64 * 1024 * 1024
"""What the KEP adds to the image span for the boot process's own variance, in bytes."""

KERNEL_ROWS = ("Kernel code", "Kernel data", "Kernel bss")
CRASH_KERNEL = "Crash kernel"

_MAX_LINE = 64 * 1024
_HEX = re.compile(r"[0-9a-fA-F]{1,16}\Z", re.ASCII)


@dataclass(frozen=True)
class ResourceRange:
    """One row of /proc/iomem: physical addresses, `end` inclusive."""

    name: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start + 1

    @property
    def hidden(self) -> bool:
        """The kernel prints zeros to readers without CAP_SYS_ADMIN."""
        return self.start == 0 and self.end == 0


@dataclass(frozen=True)
class KernelImage:
    """The span of the running kernel's image; `span` is bytes from the lowest start to the highest end."""

    start: int
    end: int
    rows: t.Tuple[ResourceRange, ...]

    @property
    def span(self) -> int:
        # 64 bit unsigned, as the kubelet's: a range over the whole address space wraps to 0.
        return (self.end - self.start + 1) & ((1 << 64) - 1)

    @property
    def partly_hidden(self) -> bool:
        """A zeroed row among real ones drags the start to 0; the span is then not the image's (semantics 5.9, 3)."""
        return any(row.hidden for row in self.rows)

    @property
    def bound(self) -> int:
        """The KEP's bound in bytes."""
        return self.span + GRACE


class KernelImageUnavailable(ValueError):
    """No span can be derived; `reason` is `no_rows`, `hidden` or `partly_hidden`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse_iomem(text: str) -> t.Iterator[ResourceRange]:
    """The rows of /proc/iomem that the kubelet can read, in order; others are skipped as it skips them."""
    for line in text.split("\n"):
        if len(line) > _MAX_LINE:
            return
        addresses, colon, name = line.rpartition(":")
        start, dash, end = addresses.partition("-")
        start, end = start.strip(), end.strip()
        if not colon or not dash or not _HEX.match(start) or not _HEX.match(end):
            continue
        if int(end, 16) >= int(start, 16):
            yield ResourceRange(name.strip(), int(start, 16), int(end, 16))


def derive_kernel_image(iomem_text: str) -> KernelImage:
    """The image as the KEP's kubelet derives it, a partly hidden one included.

    :raises KernelImageUnavailable: if no kernel row is there, or all are zeroed
    """
    rows = tuple(row for row in parse_iomem(iomem_text) if row.name in KERNEL_ROWS)
    if not rows:
        raise KernelImageUnavailable(
            "no_rows",
            "/proc/iomem has no row Kernel code, Kernel data or Kernel bss, as on ppc64le; "
            "set memory-drift-tolerance to a quantity",
        )
    if all(row.hidden for row in rows):
        raise KernelImageUnavailable(
            "hidden",
            "/proc/iomem shows zeros instead of addresses: the reader has no CAP_SYS_ADMIN; "
            "run with `become: true`, in a container with that capability",
        )
    return KernelImage(min(row.start for row in rows), max(row.end for row in rows), rows)


def trusted_kernel_image(iomem_text: str) -> KernelImage:
    """The image for our own bound: like `derive_kernel_image`, but a partly hidden one is refused.

    :raises KernelImageUnavailable: also if some rows are zeroed
    """
    image = derive_kernel_image(iomem_text)
    if image.partly_hidden:
        hidden = ", ".join(row.name for row in image.rows if row.hidden)
        raise KernelImageUnavailable(
            "partly_hidden", f"/proc/iomem has zeros for {hidden} among real addresses: the span is not known"
        )
    return image


def crash_kernel_ranges(iomem_text: str) -> t.Tuple[ResourceRange, ...]:
    """The ranges reserved by `crashkernel=`, in the order of /proc/iomem."""
    return tuple(row for row in parse_iomem(iomem_text) if row.name == CRASH_KERNEL and not row.hidden)
