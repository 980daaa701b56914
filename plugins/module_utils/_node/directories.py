# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The directories that this collection writes in: opened by descriptor, made where they are missing, and safe."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat

from .history import DIRECTORY
from .root import HostRoot, NodeError, NotFound, PermissionMissing

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnsafePath(NodeError):
    """The path could be redirected by somebody else, or is none that a kubelet would have made."""


def open_or_make(root: HostRoot, path: str) -> int:
    """Open a directory; make it (0700), and the ones above it (0755), where they are missing."""
    try:
        return root.open_directory(path)
    except PermissionMissing:
        raise
    except NotFound:
        parent, name = posixpath.split(path)
    above = open_or_make(root, parent)
    try:
        mode = 0o700 if path.startswith(DIRECTORY) else 0o755
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=above)
            os.fsync(above)
        return os.open(name, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=above)
    finally:
        os.close(above)


def require_safe_directory(fd: int, where: str) -> None:
    """:raises UnsafePath: if somebody but its owner, root or this user, may write to a directory"""
    status = os.fstat(fd)
    if status.st_uid not in (0, os.geteuid()):
        raise UnsafePath(f"{where} belongs to user {status.st_uid}, it has to be root's; correct its owner")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafePath(f"{where} has mode {mode:04o}: group or world may write to it; chmod it to 0755 or less")
