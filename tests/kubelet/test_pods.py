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

PODS: dict[str, dict[str, dict[str, str]]] = {
    "cache": {"app": {"cpu": "100m", "memory": "20Gi"}},
    "database": {"db": {"cpu": "100m", "memory": "18Gi"}, "exporter": {"cpu": "50m", "memory": "256Mi"}},
}
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
    directory: NodeDirectory
    state: str
    uids: t.Mapping[str, str]


def entries(state: str) -> dict[str, dict[str, list[dict[str, t.Any]]]]:
    found: dict[str, dict[str, list[dict[str, t.Any]]]] = json.loads(state).get("entries", {})
    return found


def all_pinned(directory: NodeDirectory, uids: t.Mapping[str, str]) -> str | None:
    """The state, once it has an entry for every container."""
    state = directory.state or "{}"
    wanted = {uid: set(PODS[name]) for name, uid in uids.items()}
    return state if {uid: set(found) for uid, found in entries(state).items()} == wanted else None


@pytest.fixture(scope="module", params=RELEASES)
def admitted(
    request: pytest.FixtureRequest, apiserver: api.Api, surroundings: Surroundings, lab_directory: pathlib.Path
) -> t.Iterator[Admitted]:
    """Admit the pods once per release."""
    release = str(request.param)
    name = "node-" + release.replace(".", "-")
    with lab.node_directory(lab_directory) as root:
        flags = (f"--kubeconfig={KUBECONFIG}", f"--hostname-override={name}")
        directory = NodeDirectory(root, Node(config=static(), flags=flags))
        directory.lay_out(surroundings.flags())
        directory.path(KUBECONFIG).write_text(apiserver.kubeconfig(), encoding="ascii")
        with kubelet(release, directory, [*surroundings.flags(), *directory.node.own_flags]) as running:
            assert running.outcome().started
            api.ready(apiserver, name)
            uids = {pod: apiserver.create_pod(api.guaranteed_pod(pod, name, PODS[pod])) for pod in PODS}
            state = running.process.ready("all pods are pinned", lambda: all_pinned(directory, uids))
        yield Admitted(release, directory, state, uids)
        for pod in PODS:
            apiserver.delete_pod(pod)
        apiserver.delete_node(name)


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


def test_every_container_is_pinned_to_one_node(admitted: Admitted) -> None:
    pins = entries(admitted.state)
    sizes = {
        name: {c: sum(block["size"] for block in blocks) for c, blocks in pins[uid].items()}
        for name, uid in admitted.uids.items()
    }
    assert sizes == {"cache": {"app": 20 << 30}, "database": {"db": 18 << 30, "exporter": 256 << 20}}
    nodes = [block["numaAffinity"] for pod in pins.values() for blocks in pod.values() for block in blocks]
    assert sorted(map(tuple, nodes)) == [(0,), (0,), (1,)] or sorted(map(tuple, nodes)) == [(0,), (1,), (1,)]


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
    assert {name: apiserver.pod(name)["metadata"]["uid"] for name in PODS} == dict(admitted.uids)
    assert directory.state is not None
    assert entries(directory.state) == entries(admitted.state)


def admitted_again(lines: t.Sequence[str], admitted: Admitted) -> bool:
    return all(any('"SyncLoop ADD"' in line and name in line for line in lines) for name in admitted.uids)
