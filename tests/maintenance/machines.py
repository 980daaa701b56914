# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that are namespaces, and can be rebooted: other processes, an empty /run, another boot id, other memory.

The collection's modules, ansible.builtin.reboot and the API server are real. The kubelet is played: a unit is a file of
the stand-in for systemctl of tests/systemd, and while it is active a thread tells the API what a kubelet would.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import threading
import typing as t
import uuid
from datetime import datetime, timezone

from kubelet.cases import RESERVED, static
from kubelet.harness import apiserver as api, state, topology as numa
from kubelet.harness.node import UNIT, Node as NodeFiles, NodeDirectory
from kubelet.harness.process import Process, until

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMCTL = HERE.parent / "systemd" / "fleet_systemctl"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
KUBELET = "/var/lib/kubelet/bin/kubelet"
BOOT_ID = "proc/sys/kernel/random/boot_id"
SHOWN = (
    "/sys/devices/system/node",
    "/sys/kernel/mm/hugepages",
    "/proc/iomem",
    "/proc/meminfo",
    f"/{BOOT_ID}",
    "/var/lib",
    "/etc/systemd/system",
    "/etc/machine-id",
)
START = """set -e
root=$1 name=$2 up=$3
echo "$name" >/proc/sys/kernel/hostname
for path in {shown}; do mount --bind "$root$path" "$path"; done
mount -t tmpfs none /run
: >"$up"
exec sleep infinity
"""
REBOOT = """#!/bin/sh
# Asks the thread that plays the machines' power for a reboot.
: >"$(dirname "$FLEET_UNITS")/reboot"
"""
VERSION = """#!/bin/sh
[ "$1" != --version ] || echo 'Kubernetes v1.34.4'
"""
NODE_INFO = """architecture containerRuntimeVersion kernelVersion kubeProxyVersion kubeletVersion operatingSystem
osImage systemUUID"""
POD = "8e0a1d4c-5a0f-4f0e-9f0e-3f8d5f1d7c11"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
BEATS_PER_SECOND = 0.5


@dataclasses.dataclass
class Machine:
    """`memory` is what it boots with, `pinned` KiB of NUMA node 0 are a pod's; of the boot `told` the API knows."""

    name: str
    directory: pathlib.Path
    memory: numa.Topology = numa.TWO_NODES
    pinned: int = 20 * numa.GIB
    comes_back: bool = True
    machine_id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)
    boots: list[str] = dataclasses.field(default_factory=list)
    told: str = ""
    _process: Process | None = None

    @property
    def root(self) -> pathlib.Path:
        return self.directory / "root"

    @property
    def state_file(self) -> pathlib.Path:
        return self.root / "var/lib/kubelet/memory_manager_state"

    @property
    def unit(self) -> pathlib.Path:
        return self.directory / "units/kubelet.service"

    @property
    def active_state(self) -> str:
        return self.unit.read_text().strip()

    def lay_out(self) -> None:
        """A node whose state file is that of a machine with two NUMA nodes."""
        pods = {POD: {"app": [state.Block((0,), self.pinned << 10)]}}
        recorded = state.v1(state.of_machine(numa.TWO_NODES, RESERVED, pods))
        NodeDirectory(self.root, NodeFiles(topology=self.memory, config=static(), state=recorded)).lay_out(())
        unit = self.root / UNIT
        unit.write_text(unit.read_text().replace("/usr/bin/kubelet", KUBELET))
        for name in ("bin", "units"):
            (self.directory / name).mkdir()
        (self.directory / "bin/systemctl").symlink_to(SYSTEMCTL)
        (self.directory / "units/kubelet.service.state_file").symlink_to(self.state_file)
        _program(self.directory / "bin/power", REBOOT)
        _program(self.root / KUBELET.lstrip("/"), VERSION)
        (self.root / BOOT_ID).parent.mkdir(parents=True)
        (self.root / "etc/machine-id").write_text(self.machine_id + "\n", encoding="ascii")

    def boot(self) -> None:
        """Start it with its memory and a new boot id; the kubelet crash-loops where its file is not that memory's."""
        self.boots.append(str(uuid.uuid4()))
        (self.root / BOOT_ID).write_text(self.boots[-1] + "\n", encoding="ascii")
        numa.write(self.memory, self.root)
        self.unit.write_text("active\n" if self._fits() else "activating\n")
        up = self.directory / "up"
        script = ["sh", "-c", START.format(shown=" ".join(SHOWN)), "sh", str(self.root), self.name, str(up)]
        unshare = ["unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
        process = Process(self.name, [*unshare, *script], self.directory / "log")
        process.ready("it is up", up.exists)
        up.unlink()
        self._process = process
        pid = process.popen.pid
        child = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        (self.directory / "pid.new").write_text(child)
        (self.directory / "pid.new").rename(self.directory / "pid")

    def _fits(self) -> bool:
        """Whether a kubelet would start: its file has the totals of this memory, or there is none."""
        if not self.state_file.exists():
            return True
        recorded = json.loads(self.state_file.read_text())["machineState"]
        totals = {node: tables["memoryMap"]["memory"]["total"] for node, tables in recorded.items()}
        return totals == {str(node): one.memory << 10 for node, one in self.memory.nodes.items()}

    def power_off(self) -> None:
        """Nobody reaches it any more."""
        with contextlib.suppress(FileNotFoundError):
            (self.directory / "pid").unlink()
        if self._process is not None:
            self._process.stop(graceful=False)
            self._process = None

    def wants_reboot(self) -> bool:
        """Whether its reboot command was called since the last time."""
        with contextlib.suppress(FileNotFoundError):
            (self.directory / "reboot").unlink()
            return True
        return False

    @property
    def is_ready(self) -> bool:
        return self._process is not None and self.active_state == "active"

    def variables(self) -> dict[str, t.Any]:
        return {
            "node_pid_file": str(self.directory / "pid"),
            "node_variables": [f"PATH={self.directory}/bin:{PATH}", f"FLEET_UNITS={self.directory}/units"],
            "node_reboot_command": str(self.directory / "bin/power"),
        }


def _program(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    path.chmod(0o755)


class Fleet:
    """The machines with their power and their kubelets, as Node objects and leases of an API server."""

    def __init__(self, machines: t.Sequence[Machine], server: api.Api) -> None:
        self.machines = {machine.name: machine for machine in machines}
        self.order: list[str] = []
        self.on_reboot: t.Callable[[Machine], None] = lambda machine: None
        self._server = server
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(play,)) for play in (self._power, self._beat)]

    def __enter__(self) -> Fleet:
        for machine in self.machines.values():
            machine.lay_out()
            machine.boot()
            self._server.call("POST", "/api/v1/nodes", {"metadata": {"name": machine.name}})
            self._server.call("POST", LEASES, {"metadata": {"name": machine.name}, "spec": {}})
            self.beat(machine)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        for machine in self.machines.values():
            machine.power_off()
        if self._errors:
            raise self._errors[0]

    def _guarded(self, play: t.Callable[[], None]) -> None:
        try:
            play()
        except BaseException as error:
            self._errors.append(error)

    def _power(self) -> None:
        while not self._end.wait(0.05):
            for machine in self.machines.values():
                if machine.wants_reboot():
                    self.order.append(machine.name)
                    self.on_reboot(machine)
                    self.restart(machine)

    def restart(self, machine: Machine) -> None:
        with self._lock:
            machine.power_off()
            if machine.comes_back:
                machine.boot()

    def _beat(self) -> None:
        while not self._end.wait(1 / BEATS_PER_SECOND):
            for machine in self.machines.values():
                with self._lock:
                    if machine.is_ready:
                        self.beat(machine)

    def beat(self, machine: Machine) -> None:
        """What a kubelet that runs tells the API: its status once a boot, its lease again and again."""
        now = datetime.now(timezone.utc)
        if machine.told != machine.boots[-1]:
            self._tell_status(machine, now)
        lease = {"renewTime": now.isoformat(timespec="microseconds").replace("+00:00", "Z")}
        self._server.call("PATCH", f"{LEASES}/{machine.name}", {"spec": lease})

    def _tell_status(self, machine: Machine, now: datetime) -> None:
        stamp = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": stamp}
        info = {
            **dict.fromkeys(NODE_INFO.split(), ""),
            "bootID": machine.boots[-1],
            "machineID": machine.machine_id,
        }
        path = f"/api/v1/nodes/{machine.name}/status"
        self._server.call("PATCH", path, {"status": {"conditions": [ready], "nodeInfo": info}})
        machine.told = machine.boots[-1]

    def node(self, name: str) -> tuple[bool, dict[str, str]]:
        """Whether it is cordoned, and this collection's annotations."""
        found = self._server.call("GET", f"/api/v1/nodes/{name}")
        own = {key: text for key, text in found["metadata"].get("annotations", {}).items() if "kubenode.memory" in key}
        return found["spec"].get("unschedulable", False), own

    def change(self, name: str, **fields: t.Any) -> None:
        self._server.call("PATCH", f"/api/v1/nodes/{name}", fields)

    def await_beat(self, name: str) -> None:
        """Wait until the API knows of the machine's present boot."""

        def told() -> bool:
            info = self._server.call("GET", f"/api/v1/nodes/{name}")["status"]["nodeInfo"]
            return bool(info["bootID"] == self.machines[name].boots[-1])

        until(f"{name} has told the API of its boot", told)
