# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disruption budget that the controller manager looks after, and a drain that it forbids."""

from __future__ import annotations

import typing as t

import pytest
from kubelet.harness.process import until

from .lab import Lab

PATH = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def budget(numa_lab: Lab) -> t.Iterator[None]:
    """Both pods of beta have to stay."""
    selector = {"matchLabels": {"node": "beta"}}
    numa_lab.server.call(
        "POST", PATH, {"metadata": {"name": "beta"}, "spec": {"minAvailable": 2, "selector": selector}}
    )

    def is_counted() -> bool:
        status = numa_lab.server.call("GET", f"{PATH}/beta").get("status", {})
        return bool(status.get("currentHealthy") == 2 and status["disruptionsAllowed"] == 0)

    until("the budget counts its pods", is_counted, 60)
    yield
    numa_lab.server.call("DELETE", f"{PATH}/beta")


def test_budget_that_forbids_the_drain_leaves_the_node_as_it_is(numa_lab: Lab, budget: None) -> None:
    before = numa_lab.guests["beta"].boot()
    options = {"node_reboot_drain_options": {"force": True}, "node_reboot_drain_timeout": 20}
    run = numa_lab.reboot("--limit", "beta", node_reboot_drain=True, **options)
    assert (run.code, run.limit()) == (2, ["beta"]), run.output
    summary = run.results()["beta"]["summary"]
    assert summary.startswith("not rebooted: Node beta was not drained within 20 s: Failed to delete pod default/beta-")
    assert "disruption budget" in summary
    assert numa_lab.guests["beta"].boot() == before
    assert numa_lab.cordon("beta") == (False, {})
    numa_lab.settle("beta")
