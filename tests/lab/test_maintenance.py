# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real reboots: what a moved kernel image does to a kubelet, what heals it, and a maintenance window over the fleet."""

from __future__ import annotations

from maintenance.conftest import TOKEN

from .lab import NAMES, Lab

MISMATCH = "the expected machine state is different from the real one"


def test_moved_image_keeps_a_kubelet_down_and_remediate_heals_it(numa_lab: Lab) -> None:
    guest = numa_lab.guests["alpha"]
    before = guest.boot()
    now = guest.reboot_until_drift()
    assert now.image != before.image
    guest.await_crash_loop(240)
    assert MISMATCH in guest.log()

    run = numa_lab.ansible.playbook("remediate")
    assert run.code == 0, run.output
    results = run.results()
    assert results["alpha"]["remedy"]["status"] == "rebaselined"
    assert results["beta"]["verdict"] == "match"
    assert guest.boot().boot_id == now.boot_id, "healed without another boot"
    numa_lab.settle("alpha")


def test_window_brings_both_back(numa_lab: Lab) -> None:
    """Without a drain: the pods are those that were there, where they were."""
    before = {name: numa_lab.guests[name].boot() for name in NAMES}
    run = numa_lab.reboot("-vvv")
    assert run.code == 0, run.output
    assert run.limit() == []
    for name in NAMES:
        assert run.results()[name]["reboot"]["status"] == "rebooted"
        boot_ids = [before[name].boot_id, numa_lab.guests[name].boot().boot_id]
        assert run.results()[name]["reboot"]["boot_ids"] == boot_ids
        assert numa_lab.cordon(name) == (False, {})
        numa_lab.settle(name)
    assert TOKEN not in run.output
    assert numa_lab.become_calls() == ""

    audit = numa_lab.ansible.playbook("audit")
    assert {host: result["verdict"] for host, result in audit.results().items()} == dict.fromkeys(NAMES, "match")
