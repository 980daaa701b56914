# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small file trees that stand for a node, and an ordinary user to read them as."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import typing as t
from pathlib import Path

NOBODY = 65534


class NodeTree:
    """A directory that is some node's `/`."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def write(self, path: str, data: t.Union[str, bytes]) -> Path:
        file = self.base / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def link(self, path: str, target: str) -> None:
        file = self.base / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def numa_node(self, node: int, mem_total_kb: int, hugepages: t.Mapping[int, int]) -> None:
        """One NUMA node as the kernel shows it; `hugepages` is pages by page size in KiB."""
        directory = f"/sys/devices/system/node/node{node}"
        head = f"Node {node} MemTotal:       {mem_total_kb} kB\nNode {node} MemFree:        123456 kB\n"
        self.write(f"{directory}/meminfo", head)
        self.write(f"{directory}/distance", "10 20\n")
        for size, pages in hugepages.items():
            self.write(f"{directory}/hugepages/hugepages-{size}kB/nr_hugepages", f"{pages}\n")


@contextlib.contextmanager
def temporary_tree() -> t.Iterator[NodeTree]:
    """A tree that every user may enter (pytest's own directories are for their owner only)."""
    base = Path(tempfile.mkdtemp(prefix="node-"))
    base.chmod(0o755)
    try:
        yield NodeTree(base)
    finally:
        shutil.rmtree(base)


@contextlib.contextmanager
def ordinary_user() -> t.Iterator[None]:
    """Be an ordinary user; nothing changes for a test run that is none of root's."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
