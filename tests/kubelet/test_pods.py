# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that an API server bound to the node: admitted, pinned, and judged again after the machine has changed.

Their sandboxes need not start: a pin is written on admission.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import typing as t

import pytest

from .cases import DIFFERENT, IMAGE, RELEASES, memory, static
from .harness import apiserver as api, judge, lab
from .harness.kubelet import Outcome, Surroundings, kubelet, try_start
from .harness.node import Node, NodeDirectory
from .harness.topology import GIB, MIB, TWO_NODES, NumaNode

Sizes = t.Mapping[str, t.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Workload:
    """Pods, as memory in GiB by pod and container; names that begin with `init` are init containers.

    `recorded` is what the file then says where that is not what was asked for; `affinities` are those it may name.
    """

    name: str
    pods: Sizes
    affinities: tuple[tuple[int, ...], ...]
    recorded: Sizes = dataclasses.field(default_factory=dict)


WORKLOADS = [
    Workload(
        "pods on single nodes",
        {"cache": {"app": 20}, "database": {"db": 18, "exporter": 1}, "staged": {"init": 4, "app": 3}},
        ((0,), (1,)),
        # what the init container gives to the next is not charged twice
        {"staged": {"init": 1, "app": 3}},
    ),
    Workload("a pod across nodes", {"wide": {"app": 40}}, ((0, 1),)),
]
# with several workers: one API server, and each workload once
pytestmark = pytest.mark.xdist_group("pods")

KUBECONFIG = "/var/lib/kubelet/kubeconfig"
HALF = GIB * 16


@dataclasses.dataclass(frozen=True)
class Change:
    """What happened to the machine while its kubelet was down."""

    name: str
    node: t.Mapping[str, t.Any]
    verdict: str
    error: str | None = DIFFERENT


CHANGES = [
    Change("nothing", {}, "match", None),
    Change("a page less", {"topology": TWO_NODES.moved(n0=-4)}, "tolerable"),
    Change("the kernel image moved", {"topology": TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)}, "tolerable"),
    Change("the kernel image moved back", {"topology": TWO_NODES.moved(n0=IMAGE, n1=-IMAGE)}, "tolerable"),
    Change("a DIMM is gone", {"topology": TWO_NODES.moved(n1=-HALF)}, "refuse"),
    Change(
        "a NUMA node is gone",
        {"topology": TWO_NODES.without(1), "config": static(memory(n0="1000Mi"))},
        "refuse",
        "the memory assignment uses the NUMA that does not exist",
    ),
    Change(
        "huge pages were allocated",
        {"topology": TWO_NODES.changed({1: NumaNode(32 * GIB - 9 * MIB).with_pages(p2048=512)})},
        "refuse",
    ),
    Change("another reservation", {"config": static(memory(n0="1000Mi"))}, "refuse"),
    Change(
        "policy None",
        {"config": static(policy="None")},
        "unreadable",
        '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"',
    ),
]


@dataclasses.dataclass(frozen=True)
class Admitted:
    """A node whose pods have been admitted and whose kubelet has been stopped."""

    release: str
    workload: Workload
    directory: NodeDirectory
    state: str
    uids: t.Mapping[str, str]


def entries(state: str) -> dict[str, dict[str, list[dict[str, t.Any]]]]:
    found: dict[str, dict[str, list[dict[str, t.Any]]]] = json.loads(state).get("entries", {})
    return found


def all_admitted(server: api.Api, pods: t.Iterable[str]) -> bool:
    """Whether the kubelet has accepted every pod: only then the file is at rest.

    An allocation is several writes; a kubelet that is killed between two of them does not start again (see the table).
    """
    return all(server.pod(name)["status"].get("startTime") for name in pods)


def manifest(name: str, node: str, sizes: t.Mapping[str, int]) -> api.Document:
    limits = {container: {"cpu": "50m", "memory": f"{size}Gi"} for container, size in sizes.items()}
    init = {container: amounts for container, amounts in limits.items() if container.startswith("init")}
    return api.guaranteed_pod(name, node, {c: a for c, a in limits.items() if c not in init}, init)


def admit(
    server: api.Api, directory: NodeDirectory, release: str, workload: Workload, flags: t.Sequence[str], node: str
) -> Admitted:
    """Run the kubelet until all pods of a workload are admitted, and their pins in the file."""
    with kubelet(release, directory, [*flags, *directory.node.own_flags]) as running:
        assert running.outcome().started
        api.ready(server, node)
        uids = {pod: server.create_pod(manifest(pod, node, sizes)) for pod, sizes in workload.pods.items()}
        running.process.ready("all pods are admitted", lambda: all_admitted(server, uids))
    assert directory.state is not None
    return Admitted(release, workload, directory, directory.state, uids)


@pytest.fixture(
    scope="module",
    params=[(release, workload) for release in RELEASES for workload in WORKLOADS],
    ids=[f"{release}, {workload.name}" for release in RELEASES for workload in WORKLOADS],
)
def admitted(
    request: pytest.FixtureRequest, apiserver: api.Api, surroundings: Surroundings, lab_directory: pathlib.Path
) -> t.Iterator[Admitted]:
    """Admit the pods of a workload once per release."""
    release, workload = request.param
    node = "node-" + release.replace(".", "-")
    flags = (f"--kubeconfig={KUBECONFIG}", f"--hostname-override={node}")
    with lab.node_directory(lab_directory) as root:
        directory = NodeDirectory(root, Node(config=static(), flags=flags))
        directory.lay_out(surroundings.flags())
        directory.path(KUBECONFIG).write_text(apiserver.kubeconfig(), encoding="ascii")
        yield admit(apiserver, directory, release, workload, surroundings.flags(), node)
        for pod in workload.pods:
            apiserver.delete_pod(pod)
        apiserver.delete_node(node)


def changed_copy(admitted: Admitted, change: Change, root: pathlib.Path, flags: t.Sequence[str]) -> NodeDirectory:
    """The same node after the change: its directory is copied, so that changes do not add up."""
    shutil.copytree(admitted.directory.root / "var", root / "var", ignore=shutil.ignore_patterns("*.sock", "pods"))
    directory = NodeDirectory(root, dataclasses.replace(admitted.directory.node, **change.node))
    directory.lay_out(flags)
    return directory


def disagreements(change: Change, judgement: judge.Judgement, outcome: Outcome) -> t.Iterator[str]:
    if judgement.verdict != change.verdict:
        yield f"we: {judgement}; the table says {change.verdict}"
    if judgement.will_start is not outcome.started:
        yield f"we: {judgement}; kubelet: {outcome}"


def test_pins_are_in_the_file(admitted: Admitted) -> None:
    pins = entries(admitted.state)
    sizes = {
        name: {container: sum(block["size"] for block in blocks) >> 30 for container, blocks in pins[uid].items()}
        for name, uid in admitted.uids.items()
    }
    assert sizes == {**admitted.workload.pods, **admitted.workload.recorded}
    blocks = [block for pod in pins.values() for found in pod.values() for block in found]
    assert {tuple(block["numaAffinity"]) for block in blocks} == set(admitted.workload.affinities)


@pytest.mark.parametrize("change", CHANGES, ids=[change.name for change in CHANGES])
def test_start_after_change(
    change: Change,
    admitted: Admitted,
    surroundings: Surroundings,
    node_root: pathlib.Path,
    record_property: t.Callable[[str, object], None],
) -> None:
    directory = changed_copy(admitted, change, node_root, surroundings.flags())
    judgement = judge.judge(directory, admitted.release)
    outcome = try_start(admitted.release, directory, surroundings)
    record_property("outcome", str(outcome))
    assert outcome.started is (change.error is None), str(outcome)
    assert change.error is None or outcome.says(change.error), str(outcome)
    assert outcome.state == admitted.state
    wrong = list(disagreements(change, judgement, outcome))
    assert not wrong, "\n".join(wrong)


def test_restart_keeps_pods_and_pins(admitted: Admitted, apiserver: api.Api, surroundings: Surroundings) -> None:
    """The unchanged node comes back: Ready, the pods are the same, and so are their pins."""
    directory = admitted.directory
    with kubelet(admitted.release, directory, [*surroundings.flags(), *directory.node.own_flags]) as running:
        assert running.outcome().started
        running.process.ready("its pods are known again", lambda: admitted_again(running.process.log.lines, admitted))
    assert {name: apiserver.pod(name)["metadata"]["uid"] for name in admitted.uids} == dict(admitted.uids)
    assert directory.state is not None
    assert entries(directory.state) == entries(admitted.state)


def admitted_again(lines: t.Sequence[str], admitted: Admitted) -> bool:
    return all(any('"SyncLoop ADD"' in line and name in line for line in lines) for name in admitted.uids)
