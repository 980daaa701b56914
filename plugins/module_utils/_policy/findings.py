# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Findings: one statement each about what stops, or may stop, the kubelet's memory manager.

The codes are a documented interface (docs: "Reading a verdict"); a code is never renamed or given another meaning.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

STOPS_START = "stops_start"
WARNING = "warning"
INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One finding. Sizes are bytes; `kubelet_error` is the kubelet's own text where there is one.

    For a difference between state file and machine `expected` is what is recorded and `found` what the machine has.
    `message` is for a person and ends with the next step; `hint` says what the difference looks like.
    """

    code: str
    severity: str
    message: str
    numa_node: t.Optional[int] = None
    resource: t.Optional[str] = None
    pod_uid: t.Optional[str] = None
    container: t.Optional[str] = None
    expected: t.Optional[t.Union[int, str]] = None
    found: t.Optional[t.Union[int, str]] = None
    path: t.Optional[str] = None
    field: t.Optional[str] = None
    kubelet_error: t.Optional[str] = None
    hint: t.Optional[str] = None

    @property
    def stops_start(self) -> bool:
        return self.severity == STOPS_START


def stops_start(code: str, message: str, **details: t.Any) -> Finding:
    """A finding with which the kubelet does not start its memory manager."""
    return Finding(code, STOPS_START, message, **details)


def warning(code: str, message: str, **details: t.Any) -> Finding:
    return Finding(code, WARNING, message, **details)


def info(code: str, message: str, **details: t.Any) -> Finding:
    return Finding(code, INFO, message, **details)
