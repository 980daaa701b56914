# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A window after which the machine is another one: a kernel with a smaller image on beta, a DIMM less on alpha."""

from __future__ import annotations

import concurrent.futures
import typing as t

from .guest import NODE_MIB
from .image import K612
from .lab import Lab

LEFT = 1536


def test_kernel_change_is_tolerated_and_a_lost_dimm_is_not(numa_lab: Lab) -> None:
    alpha, beta = numa_lab.guests["alpha"], numa_lab.guests["beta"]
    state, before = alpha.state, alpha.boot()
    for guest in (alpha, beta):
        guest.stop_at_reboot()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        window = pool.submit(numa_lab.reboot)
        alpha.memory, beta.kernel = (NODE_MIB, LEFT), K612
        for guest in (alpha, beta):
            guest.await_stop()
            guest.power_on()
        run = window.result()
    assert run.code == 2, run.output
    assert run.limit() == ["alpha"]

    results = run.results()
    assert results["beta"]["reboot"]["status"] == "rebooted"
    assert beta.boot().kernel.startswith(K612)
    images = {name: result["bound"]["kernel_image_bytes"] for name, result in results.items()}
    assert images["beta"] < images["alpha"], "the bound is that of the kernel that runs, and 6.12 is the smaller one"
    assert beta.boot().totals == beta.recorded(), "re-baselined"
    assert numa_lab.cordon("beta") == (False, {})
    numa_lab.settle("beta")

    lost = f"NUMA node 1 memory: recorded {before.totals[1] << 10}, found {alpha.boot().totals[1] << 10} bytes"
    result = results["alpha"]
    assert lost in result["summary"]
    assert alpha.state == state, "not re-baselined"
    is_cordoned, annotations = numa_lab.cordon("alpha")
    assert is_cordoned
    assert annotations["reason"] == result["summary"][:1000]
    assert annotations["reason"].startswith("did not come back: refuse: ")
    # Where the image has moved in the same boot, that is a finding too.
    found = {one["code"] for one in result["findings"] if one["severity"] == "stops_start"}
    assert "memory_changed" in found
    reset_after_a_drain(numa_lab, sorted(found))


def reset_after_a_drain(numa_lab: Lab, found: t.Sequence[str]) -> None:
    """A person has decided: the node goes on with what it has."""
    codes = {"reset_codes": found}
    arguments = ("reset.yml", "--become", "--limit", "alpha")
    run = numa_lab.ansible.playbook(*arguments, **codes)
    assert run.code == 2, run.output
    assert "The node is not drained: default/alpha-" in run.output
    for number in range(2):
        numa_lab.server.delete_pod(f"alpha-{number}")
    run = numa_lab.ansible.playbook(*arguments, **codes)
    assert run.code == 0, run.output
    numa_lab.await_ready("alpha")
    alpha = numa_lab.guests["alpha"]
    assert alpha.recorded() == alpha.boot().totals
    numa_lab.uncordon("alpha")
    numa_lab.add_pods("alpha")
