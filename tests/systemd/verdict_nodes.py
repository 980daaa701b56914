# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lays out one node for each verdict below a directory: verdict_nodes.py DIRECTORY."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kubelet.cases import RESERVED, memory, static
from kubelet.harness import state
from kubelet.harness.node import Node, NodeDirectory
from kubelet.harness.topology import GIB, TWO_NODES

PODS = {"8e0a1d4c-5a0f-4f0e-9f0e-3f8d5f1d7c11": {"app": [state.Block((0,), 20 << 30)]}}
RECORDED = state.v1(state.of_machine(TWO_NODES, RESERVED, PODS))
MATCH = Node(config=static(), state=RECORDED)
NODES = {
    "match": MATCH,
    "tolerable": dataclasses.replace(MATCH, topology=TWO_NODES.moved(n0=-45272, n1=45272)),
    "refuse": dataclasses.replace(MATCH, topology=TWO_NODES.moved(n1=-16 * GIB)),
    "unreadable": dataclasses.replace(MATCH, state=RECORDED[:-40]),
    "absent": dataclasses.replace(MATCH, state=None),
    "not_applicable": Node(
        config=static(policy="None"), state='{"policyName":"None","machineState":{},"checksum":4236770233}'
    ),
    "broken_configuration": dataclasses.replace(MATCH, config=static(memory(n0="600Mi", n1="300Mi"))),
}


def lay_out(root: pathlib.Path, node: Node) -> None:
    directory = NodeDirectory(root, node)
    directory.lay_out(())
    (root / "run").mkdir(exist_ok=True)
    files = sorted(path for path in (root / "var/lib/kubelet").rglob("*") if path.is_file())
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(root)}\n" for file in files)
    (root / "before.sha256").write_text("".join(sums), encoding="ascii")


if __name__ == "__main__":
    for name, chosen in NODES.items():
        lay_out(pathlib.Path(sys.argv[1]) / name, chosen)
