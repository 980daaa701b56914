# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the guard's zip application of this collection's own module_utils: same code and interpreter, same bytes."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import typing as t
import zipfile
from pathlib import Path

PACKAGE = "kubenode_memory"
FIRST = "_guard_start.py"
SOURCES = Path(__file__).resolve().parent.parent / "module_utils"

_DATE = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3
# A script's first line is cut at 127 bytes by older kernels, and has no way to quote a blank.
_INTERPRETER = re.compile(r"/[!-~]{1,120}\Z")
_MAIN = "from {0}._guard_start import main\n\nmain({1!r})\n"


class ArchiveError(ValueError):
    """The application cannot be made; the message says why."""


def guard_archive(interpreter: str) -> bytes:
    """The executable: a first line for the interpreter, and a zip file of the modules that the guard needs.

    In isolated mode (-I): what runs as root takes no code from an environment variable or the working directory.

    :param interpreter: absolute path of the node's Python
    :raises ArchiveError: if that cannot be a script's interpreter
    """
    if not _INTERPRETER.match(interpreter):
        raise ArchiveError(
            f"interpreter is {interpreter!r}; give the absolute path of the node's Python, of at most 121 characters "
            "and without blanks"
        )
    return b"#!" + interpreter.encode("ascii") + b" -I\n" + _zipped(_application(needed_sources()))


def needed_sources() -> t.Dict[str, bytes]:
    """The files of module_utils that the guard imports, by path below it, in order."""
    found: t.Dict[str, bytes] = {}
    pending = [FIRST]
    while pending:
        path = pending.pop()
        if path not in found:
            found[path] = (SOURCES / path).read_bytes()
            pending.extend(_imported_files(path, found[path]))
    return dict(sorted(found.items()))


def _imported_files(path: str, source: bytes) -> t.Iterator[str]:
    """The files that a file's relative imports name, those inside functions too."""
    package = path.split("/")[:-1]
    yield "/".join([*package, "__init__.py"])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            names = [[*base], *([*base, alias.name] for alias in node.names)]
            for parts in names:
                name = "/".join(filter(None, parts)) + ".py"
                if (SOURCES / name).is_file():
                    yield name


def _application(sources: t.Mapping[str, bytes]) -> t.Dict[str, bytes]:
    """The files of the zip. The digest tells the guard whether code that it has compiled is of this application."""
    digest = hashlib.sha256()
    for path, content in sources.items():
        digest.update(f"{path} {len(content)}\n".encode("ascii") + content)
    main = _MAIN.format(PACKAGE, digest.hexdigest())
    return {"__main__.py": main.encode("ascii"), **{f"{PACKAGE}/{path}": text for path, text in sources.items()}}


def _zipped(files: t.Mapping[str, bytes]) -> bytes:
    """Without compression: its result is another one with each version of zlib."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE
            archive.writestr(entry, content)
    return buffer.getvalue()
