# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The only writer: the state file, its backups, the history and the lock (design, section 5; semantics 1.1).

A file is written beside its target, made durable and renamed over it, so that a kill at any point leaves the old or
the new one, whole. Directories are opened once, through `HostRoot`, and used by descriptor from then on. The temporary
file has one fixed name, like the kubelet's in form: what a killed run left is recognised by it, and only that is
removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import posixpath
import stat
import time
import typing as t
from dataclasses import dataclass

from .backups import BACKUPS, backup_name, is_backup
from .directories import UnsafePath, open_or_make, require_safe_directory
from .history import DIRECTORY, FILE_NAME
from .root import HostRoot, NodeError, permission_hint

TEMPORARY = ".6232140473142121"
LOCK = "lock"
SELINUX = "security.selinux"
POLL_SECONDS = 0.05

_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LABEL = (errno.ENODATA, errno.ENOTSUP, errno.ENOSYS)


class WriteError(NodeError):
    """Something could not be written; the state file is as it was."""


class Busy(NodeError):
    """Another run holds the lock."""


class NotDurable(NodeError):
    """The new state file is in place, but it is not certain to survive a loss of power."""


@dataclass(frozen=True)
class Identity:
    """Which file it is, and that nobody has written it since."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@contextlib.contextmanager
def _writing(where: str) -> t.Iterator[None]:
    """Turns OSError into WriteError with the path, the reason and the next step."""
    try:
        yield
    except OSError as error:
        steps = {
            errno.ENOSPC: "free some space there",
            errno.EDQUOT: "free some space there",
            errno.EROFS: "remount the file system read-write",
            errno.EACCES: permission_hint(),
            errno.EPERM: permission_hint(),
            errno.EBUSY: "unmount what is mounted on it",
        }
        step = steps.get(error.errno or 0, "look at the disk and the kernel's log")
        raise WriteError(f"cannot write {where}: {error.strerror}; {step}. The state file is as it was.") from error


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _create(
    directory: int,
    content: bytes,
    like: t.Optional[os.stat_result] = None,
    label: t.Optional[bytes] = None,
    durable: bool = True,
) -> None:
    """A temporary file with mode 0600 and the owner and label of another one."""
    fd = os.open(TEMPORARY, _NEW_FILE_FLAGS, 0o600, dir_fd=directory)
    try:
        os.fchmod(fd, 0o600)
        if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, like.st_uid, like.st_gid)
        if label is not None:
            os.setxattr(fd, SELINUX, label)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)


def _remove(directory: int, name: str = TEMPORARY) -> bool:
    """Remove a file; whether there was one."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _replace(directory: int, name: str, content: bytes, durable: bool = True) -> None:
    """Write a file of our own over the one of that name. Nothing is left behind by a failure."""
    try:
        _create(directory, content, durable=durable)
        os.rename(TEMPORARY, name, src_dir_fd=directory, dst_dir_fd=directory)
        if durable:
            os.fsync(directory)
    except OSError:
        with contextlib.suppress(OSError):
            _remove(directory)
        raise


# --- the state file --------------------------------------------------------------------------------------------------


class StateDirectory:
    """The directory of a state file, resolved once. Use it as a context manager.

    :raises UnsafePath: if it is not root's alone, or if the file in it is a link or no file
    :raises NodeError: if it cannot be opened
    """

    def __init__(self, root: HostRoot, path: str) -> None:
        self._root = root
        self._directory, self._name = posixpath.split(path)
        self.where = root.display(path)
        self._fd = root.open_directory(self._directory)
        try:
            require_safe_directory(self._fd, root.display(self._directory))
            self.identity()
        except NodeError:
            os.close(self._fd)
            raise

    def __enter__(self) -> StateDirectory:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._fd)

    def identity(self) -> t.Optional[Identity]:
        """Which file is at the path now; None if there is none.

        :raises UnsafePath: if it is a link, or no file
        """
        status = self._stat()
        return None if status is None else _identity(status)

    def _stat(self) -> t.Optional[os.stat_result]:
        try:
            status = os.stat(self._name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NodeError(f"cannot look at {self.where}: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode):
            raise UnsafePath(f"{self.where} is a symbolic link, which no kubelet makes; put the file itself there")
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePath(f"{self.where} is not a regular file; look at it on the node")
        return status

    def is_still_there(self) -> bool:
        """Whether the path still leads to this directory."""
        try:
            fd = self._root.open_directory(self._directory)
        except NodeError:
            return False
        try:
            return os.path.samestat(os.fstat(fd), os.fstat(self._fd))
        finally:
            os.close(fd)

    def has_leftover(self) -> bool:
        """Whether a killed run left its temporary file."""
        try:
            os.stat(TEMPORARY, dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def stage(self, content: bytes) -> None:
        """Write the temporary file, with the owner and the SELinux label of the present one, and make it durable.

        :raises WriteError: then nothing is left behind
        """
        with _writing(self.where):
            try:
                _create(self._fd, content, self._stat(), self._label())
            except OSError:
                with contextlib.suppress(OSError):
                    _remove(self._fd)
                raise

    def _label(self) -> t.Optional[bytes]:
        try:
            fd = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        try:
            return os.getxattr(fd, SELINUX)
        except OSError as error:
            if error.errno in _NO_LABEL:
                return None
            raise
        finally:
            os.close(fd)

    def commit(self) -> None:
        """Put what was staged in the place of the state file.

        :raises WriteError: if the state file is as it was
        :raises NotDurable: if only the directory could not be made durable
        """
        with _writing(self.where):
            try:
                os.rename(TEMPORARY, self._name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            except OSError:
                with contextlib.suppress(OSError):
                    _remove(self._fd)
                raise
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise NotDurable(
                f"{self.where} is written, but its directory cannot be synced: {error.strerror}; look at the disk and "
                "the kernel's log before this node loses power."
            ) from error

    def discard(self) -> bool:
        """Remove what was staged, or what a killed run left; whether there was something."""
        with _writing(self.where):
            return _remove(self._fd)


# --- our own directory -----------------------------------------------------------------------------------------------


class Store:
    """`/var/lib/kubenode-memory`, locked for this process while the context lasts.

    :raises Busy: if another run holds the lock for longer than `patience` seconds
    :raises UnsafePath: if the directory is not root's alone
    :raises WriteError: if it cannot be made
    """

    def __init__(self, root: HostRoot, patience: float) -> None:
        self._fds = contextlib.ExitStack()
        try:
            self._directory = self._open(root, DIRECTORY)
            self._backups = self._open(root, BACKUPS)
            self._lock(root, patience)
            with _writing(root.display(DIRECTORY)):
                _remove(self._directory)
                _remove(self._backups)
        except BaseException:
            self._fds.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._fds.close()

    def _open(self, root: HostRoot, path: str) -> int:
        """A descriptor of a directory of ours, which is made if need be."""
        with _writing(root.display(path)):
            fd = open_or_make(root, path)
            self._fds.callback(os.close, fd)
            require_safe_directory(fd, root.display(path))
            if stat.S_IMODE(os.fstat(fd).st_mode) != 0o700:
                os.fchmod(fd, 0o700)
        return fd

    def _lock(self, root: HostRoot, patience: float) -> None:
        path = root.display(DIRECTORY + "/" + LOCK)
        with _writing(path):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(LOCK, flags, 0o600, dir_fd=self._directory)
            self._fds.callback(os.close, fd)
            deadline = time.monotonic() + patience
            while not _try_lock(fd):
                if time.monotonic() >= deadline:
                    raise Busy(f"another run holds {path} for more than {patience:g} seconds; wait for it to end")
                time.sleep(POLL_SECONDS)

    def save_backup(self, content: bytes, now: float, boot_id: t.Optional[str], keep: int, spare: str = "") -> str:
        """Keep a copy, durably, and remove the oldest ones beyond `keep`; returns the copy's id.

        The newest one is used again where it is the same boot's and the same content. `spare` is never removed.
        :raises WriteError: then there is no new copy
        """
        with _writing(BACKUPS):
            names = self._names()
            if names and names[-1].endswith(f".{boot_id}") and self._read(names[-1]) == content:
                return names[-1]
            name = _unused_name(names, now, boot_id)
            _replace(self._backups, name, content)
            others = [old for old in self._names() if old not in (name, spare)]
            for old in others[: max(0, len(others) + 1 - keep)]:
                _remove(self._backups, old)
        return name

    def _names(self) -> t.List[str]:
        return sorted(name for name in os.listdir(self._backups) if is_backup(name))

    def _read(self, name: str) -> bytes:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._backups), "rb") as stream:
            return stream.read()

    def write_history(self, text: str) -> None:
        """Replace the history, durably.

        :raises WriteError: then it is as it was
        """
        with _writing(DIRECTORY + "/" + FILE_NAME):
            _replace(self._directory, FILE_NAME, text.encode("utf-8"))

    def write_file(self, name: str, content: bytes) -> None:
        """Replace a file of which the loss costs little: whole, but not waiting for the disk.

        :raises WriteError: then it is as it was
        """
        with _writing(DIRECTORY + "/" + name):
            _replace(self._directory, name, content, durable=False)


def _unused_name(names: t.Collection[str], now: float, boot_id: t.Optional[str]) -> str:
    """A name of which there is no backup yet, should the clock stand still or have been set back."""
    microseconds = int(now * 1000000)
    while backup_name(microseconds / 1000000, boot_id) in names:
        microseconds += 1
    return backup_name(microseconds / 1000000, boot_id)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
