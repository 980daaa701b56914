# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The first file that the guard's zip application runs: takes the rest of its code from a cache.

Python compiles what it imports from a zip file anew in each process, which takes longer than the judgement. So the
compiled modules are kept beside the history, and used for the same application and the same Python only. This file is
the only one that is compiled each time: it is short, and imports nothing that is not there yet.
"""

from __future__ import annotations

import binascii
import contextlib
import dataclasses
import gc
import importlib.machinery
import importlib.util
import marshal
import os
import stat
import sys
import typing as t
import zipimport

DIRECTORY = "/var/lib/kubenode-memory"
FILE_NAME = "guard.bytecode"

_PACKAGE = __name__.rpartition(".")[0]
_CHECKSUM_SIZE = 4
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

Compiled = t.Dict[str, t.Tuple[bool, bytes]]
"""By module, or source text of a generated method: whether it is a package, and its code."""


def main(digest: str) -> t.NoReturn:
    """Run the command of sys.argv. `digest` stands for the application's code."""
    gc.disable()  # it ends long before there is anything worth collecting
    modules = Modules(os.path.abspath(sys.argv[0]), digest, read_compiled(DIRECTORY, digest))
    modules.install()
    try:
        from ._guard import main as guard
    except Exception as error:
        # Only a Python that lacks something. There is nothing that could be imported to say so.
        sys.stderr.write(f"<4>kubenode-memory-guard: code=error msg={str(error)!r}\n")
        raise SystemExit(0 if sys.argv[1:2] in (["run"], ["stopped"]) else 2) from None
    status = guard(sys.argv[1:], os.environ, modules.keep)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(status)  # taking the interpreter apart takes longer than some imports


# --- compiled code ---------------------------------------------------------------------------------------------------


class Modules:
    """Finds and loads the modules of the application: those in `compiled` as they are, others from their source."""

    def __init__(self, archive: str, digest: str, compiled: Compiled) -> None:
        self._archive = zipimport.zipimporter(archive)
        self._header = _header(digest)
        self._compiled = compiled
        self._known = len(compiled)

    def install(self) -> None:
        """Import the application's modules from here, and have dataclasses take their methods from here.

        Those are source text, compiled in each process, which costs as much as all the modules. The name `exec` in
        `dataclasses` is the builtin; where a release does not look it up there, this has no effect.
        """
        sys.meta_path.insert(0, t.cast(t.Any, self))
        vars(dataclasses)["exec"] = self._execute

    def _execute(self, source: str, scope: t.Dict[str, t.Any], names: t.Optional[t.Dict[str, t.Any]] = None) -> None:
        if source not in self._compiled:
            self._compiled[source] = (False, marshal.dumps(compile(source, "<string>", "exec", dont_inherit=True)))
        exec(marshal.loads(self._compiled[source][1]), scope, names)

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> t.Optional[importlib.machinery.ModuleSpec]:
        if not name.startswith(_PACKAGE + "."):
            return None
        if name not in self._compiled and not self._compile(name):
            return None
        path = self._archive.archive + "/" + name.replace(".", "/") + ".py"
        spec = importlib.machinery.ModuleSpec(
            name, t.cast(t.Any, self), origin=path, is_package=self._compiled[name][0]
        )
        spec.has_location = True
        return spec

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> None:
        """The usual module."""

    def exec_module(self, module: t.Any) -> None:
        exec(marshal.loads(self._compiled[module.__name__][1]), module.__dict__)

    def _compile(self, name: str) -> bool:
        base = name.replace(".", "/")
        for path, is_package in ((base + ".py", False), (base + "/__init__.py", True)):
            with contextlib.suppress(OSError):
                source = self._archive.get_data(path)
                code = compile(source, self._archive.archive + "/" + path, "exec", dont_inherit=True)
                self._compiled[name] = (is_package, marshal.dumps(code))
                return True
        return False

    def keep(self) -> None:
        """Write what had to be compiled, where there is a directory for it; failing costs time only."""
        if len(self._compiled) == self._known or not os.path.isdir(DIRECTORY) or os.geteuid() != 0:
            return
        from ._node.root import HostRoot, NodeError
        from ._node.writer import Store

        with contextlib.suppress(NodeError), Store(HostRoot(), 0) as store:
            body = marshal.dumps(self._compiled)
            store.write_file(FILE_NAME, self._header + _checksum(body) + body)


def _checksum(body: bytes) -> bytes:
    """The file is not written durably: what a loss of power has left of it must not be run."""
    return binascii.crc32(body).to_bytes(_CHECKSUM_SIZE, "big")


def _header(digest: str) -> bytes:
    return importlib.util.MAGIC_NUMBER + digest.encode("ascii")


def read_compiled(directory: str, digest: str) -> Compiled:
    """The modules that an earlier process compiled; none where they are not of this code, this Python, and safe."""
    header = _header(digest)
    try:
        content = _read_safely(directory)
        body = content[len(header) + _CHECKSUM_SIZE :]
        if not content.startswith(header + _checksum(body)):
            return {}
        compiled: Compiled = marshal.loads(body)
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return compiled


def _read_safely(directory: str) -> bytes:
    """:raises OSError: if it cannot be read, or if another user could have written it"""
    parent = os.open(directory, _OPEN_FLAGS | os.O_DIRECTORY)
    try:
        _require_own(parent)
        with open(os.open(FILE_NAME, _OPEN_FLAGS, dir_fd=parent), "rb") as stream:
            _require_own(stream.fileno())
            return stream.read()
    finally:
        os.close(parent)


def _require_own(descriptor: int) -> None:
    status = os.fstat(descriptor)
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError
