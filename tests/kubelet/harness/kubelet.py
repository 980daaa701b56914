# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a real kubelet over a node directory and say what became of its memory manager."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import subprocess
import sys
import typing as t

from . import log
from .node import KERNEL_SETTINGS, NodeDirectory
from .process import Process, free_port

BUILDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "build_kubernetes.py"
START_SECONDS = 60.0

# Shown to the kubelet in place of the machine's own; the rest of the machine stays visible.
SHADOWED = (
    "/sys/devices/system/node",
    "/sys/kernel/mm/hugepages",
    "/proc/meminfo",
    "/var/lib",
    "/var/log",
    *KERNEL_SETTINGS,
)
ENTER = 'set -e; root=$1; shift; for path in {paths}; do mount --bind "$root$path" "$path"; done; exec "$@"'


@functools.lru_cache(maxsize=None)
def binary(target: str, release: str) -> str:
    """The path of a program of a Kubernetes release, built if need be."""
    done = subprocess.run(
        [sys.executable, str(BUILDER), target, release], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a start led to; `errors` are the error texts of the log in plain words, `code` is None for a start."""

    started: bool
    code: int | None
    panicked: bool
    errors: tuple[str, ...]
    state: str | None

    def says(self, text: str) -> bool:
        return any(text in error for error in self.errors)

    def __str__(self) -> str:
        if self.started:
            return "the memory manager started"
        kind = "panic" if self.panicked else f"exit code {self.code}"
        return f"{kind}: " + " | ".join(self.errors[-3:])


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What every kubelet of a session shares."""

    endpoint: str
    cgroup_root: str
    certificate: pathlib.Path
    key: pathlib.Path

    def flags(self) -> tuple[str, ...]:
        """Flags that this machine needs (cgroup v1, no systemd, shared with others), whatever the node is."""
        return (
            f"--container-runtime-endpoint={self.endpoint}",
            f"--cgroup-root={self.cgroup_root}",
            f"--tls-cert-file={self.certificate}",
            f"--tls-private-key-file={self.key}",
            f"--port={free_port()}",
            "--address=127.0.0.1",
            "--healthz-port=0",
            "--read-only-port=0",
            "--cgroup-driver=cgroupfs",
            "--fail-cgroupv1=false",
            "--fail-swap-on=false",
            "--make-iptables-util-chains=false",
            "--authentication-token-webhook=false",
            "--authorization-mode=AlwaysAllow",
            "--volume-plugin-dir=/var/lib/kubelet/volume-plugins",
            "--v=2",
            "--vmodule=memory_manager=4",
        )


class Kubelet:
    """A kubelet process in a mount namespace whose NUMA topology and /var/lib are the node's."""

    def __init__(self, release: str, directory: NodeDirectory, flags: t.Sequence[str]) -> None:
        self.directory = directory
        script = ENTER.format(paths=" ".join(SHADOWED))
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(directory.root)]
        command = [*unshare, binary("kubelet", release), *flags]
        self.process = Process(f"kubelet {release}", command, directory.root / "kubelet.log")

    def outcome(self) -> Outcome:
        """Wait until the memory manager runs or the process has ended."""
        started = self.process.log.first(log.has_started, START_SECONDS) is not None
        code = None if started else self.process.wait(START_SECONDS)
        lines = self.process.log.lines
        return Outcome(started, code, log.panicked(lines), tuple(log.errors_of(lines)), self.directory.state)

    def stop(self, graceful: bool = True) -> None:
        self.process.stop(graceful)


@contextlib.contextmanager
def kubelet(release: str, directory: NodeDirectory, flags: t.Sequence[str]) -> t.Iterator[Kubelet]:
    """Run a kubelet for the time of a block; SIGKILL at the end, since nobody needs its last words."""
    running = Kubelet(release, directory, flags)
    try:
        yield running
    finally:
        running.stop(graceful=False)


def try_start(release: str, directory: NodeDirectory, surroundings: Surroundings) -> Outcome:
    """Start the node's kubelet, and end it as soon as it is known what became of the memory manager."""
    with kubelet(release, directory, [*surroundings.flags(), *directory.node.own_flags]) as running:
        return running.outcome()
