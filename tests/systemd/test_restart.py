# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed restart puts back, whose readiness counts, and units that are more than a kubelet.

After test_remediate, with the same two nodes; the last test takes their kubelets away.
"""

from __future__ import annotations

import datetime
import hashlib
import pathlib
import typing as t

from kubelet.cases import BYTES_PER_MIB, RESERVED, memory, static
from kubelet.harness import apiserver as api, state as states
from kubelet.harness.node import document
from kubelet.harness.remote import STATE_FILE
from kubelet.harness.topology import TWO_NODES

from . import fleet
from .controller import Controller
from .nodes import MACHINE, Node

CONFIG = "/var/lib/kubelet/config.yaml"
BACKUP = "/root/config.yaml"
OTHER_SUM = document(static(memory(n0="600Mi", n1="300Mi"), more=MACHINE))
# Nothing that the memory manager knows of: the kubelet ends before it has one.
NO_CERTIFICATES = MACHINE.replace("authentication: {", "authentication: {x509: {clientCAFile: /nowhere/ca.crt}, ")
OTHER_RESERVATION = {0: 500 * BYTES_PER_MIB, 1: 500 * BYTES_PER_MIB}


def content_sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_up(server: api.Api, worker: Node) -> bool:
    api.ready(server, worker.node_name)
    return worker.unit("ActiveState", "SubState") == {"ActiveState": "active", "SubState": "running"}


def test_a_configuration_that_fails_is_put_back(
    ansible: Controller, server: api.Api, workers: list[Node], lab_root: pathlib.Path
) -> None:
    """Known to fail: the unit is not touched. Found to fail: the node is started again with what was there before."""
    known, found = workers
    for worker in workers:
        worker.exec("cp", CONFIG, BACKUP)
    good = [worker.read(STATE_FILE) for worker in workers]
    before = known.unit("InvocationID")
    known.write(CONFIG, OTHER_SUM)
    found.write(CONFIG, document(static(memory(n0="500Mi", n1="500Mi"), more=NO_CERTIFICATES)))
    found.write("/root/state", good[1])
    ours = states.v1(states.of_machine(found.topology, OTHER_RESERVATION))
    found.exec("sh", "-c", f"cat >{STATE_FILE}", stdin=ours)

    run = ansible.playbook(
        "restart.yml",
        kubelet_restart_timeout=16,
        kubelet_restart_restore=[{"path": CONFIG, "backup": BACKUP}, {"path": "/etc/never-was-there"}],
        kubelet_restart_restore_state={"sha256": content_sha256(ours), "backup": "/root/state"},
    )

    assert run.code == 2, run.output
    refused, failed = (run.messages(worker.name) for worker in workers)
    assert "so its unit is not touched: refuse" in refused
    assert "then what had been changed was put back, and the kubelet was not touched" in refused
    assert "Wait until the " in failed
    assert "then what had been changed was put back, and the kubelet runs with it" in failed
    assert [worker.read(CONFIG) for worker in workers] == [worker.read(BACKUP) for worker in workers]
    assert [worker.read(STATE_FILE) for worker in workers] == good, "the first one is not the file that was written"
    assert known.unit("InvocationID") == before
    assert all(is_up(server, worker) for worker in workers)


# --- whose readiness counts ------------------------------------------------------------------------------------------


MACHINE_ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"


def time_from_now(seconds: int) -> str:
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def register(server: api.Api, name: str, heartbeat: int, lease: int | None, boot_id: str) -> None:
    """A Node object whose heartbeat and lease are so many seconds from now."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    server.call("POST", "/api/v1/nodes", node)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": time_from_now(heartbeat)}
    info = dict.fromkeys(
        ("architecture", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion")
        + ("machineID", "operatingSystem", "osImage", "systemUUID"),
        "other",
    )
    status = {"conditions": [ready], "nodeInfo": {**info, "bootID": boot_id}}
    server.call("PUT", f"/api/v1/nodes/{name}/status", {**node, "status": status})
    if lease is not None:
        renewed = time_from_now(lease).replace("Z", ".000000Z")
        server.call(
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name},
                "spec": {"holderIdentity": name, "renewTime": renewed},
            },
        )


def test_ready_means_a_heartbeat_or_a_lease_later_than_the_start(server: api.Api, tmp_path: pathlib.Path) -> None:
    """And the boot id of the node: one whose name is another machine's is not touched at all."""
    names = ("by-heartbeat", "by-lease", "by-neither", "of-another")
    this_boot = "0b4b8dd4-5b4c-4a59-9d1f-9b0f5f4f7a11"
    hosts, ansible = fleet.make(
        tmp_path,
        ["tolerable"] * len(names),
        [{"memmgr_node_name": name} for name in names],
        memmgr_api={"host": f"https://127.0.0.1:{server.port}", "api_key": api.TOKEN, "validate_certs": False},
        kubelet_restart_timeout=2,
    )
    for host in hosts:
        host.identify(this_boot, MACHINE_ID)
    original = hosts[0].sha256()
    later, earlier = 3600, -3600
    register(server, "by-heartbeat", later, earlier, this_boot)
    register(server, "by-lease", earlier, later, this_boot)
    register(server, "by-neither", earlier, None, this_boot)
    register(server, "of-another", later, later, "another-boot")

    run = ansible.playbook("remediate", memmgr_serial=["100%"])

    results = [run.results()[host.name] for host in hosts]
    assert [one["remedy"]["status"] for one in results] == ["rebaselined", "rebaselined", "failed", "failed"], (
        run.output
    )
    assert "Node by-neither is not Ready" in results[2]["summary"]
    assert "Node of-another of the API is not this machine" in results[3]["summary"]
    assert (hosts[3].sha256(), hosts[3].events()) == (original, [])
    assert all(host.sha256() != original for host in hosts[:3])
    for name in names:
        server.delete_node(name)


# --- k3s and RKE2 ----------------------------------------------------------------------------------------------------

# Its kubelet is a part of it that it tries again and again, while the unit is active; healthy once it has started.
SUPERVISOR = """#!/bin/sh
case $1 in server | agent) ;; *) echo "{name} version v1.34.4+{name}1 (0123abc)"; exit ;; esac
until grep -q '"total":{total},' {state_file}; do sleep 0.5; done
mkdir -p /run/healthz && echo ok >/run/healthz/healthz
python3 -m http.server --bind 127.0.0.1 --directory /run/healthz 10248 &
wait
"""
SUPERVISOR_UNIT = "[Service]\nExecStart=/usr/local/bin/{name} {role}\nRestart=always\n"
MOVED = TWO_NODES.moved(n0=-45272, n1=45272)


def become(worker: Node, name: str, role: str, unit: str) -> str:
    """Take the kubelet away and run a supervisor in its place, whose state file is that of other memory."""
    worker.systemctl("disable", "--now", "kubelet.service")
    worker.exec("rm", "-rf", "/etc/systemd/system/kubelet.service", "/var/lib/kubenode-memory", CONFIG)
    worker.boot_with(MOVED)
    recorded = states.v1(states.of_machine(TWO_NODES, RESERVED))
    worker.exec("sh", "-c", f"cat >{STATE_FILE}", stdin=recorded)
    total = MOVED.nodes[0].memory * 1024
    worker.write(f"/usr/local/bin/{name}", SUPERVISOR.format(name=name, total=total, state_file=STATE_FILE))
    worker.exec("chmod", "755", f"/usr/local/bin/{name}")
    worker.write(f"/etc/systemd/system/{unit}", SUPERVISOR_UNIT.format(name=name, role=role))
    drop_in = f"/var/lib/rancher/{name}/agent/etc/kubelet.conf.d/50-memory-manager.conf"
    worker.write(drop_in, document(static()))
    worker.systemctl("daemon-reload")
    worker.systemctl("start", unit)
    return recorded


def test_the_whole_unit_of_a_supervisor_and_a_control_plane_by_consent_only(
    ansible: Controller, workers: list[Node]
) -> None:
    server, agent = workers
    recorded = become(server, "k3s", "server", "k3s.service")
    become(agent, "rke2", "agent", "rke2-agent.service")

    def process(worker: Node, unit: str) -> str:
        return worker.exec("systemctl", "show", "--property=InvocationID,MainPID,ActiveState", unit)

    before = [process(server, "k3s.service"), process(agent, "rke2-agent.service")]
    shared: dict[str, t.Any] = {
        "memmgr_api": {},
        "memmgr_serial": ["100%"],
        "memmgr_validate_kubelet_version": "v1.34.4",
        "kubelet_restart_timeout": 20,
    }

    run = ansible.playbook("remediate", **shared)

    assert run.code == 2, run.output
    assert run.results()[server.name]["remedy"]["status"] == "failed"
    assert "k3s.service runs the control plane too; set kubelet_restart_control_plane_ok" in run.output
    assert (server.read(STATE_FILE), process(server, "k3s.service")) == (recorded, before[0])
    assert run.results()[agent.name]["remedy"]["status"] == "rebaselined"
    after = process(agent, "rke2-agent.service")
    assert "ActiveState=active" in after
    assert after != before[1], "the file is written only while no process of the unit is left"

    run = ansible.playbook("remediate", "--limit", server.name, kubelet_restart_control_plane_ok=True, **shared)

    assert run.code == 0, run.output
    assert run.results()[server.name]["verdict"] == "match"
    assert process(server, "k3s.service") != before[0]
