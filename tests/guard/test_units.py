# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard before real kubelets that are systemd units: installed by the playbook, through boots, and removed."""

from __future__ import annotations

import json

import pytest
from kubelet.cases import RELEASES

from . import boots
from .boots import BOOTS, Boot, Outcome
from .conftest import Fleet, Installation, files

pytestmark = pytest.mark.xdist_group("nodes")

Outcomes = dict[tuple[str, str], Outcome]
each_boot = pytest.mark.parametrize("boot", BOOTS, ids=lambda boot: boot.name)
each_release = pytest.mark.parametrize("release", RELEASES)
VERDICTS = {"match": "match", "rebaselined": "tolerable", "refuse": "refuse"}
JUDGED = tuple(boot for boot in BOOTS if not boot.disabled)


def test_check_mode_shows_the_files_and_writes_nothing(installation: Installation) -> None:
    assert installation.checked.code == 0, installation.checked.output
    assert installation.files_after_check == installation.files_before
    assert "+ExecStartPre=-+/usr/local/sbin/kubenode-memory-guard run --unit %n" in installation.checked.output
    assert {result["guard"]["status"] for result in installation.checked.results().values()} == {"planned"}


def test_the_playbook_installs_without_a_restart(fleet: Fleet, installation: Installation) -> None:
    assert installation.installed.code == 0, installation.installed.output
    for result in installation.installed.results().values():
        assert (result["guard"]["status"], result["guard"]["unit"]) == ("installed", "kubelet.service")
    for worker in fleet.workers:
        drop_ins = worker.unit("DropInPaths", "NeedDaemonReload")
        assert "50-kubenode-memory-guard.conf" in drop_ins["DropInPaths"]
        assert drop_ins["NeedDaemonReload"] == "no"


def test_a_second_run_changes_nothing(fleet: Fleet, installation: Installation) -> None:
    assert installation.repeated.code == 0, installation.repeated.output
    name = fleet.workers[-1].name
    assert installation.repeated.recap(name)["changed"] == 0, installation.repeated.output
    assert installation.repeated.results()[name]["guard"]["status"] == "unchanged"


def test_no_kubelet_was_restarted(installation: Installation) -> None:
    assert installation.kubelets_after == installation.kubelets_before


@each_release
@each_boot
def test_boot(boot: Boot, release: str, outcomes: Outcomes) -> None:
    """Drift within the bound: the first attempt succeeds. Else the kubelet's own error, and the file as it was."""
    outcome = outcomes[boot.name, release]
    assert outcome.is_up == boot.comes_back, outcome.journal
    if boot.comes_back:
        assert outcome.attempts == 1, outcome.journal
    else:
        assert outcome.after == outcome.before
        assert any(boot.error in error for error in outcome.kubelet_errors), outcome.journal


@each_release
@each_boot
def test_the_journal_says_why(boot: Boot, release: str, outcomes: Outcomes) -> None:
    outcome = outcomes[boot.name, release]
    # systemd counts a start before the guard of that start has run
    assert len(outcome.guard_lines) >= max(1, outcome.attempts - 1)
    assert f" code={boot.code} " in outcome.guard_lines[0], outcome.guard_lines


@each_release
@pytest.mark.parametrize("boot", JUDGED, ids=lambda boot: boot.name)
def test_metrics_are_set(boot: Boot, release: str, outcomes: Outcomes) -> None:
    found = boots.samples(outcomes[boot.name, release].metrics)
    verdict = VERDICTS[boot.code]
    assert [name for name, value in found.items() if "_verdict{" in name and value] == [
        f'kubenode_memory_guard_verdict{{verdict="{verdict}"}}'
    ]
    assert found["kubenode_memory_drift_tolerance_bytes"] == 121634816
    assert found["kubenode_memory_guard_will_start"] == boot.comes_back
    assert found["kubenode_memory_guard_last_run_success"] == 1
    recorded = json.loads(outcomes[boot.name, release].before)["machineState"]["0"]["memoryMap"]["memory"]["total"]
    drift = abs(boot.topology.nodes[0].memory * 1024 - recorded)
    assert found['kubenode_memory_drift_bytes{numa_node="0"}'] == drift


@each_release
def test_a_tolerated_drift_keeps_every_pin(release: str, outcomes: Outcomes) -> None:
    for boot in (boot for boot in BOOTS if boot.code == "rebaselined"):
        outcome = outcomes[boot.name, release]
        before, after = json.loads(outcome.before), json.loads(outcome.after)
        assert after["entries"] == before["entries"]
        totals = {node: tables["memoryMap"]["memory"]["total"] for node, tables in after["machineState"].items()}
        assert totals == {str(number): node.memory * 1024 for number, node in boot.topology.nodes.items()}


@each_release
def test_starts_are_counted_by_outcome(release: str, outcomes: Outcomes) -> None:
    """A start that somebody ends within a minute is no attempt; a boot whose every start was refused is one without."""
    last = boots.samples(outcomes[BOOTS[-1].name, release].metrics)
    refused = [boot for boot in BOOTS if boot.code == "refuse"]
    assert last['kubenode_memory_guard_boots_total{outcome="not_started"}'] == len(refused)
    assert last['kubenode_memory_guard_kubelet_starts_total{outcome="refused"}'] >= len(refused)
    assert last["kubenode_memory_guard_rebaselines_total"] == sum(boot.code == "rebaselined" for boot in BOOTS)
    assert (last["kubenode_memory_guard_start_pending"], last["kubenode_memory_guard_boot_attempts"]) == (1, 1)


@each_release
def test_slow_loss_shows_where_the_sum_passes_the_bound(release: str, outcomes: Outcomes) -> None:
    """Three boots that each lose 50 MiB, of a bound of 116."""
    lost = {
        name: boots.samples(outcomes[name, release].metrics)['kubenode_memory_cumulative_drift_bytes{numa_node="0"}']
        for name in ("loss-1", "loss-2", "loss-3")
    }
    assert list(lost.values()) == [50 << 20, 100 << 20, 150 << 20]
    said = {name: "cumulative_drift" in outcomes[name, release].guard_lines[0] for name in lost}
    assert list(said.values()) == [False, False, True]


def test_removal_leaves_no_trace(fleet: Fleet, installation: Installation, scraped: object) -> None:
    removed = fleet.install(memmgr_guard_state="absent")
    assert removed.code == 0, removed.output
    assert {result["guard"]["status"] for result in removed.results().values()} == {"removed"}
    assert fleet.each(files) == installation.files_before
    for worker in fleet.workers:
        unit = worker.unit("DropInPaths", "NeedDaemonReload")
        assert (unit["DropInPaths"], unit["NeedDaemonReload"]) == ("", "no")
