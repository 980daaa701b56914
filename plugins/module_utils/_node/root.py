# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The node's file system below `host_root`: the only way in which `_node` opens anything.

Paths are the node's own (`/proc/iomem`). They are followed by descriptor, one component at a time, so that neither a
link (absolute, relative, of procfs) nor `..`, nor a directory that is swapped meanwhile, leads out of the root.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import posixpath
import stat
import typing as t

MIB = 1024 * 1024
DEFAULT_LIMIT = 16 * MIB
_CHUNK = 256 * 1024
_MAX_LINKS = 40
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESRCH, errno.ENODEV)
_DENIED = (errno.EACCES, errno.EPERM)


class NodeError(Exception):
    """Something on the node cannot be read; the text is for a person: path, reason, next step."""


class NotFound(NodeError):
    """There is nothing at the path (or it vanished while it was read)."""


class PermissionMissing(NodeError):
    """This process may not read the path."""


def permission_hint() -> str:
    """The next step for somebody who may not read a file, or is shown zeros instead of addresses."""
    if os.geteuid() != 0:
        return "run the task with become: true"
    return "root is not enough here: leave the container, or grant it CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN"


def _components(path: str) -> t.List[str]:
    """The components of a path, the first one last: a stack to take from."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


class _Walk:
    """The descriptors (O_PATH) of the directories from the root down to the entry that was reached."""

    def __init__(self, root: str) -> None:
        self._entries = [("", os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))]

    @property
    def fd(self) -> int:
        return self._entries[-1][1]

    @property
    def mode(self) -> int:
        return os.fstat(self.fd).st_mode

    @property
    def path(self) -> str:
        return "/".join(name for name, _rest in self._entries) or "/"

    def close(self) -> None:
        self._cut(0)

    def _cut(self, depth: int) -> None:
        while len(self._entries) > depth:
            os.close(self._entries.pop()[1])

    def follow(self, path: str, follow_last: bool) -> None:
        """:raises OSError: as open(2) would, with the root as `/`"""
        pending, links = _components(path), 0
        while pending:
            name = pending.pop()
            if name == "..":
                self._cut(max(1, len(self._entries) - 1))
                continue
            target = self._enter(name, bool(pending), follow_last)
            links += bool(target)
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                self._cut(1)
            pending.extend(_components(target))

    def _enter(self, name: str, more: bool, follow_last: bool) -> str:
        """Go to an entry of the present directory, or return the target of a link that is to be followed."""
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        self._entries.append((name, entry))
        mode = self.mode
        if stat.S_ISLNK(mode) and (more or follow_last):
            target = os.readlink("", dir_fd=entry)
            self._cut(len(self._entries) - 1)
            return target
        if more and not stat.S_ISDIR(mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return ""

    def open_file(self) -> int:
        """Open the entry for reading. Never waits, and never has an effect on a device."""
        if not stat.S_ISREG(self.mode):
            raise OSError(errno.EINVAL, "it is a directory, a pipe or a device, not a file")
        name, parent = self._entries[-1][0], self._entries[-2][1]
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY, dir_fd=parent)


def _read(fd: int, limit: int) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(errno.EAGAIN, "it was replaced by something that is not a file")
    chunks: t.List[bytes] = []
    size = 0
    while True:
        chunk = os.read(fd, min(_CHUNK, limit + 1 - size))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit} bytes, which no intact file of this kind is")


class HostRoot:
    """The node whose file system is mounted, or was captured, at `path`.

    Every method takes paths of the node and raises NotFound, PermissionMissing or another NodeError, never OSError.
    """

    def __init__(self, path: str = "/") -> None:
        try:
            self.path = "/" + os.path.realpath(path).lstrip("/")
        except (OSError, ValueError) as error:
            raise NodeError(f"host_root {path!r} is not a path ({error}); give an absolute one") from error

    @property
    def is_live(self) -> bool:
        """Whether this is the file system of the running system; nothing is executed for any other."""
        return self.path == "/"

    def display(self, path: str) -> str:
        """The path as the node sees it, for a person."""
        return posixpath.normpath("/" + path.lstrip("/")).encode("utf-8", "backslashreplace").decode("utf-8")

    def read_bytes(self, path: str, limit: int = DEFAULT_LIMIT) -> bytes:
        """The whole of a regular file of at most `limit` bytes."""
        with self._at(path) as walk:
            fd = walk.open_file()
            try:
                return _read(fd, limit)
            finally:
                os.close(fd)

    def read_text(self, path: str, limit: int = DEFAULT_LIMIT, errors: str = "strict") -> str:
        """The same as UTF-8 text; `errors` as in bytes.decode, where "strict" makes other bytes a NodeError."""
        data = self.read_bytes(path, limit)
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            reason = f"it is not UTF-8 text (byte {error.start + 1} of {len(data)})"
            raise self._error(path, OSError(errno.EILSEQ, reason)) from error

    def listdir(self, path: str) -> t.Tuple[str, ...]:
        """The names in a directory, sorted as byte strings."""
        fd = self.open_directory(path)
        try:
            return tuple(sorted(os.listdir(fd), key=os.fsencode))
        except OSError as error:
            raise self._error(path, error) from error
        finally:
            os.close(fd)

    def glob(self, pattern: str) -> t.Tuple[str, ...]:
        """The paths that match, in the order of Go's filepath.Glob; `*` matches no `/`, and a leading dot as well."""
        found = ["/"]
        for part in reversed(_components(pattern)):
            found = [posixpath.join(parent, name) for parent in found for name in self._matches(parent, part)]
        return tuple(found)

    def _matches(self, parent: str, pattern: str) -> t.List[str]:
        with contextlib.suppress(NotFound):
            return [name for name in self.listdir(parent) if fnmatch.fnmatchcase(name, pattern)]
        return []

    def exists(self, path: str) -> bool:
        """Whether there is something at the path, links followed; a lack of permission is raised, not guessed."""
        with contextlib.suppress(NotFound):
            self.stat(path)
            return True
        return False

    def stat(self, path: str, follow: bool = True) -> os.stat_result:
        with self._at(path, follow) as walk:
            return os.fstat(walk.fd)

    def readlink(self, path: str) -> t.Optional[str]:
        """The text of a symbolic link, None for anything else."""
        with self._at(path, follow=False) as walk:
            return os.readlink("", dir_fd=walk.fd) if stat.S_ISLNK(walk.mode) else None

    def realpath(self, path: str) -> str:
        """The node's path of an existing entry, without links."""
        with self._at(path) as walk:
            return walk.path

    def open_directory(self, path: str) -> int:
        """A descriptor of a directory; the caller closes it."""
        with self._at(path) as walk:
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=walk.fd)

    @contextlib.contextmanager
    def _at(self, path: str, follow: bool = True) -> t.Iterator[_Walk]:
        try:
            with contextlib.closing(_Walk(self.path)) as walk:
                walk.follow(path, follow)
                yield walk
        except OSError as error:
            raise self._error(path, error) from error
        except ValueError as error:
            raise NodeError(f"cannot read {path!r}: it is not a path ({error}); check what names it") from error

    def _error(self, path: str, error: OSError) -> NodeError:
        where = self.display(path) + ("" if self.is_live else f" below host_root {self.path}")
        text = f"cannot read {where}: {error.strerror}; "
        if error.errno in _DENIED:
            return PermissionMissing(text + permission_hint())
        if error.errno in _GONE:
            return NotFound(text + "check the path and host_root")
        return NodeError(text + "look at it on the node")
