# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The guard's settings on a node, which every judgement of that node respects (design, section 4)."""

from __future__ import annotations

import typing as t

from .root import HostRoot, NodeError, NotFound

TOLERANCE_FILE = "/etc/kubenode-memory/tolerance"

_LIMIT = 4096


def guard_tolerance(root: HostRoot) -> t.Optional[str]:
    """The value in the settings file: its only line that is neither empty nor a comment; None without the file.

    :raises NodeError: if the file cannot be read, or holds anything else
    """
    try:
        lines = root.read_text(TOLERANCE_FILE, limit=_LIMIT).splitlines()
    except NotFound:
        return None
    values = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if len(values) != 1:
        where, count = root.display(TOLERANCE_FILE), len(values)
        raise NodeError(f"{where} has {count} values; write one line: auto, off or a quantity such as 128Mi.")
    return values[0]
