# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small node tree whose kubelet can be configured, and the module with its action plugin, without Ansible between."""

from __future__ import annotations

import base64
import typing as t
from dataclasses import replace
from pathlib import Path

from node_tree import NodeTree

from ansible_collections.kubenode.memory.plugins.action.kubelet_memory_config import edited_text
from ansible_collections.kubenode.memory.plugins.module_utils._configure import EditedText, Outcome, Wish, apply
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.module_utils._present_configuration import edit_request
from ansible_collections.kubenode.memory.plugins.module_utils._request import Request

CONFIG = "/var/lib/kubelet/config.yaml"
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = HEADER + (
    "memoryManagerPolicy: Static\nkubeReserved: {memory: 924Mi}\n"
    "reservedMemory:\n- numaNode: 0\n  limits: {memory: 1Gi}\n"
)
GIB_KB = 1 << 20


def run_module(request: Request, wish: Wish, check_mode: bool = False) -> Outcome:
    """Both calls of the module, with the controller's edit between them."""
    outcome = apply(request, wish, check_mode)
    wanted = edit_request(outcome)
    if wanted is None:
        return outcome
    edited = edited_text(wanted)
    text = EditedText(edited["sha256"], base64.b64decode(edited["content"]))
    return apply(request, replace(wish, edited=text), check_mode)


class ConfiguredNode:
    """A two-node machine with a kubeadm kubelet, or one with other flags."""

    def __init__(
        self, base: Path, config: t.Union[str, bytes] = HEADER, flags: str = "", version: str = "v1.37.2"
    ) -> None:
        self.tree = NodeTree(base)
        self.config = base / CONFIG.lstrip("/")
        self.overrides = KubeletOverrides(version=version)
        self.tree.write("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", "")
        self.unit(flags or f"--config={CONFIG}")
        self.tree.write(CONFIG, config)
        self.tree.write("/proc/meminfo", f"MemTotal: {16 * GIB_KB} kB\n")
        self.tree.write("/proc/iomem", "01000000-02ffffff : Kernel code\n03000000-043fffff : Kernel data\n")
        for node in (0, 1):
            self.tree.numa_node(node, 8 * GIB_KB, {})

    def unit(self, flags: str) -> None:
        self.tree.write("/etc/systemd/system/kubelet.service", f"[Service]\nExecStart=/usr/bin/kubelet {flags}\n")

    @property
    def request(self) -> Request:
        return Request(host_root=str(self.tree.base), overrides=self.overrides)

    def path(self, name: str) -> Path:
        return Path(self.tree.base) / name.lstrip("/")

    @property
    def text(self) -> str:
        return self.config.read_bytes().decode()

    def run(self, wish: Wish, check_mode: bool = False) -> Outcome:
        return run_module(self.request, wish, check_mode)

    def set(self, **more: t.Any) -> Outcome:
        """Set values by dotted field: `set(**{"evictionHard/memory.available": "1Gi"})`."""
        edits = tuple(Edit(tuple(name.split("/")), value) for name, value in more.items())
        return self.run(Wish(edits=edits))

    def give_back(self, *fields: str) -> Outcome:
        return self.run(Wish(state="absent", fields=fields))
