# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests boot from, made by image.sh once for its content: `python -m lab.image` prints where it is.

It lies below the cache of build_kubernetes.py. Concurrent callers wait for one another.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import typing as t

from kubelet.harness.apiserver import RELEASE
from kubelet.harness.kubelet import binary
from tools.build_kubernetes import cache_root

HERE = pathlib.Path(__file__).resolve().parent
ROOTFS = HERE.parent / "tools" / "rootfs.sh"
K61, K612 = "6.1", "6.12"


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel with its initrd."""

    release: str
    vmlinuz: pathlib.Path
    initrd: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Image:
    """A finished directory of image.sh."""

    directory: pathlib.Path

    @property
    def disk(self) -> pathlib.Path:
        return self.directory / "root.img"

    @property
    def login_key(self) -> pathlib.Path:
        return self.directory / "login_key"

    @property
    def known_hosts(self) -> pathlib.Path:
        return self.directory / "known_hosts"

    def kernel(self, series: str) -> Kernel:
        """The kernel of a series, such as 6.1."""
        (folder,) = self.directory.glob(f"{series}.*")
        return Kernel(folder.name, folder / "vmlinuz", folder / "initrd")


def key(kubelet: str) -> str:
    """Hash of what goes in; packages are those of the day on which it is made."""
    digest = hashlib.sha256(pathlib.Path(kubelet).name.encode())
    files = [HERE / "image.sh", HERE / "pause_image.py", ROOTFS, *sorted((HERE / "guest").rglob("*"))]
    for file in files:
        if file.is_file():
            digest.update(str(file.relative_to(HERE.parent)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def image() -> Image:
    """The image, made if it was not there."""
    kubelet = binary("kubelet", RELEASE)
    directory = cache_root() / "lab" / key(kubelet)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            make(kubelet, directory)
    return Image(directory)


def make(kubelet: str, directory: pathlib.Path) -> None:
    new = directory.with_name(directory.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    unshare = ["unshare", "--mount", "--propagation", "private"]
    log = directory.with_name(directory.name + ".log")
    with log.open("w") as text:
        done = subprocess.run(
            [*unshare, str(HERE / "image.sh"), kubelet, str(new)], stdout=text, stderr=text, check=False
        )
    if done.returncode:
        raise AssertionError(f"image.sh: exit code {done.returncode}\n{log.read_text()[-4000:]}")
    os.rename(new, directory)


def main() -> t.NoReturn:
    print(image().directory)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
