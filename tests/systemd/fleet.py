# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet of nodes that are directories, with a stand-in for systemctl: what many hosts do, without many machines.

The modules and the files are real; that a unit starts is only written down.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import sys
import typing as t

from kubelet.cases import RESERVED, static
from kubelet.harness import state, topology as numa
from kubelet.harness.node import Node as NodeFiles, NodeDirectory

from . import controller, nodes

IMAGE = 45272
MACHINES = {
    "match": numa.TWO_NODES,
    "tolerable": numa.TWO_NODES.moved(n0=-IMAGE, n1=IMAGE),
    "refuse": numa.TWO_NODES.moved(n1=-16 * numa.GIB),
    "unreadable": numa.TWO_NODES,
}
POD = "8e0a1d4c-5a0f-4f0e-9f0e-3f8d5f1d7c11"
PODS = {POD: {"app": [state.Block((0,), 20 << 30)]}}


@dataclasses.dataclass(frozen=True)
class Host:
    """One node below `root`; its unit is a file of the stand-in."""

    name: str
    verdict: str
    root: pathlib.Path
    units: pathlib.Path
    more: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    @property
    def unit(self) -> str:
        return f"kubelet-{self.name}.service"

    @property
    def state_file(self) -> pathlib.Path:
        return self.root / "var/lib/kubelet/memory_manager_state"

    @property
    def active_state(self) -> str:
        return (self.units / self.unit).read_text().strip()

    def lay_out(self) -> None:
        """A kubelet that crash-loops where its file is not today's machine, and runs where it is."""
        recorded = state.v1(state.of_machine(numa.TWO_NODES, RESERVED, PODS))
        if self.verdict == "unreadable":
            recorded = recorded[:-40]
        NodeDirectory(self.root, NodeFiles(topology=MACHINES[self.verdict], config=static(), state=recorded)).lay_out(
            ()
        )
        (self.root / "run").mkdir(exist_ok=True)
        self.units.mkdir(exist_ok=True)
        self.set_unit("active" if self.verdict == "match" else "activating")
        if self.verdict == "match":
            self._run_process()
        link = self.units / f"{self.unit}.state_file"
        with contextlib.suppress(FileExistsError):
            link.symlink_to(self.state_file)

    def _run_process(self) -> None:
        """What /proc shows of a kubelet that runs."""
        process = self.root / "proc/4242"
        process.mkdir(parents=True, exist_ok=True)
        (process / "stat").write_text("4242 (kubelet) S 1 " + "0 " * 17 + "4200 0\n", encoding="ascii")
        (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")

    def identify(self, boot_id: str, machine_id: str) -> None:
        for name, value in (("proc/sys/kernel/random/boot_id", boot_id), ("etc/machine-id", machine_id)):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value + "\n", encoding="ascii")

    def set_unit(self, active_state: str) -> None:
        (self.units / self.unit).write_text(active_state + "\n")

    def break_unit(self, broken: bool = True) -> None:
        marker = self.units / f"{self.unit}.broken"
        marker.touch() if broken else marker.unlink()

    def sha256(self) -> str:
        return hashlib.sha256(self.state_file.read_bytes()).hexdigest()

    def events(self) -> list[tuple[str, float, str]]:
        """(verb, time, hash of the state file at that time) of whatever was done to the unit."""
        log = self.units / f"{self.unit}.log"
        rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(verb, float(time), sha256) for verb, time, sha256 in rows]

    def variables(self) -> dict[str, t.Any]:
        return {"memmgr_validate_host_root": str(self.root), "kubelet_restart_unit": self.unit, **self.more}


def make(
    directory: pathlib.Path,
    verdicts: t.Sequence[str],
    variables: t.Sequence[t.Mapping[str, t.Any]] = (),
    **shared: t.Any,
) -> tuple[list[Host], controller.Controller]:
    """A fleet with a host for each verdict, and its controller; with variables for each host and for all."""
    units = directory / "units"
    hosts = [
        Host(name, verdict, directory / "nodes" / name, units, variables[number] if variables else {})
        for number, verdict in enumerate(verdicts)
        for name in [f"node{number + 1:02}"]
    ]
    for host in hosts:
        host.lay_out()
    programs = directory / "bin"
    programs.mkdir()
    (programs / "systemctl").symlink_to(nodes.HERE / "fleet_systemctl")
    os.environ["FLEET_UNITS"] = str(units)
    values = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "memmgr_become": False,
        "memmgr_validate_kubelet_version": "v1.34.4",
        "memmgr_rebaseline_manage_unit": True,
        "memmgr_rebaseline_kubelet_is_stopped": True,
        "kubelet_restart_healthz_url": "",
        "kubelet_restart_stable_seconds": 0,
        "kubelet_restart_timeout": 1,
        **shared,
    }
    controller.write_inventory(directory / "controller", {host.name: host.variables() for host in hosts}, **values)
    collections = controller.collections_path() if shared.get("memmgr_api") else ""
    return hosts, controller.Controller(directory / "controller", collections, str(programs))
