# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power that is lost in the middle of the write of a state file: the old file or the new one, and a node that heals."""

from __future__ import annotations

import concurrent.futures
import json

import pytest
from kubelet.harness.process import until
from kubelet.harness.remote import STATE_FILE

from .guest import Guest
from .lab import Lab

SLOW_PYTHON = "/usr/local/bin/slow-python"
# An interpreter that stops for good on one side of the rename that puts the new file in its place.
WRAPPER = """mkdir -p /usr/local/lib/slow
cat >/usr/local/lib/slow/sitecustomize.py <<'END'
import os, time
rename = os.rename
def slow(source, target, **arguments):
    if target == "memory_manager_state" and {after}:
        rename(source, target, **arguments)
    if target == "memory_manager_state":
        open("/run/in-between", "w").close()
        time.sleep(3600)
    rename(source, target, **arguments)
os.rename = slow
END
printf '#!/bin/sh\\nPYTHONPATH=/usr/local/lib/slow exec /usr/bin/python3 "$@"\\n' >{python}
chmod 755 {python}
sync
"""


@pytest.mark.parametrize("after", [False, True], ids=["before the rename", "after the rename"])
def test_power_loss_leaves_a_whole_file(numa_lab: Lab, after: bool) -> None:
    beta = numa_lab.guests["beta"]
    beta.reboot_until_drift()
    old = beta.read(STATE_FILE)
    beta.shell(WRAPPER.format(after=after, python=SLOW_PYTHON))
    lose_power_while_writing(numa_lab, beta)

    beta.power_on()
    beta.await_boot()
    text = beta.read(STATE_FILE)
    assert (text == old) or after
    assert json.loads(text)["entries"] == json.loads(old)["entries"]
    run = numa_lab.ansible.playbook("remediate", "--limit", "beta")
    assert run.code == 0, run.output
    numa_lab.settle("beta")


def lose_power_while_writing(numa_lab: Lab, guest: Guest) -> None:
    # A host's variable: an extra one would be the interpreter of what is delegated, too.
    inventory = numa_lab.directory / "slow.json"
    variables = {"ansible_python_interpreter": SLOW_PYTHON, "ansible_ssh_timeout": 10}
    inventory.write_text(json.dumps({"all": {"hosts": {guest.name: variables}}}))
    arguments = ("remediate", "--limit", guest.name, "--inventory", str(inventory))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        playbook = pool.submit(numa_lab.ansible.playbook, *arguments)
        until("the file is being written", lambda: guest.shell("ls /run/in-between", check=False), 400, 0.5)
        guest.power_off()
        assert playbook.result().code != 0
