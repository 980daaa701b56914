# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard instead of a playbook: a kubelet that is up at its first start after a reboot with drift."""

from __future__ import annotations

import base64
import typing as t

import pytest
from guard.sandbox import patient_archive

from .guest import TRIES
from .lab import Lab

GUARD = "/usr/local/sbin/kubenode-memory-guard"


@pytest.fixture
def guarded(numa_lab: Lab) -> t.Iterator[None]:
    """The guard on beta, with time to spare; gone afterwards, since the other tests are of nodes without it.

    Its 1.5 seconds are not enough in emulation beside a kubelet that starts.
    """
    install(numa_lab, "present")
    archive = base64.b64encode(patient_archive("/usr/bin/python3")).decode()
    numa_lab.guests["beta"].exec("sh", "-c", f"base64 --decode >{GUARD}", stdin=archive)
    yield
    install(numa_lab, "absent")


def install(numa_lab: Lab, state: str) -> None:
    run = numa_lab.ansible.playbook("install_guard", "--limit", "beta", memmgr_guard_state=state)
    assert run.code == 0, run.output


def test_kubelet_is_ready_at_its_first_start_after_drift(numa_lab: Lab, guarded: None) -> None:
    beta = numa_lab.guests["beta"]
    recorded = beta.recorded()
    for _try in range(TRIES):
        boot = beta.reboot()
        numa_lab.settle("beta")
        assert beta.unit("NRestarts")["NRestarts"] == "0"
        if boot.moved(recorded):
            break
    assert boot.moved(recorded)
    assert beta.recorded() == boot.totals
    assert "kubenode-memory-guard: code=rebaselined" in beta.log()
