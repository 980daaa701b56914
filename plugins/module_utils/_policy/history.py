# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What the guard and the writer remember of earlier boots: one record a boot and state file (design, section 5)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

Range = t.Tuple[int, int]
"""Physical addresses, first and last."""


@dataclass(frozen=True)
class BootRecord:
    """One line of `history.jsonl`. `totals` are the file's recorded memory totals in bytes by NUMA node."""

    boot_id: str
    content_sha256: str
    totals: t.Mapping[int, int]
    kernel_release: t.Optional[str] = None
    kernel_image: t.Optional[Range] = None
    crash_kernels: t.Tuple[Range, ...] = field(default_factory=tuple)
    bound: int = 0
    verdict: str = ""
    epoch: int = 0
