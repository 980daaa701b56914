# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of it, for a session: a temporary directory, containerd, keys, a control group; and what is missing."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import typing as t

from . import host
from .containerd import CNI_PLUGINS, containerd
from .kubelet import Surroundings

PROGRAMS = ("containerd", "runc", "unshare", "setpriv", "openssl", "go")
API_PROGRAMS = ("etcd",)


def missing_capabilities() -> list[str]:
    """Why no kubelet can be started here, one phrase each; empty where it can."""
    missing = [f"program {name}" for name in host.missing_programs(PROGRAMS)]
    if os.geteuid() != 0:
        return [*missing, "root"]
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        missing.append("mount namespaces (CAP_SYS_ADMIN)")
    if not any(os.access(mount, os.W_OK) for mount in host.hierarchies()):
        missing.append("a writable control group hierarchy")
    return missing


def missing_api_capabilities() -> list[str]:
    """What an API server needs beyond a kubelet."""
    missing = [f"program {name}" for name in host.missing_programs(API_PROGRAMS)]
    return missing if os.path.isdir(CNI_PLUGINS) else [*missing, f"network plugins in {CNI_PLUGINS}"]


@contextlib.contextmanager
def directory() -> t.Iterator[pathlib.Path]:
    """A short-named directory of our own (UNIX sockets allow 107 bytes); SIGTERM ends the session in order."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="kubelet-"))
    previous = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield root
    finally:
        signal.signal(signal.SIGTERM, previous)
        shutil.rmtree(root)


@contextlib.contextmanager
def node_directory(root: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """An empty directory for one node below the session's."""
    node = pathlib.Path(tempfile.mkdtemp(prefix="node-", dir=root))
    try:
        yield node
    finally:
        shutil.rmtree(node)


def certificate(root: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """One serving certificate for all kubelets: making a key takes longer than starting the memory manager."""
    key, crt = root / "kubelet.key", root / "kubelet.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kubelet"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(crt)], check=True, capture_output=True)
    return crt, key


@contextlib.contextmanager
def surroundings(root: pathlib.Path) -> t.Iterator[Surroundings]:
    """All that kubelets need to start."""
    crt, key = certificate(root)
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(host.cgroup_root(root.name))
        endpoint = stack.enter_context(containerd(root / "containerd"))
        yield Surroundings(endpoint, group, crt, key)
