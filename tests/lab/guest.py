# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest: QEMU in software emulation, with NUMA nodes, over an overlay of the image; reached by ssh on loopback.

A reboot within the guest starts its kernel anew, at another address, in the same QEMU.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shlex
import socket
import subprocess
import typing as t

from kubelet.harness.process import HarnessError, Process, free_port, until
from kubelet.harness.remote import KubeletNode

from .image import K61, Image, Kernel

# A boot takes 12 s of an idle machine.
BOOT_SECONDS = 400.0
NODE_MIB = 2048
BOOT_ID = "/proc/sys/kernel/random/boot_id"
MEMINFO = "/sys/devices/system/node/node*/meminfo"
HOST = "10.0.2.2"
BEGIN = {"execute": "qmp_capabilities"}
SHUT_DOWN_AT_REBOOT = {"execute": "set-action", "arguments": {"reboot": "shutdown"}}
SHOW_REGISTERS = {"execute": "human-monitor-command", "arguments": {"command-line": "info registers -a"}}
TRIES = 8
# An image takes 37 MiB (6.12) or 44 MiB (6.1) of its NUMA node.
IMAGE_KIB = 30 * 1024
JITTER_KIB = 256
# The counter of an emulated CPU is good, which the kernel does not believe; any other clock leaves the emulation.
APPEND = "console=ttyS0 quiet net.ifnames=0 panic=-1 tsc=reliable mitigations=off"
CPUSETS = "/sys/fs/cgroup/kubepods.slice/kubepods-pod*.slice/cri-containerd-*.scope/cpuset.mems"


@dataclasses.dataclass(frozen=True)
class Boot:
    """What a guest says of its present boot: where the kernel's image lies, and MemTotal in KiB by NUMA node."""

    boot_id: str
    kernel: str
    image: str
    totals: t.Mapping[int, int]

    def moved(self, before: t.Mapping[int, int]) -> bool:
        """Whether an image's worth of memory has gone from one NUMA node to another; other needs vary by some KiB."""
        changes = sorted(self.totals[node] - total for node, total in before.items())
        return changes[0] < -IMAGE_KIB and changes[-1] > IMAGE_KIB and abs(sum(changes)) < JITTER_KIB


class GuestError(HarnessError):
    """A command that failed in a guest, or did not reach it."""


@dataclasses.dataclass
class Guest(KubeletNode):
    """A guest with a CPU on each of its first two NUMA nodes. `memory` is what it boots with, in MiB by node."""

    name: str
    directory: pathlib.Path
    image: Image
    memory: tuple[int, ...] = (NODE_MIB, NODE_MIB)
    kernel: str = K61
    port: int = dataclasses.field(default_factory=free_port)
    _qemu: Process | None = None

    @property
    def disk(self) -> pathlib.Path:
        return self.directory / "disk.qcow2"

    @property
    def qemu(self) -> Process:
        assert self._qemu is not None, f"{self.name} is powered off"
        return self._qemu

    def power_on(self) -> None:
        """Start it; returns at once. Call it from a thread that outlives the guest, as its process ends with that."""
        self.directory.mkdir(exist_ok=True)
        if not self.disk.exists():
            backing = ["-b", str(self.image.disk), "-F", "raw"]
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *backing, str(self.disk)], check=True)
        self._qemu = Process(f"guest {self.name}", self._command(), self.directory / "console")

    def _command(self) -> list[str]:
        kernel: Kernel = self.image.kernel(self.kernel)
        return [
            # One thread for both CPUs: two guests have two processors between them, and atomic instructions cost less.
            # With a thread for each a window took a fifth more CPU time, and once a guest was silent for a minute.
            *("qemu-system-x86_64", "-accel", "tcg,thread=single,tb-size=256", "-cpu", "max", "-smp", "2"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"),
            *("-m", f"{sum(self.memory)}M", *self._numa()),
            *("-kernel", str(kernel.vmlinuz), "-initrd", str(kernel.initrd)),
            *("-append", f"{APPEND} systemd.hostname={self.name}"),
            # What the guest has flushed is in the file when QEMU is killed; unsafe spares only this machine's flushes.
            *("-drive", f"if=none,id=disk,file={self.disk},format=qcow2,cache=unsafe"),
            *("-device", "virtio-blk-pci,drive=disk", "-device", "virtio-rng-pci"),
            *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
            *("-device", "virtio-net-pci,netdev=net,romfile="),
            *("-serial", "stdio", "-qmp", f"unix:{self.directory}/qmp,server=on,wait=off"),
        ]

    def _numa(self) -> t.Iterator[str]:
        for number, size in enumerate(self.memory):
            yield from ("-object", f"memory-backend-ram,id=m{number},size={size}M")
            cpus = f",cpus={number}" if number < 2 else ""
            yield from ("-numa", f"node,nodeid={number},memdev=m{number}{cpus}")

    def power_off(self) -> None:
        """Pull the plug."""
        if self._qemu is not None:
            self._qemu.stop(graceful=False)
            self._qemu = None

    def await_boot(self, other_than: str = "") -> Boot:
        """Wait until one can log in, in another boot than the one whose id is given."""
        self.qemu.ready("a login works", lambda: self._boot_id() not in ("", other_than), BOOT_SECONDS)
        return self.boot()

    def _boot_id(self) -> str:
        """Empty while it cannot be reached."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                connection.settimeout(5)
                greets = connection.recv(4) == b"SSH-"
        except OSError:
            return ""
        return self.exec("cat", BOOT_ID, check=False).strip() if greets else ""

    def reboot(self) -> Boot:
        """Reboot it as an administrator does."""
        before = self.boot().boot_id
        self.exec("systemctl", "reboot", check=False)
        return self.await_boot(before)

    def recorded(self) -> dict[int, int]:
        """Memory in KiB by NUMA node, as the kubelet's state file has it."""
        nodes = self.state["machineState"]
        return {int(node): int(tables["memoryMap"]["memory"]["total"]) >> 10 for node, tables in nodes.items()}

    def reboot_until_drift(self) -> Boot:
        """Reboot until the kernel's image lies on another NUMA node than when the kubelet's state file was written."""
        boot, recorded = self.boot(), self.recorded()
        for _try in range(TRIES):
            if boot.moved(recorded):
                return boot
            boot = self.reboot()
        raise HarnessError(f"{self.name}: {TRIES} boots with the memory of the first, {recorded}")

    def stop_at_reboot(self) -> None:
        """From now on QEMU ends where the guest reboots, so that another machine can be powered on."""
        self._monitor(SHUT_DOWN_AT_REBOOT)

    def describe(self) -> str:
        """The end of the kubelet's log; of a guest that does not answer, where its CPUs are, twice."""
        try:
            return f"{self.name}: {self.pins()}\n{self.log()[-8000:]}"
        except GuestError as error:
            console = f"{error}\n{self.qemu.log.tail()}"
        try:
            return "\n".join([console, *self._monitor(SHOW_REGISTERS, SHOW_REGISTERS)])
        except OSError as error:
            return f"{console}\nQEMU does not answer either: {error}"

    def _monitor(self, *commands: dict[str, t.Any]) -> list[str]:
        """What QEMU answers to commands of its monitor protocol."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.directory / "qmp"))
            with connection.makefile("rw") as monitor:
                return [_answer(monitor, command) for command in (BEGIN, *commands)][1:]

    def await_stop(self) -> None:
        self.qemu.wait(BOOT_SECONDS)
        self._qemu = None

    def ssh_options(self) -> list[str]:
        """Options of ssh that also fit Ansible's."""
        options = {
            "UserKnownHostsFile": self.image.known_hosts,
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "ServerAliveInterval": 20,
        }
        return ["-F", "none", *(f"-o{name}={value}" for name, value in options.items())]

    def ssh(self, user: str = "root") -> list[str]:
        """The command line to which a remote command is added."""
        login = ["-i", str(self.image.login_key), "-p", str(self.port), f"{user}@127.0.0.1"]
        return ["ssh", *self.ssh_options(), "-oConnectTimeout=20", *login]

    def exec(self, *command: str, check: bool = True, stdin: str = "") -> str:
        shared = [f"-oControlPath={self.directory}/ssh-%r", "-oControlMaster=auto", "-oControlPersist=60"]
        ssh = self.ssh()
        done = subprocess.run(
            [*ssh[:1], *shared, *ssh[1:], shlex.join(command)],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise GuestError(f"{self.name}: {shlex.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def shell(self, script: str, check: bool = True) -> str:
        return self.exec("sh", "-c", script, check=check)

    def write(self, path: str, text: str) -> None:
        self.exec("sh", "-c", f"cat >{shlex.quote(path)}", stdin=text)

    def boot(self) -> Boot:
        text = self.shell(f"cat {BOOT_ID}; uname -r; grep 'Kernel code' /proc/iomem; grep -h MemTotal {MEMINFO}")
        boot_id, kernel, *rest = text.splitlines()
        totals = re.findall(r"^Node (\d+) MemTotal: +(\d+) kB$", text, re.MULTILINE)
        return Boot(boot_id, kernel, rest[0].split("-")[0].strip(), {int(node): int(kib) for node, kib in totals})

    def pins(self) -> dict[str, str]:
        """`cpuset.mems` of the containers that run at this moment, by the UID of their pod, as the kernel has it."""
        text = self.shell(f"grep . {CPUSETS} /dev/null", check=False)
        rows = re.findall(r"kubepods-pod([0-9a-f_]+)\.slice/[^:]*:(.+)$", text, re.MULTILINE)
        return {uid.replace("_", "-"): mems for uid, mems in rows}

    def await_pins(self, wanted: t.Mapping[str, str], seconds: float = 240.0) -> None:
        """Wait until exactly these pods run, where they are to run."""
        try:
            until(f"pods run as {wanted}", lambda: self.pins() == wanted, seconds, 1.0)
        except HarnessError as error:
            raise HarnessError(f"{error}\n{self.describe()}") from None


def _answer(monitor: t.TextIO, command: dict[str, t.Any]) -> str:
    """What the monitor returns for a command; its greeting and its events are passed over."""
    monitor.write(json.dumps(command) + "\n")
    monitor.flush()
    for line in monitor:
        answer = json.loads(line)
        if "return" in answer:
            return str(answer["return"])
        if "error" in answer:
            break
    raise HarnessError(f"QEMU has no answer to {command}")
