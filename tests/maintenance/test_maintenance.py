# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance window, from the canary to the last node of the control plane, and every way in which it ends early.

Two stories, told in this order over one fleet. Runs of Ansible are what takes time, so each shows as much as it can.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t
from datetime import datetime, timedelta, timezone

import pytest
from kubelet.harness import apiserver as api
from kubelet.harness.topology import GIB, MIB, TWO_NODES
from systemd.controller import Controller, Run

from .conftest import TOKEN, api_variables, make_controller
from .machines import Fleet, Machine

IMAGE = 45272
MOVED = TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)
LOSS = TWO_NODES.moved(n1=-16 * GIB)
BEGUN = "a reboot was begun and has not ended"
BY, REASON = "kubenode.memory/cordoned-by", "kubenode.memory/reason"
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
HEALTHY = ("currentHealthy", "desiredHealthy", "expectedPods")
NOBODY: tuple[bool, dict[str, str]] = (False, {})
UNCORDON = pathlib.Path(__file__).resolve().parent / "uncordon.yml"
DEAD = "https://127.0.0.1:9"


@dataclasses.dataclass(frozen=True)
class Ending:
    """How it ends for a node that is named for what happens to it.

    With which words it begins, which are in it too, and with which reason it stays cordoned, if it does.
    """

    words: str
    detail: str = ""
    reason: str = ""
    variables: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)


WINDOW = ("canary", "cordoned", "dimm", "later", "doomed", "tight", "master")
ENDINGS = {
    "other": Ending(
        "not rebooted: Node later of the API is not this machine (both its boot id and its machine id are others)",
        variables={"memmgr_node_name": "later"},
    ),
    "silent": Ending("not rebooted: Node silent of the API has the boot id "),
    "unknown": Ending(
        "not rebooted: The API knows no node nobody; set memmgr_node_name", variables={"memmgr_node_name": "nobody"}
    ),
    "unreachable": Ending(
        "not rebooted: The API did not answer: ", "Connection refused", variables={"memmgr_api": {"host": DEAD}}
    ),
    "unauthorized": Ending(
        "not rebooted: The API did not answer: ", "Unauthorized", variables={"memmgr_api": {"api_key": "wrong"}}
    ),
    "labelled": Ending(
        "not rebooted: Node labelled is labelled as part of the control plane, which the machine does not show."
    ),
    "budget": Ending(
        "not rebooted: Node budget was not drained within 10 s: Failed to delete pod default/database due to: "
        "Cannot evict pod as it would violate the pod's disruption budget",
        variables={"node_reboot_drain_timeout": 10},
    ),
    "slow": Ending(
        "not rebooted: Node slow was not drained within 2 s: pods are still running",
        variables={"node_reboot_drain_timeout": 2},
    ),
    "tasks": Ending("not rebooted: Update: non-zero return code", reason="not rebooted: Update: non-zero return code"),
    "down": Ending(
        "did not come back: Timed out waiting for last boot time check",
        reason="did not come back: Timed out waiting for last boot time check",
        variables={"node_reboot_timeout": 5},
    ),
    "lost": Ending(
        "did not come back: ", "Connection refused", reason=BEGUN, variables={"node_reboot_ready_timeout": 4}
    ),
}


def closed() -> list[dict[str, t.Any]]:
    """A window that was over an hour ago."""
    now = datetime.now(timezone.utc)
    start, end = ((now - timedelta(hours=hours)).strftime("%H:%M") for hours in (2, 1))
    return [{"start": start, "end": end, "tz": "UTC"}]


@pytest.fixture(scope="module")
def fleet(server: api.Api, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fleet]:
    root = tmp_path_factory.mktemp("machines")
    machines = {}
    for name in (*WINDOW, *ENDINGS):
        (root / name).mkdir()
        machines[name] = Machine(name, root / name)
    machines["doomed"].memory = LOSS
    machines["tight"].pinned = TWO_NODES.nodes[0].memory - 600 * MIB - 50 * MIB
    with Fleet(list(machines.values()), server) as running:
        yield running


@pytest.fixture(scope="module")
def kubeconfig(server: api.Api, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What one of the nodes is reached with, as long as the API answers."""
    file = tmp_path_factory.mktemp("kubeconfig") / "config"
    file.write_text(api.Api(server.port, TOKEN).kubeconfig())
    return file


@pytest.fixture(scope="module")
def ansible(
    fleet: Fleet, server: api.Api, kubeconfig: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> Controller:
    directory = tmp_path_factory.mktemp("controller")
    tasks = directory / "update.yml"
    tasks.write_text(json.dumps([{"name": "Update", "ansible.builtin.command": {"cmd": "false"}}]))
    own = {name: dict(ending.variables) for name, ending in ENDINGS.items()}
    for variables in own.values():
        if "memmgr_api" in variables:
            variables["memmgr_api"] = {**api_variables(server), **variables["memmgr_api"]}
    own["tasks"]["node_reboot_tasks"] = str(tasks)
    own["lost"]["memmgr_api"] = {"kubeconfig": str(kubeconfig)}
    own["master"] = {"node_reboot_control_plane": True}
    return make_controller(directory, server, fleet.machines.values(), own)


def reboot(ansible: Controller, limit: t.Iterable[str], *arguments: str, **variables: t.Any) -> Run:
    chosen = ("--limit", ",".join(limit), "--forks", "12")
    return ansible.playbook("maintenance_reboot", *chosen, *arguments, **{"node_reboot_ok": True, **variables})


# --- from the canary to the control plane ----------------------------------------------------------------------------


def test_nothing_is_touched_without_consent(ansible: Controller, fleet: Fleet) -> None:
    run = reboot(ansible, WINDOW, node_reboot_ok=False, memmgr_report_query="[?reboot.needed].host")
    assert run.code == 0, run.output
    assert f"Need a reboot: {', '.join(WINDOW)}" in run.output
    assert "Will be rebooted: none" in run.output
    assert "Would not come back even without drift: doomed" in run.output
    assert "Less room than the bound: tight (NUMA node 0 52428800 bytes)" in run.output
    assert "needs a reboot" in (run.report / "table.txt").read_text()
    assert sorted((run.report / "selected.limit").read_text().split()) == sorted(WINDOW)
    assert "set node_reboot_control_plane_ok" in run.results()["master"]["summary"]
    assert fleet.order == []
    assert fleet.node("canary") == NOBODY


def test_check_mode_touches_nothing(ansible: Controller, fleet: Fleet) -> None:
    run = reboot(ansible, ["canary"], "--check")
    assert (run.code, fleet.order, run.limit()) == (0, [], []), run.output
    assert run.results()["canary"]["reboot"]["status"] == "planned"
    assert fleet.node("canary") == NOBODY


def test_window_from_the_canary_to_the_first_node_that_is_lost(
    ansible: Controller, fleet: Fleet, server: api.Api
) -> None:
    """Batches of 1 and 2; the second one loses a DIMM, so that the third is not begun."""
    fleet.machines["canary"].memory = MOVED
    fleet.machines["dimm"].memory = LOSS
    fleet.change("cordoned", spec={"unschedulable": True})
    server.create_pod(pod("web", "canary"))
    run = reboot(ansible, [name for name in WINDOW if name != "tight"], "-vvv", memmgr_serial=[1, 2])
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
    names = ["dimm", "later", "master"]
    variables = {"memmgr_serial": ["100%"], "node_reboot_drain": False, "node_reboot_control_plane_ok": True}
    run = reboot(ansible, names, **variables)
    assert (run.code, run.limit()) == (0, []), run.output
    assert (set(fleet.order[:2]), fleet.order[2:]) == ({"dimm", "later"}, ["master"])
    assert [fleet.node(name) for name in names] == [NOBODY] * 3


def pod(name: str, node: str) -> api.Document:
    """A pod that a drain evicts."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "1", "controller": True}
    manifest = api.guaranteed_pod(name, node, {"app": {"cpu": "1m", "memory": "1Mi"}})
    manifest["metadata"].update(ownerReferences=[owner], labels={"app": name})
    return manifest


# --- early ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"node_reboot_windows": closed()}, "not begun: the maintenance window is closed until "),
        (
            {
                "node_reboot_hooks": [
                    {"name": "good", "command": "true"},
                    {"name": "alerts", "command": "false"},
                    {"name": "web", "url": DEAD},
                ]
            },
            "not begun: hook failed: web (status -1), alerts (exit code 1)",
        ),
    ],
    ids=["window", "hooks"],
)
def test_batch_that_may_not_begin(ansible: Controller, fleet: Fleet, variables: dict[str, t.Any], words: str) -> None:
    fleet.order.clear()
    run = reboot(ansible, ["later"], **variables)
    assert (run.code, fleet.order, run.limit()) == (2, [], ["later"]), run.output
    assert run.results()["later"]["summary"].startswith(words)
    assert fleet.node("later") == NOBODY


@pytest.fixture(scope="module")
def endings(ansible: Controller, fleet: Fleet, server: api.Api, kubeconfig: pathlib.Path) -> Run:
    """One batch in which nothing goes well, in a window that does not count."""
    fleet.order.clear()
    fleet.change("later", spec={"unschedulable": True}, metadata={"annotations": {BY: "an earlier run"}})
    fleet.change("labelled", metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})
    fleet.machines["silent"].memory = MOVED
    fleet.restart(fleet.machines["silent"])
    fleet.machines["down"].comes_back = False
    keep_by_budget(server, "database", "budget")
    slow = pod("slow", "slow")
    slow["spec"]["terminationGracePeriodSeconds"] = 3600
    server.create_pod(slow)
    server.call("PATCH", f"{api.PODS}/slow/status", {"status": RUNNING})

    def lose_the_api(machine: Machine) -> None:
        if machine.name == "lost":
            kubeconfig.write_text(api.Api(9, TOKEN).kubeconfig())

    fleet.on_reboot = lose_the_api
    return reboot(
        ansible,
        ENDINGS,
        "-vvv",
        memmgr_serial=["100%"],
        node_reboot_windows=closed(),
        node_reboot_window_override="ticket 4711",
        node_reboot_hooks=[{"name": "good", "command": "true"}],
    )


def keep_by_budget(server: api.Api, name: str, node: str) -> None:
    """A pod that its disruption budget keeps on a node."""
    server.create_pod(pod(name, node))
    server.call("PATCH", f"{api.PODS}/{name}/status", {"status": RUNNING})
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    server.call("POST", path, {"metadata": {"name": name}, "spec": spec})
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, **dict.fromkeys(HEALTHY, 1)}
    server.call("PATCH", f"{path}/{name}/status", {"status": status})


def test_batch_in_which_nothing_goes_well(endings: Run, fleet: Fleet, server: api.Api) -> None:
    assert endings.code == 2, endings.output
    assert TOKEN not in endings.output
    assert sorted(fleet.order) == ["down", "lost"]
    assert sorted(endings.limit()) == sorted(ENDINGS)
    assert {result["gate"]["override"] for result in endings.results().values()} == {"ticket 4711"}
    assert server.pod("database")["metadata"].get("deletionTimestamp") is None
    assert fleet.node("later") == (True, {BY: "an earlier run"}), "the name that `other` is given by mistake"


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(endings: Run, fleet: Fleet, name: str) -> None:
    ending = ENDINGS[name]
    summary = endings.results()[name]["summary"]
    assert summary.startswith(ending.words)
    assert ending.detail in summary
    is_cordoned, annotations = fleet.node(name)
    if ending.reason:
        assert is_cordoned
        assert annotations[REASON].startswith(ending.reason)
    else:
        assert (is_cordoned, annotations) == NOBODY


def test_uncordon_gives_back_what_is_ours(ansible: Controller, fleet: Fleet, endings: Run) -> None:
    """A person has brought the node back; somebody else's cordon stays."""
    run = ansible.playbook(str(UNCORDON), "--limit", "tasks,cordoned")
    assert run.code == 0, run.output
    assert [fleet.node(name) for name in ("tasks", "cordoned")] == [NOBODY, (True, {})]


def test_cluster_role_grants_no_more(server: api.Api, fleet: Fleet) -> None:
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
