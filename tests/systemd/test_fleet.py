# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forty nodes: canary first, then batches; a node that fails stops the run, harms no other, and failed.limit goes on.

Also: no choice of tags goes round a gate (one of those that leave the same tasks is run), and a reset where there is
no API to ask.
"""

from __future__ import annotations

import pathlib
import shutil
import typing as t

import pytest

from . import controller, fleet, nodes, playbook_tags
from .fleet import Host

VERDICTS = ["refuse" if number in (7, 21) else "tolerable" if number % 6 == 0 else "match" for number in range(1, 41)]
BATCHES = [1, 2, 2]
STARTED = 5  # of the six that drifted
FAILING = "node24"
BATCH = "PLAY [Re-baseline, batch by batch]"
TAGS = [
    ("--tags", "memmgr_rebaseline"),
    ("--skip-tags", "always"),
    ("--skip-tags", "memmgr_validate"),
    ("--skip-tags", "kubelet_restart"),
    ("--skip-tags", "always,kubelet_restart"),
    ("--skip-tags", "memmgr_validate,kubelet_restart"),
]

WAYS_BY_TAGS = [
    ("--tags", "all"),
    ("--skip-tags", "always"),
    ("--skip-tags", "memmgr_validate"),
]
WAYS_ROUND = [
    *WAYS_BY_TAGS,
    ("--start-at-task", "*Refuse what is known to fail"),
    ("--start-at-task", "*See in which state the unit is"),
    ("--start-at-task", "*Bring the unit to its state*"),
]


def drifted(hosts: t.Iterable[Host]) -> list[Host]:
    return [host for host in hosts if host.verdict == "tolerable"]


def require_safe(host: Host, original: str) -> None:
    """The file is written only while the unit is stopped, a start has the new file, and no unit is left down."""
    assert host.active_state != "inactive", host.name
    events = host.events()
    if host.sha256() == original:
        assert all(event[0] != "restart" for event in events), host.name
        return
    assert [event[0] for event in events][:2] == ["stop", "start"], host.name
    stopped, started = events[0], events[1]
    assert stopped[2] == original, host.name
    assert started[2] == host.sha256(), host.name
    assert stopped[1] <= host.state_file.stat().st_ctime <= started[1], host.name


def test_forty_nodes_in_batches(tmp_path: pathlib.Path) -> None:
    hosts, ansible = fleet.make(tmp_path, VERDICTS)
    original = hosts[0].sha256()
    failing = next(host for host in hosts if host.name == FAILING)
    failing.break_unit()
    work = [host.name for host in drifted(hosts)]
    assert (len(hosts), len(work), work.index(FAILING)) == (40, 6, 3)

    run = ansible.playbook("remediate", "--forks", "4", memmgr_serial=BATCHES)

    assert run.code == 2, run.output
    first_times = {host.name: host.events()[0][1] for host in hosts if host.events()}
    done = sorted(first_times, key=first_times.__getitem__)
    assert done[0] == work[0], "the canary was not the first"
    assert set(done[:3]) == set(work[:3])
    assert set(done) == set(work[:STARTED]), "the run went on after the batch with the failed node"
    for host in hosts:
        require_safe(host, original)
        if host.name in work[:STARTED] and host is not failing:
            assert (host.active_state, host.sha256() != original) == ("active", True), host.name
        if host.name not in work[:STARTED]:
            assert (host.sha256(), host.events()) == (original, []), host.name
    assert run.results()[FAILING]["status"] == "failed"
    assert {run.results()[name]["status"] for name in work[STARTED:]} == {"not_started"}
    assert sorted(run.limit()) == sorted([FAILING, *work[STARTED:], "node07", "node21"])

    failing.break_unit(False)
    failing.set_unit("activating")
    again = ansible.playbook("remediate", "--forks", "4", "--limit", f"@{run.report}/failed.limit")

    assert again.code == 0, again.output
    assert again.output.count(BATCH) == 2, "by default one node, then 10 % of the two that are left"
    assert sorted(again.limit()) == ["node07", "node21"]
    for host in drifted(hosts):
        require_safe(host, original)
        assert host.sha256() != original, host.name
        assert host.active_state == "active" or host is failing, host.name
    assert sum(event[0] == "stop" for host in hosts for event in host.events()) == len(work)


@pytest.mark.parametrize("tags", TAGS, ids=" ".join)
def test_no_choice_of_tags_goes_round_a_gate(tags: tuple[str, str], tmp_path: pathlib.Path) -> None:
    hosts, ansible = fleet.make(tmp_path, ["tolerable", "refuse"])
    original = hosts[0].sha256()
    # Where the unit is not stopped, nobody may say that it is.
    stopped = "kubelet_restart" not in tags[1]
    run = ansible.playbook("remediate", *tags, memmgr_serial=["100%"], memmgr_rebaseline_kubelet_is_stopped=stopped)
    for host in hosts:
        require_safe(host, original)
    assert (hosts[1].sha256(), hosts[1].events()) == (original, []), run.output
    assert (hosts[0].sha256() != original) == (tags == ("--tags", "memmgr_rebaseline")), run.output


@pytest.mark.parametrize(
    ("playbook", "run"),
    [(controller.ROOT / "playbooks/remediate.yml", TAGS), (nodes.HERE / "restart.yml", WAYS_BY_TAGS)],
    ids=["remediate", "restart"],
)
def test_every_choice_of_tags_is_one_that_is_run(playbook: pathlib.Path, run: list[tuple[str, str]]) -> None:
    """It leaves the same tasks, or none that could touch a node."""
    every = [*playbook_tags.every_choice(), ("--tags", "all")]
    choices = playbook_tags.chosen(playbook, every, controller.collections_path())
    assert len(choices) == 63
    known = {choices[tags] for tags in run}
    assert all(choices[tags].may_touch_a_node for tags in run), "it need not be run"
    for choice, tasks in choices.items():
        assert tasks in known or not tasks.may_touch_a_node, choice


@pytest.mark.parametrize("way", WAYS_ROUND, ids=" ".join)
def test_no_way_round_the_gate_of_a_restart(way: tuple[str, str], tmp_path: pathlib.Path) -> None:
    hosts, ansible = fleet.make(tmp_path, ["refuse", "match"])
    run = ansible.playbook("restart.yml", *way)
    assert (hosts[0].events(), hosts[0].active_state) == ([], "activating"), run.output
    judged = way == ("--tags", "all")
    assert [event[0] for event in hosts[1].events()] == (["restart"] if judged else []), run.output
    assert run.code or way[0] == "--start-at-task", run.output
    assert not judged or "The kubelet would not start, so its unit is not touched: refuse" in run.output
    assert "--skip-tags" not in way or "The kubelet was not judged" in run.output


def test_a_killed_run_is_finished_by_the_next(tmp_path: pathlib.Path) -> None:
    """Left by a run that was killed between its stop and its start: a node whose file is right, and a note."""
    hosts, ansible = fleet.make(tmp_path, ["match", "match"])
    for host in hosts:
        host.set_unit("inactive")
        shutil.rmtree(host.root / "proc/4242")
    (hosts[0].root / "run/kubenode-memory.stopped").write_text("activating\n")
    run = ansible.playbook("remediate", memmgr_serial=["100%"])
    assert run.code == 0, run.output
    assert [host.active_state for host in hosts] == ["active", "inactive"]
    assert not (hosts[0].root / "run/kubenode-memory.stopped").exists()


OTHER_POD = "0c7a7f0e-58a8-4d5c-b0b4-6d1f9a3b2e55"
PODS_DIRECTORY = "var/lib/kubelet/pods"
# verdict, accepted codes, what there is of pods, why it is refused ("" where it is not)
RESETS = [
    ("refuse", ["memory_changed"], "", ""),
    ("refuse", ["memory_changed"], f"{PODS_DIRECTORY}/{OTHER_POD}", ""),
    ("refuse", ["memory_changed"], f"{PODS_DIRECTORY}/{fleet.POD}", f"The node is not drained: pods {fleet.POD}."),
    (
        "refuse",
        ["memory_changed"],
        f"sys/fs/cgroup/kubepods.slice/kubepods-pod{OTHER_POD.replace('-', '_')}.slice",
        f"The node is not drained: pods {OTHER_POD}.",
    ),
    ("unreadable", ["state_not_json"], f"{PODS_DIRECTORY}/{OTHER_POD}", f"The node is not drained: pods {OTHER_POD}."),
    ("unreadable", ["state_not_json"], "", ""),
    ("unreadable", ["memory_changed"], "", "Found but not accepted: state_not_json."),
    ("tolerable", ["memory_drift"], "", "The drift is tolerable; re-baseline the node instead"),
    ("match", ["memory_changed"], "", None),
]


def test_a_reset_without_an_api_wants_the_codes_and_a_drained_node(tmp_path: pathlib.Path) -> None:
    codes = [{"reset_codes": accepted} for _verdict, accepted, _pods, _why in RESETS]
    hosts, ansible = fleet.make(tmp_path, [row[0] for row in RESETS], codes)
    for host, (_verdict, _accepted, pods, _why) in zip(hosts, RESETS):
        (host.root / pods).mkdir(parents=True, exist_ok=True)
    before = [host.state_file.read_bytes() for host in hosts]

    run = ansible.playbook("reset.yml")

    assert run.code == 2, run.output
    for host, old, (_verdict, _accepted, _pods, why) in zip(hosts, before, RESETS):
        if why == "":
            assert not host.state_file.exists(), run.output
            assert [event[0] for event in host.events()] == ["stop", "start"], host.name
            (backup,) = (host.root / "var/lib/kubenode-memory/backups").iterdir()
            assert backup.read_bytes() == old, host.name
        else:
            assert why is None or why in run.messages(host.name), host.name
            assert (host.state_file.read_bytes(), host.events()) == (old, []), host.name
