# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: containers with systemd, containerd and a real kubelet as a unit, whose machine is a fixture.

A node has no network. It reaches the API server through a socket in the directory that it shares with the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import shutil
import subprocess
import threading
import typing as t
import uuid

from kubelet.cases import static
from kubelet.harness import apiserver as api, topology as numa
from kubelet.harness.kubelet import binary
from kubelet.harness.node import IOMEM, document
from kubelet.harness.process import until
from kubelet.harness.remote import KubeletNode

from .connection.node_namespaces import enter, pid_file

HERE = pathlib.Path(__file__).resolve().parent
PODMAN = ("podman", "--runtime", "/usr/sbin/runc", "--cgroup-manager=cgroupfs")
LIMITS = ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=10000:10000")
API_PORT = 6443
FILES = {
    "etc/systemd/system/api.socket": f"[Socket]\nListenStream=127.0.0.1:{API_PORT}\n",
    "etc/systemd/system/api.service": "[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd /fixture/api.sock\n",
    "etc/cni/net.d/10-none.conflist": '{"cniVersion": "0.3.1", "name": "none", "plugins": [{"type": "bridge"}]}\n',
    "etc/containerd/config.toml": """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
""",
}
UNIT = """[Unit]
Description=kubelet
After=containerd.service
Wants=containerd.service

[Service]
ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml \\
  --container-runtime-endpoint=unix:///run/containerd/containerd.sock --node-ip={address} --v=2 {flags}
Restart=always
StartLimitInterval=0
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
MACHINE = """cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}
authorization: {mode: AlwaysAllow}
volumePluginDir: /var/lib/kubelet/plugins
nodeStatusUpdateFrequency: 2s
"""
# The machine of the fixture, shown in place of the real one; once more after each change of it.
SHOW_MACHINE = """set -e
ip address add {address}/32 dev lo 2>/dev/null || true
for path in sys/devices/system/node sys/kernel/mm/hugepages proc/iomem proc/meminfo proc/sys/kernel/random/boot_id; do
    while umount "/$path" 2>/dev/null; do :; done
    mount --bind "/fixture/$path" "/$path"
done
"""


def run(*command: str, check: bool = True, stdin: str = "") -> str:
    """The standard output of a command; its standard error is in the exception if it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclasses.dataclass
class Node(KubeletNode):
    """A running container. `root` is on this machine what `/fixture` is on the node."""

    name: str
    release: str
    root: pathlib.Path
    address: str
    named: str = ""
    topology: numa.Topology = numa.TWO_NODES

    @property
    def node_name(self) -> str:
        """The name of its Node object."""
        return self.named or self.name

    def exec(self, *command: str, check: bool = True, stdin: str = "") -> str:
        return run(*enter(self.name), *command, check=check, stdin=stdin)

    def write(self, path: str, text: str) -> None:
        """Write a file of the node."""
        target = self.root / "files" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        self.exec("cp", "--recursive", "/fixture/files/.", "/")
        shutil.rmtree(self.root / "files")

    def boot_with(self, topology: numa.Topology) -> None:
        """The machine after a reboot: other memory, another boot id."""
        self.topology = topology
        numa.write(topology, self.root)
        boot_id = self.root / "proc/sys/kernel/random/boot_id"
        boot_id.parent.mkdir(parents=True, exist_ok=True)
        boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        self.exec("sh", "-c", SHOW_MACHINE.format(address=self.address))


class Relay:
    """Forwards connections to a UNIX socket to a port of this machine, in a thread of its own."""

    def __init__(self, socket: pathlib.Path, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._port = port
        self._loop.run_until_complete(asyncio.start_unix_server(self._connected, path=str(socket)))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(copy_stream(reader, far_writer), copy_stream(far_reader, writer))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def node(
    root: pathlib.Path, image: str, name: str, release: str, number: int, server: api.Api | None, named: str = ""
) -> t.Iterator[Node]:
    """Boot a node and start its kubelet; removed afterwards. `named` is its name in the API where it is another.

    Without an API server its kubelet is one that stands alone, and is not started yet.
    """
    this = Node(name, release, root / name, f"10.213.0.{number}", named)
    this.root.mkdir()
    numa.write(this.topology, this.root)
    (this.root / "proc/iomem").write_text(IOMEM, encoding="ascii")
    relay = Relay(this.root / "api.sock", server.port) if server else None
    try:
        volumes = ("--volume", f"{this.root}:/fixture", "--volume", f"{binary('kubelet', release)}:/usr/bin/kubelet:ro")
        options = ("--detach", "--name", name, "--hostname", name, "--systemd=always", "--privileged", "--network=none")
        pid = ("--pidfile", str(pid_file(name)))
        run(*PODMAN, "run", *options, *pid, *LIMITS, *volumes, image, "/sbin/init")
        until("systemd is up", lambda: "running" in this.exec("systemctl", "is-system-running", check=False), 60)
        _install(this, server)
        yield this
    finally:
        run(*PODMAN, "rm", "--force", "--time=0", name, check=False)
        pid_file(name).unlink(missing_ok=True)
        if relay:
            relay.close()


def _install(this: Node, server: api.Api | None) -> None:
    flags = [f"--hostname-override={this.named}"] if this.named else []
    files = {**FILES, "var/lib/kubelet/config.yaml": document(static(more=MACHINE))}
    if server:
        flags.append("--kubeconfig=/var/lib/kubelet/kubeconfig")
        files["var/lib/kubelet/kubeconfig"] = server.kubeconfig().replace(f":{server.port}", f":{API_PORT}")
    files["etc/systemd/system/kubelet.service"] = UNIT.format(address=this.address, flags=" ".join(flags))
    for path, text in list(files.items())[1:]:
        target = this.root / "files" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    first = next(iter(files))
    this.write(first, files[first])
    this.boot_with(this.topology)
    this.systemctl("daemon-reload")
    this.systemctl("restart", "api.socket", "containerd.service")
    this.systemctl("enable", *(["--now"] if server else []), "kubelet.service")
