# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a directory tree: what the module judges below `host_root`, and what the kubelet is started with."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

from . import topology as numa

ROOT_DIR = "/var/lib/kubelet"
CONFIG = ROOT_DIR + "/config.yaml"
CONFIG_DIR = ROOT_DIR + "/config.d"
UNIT = "etc/systemd/system/kubelet.service"
# A kernel image of 52 MiB, so a bound of 116 MiB.
IOMEM = """00001000-0009ffff : System RAM
00100000-bfffffff : System RAM
  2a000000-2b00dfff : Kernel code
  2b200000-2b9fffff : Kernel rodata
  2ba00000-2be5523f : Kernel data
  2c552000-2d3fffff : Kernel bss
100000000-103fffffff : System RAM
"""
# What a kubelet wants these to be (setupKernelTunables): with them it leaves the machine's own alone.
KERNEL_SETTINGS = {
    "/proc/sys/vm/overcommit_memory": 1,
    "/proc/sys/vm/panic_on_oom": 0,
    "/proc/sys/kernel/panic": 10,
    "/proc/sys/kernel/panic_on_oops": 1,
    "/proc/sys/kernel/keys/root_maxkeys": 1000000,
    "/proc/sys/kernel/keys/root_maxbytes": 25000000,
}
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@dataclasses.dataclass(frozen=True)
class Node:
    """Everything that a test chooses about a node.

    `config` and `dropins` are the text below apiVersion and kind; a text that begins with `raw:` is written as it is.
    No `config` means no --config flag; no `dropins`, no --config-dir. `flags` come last on the command line.
    """

    topology: numa.Topology = numa.TWO_NODES
    config: str | None = ""
    dropins: t.Mapping[str, str] | None = None
    flags: tuple[str, ...] = ()
    state: str | None = None
    root_dir: str = ROOT_DIR
    config_dir: str = CONFIG_DIR

    @property
    def own_flags(self) -> tuple[str, ...]:
        """The flags that belong to the node, without those that only this machine needs."""
        chosen = []
        if self.config is not None:
            chosen.append("--config=" + CONFIG)
        if self.dropins is not None:
            chosen.append("--config-dir=" + self.config_dir)
        if self.root_dir != ROOT_DIR:
            chosen.append("--root-dir=" + self.root_dir)
        return (*chosen, *self.flags)

    @property
    def state_file(self) -> str:
        return self.root_dir + "/memory_manager_state"


def document(text: str) -> str:
    """A KubeletConfiguration file for the text of a Node."""
    return text[len("raw:") :] if text.startswith("raw:") else HEADER + text


class NodeDirectory:
    """The tree of a node below `root`."""

    def __init__(self, root: pathlib.Path, node: Node) -> None:
        self.root = root
        self.node = node
        self._machine_flags: t.Sequence[str] = ()

    def path(self, absolute: str) -> pathlib.Path:
        """Where a path of the node lies on this machine."""
        return self.root / absolute.lstrip("/")

    @property
    def state(self) -> str | None:
        """The text of the state file as it is now."""
        path = self.path(self.node.state_file)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def lay_out(self, machine_flags: t.Sequence[str]) -> None:
        """Write everything but the kubelet itself; `machine_flags` come first on its command line."""
        self._machine_flags = machine_flags
        for folder in (ROOT_DIR, self.node.root_dir, "/var/log", "/usr/bin"):
            self.path(folder).mkdir(parents=True, exist_ok=True)
        numa.write(self.node.topology, self.root)
        self._write_kernel()
        self._write_configuration()
        if self.node.state is not None:
            self.path(self.node.state_file).write_text(self.node.state, encoding="utf-8")
        self.write_unit([*machine_flags, *self.node.own_flags])

    def _write_kernel(self) -> None:
        self.path("/proc/iomem").write_text(IOMEM, encoding="ascii")
        for name, value in KERNEL_SETTINGS.items():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            self.path(name).write_text(f"{value}\n", encoding="ascii")

    def _write_configuration(self) -> None:
        if self.node.config is not None:
            self.path(CONFIG).write_text(document(self.node.config), encoding="utf-8")
        if self.node.dropins is not None:
            self.path(self.node.config_dir).mkdir(parents=True, exist_ok=True)
        for name, text in (self.node.dropins or {}).items():
            target = self.path(self.node.config_dir) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(document(text), encoding="utf-8")

    def write_unit(self, flags: t.Sequence[str]) -> None:
        unit = self.path(UNIT)
        unit.parent.mkdir(parents=True, exist_ok=True)
        command = " ".join(["/usr/bin/kubelet", *map(_quoted, flags)])
        unit.write_text(f"[Unit]\nDescription=kubelet\n[Service]\nExecStart={command}\nRestart=always\n", "utf-8")

    def change(self, **what: t.Any) -> None:
        """Change fields of the node, as a reboot or an administrator would, and lay it out again."""
        flags = self._machine_flags
        self.node = dataclasses.replace(self.node, **what)
        self.lay_out(flags)


def _quoted(argument: str) -> str:
    """An argument as systemd reads it."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(c in argument for c in " \"'\\;") else escaped
