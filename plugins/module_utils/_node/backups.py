# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The backups of state files: how they are named, listed and read. `writer` makes and removes them."""

from __future__ import annotations

import datetime
import re
import typing as t

from .history import DIRECTORY, UNKNOWN_BOOT
from .root import HostRoot, NodeError, NotFound

BACKUPS = DIRECTORY + "/backups"

_NAME = re.compile(
    r"memory_manager_state\.\d{8}T\d{6}\.\d{6}Z\.(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|unknown-boot)\Z"
)
_LIMIT = 64 * 1024 * 1024


def backup_name(now: float, boot_id: t.Optional[str]) -> str:
    """A backup's id, `memory_manager_state.20260131T235959.000000Z.BOOT-ID`: names sort by time."""
    stamp = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    return f"memory_manager_state.{stamp}.{boot_id or UNKNOWN_BOOT}"


def is_backup(name: str) -> bool:
    return _NAME.match(name) is not None


def list_backups(root: HostRoot) -> t.Tuple[str, ...]:
    """The ids of the backups, oldest first.

    :raises NodeError: if the directory cannot be read
    """
    try:
        return tuple(name for name in root.listdir(BACKUPS) if is_backup(name))
    except NotFound:
        return ()


def backup_path(backup: str) -> str:
    """The node's path of a backup that is given by its id or by an absolute path.

    :raises NodeError: if it is neither
    """
    if backup.startswith("/"):
        return backup
    if is_backup(backup):
        return BACKUPS + "/" + backup
    raise NodeError(f"backup is {backup!r}; give a name in {BACKUPS}, or an absolute path")


def read_backup(root: HostRoot, backup: str) -> bytes:
    """The content of a backup.

    :raises NodeError: if there is none of that name; the message lists those that are there
    """
    try:
        return root.read_bytes(backup_path(backup), _LIMIT)
    except NotFound as error:
        there = ", ".join(list_backups(root)) or "none"
        raise NodeError(f"{error}. Backups in {root.display(BACKUPS)}: {there}.") from None
