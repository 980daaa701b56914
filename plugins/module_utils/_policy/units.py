# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Sizes for people."""

from __future__ import annotations

MIB = 1024 * 1024


def mebibytes(size: int, signed: bool = False) -> str:
    """A number of bytes as text: `43.2 MiB`, exact bytes below 1 MiB in KiB or B; with a sign where asked for."""
    sign = "-" if size < 0 else "+" if signed and size > 0 else ""
    magnitude = abs(size)
    if magnitude >= MIB:
        tenths = (magnitude * 10 + MIB // 2) // MIB
        return f"{sign}{tenths // 10}.{tenths % 10} MiB"
    if magnitude % 1024 == 0:
        return f"{sign}{magnitude // 1024} KiB"
    return f"{sign}{magnitude} B"
