# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible sends to a node for a module of this collection: the files in AnsiballZ and their compressed sizes.

    python tests/bench/payload.py [MODULE]      memmgr_validate by default

The zip is the one that ansible sent, not a guess at it: it is kept on a local host and taken apart.
"""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
import tempfile
import typing as t
import zipfile
from pathlib import Path

OURS = "ansible_collections/kubenode/memory/"
_ZIP = re.compile(r"[\"']([A-Za-z0-9+/=\n]{2000,})[\"']")


def sent_files(module: str) -> t.List[zipfile.ZipInfo]:
    """The members of the zip, the largest first."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-m", f"kubenode.memory.{module}"]
        environment = {**os.environ, "ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_REMOTE_TMP": directory}
        interpreter = ("-e", f"ansible_python_interpreter={sys.executable}")
        subprocess.run([*command, *interpreter], env=environment, stdout=subprocess.DEVNULL, check=False)
        (script,) = Path(directory).rglob(f"AnsiballZ_{module}.py")
        encoded = max(_ZIP.findall(script.read_text(encoding="utf-8")), key=len)
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(encoded))) as archive:
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


def main() -> None:
    module = sys.argv[1] if len(sys.argv) > 1 else "memmgr_validate"
    members = sent_files(module)
    for member in of_this_collection(members):
        print(
            f"{member.compress_size:6} of {member.file_size:6} bytes  {member.filename[len(OURS) + len('plugins/') :]}"
        )
    print(summary(module, members))


if __name__ == "__main__":
    main()
