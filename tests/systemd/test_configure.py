# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real kubelets as systemd units, configured live: what is written is in force, and what fails is taken back.

The tests are one story, told in this order.
"""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from kubelet.harness import apiserver as api
from kubelet.harness.process import until
from kubelet.harness.remote import STATE_FILE

from .controller import Controller
from .kubelet_port import reachable
from .nodes import Node

CONFIGZ = "/api/v1/nodes/{}/proxy/configz"
CONFIG = "/var/lib/kubelet/config.yaml"
DISK_SIGNALS = {
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
UNIT_DROP_IN = "/etc/systemd/system/kubelet.service.d/90-test.conf"
TAKEN_BACK = "what had been changed was put back, and the kubelet runs with it"
FIRST = {"kernel_memcg_notification": True, "eviction_hard": {"nodefs.available": "12%"}}
SOFT = {"eviction_soft": {"memory.available": "1Gi"}, "eviction_soft_grace_period": {"memory.available": "1m30s"}}
RAISED = {"eviction_hard": {"memory.available": "300Mi"}, "reserved_memory_from": "kubelet"}

Texts = t.Mapping[str, str]


@pytest.fixture(scope="module")
def originals(server: api.Api, workers: list[Node]) -> t.Iterator[Texts]:
    """The configuration of each node at first: comments, and every threshold of evictionHard by default."""
    with contextlib.ExitStack() as stack:
        for worker in workers:
            stack.enter_context(reachable(worker))
            text = worker.read(CONFIG).replace('evictionHard: {memory.available: "200Mi"}', "# by default")
            worker.write(CONFIG, text.replace('"500Mi"}', '"600Mi"}  # for the kubelet'))
            worker.systemctl("restart", "kubelet")
            until(f"{worker.name} answers", lambda: server.find(CONFIGZ.format(worker.node_name)), 90)  # noqa: B023
        yield {worker.name: worker.read(CONFIG) for worker in workers}


def configz(server: api.Api, worker: Node) -> dict[str, t.Any]:
    answer = server.call("GET", CONFIGZ.format(worker.node_name))
    return t.cast("dict[str, t.Any]", answer["kubeletconfig"])


def settings_of(run: t.Any, worker: Node) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", run.results()[worker.name]["settings"])


def configure(ansible: Controller, *arguments: str, **more: t.Any) -> t.Any:
    return ansible.playbook("configure", *arguments, memmgr_serial="100%", **more)


def test_a_run_that_was_cut_short_before_the_restart(
    ansible: Controller, server: api.Api, workers: list[Node], originals: Texts
) -> None:
    """As if the controller had died: the files are written, the kubelets run as they did."""
    for worker in workers:
        assert configz(server, worker)["evictionHard"] == {"memory.available": "100Mi", **DISK_SIGNALS}
    before = [worker.unit("InvocationID") for worker in workers]
    run = configure(ansible, memmgr_settings=FIRST, kubelet_memory_config_restart=False)
    assert run.code == 0, run.output
    assert [worker.unit("InvocationID") for worker in workers] == before
    for worker in workers:
        assert worker.read(CONFIG).startswith(originals[worker.name].rstrip("\n"))
        assert configz(server, worker)["evictionHard"]["nodefs.available"] == "10%"
        assert settings_of(run, worker)["verified"] is None


def test_the_next_run_restarts_and_verifies(ansible: Controller, server: api.Api, workers: list[Node]) -> None:
    texts = [worker.read(CONFIG) for worker in workers]
    run = configure(ansible, memmgr_settings=FIRST)
    assert run.code == 0, run.output
    assert [worker.read(CONFIG) for worker in workers] == texts
    for worker in workers:
        said = settings_of(run, worker)
        assert (said["status"], said["verified"], said["verified_by"]) == ("unchanged", True, "configz")
        running = configz(server, worker)
        assert running["evictionHard"] == {"memory.available": "100Mi", **DISK_SIGNALS, "nodefs.available": "12%"}
        assert running["kernelMemcgNotification"] is True
        tolerance = run.results()[worker.name]["configure"]
        assert (tolerance["status"], tolerance["needs_guard"]) == ("unsupported", True)
        assert "kubenode.memory.install_guard" in tolerance["summary"]
    assert api.TOKEN not in run.output


def test_a_further_run_changes_nothing(ansible: Controller, workers: list[Node]) -> None:
    before = [worker.unit("InvocationID", "NRestarts") for worker in workers]
    run = configure(ansible, memmgr_settings=FIRST)
    assert run.code == 0, run.output
    assert [worker.unit("InvocationID", "NRestarts") for worker in workers] == before
    assert all(run.recap(worker.name)["changed"] == 0 for worker in workers)


def test_what_fails_is_taken_back(ansible: Controller, server: api.Api, workers: list[Node]) -> None:
    """One kubelet does not start with the change, the other starts and does not take it; neither can be foreseen."""
    refuses, ignores = workers
    texts = [worker.read(CONFIG) for worker in workers]
    ignores.write("/root/shown.yaml", ignores.read(CONFIG))
    refuses.write(UNIT_DROP_IN, f"[Service]\nExecStartPre=/bin/sh -c '! grep -q evictionSoft {CONFIG}'\n")
    ignores.write(UNIT_DROP_IN, f"[Service]\nBindReadOnlyPaths=/root/shown.yaml:{CONFIG}\n")
    # Nobody has systemd load these units anew but the runs, here and in the next test.
    run = configure(ansible, memmgr_settings=SOFT, kubelet_restart_timeout=14)
    assert run.code == 2, run.output
    assert [worker.read(CONFIG) for worker in workers] == texts
    said = {worker.name: run.results()[worker.name]["configure"] for worker in workers}
    assert all(one["status"] == "failed" for one in said.values()), said
    assert all(TAKEN_BACK in one["summary"] for one in said.values())
    assert "evictionSoft.memory.available is not set, not 1Gi" in said[ignores.name]["summary"]
    assert sorted(run.limit()) == sorted(worker.name for worker in workers)
    for worker in workers:
        assert worker.unit("ActiveState")["ActiveState"] == "active"
        assert configz(server, worker)["evictionHard"]["nodefs.available"] == "12%"
        worker.exec("rm", UNIT_DROP_IN)


def test_given_back(ansible: Controller, server: api.Api, workers: list[Node], originals: Texts) -> None:
    run = configure(ansible, memmgr_settings_state="absent")
    assert run.code == 0, run.output
    for worker in workers:
        said = settings_of(run, worker)
        assert (said["status"], said["verified"]) == ("removed", True)
        assert worker.read(CONFIG) == originals[worker.name]
        running = configz(server, worker)
        assert running["evictionHard"] == {"memory.available": "100Mi", **DISK_SIGNALS}
        assert not running.get("kernelMemcgNotification")


def test_another_reservation_is_refused_as_long_as_the_state_file_is_there(
    ansible: Controller, workers: list[Node], originals: Texts
) -> None:
    run = configure(ansible, "--limit", workers[0].name, memmgr_settings=RAISED)
    assert run.code == 2, run.output
    assert "reset" in run.results()[workers[0].name]["configure"]["summary"]
    assert workers[0].read(CONFIG) == originals[workers[0].name]


def test_another_reservation_on_drained_nodes(ansible: Controller, server: api.Api, workers: list[Node]) -> None:
    """Without the API the log says what runs, where the kubelet logs it."""
    for worker in workers:
        worker.systemctl("stop", "kubelet")
        worker.exec("rm", STATE_FILE)
    run = configure(ansible, memmgr_settings=RAISED, memmgr_api={})
    assert run.code == 0, run.output
    for worker in workers:
        said = settings_of(run, worker)
        by_log = worker.release >= "v1.37"
        assert (said["status"], said["verified"]) == ("configured", True if by_log else None)
        running = configz(server, worker)
        assert running["evictionHard"] == {"memory.available": "300Mi", **DISK_SIGNALS}
        assert [entry["limits"] for entry in running["reservedMemory"]] == [{"memory": "600Mi"}] * 2
        recorded = worker.state["machineState"]["1"]["memoryMap"]["memory"]["systemReserved"]
        assert recorded == 600 << 20
