# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose root directory is a file tree, so that the guard takes it for the system that it runs on.

The tree gets this machine's /usr and a Python by bind mounts, in a mount namespace that ends with each command.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import typing as t
import unittest.mock
from pathlib import Path

from kubelet.harness.session import skip_without
from rebaseline.node import OURS, DriftedNode

from ansible_collections.kubenode.memory.plugins.plugin_utils import _guard_archive

GUARD = "/opt/kubenode-memory-guard"
KUBELET = "/opt/bin/kubelet"
ASKED = "/opt/asked"
TEXTFILES = "/var/lib/textfiles"
METRICS = TEXTFILES + "/kubenode_memory.prom"
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
SECONDS = 60

_FROM_THE_MACHINE = ("usr", "bin", "lib", "lib64", "sbin", "dev")


def pythons() -> t.Dict[str, str]:
    """The interpreters of this machine by version, found as `.ci/sanity` finds them."""
    script = Path(__file__).resolve().parents[2] / ".ci" / "sanity"
    found = {}
    for version in PYTHONS:
        done = subprocess.run([script, "find-python", version], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found[version] = os.path.realpath(done.stdout.strip())
    return found


def patient_archive(interpreter: str) -> bytes:
    """The guard with time to spare: what is not about time must not fail on a machine that is busy."""
    sources = _guard_archive.needed_sources()
    for path, text, more in (
        ("_guard_deadline.py", b"SECONDS = 1.5", b"SECONDS = 55"),
        ("_guard_hooks.py", b"BINARY_SECONDS = 0.5", b"BINARY_SECONDS = 20"),
    ):
        assert sources[path].count(text) == 1
        sources[path] = sources[path].replace(text, more)
    with unittest.mock.patch.object(_guard_archive, "needed_sources", return_value=sources):
        return _guard_archive.guard_archive(interpreter)


class Sandbox(DriftedNode):
    """The node of the tests of the writer, with a kubelet that can be asked, and the guard."""

    def __init__(self, base: Path, python: str = sys.executable, **node: t.Any) -> None:
        super().__init__(base, **node)
        self.python = os.path.realpath(python)
        self.write("/etc/systemd/system/kubelet.service", f"[Service]\nExecStart={KUBELET} --config=/etc/kubelet\n")
        self.kubelet("case $1 in --version) echo Kubernetes v1.36.3;; --help) echo 'Foo=true|false';; esac")
        self.write(GUARD, patient_archive("/usr/bin/python3")).chmod(0o755)
        self.write("/proc/cmdline", "quiet\n")
        for path in (TEXTFILES, OURS):
            (base / path[1:]).mkdir(parents=True)
        (base / OURS[1:]).chmod(0o700)

    def kubelet(self, script: str) -> None:
        self.write(KUBELET, f'#!/bin/sh\necho "$1" >> {ASKED}\n{script}\n').chmod(0o755)

    @property
    def asked(self) -> t.List[str]:
        file = self.base / ASKED[1:]
        return file.read_text().split() if file.exists() else []

    @property
    def metrics(self) -> t.Dict[str, int]:
        lines = (self.base / METRICS[1:]).read_text().splitlines()
        return {name: int(value) for name, _blank, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def guard(self, *arguments: str, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the guard on the node; `before` is shell in the namespace, in the tree, as root."""
        skip_without(["root"] if os.geteuid() else [])
        return subprocess.run(
            ["unshare", "--mount", "sh", "-euc", self._script(before), "sandbox", *arguments],
            cwd=self.base,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @property
    def mounts(self) -> str:
        """The shell commands that give the tree what it needs of this machine."""
        prefix = str(Path(self.python).parents[1])
        paths = [path for path in _FROM_THE_MACHINE if Path("/", path).exists()]
        paths += [] if prefix.startswith("/usr") else [prefix[1:]]
        return "\n".join(f"mkdir -p {shlex.quote(path)}; mount --rbind /{path} {shlex.quote(path)}" for path in paths)

    def _script(self, before: str) -> str:
        return f'{self.mounts}\n{before}\nexec chroot . {shlex.quote(self.python)} -I {GUARD} "$@"'

    def start(self, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """What systemd does before a start."""
        arguments = ("--unit", "kubelet.service", "--textfile-directory", TEXTFILES)
        return self.guard("run", *arguments, before=before, **environment)
