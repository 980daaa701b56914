# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd runs, in this process: what becomes of the node, the counters, the metrics and the line."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from rebaseline.node import BOOT, MIB, OURS, RECORDED, DriftedNode

from ansible_collections.kubenode.memory.plugins.module_utils import _guard_hooks as hooks
from ansible_collections.kubenode.memory.plugins.module_utils._guard_options import (
    Answer,
    Clock,
    Options,
    UsageError,
    hook_options,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import find_kubelet
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError

TEXTFILES = "/var/lib/textfiles"


class Unit:
    """The kubelet's unit on a node below a directory, and a clock."""

    def __init__(self, base: Path, **node: t.Any) -> None:
        self.node = DriftedNode(base, **node)
        version = self.node.release.lstrip("v")
        self.node.write("/var/lib/dpkg/status", f"Package: kubelet\nVersion: {version}-1.1\n\n")
        (base / TEXTFILES[1:]).mkdir(parents=True)
        self.seconds = 20.0
        self.invocation = "1"
        self.clock = Clock(lambda: 1_770_000_000 + self.seconds, lambda: self.seconds)

    def options(self, command: str) -> Options:
        return Options(command, host_root=str(self.node.base), unit="kubelet.service", textfile_directory=TEXTFILES)

    def run(self) -> Answer:
        return hooks.run(self.options("run"), {"INVOCATION_ID": self.invocation}, self.clock)

    def stopped(self, result: str) -> Answer:
        environment = {"INVOCATION_ID": self.invocation, "SERVICE_RESULT": result}
        return hooks.stopped(self.options("stopped"), environment, self.clock)

    def metric(self, name: str) -> t.Optional[int]:
        lines = (self.node.base / TEXTFILES[1:] / "kubenode_memory.prom").read_text().splitlines()
        found = [line.rpartition(" ")[2] for line in lines if line.rpartition(" ")[0] == "kubenode_memory_" + name]
        return int(found[0]) if found else None


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    return Unit(tmp_path)


def test_tolerable_is_rebaselined_and_shown_as_it_was_found(unit: Unit) -> None:
    answer = unit.run()
    assert (answer.data["code"], answer.data["verdict"], answer.data["will_start"]) == (
        "rebaselined",
        "tolerable",
        True,
    )
    assert answer.line.startswith("<5>kubenode-memory-guard: code=rebaselined verdict=tolerable will_start=true ")
    assert unit.metric('drift_bytes{numa_node="0"}') == 44 * MIB
    assert unit.metric('guard_verdict{verdict="tolerable"}') == 1
    assert unit.metric("guard_will_start") == 1
    assert unit.metric("guard_rebaselines_total") == 1
    assert unit.metric('cumulative_drift_bytes{numa_node="1"}') == 44 * MIB


def test_match_writes_no_state_file(unit: Unit) -> None:
    unit.run()
    before = unit.node.content, unit.node.state_file.stat().st_ino
    unit.invocation, unit.seconds = "2", 100
    assert unit.run().line.startswith("<6>kubenode-memory-guard: code=match ")
    assert (unit.node.content, unit.node.state_file.stat().st_ino) == before
    assert unit.metric('drift_bytes{numa_node="0"}') == 0
    assert unit.metric("guard_rebaselines_total") == 1


def test_refuse_leaves_the_file_and_is_an_error_in_the_journal(tmp_path: Path) -> None:
    unit = Unit(tmp_path, drift=(-512 * MIB, 0))
    before = unit.node.content
    line = unit.run().line
    assert line.startswith(
        "<3>kubenode-memory-guard: code=refuse verdict=refuse will_start=false unit=kubelet.service "
    )
    assert "findings=memory_changed" in line
    assert unit.node.content == before
    assert unit.metric("guard_will_start") == 0


def test_attempts_of_a_boot(tmp_path: Path) -> None:
    unit = Unit(tmp_path, drift=(-512 * MIB, 0))
    unit.run()
    assert unit.metric("guard_start_pending") == 1
    unit.seconds += 2
    assert unit.stopped("exit-code").line.startswith("<4>kubenode-memory-guard: code=refused ")
    assert (unit.metric("guard_start_pending"), unit.metric("guard_boot_attempts")) == (0, 1)
    assert unit.metric('guard_verdict{verdict="refuse"}') == 1
    unit.node.drift((0, 0))
    unit.invocation, unit.seconds = "2", 300
    unit.run()
    unit.seconds = 4000
    assert unit.stopped("success").data["code"] == "started"
    assert unit.metric('guard_kubelet_starts_total{outcome="refused"}') == 1
    assert unit.metric('guard_boots_total{outcome="later_attempt"}') == 1


def test_a_person_in_a_shell_starts_nothing(unit: Unit) -> None:
    unit.invocation = ""
    unit.run()
    assert (unit.metric("guard_boot_attempts"), unit.metric("guard_start_pending")) == (0, 0)


def test_an_end_that_is_not_known(unit: Unit) -> None:
    assert unit.stopped("success").data["code"] == "unknown"


def test_a_second_end_of_the_same_start_says_nothing(unit: Unit) -> None:
    unit.run()
    assert unit.stopped("exit-code").data["code"] == "failed"
    assert unit.stopped("success") == Answer()


def test_kill_switch(unit: Unit) -> None:
    unit.node.write("/etc/kubenode-memory/disabled", "")
    before = unit.node.content
    assert unit.run().line.startswith("<5>kubenode-memory-guard: code=disabled ")
    assert unit.node.content == before
    assert not unit.node.backups
    assert unit.metric("guard_enabled") == 0
    assert unit.metric('guard_verdict{verdict="match"}') is None
    assert unit.stopped("success") == Answer()


def test_a_node_that_cannot_be_judged_is_counted_and_raised(unit: Unit) -> None:
    unit.node.write("/etc/kubenode-memory/tolerance", "auto\noff\n")
    with pytest.raises(NodeError, match="/etc/kubenode-memory/tolerance has 2 values"):
        unit.run()
    assert unit.metric("guard_last_run_success") == 0
    assert unit.metric("guard_boot_attempts") == 1


def test_setting_off_refuses_what_auto_would_tolerate(unit: Unit) -> None:
    unit.node.write("/etc/kubenode-memory/tolerance", "off\n")
    assert unit.run().data["code"] == "refuse"
    assert unit.metric("drift_tolerance_bytes") == 0
    assert unit.metric('guard_info{tolerance="off",source="guard",mode="guard"}') == 1


def test_a_kubelet_with_gate_and_option_is_only_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = Unit(tmp_path, release="v1.38.0")
    unit.node.configure(
        featureGates={"MemoryManagerDriftTolerance": True},
        memoryManagerPolicyOptions={"memory-drift-tolerance": "1Mi"},
    )
    unit.node.write("/etc/kubenode-memory/tolerance", "auto\n")
    asked = Options.request
    known = ("MemoryManagerDriftTolerance",)
    monkeypatch.setattr(Options, "request", lambda *self, **rest: asked(*self, known_feature_gates=known, **rest))
    before = unit.node.content
    answer = unit.run()
    assert (answer.data["code"], answer.data["mode"]) == ("observed", "observe")
    assert answer.line.startswith("<3>")  # the kubelet's own bound is the smaller one
    assert unit.node.content == before
    assert len(unit.node.history) == 1


def test_counters_that_were_damaged_begin_again_with_a_warning(unit: Unit) -> None:
    unit.run()
    unit.node.write(OURS + "/guard.json", "{")
    unit.invocation = "2"
    answer = unit.run()
    assert answer.line.startswith("<4>")
    assert "counters begin again" in str(answer.data["msg"])
    assert unit.metric("guard_boot_attempts") == 1


def test_without_a_directory_for_metrics_all_else_is_done(unit: Unit) -> None:
    (unit.node.base / TEXTFILES[1:]).rmdir()
    answer = unit.run()
    assert answer.data["code"] == "rebaselined"
    assert "cannot write /var/lib/textfiles/kubenode_memory.prom" in str(answer.data["msg"])


def test_what_is_remembered_of_the_start(unit: Unit) -> None:
    unit.run()
    record = json.loads((unit.node.base / OURS[1:] / "guard.json").read_text())
    assert record["ledger"]["last"] == {
        "invocation": "1", "boot_id": BOOT, "at": 20, "time": 1770000020, "will_start": True, "outcome": "pending"
    }  # fmt: skip
    assert record["judged"]["drift"] == {"0": -44 * MIB, "1": 44 * MIB}
    assert RECORDED[0] > 44 * MIB


def test_the_unit_that_starts_is_the_one_that_is_judged(tmp_path: Path) -> None:
    """A node that was moved to k3s, with the unit of its former kubelet still there."""
    node = DriftedNode(tmp_path)
    node.write("/etc/systemd/system/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s server\n")
    for unit in ("kubelet.service", "k3s.service"):
        assert find_kubelet(node.root, Options("run", unit=unit).request(unit=unit).overrides).unit == unit


def test_hook_options() -> None:
    options = hook_options(["run", "--unit", "k3s.service", "--textfile-directory=/t", "--json"])
    assert options == Options("run", json=True, unit="k3s.service", textfile_directory="/t")


@pytest.mark.parametrize("arguments", [["--unit"], ["--unit="], ["--what"], ["x"], ["--json=1"]])
def test_hook_options_that_are_not_understood(arguments: t.List[str]) -> None:
    with pytest.raises(UsageError, match=r"has no value|is no argument of run"):
        hook_options(["run", *arguments])
