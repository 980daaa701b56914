# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine itself: control groups that a kubelet fills, and what a laboratory may have left behind."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sys
import typing as t

from .process import until

CGROUPS = pathlib.Path("/sys/fs/cgroup")
INHERITED_BY_HAND = ("cpuset.cpus", "cpuset.mems")


def plain_python(directory: pathlib.Path) -> str:
    """This Python by a path for the first line of an executable: the checkout may lie below a folder with a blank."""
    link = directory / "python"
    link.symlink_to(sys.prefix)
    return str(link / "bin/python")


def hierarchies() -> list[pathlib.Path]:
    """The mount points of all control group hierarchies, of either version."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        rows = [line.split() for line in mounts]
    return sorted({pathlib.Path(row[1]) for row in rows if row[2] in ("cgroup", "cgroup2")})


def is_unified() -> bool:
    """True on a machine with cgroup v2 only."""
    return (CGROUPS / "cgroup.controllers").exists()


@contextlib.contextmanager
def cgroup_root(name: str) -> t.Iterator[str]:
    """A control group of our own in every hierarchy, below which a kubelet puts its pods; removed with all in it."""
    folders = [mount / name for mount in hierarchies()]
    try:
        for folder in folders:
            folder.mkdir()
            for setting in INHERITED_BY_HAND:
                if (folder / setting).exists() and not is_unified():
                    (folder / setting).write_text((folder.parent / setting).read_text())
        yield "/" + name
    finally:
        until(f"the control groups {name} are empty and removed", lambda: all(map(remove_cgroup, folders)), 10)


def remove_cgroup(folder: pathlib.Path) -> bool:
    """Remove a control group and those below it; False while a process is still in one of them."""
    if not folder.exists():
        return True
    try:
        for path, _directories, _files in os.walk(folder, topdown=False):
            os.rmdir(path)
    except OSError:
        return False
    return True


def processes_below(root: pathlib.Path) -> list[int]:
    """Ids of the processes whose command line names `root`: with a root of our own, ours."""
    wanted = os.fsencode(root)
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def mounts_below(root: pathlib.Path) -> list[str]:
    """Mount points of this process's namespace below `root`."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1] for line in mounts]
    return [point for point in points if point.startswith(str(root))]


def missing_programs(names: t.Iterable[str]) -> list[str]:
    return [name for name in names if shutil.which(name) is None]


def missing_for_root(names: t.Iterable[str]) -> list[str]:
    """The programs that are missing, or else root."""
    return missing_programs(names) or (["root"] if os.geteuid() else [])
