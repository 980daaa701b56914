# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a container image that does nothing but end when it is told to: pause_image.py BUSYBOX OUT.tar.

BUSYBOX is a static one of this machine; OUT.tar is for `ctr images import`.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import sys
import tarfile

NAME = "localhost/pause:1"
# The first process of a PID namespace gets no signal that it has no handler for.
SCRIPT = "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep 3600 & wait; done"
ENTRYPOINT = ["/bin/busybox", "sh", "-c", SCRIPT]


def packed(files: dict[str, bytes]) -> bytes:
    """A tar of executable files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def image(busybox: bytes) -> bytes:
    layer = packed({"bin/busybox": busybox})
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ENTRYPOINT},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    documents = {"config.json": config, "manifest.json": manifest}
    return packed({"layer.tar": layer, **{name: json.dumps(text).encode() for name, text in documents.items()}})


def main() -> None:
    busybox, out = map(pathlib.Path, sys.argv[1:])
    out.write_bytes(image(busybox.read_bytes()))


if __name__ == "__main__":
    main()
