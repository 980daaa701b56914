# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The bound that a machine's kernel image gives, as plain dicts and as a sentence."""

from __future__ import annotations

import typing as t

from ._node.boot import BootFacts
from ._policy.kernel_image import GRACE
from ._policy.tolerance import Bound
from ._policy.units import mebibytes


def present_bound(boot: BootFacts, bound: Bound) -> t.Dict[str, t.Any]:
    """What the module `kernel_image_bound` returns."""
    image = bound.kernel_image
    rows = image.rows if image else ()
    return {
        "bound_bytes": None if image is None else bound.bytes,
        "kernel_image_bytes": None if image is None else image.span,
        "grace_bytes": GRACE,
        "rows": [{"name": row.name, "start": f"{row.start:x}", "end": f"{row.end:x}"} for row in rows],
        "unavailable": bound.unavailable,
        "reason": bound.reason,
        "memory_block_size_bytes": boot.memory_block_size_bytes.value,
        "kernel": boot.kernel_release.value,
    }


def bound_sentence(bound: Bound) -> str:
    """The bound, or why there is none."""
    return bound.reason or f"bound {mebibytes(bound.bytes)}, kernel image {mebibytes(bound.bytes - GRACE)}"
