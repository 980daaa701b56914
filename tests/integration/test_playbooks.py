# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks demo, audit and report, run by ansible-playbook from the collection's path."""

from __future__ import annotations

import json
import os
import re
import subprocess
import typing as t
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "playbooks" / "fleet"
TIMEOUT_SECONDS = 280

SAMPLES: t.Dict[str, t.Dict[str, t.Any]] = {
    host: variables
    for group in yaml.safe_load((FLEET / "inventory.yml").read_text())["sample_fleet"]["children"].values()
    for host, variables in group["hosts"].items()
}

MIXED = """\
all:
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}", memmgr_become: false}
  hosts:
    bad: {ansible_connection: local, memmgr_validate_host_root: FLEET/nodes/ran-muc-03}
    good: {ansible_connection: local, memmgr_validate_host_root: FLEET/nodes/ran-muc-01}
    dead: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}
    wrong: {ansible_connection: local, memmgr_validate_tolerance: lots}
"""


@dataclass(frozen=True)
class Run:
    """A playbook that was run; `directory` is where it left its results."""

    code: int
    output: str
    directory: Path

    def records(self, host: str) -> t.List[t.Dict[str, t.Any]]:
        return [json.loads(line) for line in (self.directory / f"hosts/{host}.jsonl").read_text().splitlines()]

    def limit(self, name: str = "failed") -> t.List[str]:
        file = self.directory / f"{name}.limit"
        return sorted(file.read_text().split()) if file.exists() else []

    def recap(self, host: str) -> t.Dict[str, int]:
        line = re.search(rf"^{host} +: (.*)$", self.output, re.M)
        assert line, self.output
        return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", line.group(1))}


def play(directory: Path, playbook: str, *arguments: str, **variables: t.Any) -> Run:
    """Run a playbook in a directory, with its run named `run` there."""
    given = {"memmgr_report_dir": str(directory), "memmgr_report_run": "run", **variables}
    done = subprocess.run(
        ["ansible-playbook", f"kubenode.memory.{playbook}", "--extra-vars", json.dumps(given), *arguments],
        cwd=directory,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".work" / "collections"),
            "ANSIBLE_HOME": str(directory / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_DEPRECATION_WARNINGS": "True",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return Run(done.returncode, done.stdout, directory / "run")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return play(tmp_path_factory.mktemp("demo"), "demo")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An audit in check mode of good and bad, unreachable and wrongly configured hosts."""
    directory = tmp_path_factory.mktemp("mixed")
    (directory / "inventory.yml").write_text(MIXED.replace("FLEET", str(FLEET)))
    query = "[?verdict == 'refuse'].host"
    return play(directory, "audit", "-i", "inventory.yml", "--check", memmgr_report_query=query)


def test_demo_gives_each_node_its_expected_verdict(demo: Run) -> None:
    assert demo.code == 0, demo.output
    for host, sample in SAMPLES.items():
        (record,) = demo.records(host)
        assert (record["verdict"], record["will_start"]) == (sample["sample_verdict"], sample["sample_will_start"])


def test_demo_prints_no_warning(demo: Run) -> None:
    assert not re.search(r"WARNING|DEPRECATION|ERROR", demo.output), demo.output


def test_demo_runs_one_task_a_node(demo: Run) -> None:
    """All others are run once; Ansible counts those with the first node."""
    tasks = {host: demo.recap(host) for host in SAMPLES}
    assert sorted(recap["ok"] + recap["skipped"] for recap in tasks.values())[:-1] == [1] * (len(SAMPLES) - 1)
    assert {recap["changed"] for recap in tasks.values()} == {0}
    assert "Gathering Facts" not in demo.output


def test_demo_prints_one_line_a_node_and_the_table(demo: Run) -> None:
    for host in SAMPLES:
        (record,) = demo.records(host)
        assert f"{json.dumps(host)}: {json.dumps(record['summary'])}" in demo.output
    table = (demo.directory / "table.txt").read_text().splitlines()
    assert [line for line in table if json.dumps(line) not in demo.output] == []
    assert {line.split()[0] for line in table[1:-2]} == set(SAMPLES)


def test_demo_s_failed_limit_names_the_bad_nodes(demo: Run) -> None:
    bad = [host for host, sample in SAMPLES.items() if sample["sample_verdict"] in ("refuse", "unreadable")]
    assert demo.limit() == sorted(bad)


def test_records_are_compact(demo: Run) -> None:
    for host in SAMPLES:
        (record,) = demo.records(host)
        assert not {"assignments", "numa_nodes", "groups", "ansible_facts"} & set(record)
        assert len(json.dumps(record)) < 6000


def test_unreachable_and_failed_hosts_are_in_the_table_and_in_failed_limit(mixed: Run) -> None:
    assert mixed.code == 2, mixed.output
    assert mixed.limit() == ["bad", "dead", "wrong"]
    assert [mixed.records(host)[0]["status"] for host in ("good", "dead", "wrong")] == [
        "judged",
        "unreachable",
        "failed",
    ]
    table = (mixed.directory / "table.txt").read_text()
    assert re.search(r"^dead +unreachable .*Connection refused", table, re.M)
    assert re.search(r"^wrong +failed .*tolerance is 'lots'", table, re.M)
    assert "4 hosts = 1 refuse + 1 failed + 1 unreachable + 1 match" in table


def test_query_selects_hosts(mixed: Run) -> None:
    assert mixed.limit("selected") == ["bad"]


def test_fail_on_fails_the_host_and_the_report_is_made(tmp_path: Path, mixed: Run) -> None:
    inventory = str(mixed.directory.parent / "inventory.yml")
    run = play(
        tmp_path, "audit", "-i", inventory, "--limit", "bad", memmgr_validate_fail_on=["refuse"], memmgr_hosts="all"
    )
    assert run.code == 2
    assert run.recap("bad")["failed"] == 1
    assert run.records("bad")[0]["verdict"] == "refuse"
    assert run.limit() == ["bad"]


def test_report_joins_runs_at_any_time(tmp_path: Path, demo: Run, mixed: Run) -> None:
    run = play(
        tmp_path,
        "report",
        memmgr_report_runs=[str(demo.directory), str(mixed.directory)],
        memmgr_report_dest=str(tmp_path / "run"),
        memmgr_report_query="[?kubelet.layout == 'k3s']",
    )
    assert run.code == 0, run.output
    assert not re.search(r"WARNING|DEPRECATION|ERROR", run.output), run.output
    assert f"{len(SAMPLES) + 4} hosts = " in run.output
    assert run.limit("selected") == ["ran-ham-01", "ran-ham-02", "ran-ham-03"]
    assert set(run.limit()) >= {"dead", "gpu-fra-03"}


def test_maintenance_lists_who_needs_a_reboot_without_an_api(tmp_path: Path, mixed: Run) -> None:
    inventory = ("-i", str(mixed.directory.parent / "inventory.yml"))
    run = play(
        tmp_path, "maintenance_reboot", *inventory, "--limit", "good,bad", memmgr_report_query="[?reboot.needed].host"
    )
    assert run.code == 0, run.output
    assert "Will be rebooted: none" in run.output
    assert "Would not come back even without drift: bad" in run.output
    assert run.limit("selected") == ["bad", "good"]


def test_maintenance_without_an_api_says_what_to_set(tmp_path: Path, mixed: Run) -> None:
    inventory = ("-i", str(mixed.directory.parent / "inventory.yml"))
    run = play(tmp_path, "maintenance_reboot", *inventory, "--limit", "good", node_reboot_ok=True)
    assert run.code == 2
    assert "memmgr_api is empty" in run.output
