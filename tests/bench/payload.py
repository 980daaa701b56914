# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible sends to a node for a module of this collection: the files in AnsiballZ and their compressed sizes.

    python tests/bench/payload.py [MODULE]      memmgr_validate by default

The zip is the one that ansible sent, not a guess at it: it is kept on a local host and taken apart. The last line says
what would be left of this collection's part without documentation, docstrings and comments: how far the size could be
brought down without taking rules out.
"""

from __future__ import annotations

import ast
import base64
import io
import lzma
import os
import re
import subprocess
import sys
import tempfile
import typing as t
import zipfile
import zlib
from pathlib import Path

DOCUMENTS = ("DOCUMENTATION", "EXAMPLES", "RETURN")
OURS = "ansible_collections/kubenode/memory/"
_ZIP = re.compile(r"[\"']([A-Za-z0-9+/=\n]{2000,})[\"']")


def sent(module: str) -> zipfile.ZipFile:
    """The zip of a module that was run on a local host."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", f"kubenode.memory.{module}"]
        environment = {**os.environ, "ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_REMOTE_TMP": directory}
        interpreter = ("-e", f"ansible_python_interpreter={sys.executable}")
        subprocess.run([*command, *interpreter], env=environment, stdout=subprocess.DEVNULL, check=False)
        (script,) = Path(directory).rglob(f"AnsiballZ_{module}.py")
        encoded = max(_ZIP.findall(script.read_text(encoding="utf-8")), key=len)
    return zipfile.ZipFile(io.BytesIO(base64.b64decode(encoded)))


def sent_files(module: str) -> t.List[zipfile.ZipInfo]:
    """The members of the zip, the largest first."""
    with sent(module) as archive:
        return by_size(archive)


def by_size(archive: zipfile.ZipFile) -> t.List[zipfile.ZipInfo]:
    return sorted(archive.infolist(), key=lambda member: -member.compress_size)


def of_this_collection(members: t.Iterable[zipfile.ZipInfo]) -> t.List[zipfile.ZipInfo]:
    return [member for member in members if member.filename.startswith(OURS)]


def summary(module: str, members: t.Sequence[zipfile.ZipInfo]) -> str:
    ours = of_this_collection(members)
    size, everything = (sum(one.compress_size for one in group) / 1024 for group in (ours, members))
    return (
        f"{module} adds {len(ours)} files, {size:.1f} KiB compressed, to the zip of a module "
        f"({everything - size:.1f} KiB of Ansible's own)"
    )


def bare(source: bytes) -> bytes:
    """The same code without comments, docstrings and the texts of DOCUMENTATION, EXAMPLES and RETURN."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree).encode()


def is_text(statement: ast.stmt) -> bool:
    """A docstring, or a module's documentation."""
    if isinstance(statement, ast.Assign):
        (target,) = statement.targets
        return isinstance(target, ast.Name) and target.id in DOCUMENTS
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def least(archive: zipfile.ZipFile) -> str:
    """What no change of the texts can go below."""
    sources = [bare(archive.read(member)) for member in of_this_collection(archive.infolist())]
    zipped = sum(len(zlib.compress(source, 9)) for source in sources) / 1024
    solid = len(lzma.compress(b"".join(sources), preset=9 | lzma.PRESET_EXTREME)) / 1024
    what = "without documentation, docstrings and comments"
    return f"{what}: {zipped:.1f} KiB as such a zip, {solid:.1f} KiB as one solid xz archive"


def main() -> None:
    module = sys.argv[1] if len(sys.argv) > 1 else "memmgr_validate"
    archive = sent(module)
    members = by_size(archive)
    for member in of_this_collection(members):
        print(
            f"{member.compress_size:6} of {member.file_size:6} bytes  {member.filename[len(OURS) + len('plugins/') :]}"
        )
    print(summary(module, members))
    print(least(archive))


if __name__ == "__main__":
    main()
