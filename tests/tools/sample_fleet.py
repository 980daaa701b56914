# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the sample fleet below playbooks/fleet from the captured boots.

    PYTHONPATH=.work/collections:tests python -m tools.sample_fleet [--check] [CAPTURES]

Each node is the files of one captured boot that the collection reads, a kubelet's configuration, and the state file
that this kubelet would have written at another boot of the same machine. `--check` only says whether the fleet on disk
is what would be made, byte for byte.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tarfile
import tempfile
import typing as t
from pathlib import Path

from tools.sample_fleet_nodes import NODES, SampleNode, dump_yaml

from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._node.topology import read_machine
from ansible_collections.kubenode.memory.plugins.module_utils._policy import checkpoint
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import MemoryReservation
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import MachineInfo
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine_state import (
    default_machine_state,
    replay,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import system_reserved
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    MemoryManagerState,
    assignment_units,
)

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT.parent / "shared" / "captures"
FLEET = ROOT / "playbooks" / "fleet"
BLOCK_SIZE = "sys/devices/system/memory/block_size_bytes"

# The files of a boot that the collection reads; distances and CPU lists are what cAdvisor reads beside them.
_NEEDED = re.compile(
    r"etc/os-release|proc/(?:iomem|meminfo|version|cmdline|cpuinfo)|proc/sys/kernel/(?:osrelease|random/boot_id)|"
    r"sys/devices/system/node/node\d+/(?:meminfo|distance|cpulist|hugepages/[^/]+/nr_hugepages)|" + BLOCK_SIZE
)

Tree = t.Dict[str, bytes]


def read_boots(captures: Path, wanted: t.Collection[str]) -> t.Dict[str, Tree]:
    """The needed files of the wanted boots, by the boot's name: the tarball's and its path there."""
    boots: t.Dict[str, Tree] = {boot: {} for boot in wanted}
    for tarball in ("captures", "captures-arm64"):
        with tarfile.open(captures / f"{tarball}.tar.xz", "r|xz") as tar:
            for member in tar:
                boot, path = _split(member.name, boots)
                if boot and member.isfile() and _NEEDED.fullmatch(path):
                    boots[boot][path] = t.cast(t.IO[bytes], tar.extractfile(member)).read()
    for boot, tree in boots.items():
        if not tree:
            raise SystemExit(f"{captures} has no boot {boot}")
        # Not captured on most x86-64 boots; what the others of the same kernel and machine have.
        tree.setdefault(BLOCK_SIZE, b"8000000\n")
    return boots


def _split(name: str, boots: t.Mapping[str, Tree]) -> t.Tuple[str, str]:
    """(boot, path in its tree) of a member such as captures/k61-2n/boot-00/proc/iomem."""
    match = re.fullmatch(r"([^/]+/.+?/boot-\d+)/(?:x/)?(.+)", name)
    return (match.group(1), match.group(2)) if match and match.group(1) in boots else ("", "")


def machine_of(tree: Tree) -> MachineInfo:
    with tempfile.TemporaryDirectory() as directory:
        write_tree(Path(directory), tree)
        return read_machine(HostRoot(directory)).machine


def state_file(node: SampleNode, machine: MachineInfo) -> bytes:
    """The state file as the kubelet writes it on that machine, after it admitted the node's pods."""
    reserved = system_reserved([MemoryReservation(i, {"memory": size}) for i, size in node.reserved.items()])
    policy = node.recorded_policy
    state = MemoryManagerState(policy, default_machine_state(machine, reserved), node.entries, node.pod_entries)
    if policy == "None":
        state = MemoryManagerState(policy, {}, {}, {})
    after = replay(state.nodes, assignment_units(state, node.pod_level))
    if after.shortfalls:
        raise SystemExit(f"{node.name}: its pods do not fit the machine that they were recorded on: {after.shortfalls}")
    state = MemoryManagerState(policy, after.machine_state, state.entries, state.pod_entries)
    return node.damage(checkpoint.encode(state, node.state_format, node.pod_level).encode())


def node_tree(node: SampleNode, boots: t.Mapping[str, Tree]) -> Tree:
    tree = {**boots[node.now], **{path: text.encode() for path, text in node.kubelet_files().items()}}
    if node.iomem_hidden:
        tree["proc/iomem"] = hidden_iomem(tree["proc/iomem"])
    if node.recorded:
        tree["var/lib/kubelet/memory_manager_state"] = state_file(node, machine_of(boots[node.recorded]))
    return dict(sorted(tree.items()))


def hidden_iomem(iomem: bytes) -> bytes:
    """/proc/iomem as the kernel shows it to a reader without CAP_SYS_ADMIN."""
    return re.sub(rb"(?m)^( *)[0-9a-f]+-[0-9a-f]+ :", rb"\g<1>00000000-00000000 :", iomem)


def make_fleet(captures: Path) -> Tree:
    """Every file of the fleet, by its path below playbooks/fleet."""
    boots = read_boots(captures, {boot for node in NODES for boot in (node.recorded, node.now) if boot})
    fleet = {"inventory.yml": inventory().encode()}
    for node in NODES:
        fleet.update((f"nodes/{node.name}/{path}", content) for path, content in node_tree(node, boots).items())
    return fleet


def inventory() -> str:
    groups: t.Dict[str, t.Any] = {}
    for node in NODES:
        groups.setdefault(node.group, {"hosts": {}})["hosts"][node.name] = node.host_variables()
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "memmgr_become": False,
        "memmgr_validate_host_root": "{{ inventory_dir }}/nodes/{{ inventory_hostname }}",
    }
    note = (
        "# Made by tests/tools/sample_fleet.py. The variables sample_* say what each node shows and what is expected."
    )
    return dump_yaml({"sample_fleet": {"vars": variables, "children": groups}}, note)


def read_fleet(fleet: Path = FLEET) -> Tree:
    files = (path for path in fleet.rglob("*") if path.is_file() and path.name != "README.md")
    return {path.relative_to(fleet).as_posix(): path.read_bytes() for path in files}


def write_tree(base: Path, tree: Tree) -> None:
    for path, content in tree.items():
        file = base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def differing(one: Tree, other: Tree) -> t.List[str]:
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the fleet is out of date")
    parser.add_argument("captures", nargs="?", type=Path, default=CAPTURES, help="folder of the captured boots")
    arguments = parser.parse_args()
    fleet = make_fleet(arguments.captures)
    outdated = differing(fleet, read_fleet())
    if outdated and not arguments.check:
        shutil.rmtree(FLEET / "nodes", ignore_errors=True)
        write_tree(FLEET, fleet)
    size = sum(map(len, fleet.values()))
    print(f"{len(NODES)} nodes, {len(fleet)} files, {size} bytes, {len(outdated)} differed")
    return 1 if outdated and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
