# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit costs beside `ansible.builtin.ping` on the same local hosts in the same run, and what it ships.

make bench            HOSTS=50 and ROUNDS=3 by default

Twice: hosts on which there is no kubelet, and the nodes of the sample fleet, which need the whole judgement. Ping and
audit are playbooks, with the same forks. Wall times are what a person waits for; CPU times say the same on a machine
that has other work.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from payload import sent_files, summary

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "playbooks" / "fleet" / "nodes"
HOSTS = int(os.environ.get("HOSTS", "50"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
FORKS = ("-f", "20")
PING = ("ansible-playbook", "ping.yml", *FORKS)
PING_PLAYBOOK = "[{hosts: all, gather_facts: false, tasks: [{ansible.builtin.ping: }]}]\n"
AUDIT = ("ansible-playbook", "kubenode.memory.audit", "-e", "memmgr_become=false", *FORKS)


@dataclass(frozen=True)
class Cost:
    """Seconds of one command, its processes on the hosts included."""

    wall: float
    cpu: float


def inventory(roots: t.Sequence[str]) -> str:
    """Local hosts, each of which stands for the node whose root it has."""
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {
        f"host{number:03d}": {**variables, "memmgr_validate_host_root": roots[number % len(roots)]}
        for number in range(HOSTS)
    }
    return json.dumps({"all": {"hosts": hosts}})


def cost(command: t.Sequence[str], directory: Path) -> Cost:
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - wall, cpu)


def best(costs: t.Sequence[Cost]) -> Cost:
    return Cost(min(one.wall for one in costs), min(one.cpu for one in costs))


def compare(roots: t.Sequence[str]) -> t.Tuple[Cost, Cost]:
    """(ping, audit): the best of several rounds in turns."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "hosts.json").write_text(inventory(roots), encoding="utf-8")
        (directory / "ping.yml").write_text(PING_PLAYBOOK, encoding="utf-8")
        commands = [(*command, "-i", "hosts.json") for command in (PING, AUDIT)]
        rounds = [[cost(command, directory) for command in commands] for _round in range(ROUNDS)]
    ping, audit = (best(costs) for costs in zip(*rounds))
    return ping, audit


def main() -> None:
    print(summary("memmgr_validate", sent_files("memmgr_validate")))
    fleet = [str(path) for path in sorted(FLEET.iterdir()) if path.is_dir()]
    with tempfile.TemporaryDirectory() as bare:
        for what, roots in (("without a kubelet", [bare]), ("of the sample fleet", fleet)):
            ping, audit = compare(roots)
            print(
                f"audit of {HOSTS} local hosts {what}: {audit.wall / ping.wall:.2f} times the wall time of ping "
                f"({audit.wall:.1f} s, {ping.wall:.1f} s), {audit.cpu / ping.cpu:.2f} times its CPU time"
            )


if __name__ == "__main__":
    main()
