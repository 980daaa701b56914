# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real kubelets as systemd units: they refuse after a drift, and the playbook brings them back with every pin kept.

The tests are one story, told in this order.
"""

from __future__ import annotations

import dataclasses
import time
import typing as t

import pytest
from kubelet.harness import apiserver as api
from kubelet.harness.process import until
from kubelet.harness.remote import STATE_FILE
from kubelet.harness.topology import GIB, TWO_NODES

from .controller import Controller
from .nodes import Node

IMAGE = 45272
MOVED = TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)
PAGES = TWO_NODES.moved(n0=-12)
REFUSAL = "the expected machine state is different from the real one"
PODS = ("cache", "database")
PODS_DIRECTORY = "/var/lib/kubelet/pods"
# Its lives are longer than the stable seconds of the test. The program itself is one of this machine's, mounted there.
SLOW_START = """set -e
mkdir -p /opt/real
cp /usr/bin/kubelet /opt/real/kubelet
printf '#!/bin/sh\\ncase $1 in --version) ;; *) sleep 4 ;; esac\\nexec /opt/real/kubelet "$@"\\n' >/opt/slow-kubelet
chmod 755 /opt/slow-kubelet
mount --bind /opt/slow-kubelet /usr/bin/kubelet
"""


@dataclasses.dataclass
class Story:
    """The pins and the pods of each node, as they were before anything happened."""

    entries: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    uids: dict[str, str] = dataclasses.field(default_factory=dict)


@pytest.fixture(scope="module")
def story(server: api.Api, workers: list[Node]) -> Story:
    """Pods that came and went: `early` held NUMA node 0 while `cache` was placed, and made room for `database`."""
    told = Story()
    for worker in workers:
        early = admit(server, worker, "early", "20Gi")
        told.uids[f"cache-{worker.node_name}"] = admit(server, worker, "cache", "18Gi")
        server.delete_pod(f"early-{worker.node_name}")
        until("early is gone", lambda w=worker, u=early: u not in w.exec("ls", PODS_DIRECTORY), 60)  # type: ignore[misc]
        told.uids[f"database-{worker.node_name}"] = admit(server, worker, "database", "12Gi")
        told.entries[worker.name] = worker.state["entries"]
        assert len(told.entries[worker.name]) == 2
    return told


def admit(server: api.Api, worker: Node, name: str, size: str) -> str:
    """Bind a Guaranteed pod to a node and wait until it is pinned; returns its UID."""
    limits = {"app": {"cpu": "50m", "memory": size}}
    uid = server.create_pod(api.guaranteed_pod(f"{name}-{worker.node_name}", worker.node_name, limits))
    until(f"{name} is pinned", lambda: uid in worker.state.get("entries", {}), 60)
    return uid


def reboot(worker: Node, topology: t.Any) -> None:
    """The kubelet stops, the machine is another, the kubelet starts by itself."""
    worker.systemctl("stop", "kubelet")
    worker.boot_with(topology)
    worker.systemctl("start", "kubelet")


def heartbeat(server: api.Api, worker: Node) -> tuple[str, str]:
    """(status, boot id) of the node in the API."""
    status = server.call("GET", f"/api/v1/nodes/{worker.node_name}")["status"]
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    return ready["status"], status["nodeInfo"]["bootID"]


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> t.Callable[[str], None]:
    """Print a line of the comparison past pytest's capture."""

    def say(line: str) -> None:
        with capsys.disabled():
            print("\n  " + line, end="")

    return say


def boot_id(worker: Node) -> str:
    return worker.read("/proc/sys/kernel/random/boot_id").strip()


def test_kubelets_refuse_after_a_drift(workers: list[Node], story: Story) -> None:
    for worker in workers:
        reboot(worker, MOVED)
    for worker in workers:
        worker.await_crash_loop()
        assert REFUSAL in worker.log()


def test_check_mode_touches_nothing(ansible: Controller, workers: list[Node], story: Story) -> None:
    before = [worker.read(STATE_FILE) for worker in workers]
    run = ansible.playbook("remediate", "--check", "--diff", memmgr_serial=["100%"])
    assert run.code == 0, run.output
    assert [worker.read(STATE_FILE) for worker in workers] == before
    assert all(worker.exec("ls", "/var/lib", check=False).find("kubenode-memory") < 0 for worker in workers)
    assert "NUMA node 0  memory  total" in run.output
    assert "is in use" not in run.output, "the role stops the kubelet before it writes"
    assert all(run.results()[worker.name]["remedy"]["status"] == "planned" for worker in workers)


def test_remediate_brings_them_back(ansible: Controller, server: api.Api, workers: list[Node], story: Story) -> None:
    run = ansible.playbook("remediate", "-vvv", memmgr_serial=["100%"])
    assert run.code == 0, run.output
    assert api.TOKEN not in run.output
    for worker in workers:
        assert run.results()[worker.name]["remedy"]["status"] == "rebaselined"
        assert run.results()[worker.name]["verdict"] == "match"
        assert worker.unit("ActiveState")["ActiveState"] == "active"
        assert heartbeat(server, worker) == ("True", boot_id(worker))
        assert worker.state["entries"] == story.entries[worker.name]
        assert worker.state["machineState"]["0"]["memoryMap"]["memory"]["total"] == MOVED.nodes[0].memory * 1024
        assert "data" in worker.state or worker.release < "v1.37"
    assert {name: server.pod(name)["metadata"]["uid"] for name in story.uids} == story.uids
    assert run.limit() == []


def test_second_run_changes_nothing(ansible: Controller, workers: list[Node], story: Story) -> None:
    """Nor is a healthy kubelet stopped: memory that changes under it counts at its next start."""
    changed, same = workers
    before = [(worker.unit("InvocationID", "NRestarts"), worker.read(STATE_FILE)) for worker in workers]
    changed.boot_with(TWO_NODES)
    run = ansible.playbook("remediate", memmgr_serial=["100%"])
    changed.boot_with(MOVED)
    assert run.code == 0, run.output
    assert [(worker.unit("InvocationID", "NRestarts"), worker.read(STATE_FILE)) for worker in workers] == before
    assert [run.recap(worker.name)["changed"] for worker in workers] == [0, 0]
    assert run.results()[changed.name]["remedy"]["status"] == "left_running"
    assert run.results()[same.name]["verdict"] == "match"


def test_crash_loop_with_long_lives_is_no_healthy_kubelet(
    ansible: Controller, workers: list[Node], story: Story
) -> None:
    """On a slow machine a kubelet that is about to refuse its file is active for longer than the stable seconds."""
    slow = workers[0]
    slow.exec("sh", "-c", SLOW_START)
    reboot(slow, TWO_NODES)
    until("systemd has restarted it", lambda: slow.unit("NRestarts")["NRestarts"] != "0", 60)
    settings = {"kubelet_restart_stable_seconds": 2, "kubelet_restart_healthz_url": ""}
    run = ansible.playbook("look.yml", "--limit", slow.name, **settings)
    slow.exec("umount", "/usr/bin/kubelet")
    assert run.code == 0, run.output


def test_failed_start_stops_the_run_and_harms_no_other(
    ansible: Controller, server: api.Api, workers: list[Node], story: Story
) -> None:
    """The judgement cannot know that the container runtime is broken on one node."""
    broken, sound = workers
    for worker in workers:
        reboot(worker, PAGES)
    for worker in workers:
        worker.await_crash_loop()
    broken.systemctl("mask", "--runtime", "--now", "containerd.service")
    run = ansible.playbook("remediate", memmgr_serial=["100%"], kubelet_restart_timeout=16)
    assert run.code == 2, run.output
    assert run.limit() == [broken.name]
    assert run.results()[broken.name]["remedy"]["status"] == "failed"
    assert run.results()[sound.name]["verdict"] == "match"
    assert heartbeat(server, sound) == ("True", boot_id(sound))
    broken.systemctl("unmask", "--runtime", "containerd.service")
    broken.systemctl("start", "containerd.service")
    until("systemd has brought it back", lambda: heartbeat(server, broken) == ("True", boot_id(broken)), 60)
    for worker in workers:
        assert worker.state["entries"] == story.entries[worker.name]


def test_side_by_side_with_deleting_the_file(
    ansible: Controller, server: api.Api, workers: list[Node], story: Story, record: t.Callable[[str], None]
) -> None:
    """The same node, the same drift and the same loss, with what people do today; the guide has the table."""
    worker, pins = workers[0], story.entries[workers[0].name]
    kept = worker.read(STATE_FILE)
    rows = {}
    for event, topology in (("drift", MOVED), ("loss", TWO_NODES.moved(n1=-8 * GIB))):
        for way, playbook in (("remediate", "remediate"), ("delete", "delete.yml")):
            worker.systemctl("stop", "kubelet")
            worker.exec("sh", "-c", f"cat >{STATE_FILE}", stdin=kept)
            reboot(worker, topology)
            worker.await_crash_loop()
            begin = time.monotonic()
            run = ansible.playbook(playbook, "--limit", worker.name)
            seconds = time.monotonic() - begin
            assert run.code == 0, run.output
            comes_up = (event, way) != ("loss", "remediate")
            if not comes_up:
                worker.await_crash_loop()
            rows[event, way] = same = pins_kept(worker, pins, comes_up)
            phases = [server.pod(f"{pod}-{worker.node_name}")["status"]["phase"] for pod in PODS]
            kept_pins, unit = f"{same} of {len(pins)} pins kept", "up" if comes_up else "down"
            record(f"{event:<6} {way:<10} {kept_pins}, unit {unit}, pods {'/'.join(phases)}, {seconds:.0f} s")
    assert rows["drift", "remediate"] == rows["loss", "remediate"] == 2
    assert rows["drift", "delete"] < 2


def pins_kept(worker: Node, pins: t.Mapping[str, t.Any], comes_up: bool) -> int:
    """How many pods have the pins that they had, once a kubelet that comes up has met all of them again."""
    if comes_up:
        until("its pods are met again", lambda: all(name in worker.additions() for name in PODS), 60)
    found = worker.state.get("entries", {})
    return sum(found.get(uid) == pins[uid] for uid in pins)


def restarts(worker: Node) -> int:
    """How often systemd has started the kubelet again; somebody's stop or start makes it zero."""
    return int(worker.unit("NRestarts")["NRestarts"])


def test_real_loss_is_reported_and_reset_by_decision_only(
    ansible: Controller, server: api.Api, workers: list[Node], story: Story
) -> None:
    worker = workers[1]
    before = worker.read(STATE_FILE)
    reboot(worker, TWO_NODES.moved(n1=-16 * GIB))
    worker.await_crash_loop()
    restarted = restarts(worker)

    run = ansible.playbook("remediate", "--limit", worker.name)
    assert run.code == 0, run.output
    assert run.results()[worker.name]["verdict"] == "refuse"
    assert run.limit() == [worker.name]
    codes = [one["code"] for one in run.results()[worker.name]["findings"] if one["severity"] == "stops_start"]

    refused = ansible.playbook("reset_refused.yml", "--limit", worker.name, reset_codes=codes)
    assert refused.code == 0, refused.output
    assert worker.read(STATE_FILE) == before
    assert restarts(worker) > restarted, "nobody has stopped it"

    for pod in PODS:
        server.delete_pod(f"{pod}-{worker.node_name}")
    done = ansible.playbook("reset.yml", "--limit", worker.name, reset_codes=codes)
    assert done.code == 0, done.output
    assert heartbeat(server, worker) == ("True", boot_id(worker))
    assert "entries" not in worker.state
    backup = worker.exec("sh", "-c", "cat $(ls -d /var/lib/kubenode-memory/backups/* | tail -n 1)")
    assert backup == before
