# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Writes configuration files: atomically, with mode, owner and label kept, and only over the content that was judged.

The primitives are those of `writer`, which writes the state file. A kubelet that starts meanwhile reads the old or the
new file, whole.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import posixpath
import stat
import typing as t

from .directories import UnsafePath, open_or_make, require_safe_directory
from .history import DIRECTORY
from .root import HostRoot, NodeError, NotFound, permission_hint
from .settings_record import FILE_NAME, Record, record_text, sha256_of
from .writer import SELINUX, TEMPORARY, Busy, WriteError

LOCK = "configuration.lock"
BACKUPS = DIRECTORY + "/configuration"
KEPT = 10
LIMIT = 256 * 1024
NEW_FILE_MODE = 0o600

_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Changed(NodeError):
    """The file is not the one that was judged."""


@contextlib.contextmanager
def _writing(where: str) -> t.Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = permission_hint() if isinstance(error, PermissionError) else "look at the disk and the kernel's log"
        raise WriteError(f"cannot write {where}: {error.strerror}; {hint}. The file is as it was.") from error


@contextlib.contextmanager
def configuration_lock(root: HostRoot) -> t.Iterator[None]:
    """Only one run at a time changes a node's configuration.

    :raises Busy: if another one does
    """
    with _directory(root, DIRECTORY) as directory, _writing(root.display(posixpath.join(DIRECTORY, LOCK))):
        fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Busy("another run changes this node's configuration; wait for it to end") from None
        finally:
            os.close(fd)


def write_record(root: HostRoot, record: Record) -> None:
    with _directory(root, DIRECTORY) as directory, _writing(posixpath.join(DIRECTORY, FILE_NAME)):
        _put(directory, FILE_NAME, record_text(record).encode("utf-8"), None)


def save_backup(root: HostRoot, path: str, content: bytes, now: float) -> str:
    """Keep a copy of a file, and the last ten of its name; returns the copy's path."""
    stamp = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    prefix = posixpath.basename(path) + "."
    with _directory(root, BACKUPS) as directory, _writing(BACKUPS):
        _put(directory, prefix + stamp, content, None)
        for old in sorted(name for name in os.listdir(directory) if name.startswith(prefix))[:-KEPT]:
            os.unlink(old, dir_fd=directory)
    return posixpath.join(BACKUPS, prefix + stamp)


def replace_file(root: HostRoot, path: str, content: t.Optional[bytes], judged: str) -> None:
    """Put content in the place of a file, or remove it (None). A link to the file stays a link.

    :param judged: hash of the content that this one is meant to replace; "" for no file
    :raises Changed: if the file is another one by now
    :raises UnsafePath: if somebody but root could redirect the path
    """
    real = _real_path(root, path)
    parent, name = posixpath.split(real)
    with _directory(root, parent) as directory, _writing(root.display(path)):
        require_safe_directory(directory, root.display(parent))
        _forget_leftover(directory)
        present = _status(directory, name)
        if sha256_of(_read(directory, name) if present else None) != judged:
            raise Changed(f"{root.display(path)} has changed since it was judged; run the task again")
        if content is None:
            os.unlink(name, dir_fd=directory)
            os.fsync(directory)
        else:
            _put(directory, name, content, present)


def _real_path(root: HostRoot, path: str) -> str:
    try:
        return root.realpath(path)
    except NotFound:
        return path


@contextlib.contextmanager
def _directory(root: HostRoot, path: str) -> t.Iterator[int]:
    """A descriptor of a directory, which is made if need be."""
    with _writing(root.display(path)):
        fd = open_or_make(root, path)
    try:
        yield fd
    finally:
        os.close(fd)


def _forget_leftover(directory: int) -> None:
    """The temporary file of a run that was killed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(TEMPORARY, dir_fd=directory)


def _status(directory: int, name: str) -> t.Optional[os.stat_result]:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePath(f"{name} is not a regular file; look at it on the node")
    return status


def _read(directory: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=directory), "rb") as stream:
        return stream.read(LIMIT + 1)


def _put(directory: int, name: str, content: bytes, like: t.Optional[os.stat_result]) -> None:
    """Write a file durably; `like` is the present one, whose mode, owner and label it gets."""
    _forget_leftover(directory)
    try:
        _create(directory, name, content, like)
        if like is not None and _is_another(directory, name, like):
            raise Changed(f"{name} was written by somebody else at this moment; run the task again")
        os.rename(TEMPORARY, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    except BaseException:
        with contextlib.suppress(OSError):
            _forget_leftover(directory)
        raise


def _create(directory: int, name: str, content: bytes, like: t.Optional[os.stat_result]) -> None:
    fd = os.open(TEMPORARY, _NEW_FILE_FLAGS, NEW_FILE_MODE, dir_fd=directory)
    with open(fd, "wb") as stream:
        if like is not None:
            os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, stat.S_IMODE(like.st_mode))
            _copy_label(directory, name, fd)
        stream.write(content)
        stream.flush()
        os.fsync(fd)


def _copy_label(directory: int, name: str, to: int) -> None:
    """The SELinux label, where there is one."""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        label = os.getxattr(fd, SELINUX)
    except OSError:
        return
    finally:
        os.close(fd)
    os.setxattr(to, SELINUX, label)


def _is_another(directory: int, name: str, than: os.stat_result) -> bool:
    status = _status(directory, name)
    fields = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    return status is None or any(getattr(status, field) != getattr(than, field) for field in fields)
