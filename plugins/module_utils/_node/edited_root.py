# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A node as it would be with one file written, for the judgement of a change before it is made."""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
import typing as t

from .root import DEFAULT_LIMIT, HostRoot, NotFound

_FILE, _DIRECTORY = stat.S_IFREG | 0o600, stat.S_IFDIR | 0o755


class EditedRoot(HostRoot):
    """`content` stands at `path`; None: there is no such file."""

    def __init__(self, root: HostRoot, path: str, content: t.Optional[bytes]) -> None:
        super().__init__(root.path)
        self._edited = posixpath.normpath(path)
        self._content = content

    def _is_edited(self, path: str) -> bool:
        return posixpath.normpath(path) == self._edited

    def _require(self, path: str) -> bytes:
        if self._content is None:
            raise NotFound(f"cannot read {self.display(path)}: it would be removed")
        return self._content

    def read_bytes(self, path: str, limit: int = DEFAULT_LIMIT) -> bytes:
        return self._require(path) if self._is_edited(path) else super().read_bytes(path, limit)

    def listdir(self, path: str) -> t.Tuple[str, ...]:
        directory, name = posixpath.split(self._edited)
        if posixpath.normpath(path) != directory:
            return super().listdir(path)
        names: t.Set[str] = set()
        with contextlib.suppress(NotFound):
            names.update(super().listdir(path))
        names.discard(name)
        names.update([] if self._content is None else [name])
        return tuple(sorted(names, key=os.fsencode))

    def stat(self, path: str, follow: bool = True) -> os.stat_result:
        if self._is_edited(path):
            return _status(_FILE, len(self._require(path)))
        try:
            return super().stat(path, follow)
        except NotFound:
            # The directory is made for the file.
            if self._content is None or posixpath.normpath(path) != posixpath.dirname(self._edited):
                raise
            return _status(_DIRECTORY, 0)


def _status(mode: int, size: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, 0, 0, size, 0, 0, 0))
