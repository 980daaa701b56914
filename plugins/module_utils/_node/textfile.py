# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Writes the file that node_exporter's textfile collector reads.

The directory may belong to the exporter's user. So nothing in it is followed or trusted: what we write is a new file,
and rename(2) puts it in the place of whatever is there.
"""

from __future__ import annotations

import contextlib
import os

from .root import HostRoot, NodeError

FILE_NAME = "kubenode_memory.prom"
TEMPORARY = ".kubenode_memory.tmp"
MODE = 0o644

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_textfile(root: HostRoot, directory: str, text: str) -> None:
    """Put the metrics into the directory, whole: a reader sees the old file or the new one.

    :raises NodeError: with the path; then the old file is still there
    """
    where = root.display(directory + "/" + FILE_NAME)
    try:
        fd = root.open_directory(directory)
    except NodeError as error:
        raise NodeError(f"cannot write {where}: {error}") from error
    try:
        _replace(fd, text.encode("utf-8"))
    except OSError as error:
        raise NodeError(f"cannot write {where}: {error.strerror}; look at the directory and its file system") from error
    finally:
        os.close(fd)


def _replace(directory: int, content: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(TEMPORARY, dir_fd=directory)
    try:
        fd = os.open(TEMPORARY, _FLAGS, MODE, dir_fd=directory)
        with open(fd, "wb") as stream:
            os.fchmod(fd, MODE)
            stream.write(content)
        os.rename(TEMPORARY, FILE_NAME, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(TEMPORARY, dir_fd=directory)
        raise
