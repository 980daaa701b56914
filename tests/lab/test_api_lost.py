# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server is gone during a window, and is back after it."""

from __future__ import annotations

import json

from .lab import Lab


def test_node_stays_cordoned_while_nobody_can_say_that_it_is_ready(numa_lab: Lab) -> None:
    beta = numa_lab.guests["beta"]
    before = beta.boot()
    tasks = numa_lab.directory / "lose_the_api.yml"
    kill = {"cmd": f"kill -KILL {numa_lab.api_pid()}"}
    task = {"name": "Lose the API", "ansible.builtin.command": kill, "delegate_to": "localhost", "become": False}
    tasks.write_text(json.dumps([task]))
    with numa_lab.restarted_api():
        run = numa_lab.reboot("--limit", "beta", node_reboot_tasks=str(tasks), node_reboot_ready_timeout=20)
    assert (run.code, run.limit()) == (2, ["beta"]), run.output
    assert run.results()["beta"]["summary"].startswith("did not come back: ")
    assert beta.boot().boot_id != before.boot_id
    is_cordoned, annotations = numa_lab.cordon("beta")
    assert (is_cordoned, annotations["reason"]) == (True, "a reboot was begun and has not ended")
    if beta.boot().moved(beta.recorded()):
        assert numa_lab.ansible.playbook("remediate", "--limit", "beta").code == 0
    numa_lab.settle("beta")
    numa_lab.uncordon("beta")
