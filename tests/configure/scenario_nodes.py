# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lays out one node for each place that settings are written to: scenario_nodes.py DIRECTORY."""

from __future__ import annotations

import hashlib
import pathlib
import sys
import typing as t

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from node_tree import NodeTree

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CONFIG, UNIT = "/var/lib/kubelet/config.yaml", "/etc/systemd/system/kubelet.service"
COMMENTED = HEADER + (
    "# ours\r\nkubeReserved: &kube {memory: 924Mi}   # for the kubelet\r\n"
    "systemReserved: *kube\r\n'maxPods': 0x6e\r\nevictionSoft:\r\n    nodefs.available: '12%' # early\r\n"
    "evictionSoftGracePeriod: {nodefs.available: 1m}\r\n"
)
STATIC = HEADER + (
    "memoryManagerPolicy: Static\nkubeReserved: {memory: 924Mi}\n"
    "reservedMemory:\n- numaNode: 0\n  limits: {memory: 1Gi} # all of it\n"
)
GIB_KB = 1 << 20


def unit(flags: str) -> dict[str, str]:
    return {UNIT: f"[Service]\nExecStart=/usr/bin/kubelet {flags}\n"}


KUBEADM = {"/etc/systemd/system/kubelet.service.d/10-kubeadm.conf": "", **unit(f"--config={CONFIG}")}
K3S = {"/etc/systemd/system/k3s-agent.service": "[Service]\nExecStart=/usr/local/bin/k3s agent\n"}
DROP_INS = "/etc/kubernetes/kubelet.conf.d"

NODES: t.Mapping[str, t.Mapping[str, str]] = {
    "kubeadm": {**KUBEADM, CONFIG: COMMENTED},
    "drop_in": {
        **unit(f"--config={CONFIG} --config-dir={DROP_INS}"),
        CONFIG: HEADER,
        f"{DROP_INS}/10-theirs.conf": HEADER + "maxPods: 50\n",
    },
    "knows_gate": {**KUBEADM, CONFIG: STATIC},
    "k3s_1_31": {**K3S, "/etc/rancher/k3s/config.yaml": "kubelet-arg: [max-pods=50]\n"},
    "talos": {**KUBEADM, CONFIG: HEADER, "/etc/os-release": "ID=talos\n"},
}


def lay_out(base: pathlib.Path, files: t.Mapping[str, str]) -> None:
    tree = NodeTree(base)
    for path, text in files.items():
        tree.write(path, text)
    tree.write("/proc/meminfo", f"MemTotal: {16 * GIB_KB} kB\n")
    tree.write("/proc/iomem", "01000000-02ffffff : Kernel code\n03000000-043fffff : Kernel data\n")
    for node in (0, 1):
        tree.numa_node(node, 8 * GIB_KB, {})
    paths = sorted(path for path in base.rglob("*") if path.is_file())
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(base)}\n" for path in paths)
    (base / "before.sha256").write_text("".join(sums), encoding="ascii")


if __name__ == "__main__":
    for name, chosen in NODES.items():
        lay_out(pathlib.Path(sys.argv[1]) / name, chosen)
