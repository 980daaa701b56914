# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as a file tree: two NUMA nodes, a stopped kubelet, a pod that is pinned, and memory that has drifted."""

from __future__ import annotations

import hashlib
import json
import os
import typing as t
from dataclasses import replace
from pathlib import Path

from node_tree import NodeTree

from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import encode, load
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import MachineInfo, NumaNode
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import (
    default_machine_state,
    replay,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import parse_release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import system_reserved
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MemoryManagerState,
    assignment_units,
)
from ansible_collections.kubenode.memory.plugins.module_utils._rebaseline import POINTS, Outcome, Plan, run
from ansible_collections.kubenode.memory.plugins.module_utils._request import Request

GIB = 1 << 30
MIB = 1 << 20
KIB = 1 << 10
RECORDED = (2 * GIB, 2 * GIB)
RESERVED = (256 * MIB, 256 * MIB)
POD = "3bd07f8c-6d8c-4e57-a8a1-3f7e6b0e4a8e"
LATE_POD = "9c2ff0de-1c2b-4b6f-8f0e-52a1f4f6f0aa"
BOOT = "0b4b8dd4-5b4c-4a59-9d1f-9b0f5f4f7a11"
NOW = 1_770_000_000.5

POINTS_BEFORE_THE_LAST_LOOK = POINTS[:-1]

STATE_FILE = "/var/lib/kubelet/memory_manager_state"
OURS = "/var/lib/kubenode-memory"
IOMEM = (
    "00100000-7fffffff : System RAM\n  1000000-1dfffff : Kernel code\n"
    "  2000000-29fffff : Kernel rodata\n  2a00000-2ffffff : Kernel data\n  3000000-43fffff : Kernel bss\n"
    "140000000-14fffffff : Crash kernel\n"
)
BOUND = 0x4400000 - 0x1000000 + 64 * MIB
SYSTEMD = "1 (systemd) S 0 1 1 0 -1 4194560 9 0 0 0 1 2 0 -3 20 0 12 0 1 1234 56 18446744073709551615\n"

Pods = t.Mapping[str, t.Sequence[t.Tuple[t.Sequence[int], int]]]
PINNED: Pods = {POD: (((0,), 512 * MIB),)}


def state_of(
    totals: t.Sequence[int], pods: t.Optional[Pods] = None, pod_entries: t.Optional[Pods] = None
) -> MemoryManagerState:
    """What a kubelet records on a machine with these totals; each pod has one container of one memory block each."""

    def blocks(pod: t.Sequence[t.Tuple[t.Sequence[int], int]]) -> t.Tuple[Block, ...]:
        return tuple(Block(tuple(nodes), "memory", size) for nodes, size in pod)

    state = MemoryManagerState(
        "Static",
        {},
        {uid: {"app": blocks(pod)} for uid, pod in (PINNED if pods is None else pods).items()},
        {uid: blocks(pod) for uid, pod in (pod_entries or {}).items()},
    )
    machine = MachineInfo(tuple(NumaNode(index, size) for index, size in enumerate(totals)))
    reserved = tuple(MemoryReservation(index, {"memory": str(size)}) for index, size in enumerate(RESERVED))
    defaults = default_machine_state(machine, system_reserved(reserved))
    return replace(state, machine_state=replay(defaults, assignment_units(state, True)).machine_state)


class DriftedNode(NodeTree):
    """The tree, and what is done to it. `release` is the kubelet's."""

    def __init__(
        self, base: Path, fmt: str = "V1", drift: t.Sequence[int] = (-44 * MIB, 44 * MIB), release: str = "v1.36.3"
    ) -> None:
        super().__init__(base)
        self.release = release
        self.gates: t.Dict[str, bool] = {}
        self.write("/proc/1/stat", SYSTEMD)
        self.write("/proc/1/cmdline", "/sbin/init\0")
        self.link("/proc/1/ns/mnt", "mnt:[1]")
        self.write("/proc/meminfo", "MemTotal:        4194304 kB\n")
        self.write("/proc/iomem", IOMEM)
        self.write("/proc/sys/kernel/osrelease", "6.1.0-57-amd64\n")
        self.write("/sys/devices/system/memory/block_size_bytes", "8000000\n")
        self.write(
            "/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubelet\n"
        )
        self.boot(BOOT)
        self.drift(drift)
        self.configure()
        self.record(state_of(RECORDED), fmt)

    def boot(self, boot_id: str) -> None:
        self.write("/proc/sys/kernel/random/boot_id", boot_id + "\n")

    def drift(self, drift: t.Sequence[int]) -> None:
        """Give the machine its memory: what is recorded, and so much more."""
        for index, size in enumerate(drift):
            self.numa_node(index, (RECORDED[index] + size) // KIB, {})

    def configure(self, **fields: t.Any) -> None:
        configuration = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "memoryManagerPolicy": "Static",
            "evictionHard": {"memory.available": "512Mi"},
            "reservedMemory": [
                {"numaNode": index, "limits": {"memory": f"{size // MIB}Mi"}} for index, size in enumerate(RESERVED)
            ],
            **fields,
        }
        self.write("/etc/kubelet", json.dumps(configuration))

    def record(self, state: MemoryManagerState, fmt: str = "V1") -> None:
        """Write a state file as a kubelet would."""
        path = self.write(STATE_FILE, encode(state, fmt, pod_level=True))
        path.chmod(0o600)

    def start_kubelet(self, name: str = "kubelet", argv: str = "/usr/bin/kubelet", mounts: int = 1) -> None:
        self.write("/proc/77/stat", SYSTEMD.replace("1 (systemd)", f"77 ({name})", 1))
        self.write("/proc/77/cmdline", "".join(word + "\0" for word in argv.split()))
        self.link("/proc/77/ns/mnt", f"mnt:[{mounts}]")

    def remove_kubelet(self) -> None:
        (self.base / "etc/systemd/system/kubelet.service").unlink()

    @property
    def request(self) -> Request:
        return Request(host_root=str(self.base), overrides=KubeletOverrides(version=self.release))

    def run(self, **plan: t.Any) -> Outcome:
        return run(self.request, Plan(**{"now": lambda: NOW, **plan}))

    # --- looking at it

    @property
    def root(self) -> HostRoot:
        return HostRoot(str(self.base))

    @property
    def state_file(self) -> Path:
        return self.base / STATE_FILE[1:]

    @property
    def content(self) -> bytes:
        return self.state_file.read_bytes()

    @property
    def backups(self) -> t.List[Path]:
        return sorted((self.base / OURS[1:] / "backups").glob("*"))

    @property
    def history(self) -> t.List[t.Dict[str, t.Any]]:
        return [json.loads(line) for line in (self.base / OURS[1:] / "history.jsonl").read_text().splitlines()]

    def loaded(self, release: str = "v1.37.2", pod_level: bool = True) -> MemoryManagerState:
        return load(self.content, parse_release(release), pod_level, "Static").state

    def fingerprint(self, ignore: t.Collection[str] = ()) -> t.Dict[str, t.Tuple[int, str]]:
        """Mode and content of everything in the tree, by path."""
        return {
            str(path.relative_to(self.base)): (path.lstat().st_mode, _content(path))
            for path in sorted(self.base.rglob("*"))
            if str(path.relative_to(self.base)) not in ignore
        }


def _content(path: Path) -> str:
    if path.is_symlink():
        return os.readlink(path)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
