# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance window, from the canary to the last node of the control plane, and every way in which it ends early."""

from __future__ import annotations

import json
import pathlib
import typing as t
from datetime import datetime, timedelta, timezone

import pytest
from kubelet.harness import apiserver as api
from kubelet.harness.topology import GIB, MIB, TWO_NODES
from systemd.controller import Controller, Run

from .conftest import TOKEN, make_controller
from .machines import Fleet, Machine

IMAGE = 45272
MOVED = TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)
LOSS = TWO_NODES.moved(n1=-16 * GIB)
BEGUN = "a reboot was begun and has not ended"
BY, REASON = "kubenode.memory/cordoned-by", "kubenode.memory/reason"
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
HEALTHY = ("currentHealthy", "desiredHealthy", "expectedPods")
NOBODY: tuple[bool, dict[str, str]] = (False, {})

NAMES = ("canary", "same", "cordoned", "dimm", "later", "doomed", "tight", "master")


def closed() -> list[dict[str, t.Any]]:
    """A window that was over an hour ago."""
    now = datetime.now(timezone.utc)
    start, end = ((now - timedelta(hours=hours)).strftime("%H:%M") for hours in (2, 1))
    return [{"start": start, "end": end, "tz": "UTC"}]


@pytest.fixture(scope="module")
def fleet(server: api.Api, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fleet]:
    root = tmp_path_factory.mktemp("machines")
    machines = []
    for name in NAMES:
        (root / name).mkdir()
        machines.append(Machine(name, root / name))
    found = {machine.name: machine for machine in machines}
    found["doomed"].memory = LOSS
    found["tight"].pinned = TWO_NODES.nodes[0].memory - 600 * MIB - 50 * MIB
    with Fleet(machines, server) as running:
        yield running


@pytest.fixture(scope="module")
def ansible(fleet: Fleet, server: api.Api, tmp_path_factory: pytest.TempPathFactory) -> Controller:
    return make_controller(tmp_path_factory.mktemp("controller"), server, fleet.machines.values())


def reboot(ansible: Controller, *arguments: str, **variables: t.Any) -> Run:
    return ansible.playbook("maintenance_reboot", *arguments, **{"node_reboot_ok": True, **variables})


def lines(run: Run) -> str:
    """The output as one line without Ansible's quotes."""
    return " ".join(run.output.split())


def test_nothing_is_touched_without_consent(ansible: Controller, fleet: Fleet) -> None:
    run = ansible.playbook("maintenance_reboot", memmgr_report_query="[?reboot.needed].host")
    assert run.code == 0, run.output
    assert "Need a reboot: canary, same, cordoned, dimm, later, doomed, tight, master" in run.output
    assert "Will be rebooted: none" in run.output
    assert "Would not come back even without drift: doomed" in run.output
    assert "Less room than the bound: tight (NUMA node 0 52428800 bytes)" in run.output
    assert "needs a reboot" in (run.report / "table.txt").read_text()
    assert len((run.report / "selected.limit").read_text().split()) == len(NAMES)
    assert fleet.order == []
    assert fleet.node("canary") == NOBODY


def test_window_from_the_canary_to_the_first_node_that_is_lost(
    ansible: Controller, fleet: Fleet, server: api.Api
) -> None:
    """Batches of 1 and 2; the second one loses a DIMM, so that the third is not begun."""
    fleet.machines["canary"].memory = MOVED
    fleet.machines["dimm"].memory = LOSS
    fleet.change("cordoned", spec={"unschedulable": True})
    server.create_pod(pod("web", "canary"))
    run = reboot(ansible, "-vvv", "--limit", "!tight:!same", memmgr_serial=[1, 2])
    assert run.code == 2, run.output
    assert TOKEN not in run.output
    assert fleet.order[0] == "canary"
    assert set(fleet.order[1:]) == {"cordoned", "dimm"}
    results = run.results()

    assert results["canary"]["reboot"]["status"] == "rebooted"
    assert results["canary"]["reboot"]["remedy"]["status"] == "rebaselined"
    assert results["canary"]["reboot"]["boot_ids"] == fleet.machines["canary"].boots
    assert fleet.node("canary") == NOBODY
    assert server.find(f"{api.PODS}/web") is None, "the node was not drained"
    assert fleet.node("cordoned") == (True, {}), "somebody else's cordon"
    assert results["cordoned"]["reboot"]["cordon"] == "kept"

    is_cordoned, annotations = fleet.node("dimm")
    assert is_cordoned
    assert annotations[BY].startswith("kubenode.memory.node_reboot ")
    assert annotations[REASON].startswith("did not come back: refuse: memory_changed, node 1 -16384.0 MiB")
    assert f"found {LOSS.nodes[1].memory << 10}" in annotations[REASON]
    assert results["dimm"]["summary"][:1000] == annotations[REASON]
    assert fleet.machines["dimm"].active_state == "activating"

    assert sorted(run.limit()) == ["dimm", "doomed", "later", "master"]
    assert (results["later"]["status"], results["later"]["summary"]) == ("not_started", "it is to be rebooted")
    assert fleet.node("later") == NOBODY


def test_rest_follows_and_the_control_plane_comes_last(ansible: Controller, fleet: Fleet) -> None:
    """The DIMM is back; whoever was left cordoned by an earlier run is uncordoned by this one."""
    fleet.machines["dimm"].memory = TWO_NODES
    fleet.restart(fleet.machines["dimm"])
    fleet.await_beat("dimm")
    fleet.change("master", metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})
    fleet.order.clear()
    limit = ("--limit", "dimm,later,master")
    run = reboot(ansible, *limit, memmgr_serial=["100%"], node_reboot_drain=False)
    assert run.code == 2, run.output
    assert (
        "labelled as part of the control plane, which the machine does not show" in run.results()["master"]["summary"]
    )
    assert sorted(fleet.order) == ["dimm", "later"]
    assert [fleet.node(name) for name in ("dimm", "later", "master")] == [NOBODY] * 3

    fleet.order.clear()
    run = reboot(ansible, "--limit", "master", node_reboot_control_plane=True)
    assert (run.code, fleet.order, run.limit()) == (0, [], ["master"]), run.output
    assert "set node_reboot_control_plane_ok" in run.results()["master"]["summary"]

    consent = {"node_reboot_control_plane": True, "node_reboot_control_plane_ok": True}
    run = reboot(ansible, "--limit", "master", **consent)
    assert (run.code, fleet.order, run.limit()) == (0, ["master"], []), run.output


def pod(name: str, node: str) -> api.Document:
    """A pod that a drain evicts."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "1", "controller": True}
    manifest = api.guaranteed_pod(name, node, {"app": {"cpu": "1m", "memory": "1Mi"}})
    manifest["metadata"].update(ownerReferences=[owner], labels={"app": name})
    return manifest


@pytest.fixture
def budget(server: api.Api) -> t.Iterator[str]:
    """A pod on `same` that its disruption budget keeps there; its name."""
    server.create_pod(pod("database", "same"))
    server.call("PATCH", f"{api.PODS}/database/status", {"status": RUNNING})
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    selector = {"matchLabels": {"app": "database"}}
    server.call("POST", path, {"metadata": {"name": "database"}, "spec": {"minAvailable": 1, "selector": selector}})
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, **dict.fromkeys(HEALTHY, 1)}
    server.call("PATCH", f"{path}/database/status", {"status": status})
    yield "database"
    server.call("DELETE", f"{path}/database")
    server.delete_pod("database")


def test_drain_that_a_budget_forbids(ansible: Controller, fleet: Fleet, server: api.Api, budget: str) -> None:
    fleet.order.clear()
    run = reboot(ansible, "--limit", "same")
    assert (run.code, fleet.order, run.limit()) == (2, [], ["same"]), run.output
    summary = run.results()["same"]["summary"]
    assert summary.startswith(
        "not rebooted: Node same was not drained within 20 s: Failed to delete pod default/database"
    )
    assert "disruption budget" in summary
    assert fleet.node("same") == NOBODY
    assert server.pod(budget)["metadata"].get("deletionTimestamp") is None


def test_drain_that_takes_too_long(ansible: Controller, fleet: Fleet, server: api.Api) -> None:
    """To kubernetes.core that is a warning; here it is the end."""
    slow = pod("slow", "later")
    slow["spec"]["terminationGracePeriodSeconds"] = 3600
    server.create_pod(slow)
    server.call("PATCH", f"{api.PODS}/slow/status", {"status": RUNNING})
    fleet.order.clear()
    run = reboot(ansible, "--limit", "later", node_reboot_drain_timeout=2)
    server.delete_pod("slow")
    assert (run.code, fleet.order, run.limit()) == (2, [], ["later"]), run.output
    assert "was not drained within 2 s: pods are still running" in run.results()["later"]["summary"]
    assert fleet.node("later") == NOBODY


DEAD = "https://127.0.0.1:9"
GOOD_HOOK = {"name": "good", "command": "true"}
EARLY_ENDS: list[tuple[str, dict[str, t.Any], str]] = [
    ("window", {"node_reboot_windows": closed()}, "not begun: the maintenance window is closed until "),
    (
        "hooks",
        {"node_reboot_hooks": [GOOD_HOOK, {"name": "alerts", "command": "false"}, {"name": "web", "url": DEAD}]},
        "not begun: hook failed: web (status -1), alerts (exit code 1)",
    ),
    ("name", {"memmgr_node_name": "later"}, "not rebooted: Node later of the API has the boot id "),
    ("nobody", {"memmgr_node_name": "nobody"}, "not rebooted: The API knows no node nobody; set memmgr_node_name"),
    ("api", {"memmgr_api": {"host": DEAD}}, "not rebooted: The API did not answer: "),
    ("rights", {"memmgr_api": {"api_key": "wrong"}}, "not rebooted: The API did not answer: "),
]


@pytest.mark.parametrize(("variables", "words"), [row[1:] for row in EARLY_ENDS], ids=[row[0] for row in EARLY_ENDS])
def test_early_ends(
    ansible: Controller, fleet: Fleet, server: api.Api, variables: dict[str, t.Any], words: str
) -> None:
    fleet.order.clear()
    if "memmgr_api" in variables:
        usual = {"host": f"https://127.0.0.1:{server.port}", "api_key": TOKEN, "validate_certs": False}
        variables = {"memmgr_api": {**usual, **variables["memmgr_api"]}}
    run = reboot(ansible, "--limit", "same", **variables)
    assert (run.code, fleet.order, run.limit()) == (2, [], ["same"]), run.output
    assert run.results()["same"]["summary"].startswith(words)
    assert [fleet.node(name) for name in ("same", "later")] == [NOBODY, NOBODY]


def test_check_mode_touches_nothing(ansible: Controller, fleet: Fleet) -> None:
    fleet.order.clear()
    run = reboot(ansible, "--check", "--limit", "same")
    assert (run.code, fleet.order, run.limit()) == (0, [], []), run.output
    assert run.results()["same"]["reboot"]["status"] == "planned"
    assert fleet.node("same") == NOBODY


def test_override_is_recorded_and_the_api_is_lost_on_the_way(
    ansible: Controller, fleet: Fleet, server: api.Api, tmp_path: pathlib.Path
) -> None:
    """The machine is back, and nobody can tell that the node is Ready: it stays cordoned, as its annotation says."""
    user = api.Api(server.port, TOKEN)
    file = tmp_path / "kubeconfig"
    file.write_text(user.kubeconfig())
    fleet.on_reboot = lambda _machine: (file.write_text(api.Api(9, TOKEN).kubeconfig()), None)[1]
    fleet.order.clear()
    run = reboot(
        ansible,
        *("--limit", "later"),
        memmgr_api={"kubeconfig": str(file)},
        node_reboot_windows=closed(),
        node_reboot_window_override="ticket 4711",
        node_reboot_ready_timeout=4,
        node_reboot_hooks=[GOOD_HOOK],
    )
    fleet.on_reboot = lambda _machine: None
    assert (run.code, fleet.order, run.limit()) == (2, ["later"], ["later"]), run.output
    assert run.results()["later"]["gate"]["override"] == "ticket 4711"
    assert run.results()["later"]["summary"].startswith("did not come back: ")
    is_cordoned, annotations = fleet.node("later")
    assert (is_cordoned, annotations[REASON]) == (True, BEGUN)


def test_machine_that_stays_down(ansible: Controller, fleet: Fleet) -> None:
    fleet.machines["same"].comes_back = False
    run = reboot(ansible, "--limit", "same", node_reboot_timeout=5)
    assert (run.code, run.limit()) == (2, ["same"]), run.output
    is_cordoned, annotations = fleet.node("same")
    assert is_cordoned
    assert annotations[REASON].startswith("did not come back: Timed out waiting for last boot time check")


def test_tasks_of_the_user_that_fail(ansible: Controller, fleet: Fleet, tmp_path: pathlib.Path) -> None:
    """Nobody knows in which state they left the machine: it is not rebooted, and stays cordoned."""
    file = tmp_path / "update.yml"
    file.write_text(json.dumps([{"name": "Update", "ansible.builtin.command": {"cmd": "false"}}]))
    fleet.order.clear()
    run = reboot(ansible, "--limit", "canary", node_reboot_tasks=str(file))
    assert (run.code, fleet.order, run.limit()) == (2, [], ["canary"]), run.output
    assert fleet.node("canary")[1][REASON].startswith("not rebooted: Update: non-zero return code")


def test_cluster_role_grants_no_more(server: api.Api) -> None:
    user = api.Api(server.port, TOKEN)
    assert user.call("GET", "/api/v1/nodes/canary")["metadata"]["name"] == "canary"
    for method, path in (
        ("GET", "/api/v1/nodes"),
        ("DELETE", "/api/v1/nodes/canary"),
        ("POST", "/api/v1/nodes"),
        ("PATCH", "/api/v1/nodes/canary/status"),
        ("DELETE", f"{api.PODS}/web"),
        ("POST", api.PODS),
        ("GET", "/api/v1/secrets"),
        ("GET", "/apis/policy/v1/poddisruptionbudgets"),
    ):
        with pytest.raises(api.ApiError) as refused:
            user.call(method, path, {})
        assert refused.value.status == 403, (method, path)
