# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The guard's settings on a node (design, section 4), of which every judgement respects the tolerance."""

from __future__ import annotations

import typing as t

from .boot import CMDLINE
from .root import HostRoot, NodeError, NotFound

TOLERANCE_FILE = "/etc/kubenode-memory/tolerance"
DISABLED_FILE = "/etc/kubenode-memory/disabled"
DISABLED_WORD = "kubenode_memory.guard=off"

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


def switched_off_by(root: HostRoot) -> t.Optional[str]:
    """What switches the guard off on this node, for a person; None where nothing does.

    :raises NodeError: if that cannot be told
    """
    if root.exists(DISABLED_FILE):
        return f"the file {root.display(DISABLED_FILE)}"
    try:
        words = root.read_text(CMDLINE, errors="replace").split()
    except NotFound:
        return None
    return f"{DISABLED_WORD} on the kernel's command line" if DISABLED_WORD in words else None
