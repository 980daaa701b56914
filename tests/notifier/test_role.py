# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role over trees that stand for nodes: one run of ansible-playbook, a node per case."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import typing as t

import pytest
import yaml
from kubelet.harness import state, topology
from kubelet.harness.node import CONFIG_DIR, Node, NodeDirectory

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GIB = 1 << 30
MIB = 1 << 20
DROP_IN = f"{CONFIG_DIR}/50-kubenode-memory.conf"
HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}

V1 = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
CONTROLLER = {"memory.usage_in_bytes": "5810089984", "memory.stat": "total_inactive_file 1", "cgroup.event_control": ""}

ON = "kernelMemcgNotification: true\n"
STATIC = """memoryManagerPolicy: Static
systemReserved: {memory: 924Mi}
reservedMemory:
- {numaNode: 0, limits: {memory: 512Mi}}
- {numaNode: 1, limits: {memory: 512Mi}}
"""
RESERVED = {0: 512 * MIB, 1: 512 * MIB}
STATE = state.v1(state.of_machine(topology.TWO_NODES, RESERVED))
LARGER = [{"numaNode": node, "limits": {"memory": "712Mi"}} for node in (0, 1)]

Wanted = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Case:
    """A node and what the role makes of it: the action and the fields of its drop-in, or words of the refusal."""

    mounts: str
    config: t.Optional[str]
    action: t.Optional[str] = None
    written: t.Optional[Wanted] = None
    refusal: t.Tuple[str, ...] = ()
    dropins: t.Optional[t.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    state: t.Optional[str] = None
    release: str = "v1.34.4"
    variables: Wanted = dataclasses.field(default_factory=dict)
    controller: bool = False


SOFT = {"memcg_notifier_soft_threshold": "1Gi", "memcg_notifier_soft_grace_period": "1m30s"}
SOFT_WRITTEN = {
    "evictionSoft": {"memory.available": "1Gi"},
    "evictionSoftGracePeriod": {"memory.available": "1m30s"},
}
HARD_500 = {"memcg_notifier_eviction_hard": "500Mi"}
# All five signals, since those in effect were defaults.
HARD_WRITTEN = {
    "memory.available": "500Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
CASES = {
    "works-on-a-static-node": Case(
        V1, STATIC, "switched_on", {"kernelMemcgNotification": True}, state=STATE, controller=True
    ),
    "v2-and-on": Case(
        V2,
        ON,
        "switched_off",
        {"kernelMemcgNotification": False, **SOFT_WRITTEN, "evictionHard": HARD_WRITTEN},
        variables={**SOFT, **HARD_500, "again": True},
        release="v1.37.2",
    ),
    "a-larger-reservation-on-a-static-node": Case(
        V1,
        STATIC,
        refusal=("Nothing was written", "adds up to 1Gi", "would be 1424Mi", "`reset`", "not equal to the value"),
        state=STATE,
        variables=HARD_500,
        controller=True,
    ),
    "a-consistent-one-on-a-static-node": Case(
        V2,
        STATIC,
        refusal=("Nothing was written", "`reset`", "746586112 bytes", "536870912 are recorded"),
        state=STATE,
        variables={**HARD_500, "memcg_notifier_reserved_memory": LARGER},
        release="v1.37.2",
    ),
    "no-place-and-nothing-to-set": Case(V2, None, "none", dropins=None, release="v1.37.2"),
    "a-later-drop-in": Case(
        V2,
        "",
        refusal=("Nothing was written", "no effect", "99-theirs.conf sets it to something else"),
        dropins={"99-theirs.conf": ON},
        release="v1.37.2",
    ),
}


def lay_out(case: Case, tree: pathlib.Path) -> NodeDirectory:
    node = Node(config=case.config, dropins=case.dropins, state=case.state)
    directory = NodeDirectory(tree, node)
    directory.lay_out(["--cgroup-driver=cgroupfs"])
    files = {f"sys/fs/cgroup/memory/{name}": text for name, text in CONTROLLER.items() if case.controller}
    for name, text in {**files, "proc/1/mounts": case.mounts}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="ascii")
    return directory


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> t.Dict[str, t.Tuple[NodeDirectory, t.Dict[str, t.Any]]]:
    """What the role left on each node."""
    base = tmp_path_factory.mktemp("nodes")
    directories = {name: lay_out(case, base / name) for name, case in CASES.items()}
    hosts = {
        name: {"tree": str(base / name), "memcg_notifier_kubelet_version": case.release, **case.variables}
        for name, case in CASES.items()
    }
    inventory = base / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="ascii")
    command = ["ansible-playbook", str(HERE / "role.yml"), "--inventory", str(inventory), "--forks", "2"]
    command += ["--extra-vars", f"came={base / 'came.json'}"]
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".work" / "collections"),
        **os.environ,
        "ANSIBLE_PIPELINING": "1",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    came = json.loads((base / "came.json").read_text())
    return {name: (directory, came[name]) for name, directory in directories.items()}


def written(directory: NodeDirectory) -> t.Optional[t.Dict[str, t.Any]]:
    """The drop-in; None where there is none."""
    path = directory.path(DROP_IN)
    return yaml.safe_load(path.read_text()) if path.exists() else None


@pytest.mark.parametrize("name", CASES)
def test_role(name: str, results: t.Dict[str, t.Tuple[NodeDirectory, t.Dict[str, t.Any]]]) -> None:
    case, (directory, came) = CASES[name], results[name]
    missing = [words for words in case.refusal if words not in (came["refusal"] or "")]
    assert not missing, came["refusal"]
    assert directory.state == case.state
    if case.refusal:
        assert written(directory) is None
        return
    assert came["refusal"] is None
    assert (came["first"]["action"], came["first"]["restart_needed"]) == (case.action, case.action != "none")
    assert written(directory) == (None if case.written is None else {**HEADER, **case.written})
    if "again" in case.variables:
        assert (came["second"]["action"], came["second"]["restart_needed"]) == ("none", False)
