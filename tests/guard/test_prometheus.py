# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of real boots: node_exporter serves them, promtool checks the rules and runs them over these series."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml
from kubelet.cases import V134, V137
from systemd import controller

from . import boots
from .boots import BOOTS, SILENT, Outcome
from .conftest import Fleet

pytestmark = pytest.mark.xdist_group("nodes")

FILES = pathlib.Path(__file__).resolve().parents[2] / "roles/memmgr_guard/files"
RULES = FILES / "kubenode-memory.rules.yml"
DASHBOARD = FILES / "kubenode-memory.dashboard.json"
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
TOLERANCE = "host:kubenode_memory_drift_tolerance_bytes:max"
DRIFT = "host_numa_node:kubenode_memory_drift_bytes:max"
# When, on the clock of promtool, which begins with 0, the metrics of a boot were read; and when the rules are asked.
READ_AT, ASKED_AT = 3600, "1h30m"

Outcomes = dict[tuple[str, str], Outcome]
Series = dict[str, float]


def test_node_exporter_serves_what_the_guard_wrote(
    fleet: Fleet, outcomes: Outcomes, scraped: dict[str, Series]
) -> None:
    for worker in fleet.workers:
        served = scraped[worker.name]
        written = boots.samples(outcomes[BOOTS[-1].name, worker.release].metrics)
        assert written
        assert {name: value for name, value in served.items() if name.startswith("kubenode_memory_")} == written
        assert served["node_textfile_scrape_error"] == 0


def promtool(prometheus: pathlib.Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [str(prometheus / "promtool"), *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_no_fault_in_the_metrics(outcomes: Outcomes, prometheus: pathlib.Path) -> None:
    for outcome in outcomes.values():
        promtool(prometheus, "check", "metrics", stdin=outcome.metrics)


def test_promtool_checks_the_rules(prometheus: pathlib.Path) -> None:
    assert "SUCCESS: 9 rules found" in promtool(prometheus, "check", "rules", str(RULES))


def test_the_role_copies_what_promtool_has_checked(prometheus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    controller.write_inventory(tmp_path / "controller", {"prometheus": {}}, ansible_connection="local")
    run = controller.Controller(tmp_path / "controller").playbook(
        str(pathlib.Path(__file__).with_name("rules.yml")),
        memmgr_guard_promtool=str(prometheus / "promtool"),
        memmgr_guard_rules_dest=str(tmp_path / RULES.name),
        memmgr_guard_dashboard_dest=str(tmp_path / DASHBOARD.name),
        ansible_python_interpreter=sys.executable,
    )
    assert run.code == 0, run.output
    assert [(tmp_path / file.name).read_bytes() for file in (RULES, DASHBOARD)] == [
        file.read_bytes() for file in (RULES, DASHBOARD)
    ]


def test_the_dashboard_asks_what_prometheus_understands(prometheus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [re.sub(r"\$\w+", ".*", target["expr"]) for panel in panels for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(asked)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"SUCCESS: {len(panels)} rules found" in promtool(prometheus, "check", "rules", str(tmp_path / "rules.yml"))


def series(outcome: Outcome, **others: float) -> list[dict[str, str]]:
    """The samples of a boot as series that stay, with its times moved to promtool's clock."""
    found = {**boots.samples(outcome.metrics), **others}
    moved = {
        name: value - outcome.time + READ_AT if "_timestamp_seconds" in name or name.startswith("node_boot") else value
        for name, value in found.items()
    }
    return [{"series": labelled(name), "values": f"{value:.0f}x120"} for name, value in moved.items()]


def labelled(name: str) -> str:
    """A sample's name with the labels of a scrape."""
    plain, _brace, labels = name.rstrip("}").partition("{")
    return plain + "{" + ",".join(filter(None, [labels, 'instance="worker-1:9100"', 'job="node"'])) + "}"


def rule_test(name: str, given: list[dict[str, str]], firing: t.Iterable[str], **values: float) -> dict[str, t.Any]:
    """One test of promtool: these alerts fire and no others, and these recorded series have these values."""
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing]
    asked = [{"expr": FIRING, "eval_time": ASKED_AT, "exp_samples": expected}]
    for expr, value in values.items():
        asked.append({"expr": expr, "eval_time": ASKED_AT, "exp_samples": [{"labels": "{}", "value": value}]})
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": asked}


def run_rule_tests(prometheus: pathlib.Path, directory: pathlib.Path, tests: t.Sequence[dict[str, t.Any]]) -> None:
    (directory / "tests.yml").write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": list(tests)}))
    promtool(prometheus, "test", "rules", str(directory / "tests.yml"))


def test_each_boot_fires_its_alerts(outcomes: Outcomes, prometheus: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tests = [
        rule_test(f"{name}, kubelet {release}", series(outcome), outcome.boot.alerts)
        for (name, release), outcome in outcomes.items()
    ]
    run_rule_tests(prometheus, tmp_path, tests)


def test_an_alert_says_when_the_guard_did_not_run(
    outcomes: Outcomes, scraped: dict[str, Series], prometheus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The machine has booted after the guard's last run: node_exporter's own series, and the guard's."""
    outcome = outcomes["image", V137]
    booted = min(found["node_boot_time_seconds"] for found in scraped.values())
    before, after = ({"node_boot_time_seconds": value} for value in (booted, outcome.time + 60))
    tests = [
        rule_test("ran", series(outcome, **before), ()),
        rule_test("did not run", series(outcome, **after), (SILENT,)),
    ]
    run_rule_tests(prometheus, tmp_path, tests)


def test_one_series_whether_guard_or_kubelet(
    outcomes: Outcomes, prometheus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The gauges of KEP-6232, which no released kubelet has, with the values that the guard measured at a real boot."""
    outcome = outcomes["image", V134]
    measured = boots.samples(outcome.metrics)
    renamed = {
        name.replace("kubenode_memory_drift_", "kubelet_memory_manager_drift_").replace(
            "kubelet_memory_manager_drift_bytes", "kubelet_memory_manager_memory_drift_bytes"
        ): value
        for name, value in measured.items()
        if name.startswith("kubenode_memory_drift_")
    }
    from_kubelet = [
        {"series": labelled(name).replace('instance="worker-1:9100"', 'instance="10.0.0.7:10250",node="worker-1"'),
         "values": f"{value:.0f}x120"}
        for name, value in renamed.items()
    ]  # fmt: skip
    values = {
        f'sum without (host) ({TOLERANCE}{{host="worker-1"}})': 121634816.0,
        f'sum without (host, numa_node) ({DRIFT}{{host="worker-1", numa_node="1"}})': boots.IMAGE * 1024.0,
        f"count({TOLERANCE})": 1.0,
    }
    tests = [
        rule_test(name, given, (), **values)
        for name, given in (
            ("guard", series(outcome)),
            ("kubelet", from_kubelet),
            ("both", series(outcome) + from_kubelet),
        )
    ]
    run_rule_tests(prometheus, tmp_path, tests)
