# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of it: a control plane on this machine, guests that are its nodes, pinned pods, a controller with ssh.

The controller's user has the shipped ClusterRole and nothing else; it logs in to the guests without being root there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import typing as t

import yaml
from kubelet.harness import apiserver as api, host, lab as harness
from kubelet.harness.kubelet import binary
from kubelet.harness.process import HarnessError, Process, free_port, until
from maintenance.conftest import CLUSTER_ROLE, RBAC, TOKEN, USER, binding
from systemd import controller

from .guest import HOST, Guest
from .image import image

NAMES = ("alpha", "beta")
# More than half of what pods may have of a NUMA node, so that each has one of its own, and far from all of it.
POD = {"app": {"cpu": "50m", "memory": "1100Mi"}}
KUBECONFIG = "/var/lib/kubelet/kubeconfig"
MANAGED = "disruption-controller,node-lifecycle-controller"
READY_SECONDS = 240.0
SUDO = """#!/bin/sh
# Stands before the real one on the controller, where nothing is to become anybody.
echo "$@" >>"$(dirname "$0")/called"
exit 1
"""


@dataclasses.dataclass
class Lab:
    """`pins` are, by guest, the UIDs of its pods with the NUMA nodes that they are pinned to."""

    directory: pathlib.Path
    server: api.Api
    guests: dict[str, Guest]
    ansible: controller.Controller
    pins: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    others: list[Process] = dataclasses.field(default_factory=list)

    @property
    def user(self) -> api.Api:
        """The API as the controller sees it."""
        return api.Api(self.server.port, TOKEN)

    def node(self, name: str) -> api.Document:
        return self.server.call("GET", f"/api/v1/nodes/{name}")

    def await_ready(self, name: str) -> None:
        """Wait until the API knows the guest as Ready in its present boot."""
        boot_id = self.guests[name].boot().boot_id

        def is_ready() -> bool:
            status = (self.server.find(f"/api/v1/nodes/{name}") or {}).get("status", {})
            conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
            return conditions.get("Ready") == "True" and status["nodeInfo"]["bootID"] == boot_id

        self._await(name, "its node is Ready", is_ready)

    def add_pods(self, name: str) -> None:
        """Give a guest a pod on each of its NUMA nodes."""
        uids = [self.server.create_pod(pinned_pod(f"{name}-{number}", name)) for number in range(2)]
        guest = self.guests[name]
        self._await(name, "its pods run", lambda: set(guest.pins()) == set(uids))
        self.pins[name] = guest.pins()

    def _await(self, name: str, what: str, condition: t.Callable[[], bool]) -> None:
        """Wait for a condition of a guest; in vain, say what there is instead."""
        try:
            until(f"{name}: {what}", condition, READY_SECONDS, 1.0)
        except HarnessError as error:
            raise HarnessError(f"{error}\n{self.describe(name)}") from None

    def describe(self, name: str) -> str:
        """What the API and a guest say of its pods."""
        pods = [one for one in self.server.call("GET", "/api/v1/pods")["items"] if one["spec"]["nodeName"] == name]
        says = [json.dumps({one["metadata"]["name"]: one.get("status")}) for one in pods]
        return "\n".join([*says, self.guests[name].describe()])

    def settle(self, name: str) -> None:
        """Wait until a guest is Ready with the pods that it had, where they were."""
        self.await_ready(name)
        self.guests[name].await_pins(self.pins[name])

    def cordon(self, name: str) -> tuple[bool, dict[str, str]]:
        """Whether a node is cordoned, and the collection's annotations by their last part."""
        node = self.node(name)
        annotations = node["metadata"].get("annotations", {}).items()
        own = {key.split("/")[1]: text for key, text in annotations if key.startswith("kubenode.memory/")}
        return node["spec"].get("unschedulable", False), own

    def uncordon(self, name: str) -> None:
        """Give a node back to the scheduler as an administrator does."""
        gone = {f"kubenode.memory/{key}": None for key in self.cordon(name)[1]}
        change = {"spec": {"unschedulable": None}, "metadata": {"annotations": gone}}
        self.server.call("PATCH", f"/api/v1/nodes/{name}", change)

    def reboot(self, *arguments: str, **variables: t.Any) -> controller.Run:
        """The maintenance window with consent and without a drain, both nodes at once."""
        usual = {"node_reboot_ok": True, "node_reboot_drain": False, "memmgr_serial": ["100%"]}
        return self.ansible.playbook("maintenance_reboot", *arguments, **{**usual, **variables})

    def api_pid(self) -> int:
        """The process of the API server."""
        (pid,) = [pid for pid in host.processes_below(self.directory) if b"kube-apiserver" in _arguments(pid)[0]]
        return pid

    @contextlib.contextmanager
    def restarted_api(self) -> t.Iterator[None]:
        """Start the API server again after the block, which has ended it."""
        command = [argument.decode() for argument in _arguments(self.api_pid())]
        yield
        again = Process("kube-apiserver", command, self.directory / "apiserver.log")
        self.others.append(again)
        again.ready("it answers", lambda: self.server.find("/api/v1/namespaces/default"), READY_SECONDS)

    def stop_others(self) -> None:
        for process in self.others:
            process.stop(graceful=False)

    def become_calls(self) -> str:
        """What was asked of sudo on the controller."""
        called = self.directory / "bin/called"
        return called.read_text() if called.exists() else ""


def _arguments(pid: int) -> list[bytes]:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]


def pinned_pod(name: str, node: str) -> api.Document:
    """A Guaranteed pod of nobody's, which a drain evicts with force only."""
    pod = api.guaranteed_pod(name, node, POD)
    pod["metadata"]["labels"] = {"node": node}
    return pod


@contextlib.contextmanager
def control_plane(root: pathlib.Path) -> t.Iterator[api.Api]:
    """An API server with RBAC, and of the controller manager what looks after budgets and nodes."""
    _crt, key = harness.certificate(root)
    with api.apiserver(root / "api", key, "RBAC", {USER: TOKEN}) as server:
        role = yaml.safe_load(CLUSTER_ROLE.read_text())
        server.call("POST", f"{RBAC}/clusterroles", role)
        server.call("POST", f"{RBAC}/clusterrolebindings", binding(role["metadata"]["name"]))
        kubeconfig = root / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig())
        flags = {
            "kubeconfig": kubeconfig,
            "controllers": MANAGED,
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": free_port(),
            "cert-dir": root / "controller-manager",
            "authentication-skip-lookup": "true",
        }
        command = [
            binary("kube-controller-manager", api.RELEASE),
            *(f"--{name}={value}" for name, value in flags.items()),
        ]
        manager = Process("kube-controller-manager", command, root / "controller-manager.log")
        try:
            yield server
        finally:
            manager.stop(graceful=False)


def make_controller(root: pathlib.Path, server: api.Api, guests: t.Iterable[Guest]) -> controller.Controller:
    """A controller that reaches the guests by ssh, and the API with the user's token."""
    hosts = {}
    for guest in guests:
        hosts[guest.name] = {"ansible_host": "127.0.0.1", "ansible_port": guest.port}
        login = {
            "ansible_user": "ansible",
            "ansible_ssh_private_key_file": str(guest.image.login_key),
            "ansible_ssh_common_args": " ".join(guest.ssh_options()),
        }
    controller.write_inventory(
        root / "lab",
        hosts,
        **login,
        ansible_python_interpreter="/usr/bin/python3",
        ansible_ssh_timeout=60,
        ansible_ssh_retries=3,
        memmgr_api={"host": f"https://127.0.0.1:{server.port}", "api_key": TOKEN, "validate_certs": False},
        # In emulation a kubelet is healthy for that long before its memory manager ends it.
        kubelet_restart_stable_seconds=20,
        kubelet_restart_timeout=int(READY_SECONDS),
        node_reboot_ready_timeout=int(READY_SECONDS),
    )
    sudo = root / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    return controller.Controller(root / "lab", controller.collections_path(), str(sudo.parent))


@contextlib.contextmanager
def lab(root: pathlib.Path) -> t.Iterator[Lab]:
    """Everything below `root`, running, with pods; gone afterwards."""
    disk = image()
    guests = {name: Guest(name, root / name, disk) for name in NAMES}
    with contextlib.ExitStack() as stack:
        for guest in guests.values():
            stack.callback(guest.power_off)
            guest.power_on()
        server = stack.enter_context(control_plane(root))
        kubeconfig = server.kubeconfig().replace("127.0.0.1", HOST)
        this = Lab(root, server, guests, make_controller(root, server, guests.values()))
        stack.callback(this.stop_others)
        for guest in guests.values():
            guest.await_boot()
            guest.write(KUBECONFIG, kubeconfig)
            guest.systemctl("enable", "--now", "kubelet.service")
        for name in NAMES:
            this.await_ready(name)
            this.add_pods(name)
        yield this
