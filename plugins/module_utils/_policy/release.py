# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Kubernetes releases of a kubelet: which rules apply, and how well they are proven (design, section 2)."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?:[-+~_.][0-9A-Za-z.~+_-]*)?\Z", re.ASCII)

OLDEST = (1, 21)
PROVEN_SINCE = (1, 34)
NEWEST = (1, 37)


@dataclass(frozen=True, order=True)
class Release:
    """A kubelet's release; distribution suffixes (`+k3s1`, `-eks-1234`) are dropped."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def series(self) -> t.Tuple[int, int]:
        return (self.major, self.minor)

    def at_least(self, major: int, minor: int) -> bool:
        return self.series >= (major, minor)

    @property
    def proof(self) -> str:
        """`proven` (compared with the real kubelet), `source` (rules read from its source) or `unknown`."""
        if self.series < OLDEST or self.series > NEWEST:
            return "unknown"
        return "proven" if self.series >= PROVEN_SINCE else "source"


def parse_release(text: str) -> Release:
    """Parse `Kubernetes v1.37.2`, `v1.36.3+rke2r1` or `1.34`.

    :raises ValueError: if the text is no version of Kubernetes
    """
    match = _VERSION.match(text.strip().replace("Kubernetes ", "", 1))
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes version such as v1.37.2")
    return Release(int(match.group(1)), int(match.group(2)), int(match.group(3) or 0))
