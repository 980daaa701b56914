# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots of a node with the guard before its kubelet: what happened to the machine, and what came of it."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import time
import typing as t

from kubelet.cases import DIFFERENT, ENTRIES, RESERVED, V137, memory, static
from kubelet.harness import log, state
from kubelet.harness.node import CONFIG, document
from kubelet.harness.process import until
from kubelet.harness.remote import STATE_FILE
from kubelet.harness.state import Block
from kubelet.harness.topology import GIB, MIB, TWO_NODES, NumaNode, Topology
from systemd import nodes

EXECUTABLE = "/usr/local/sbin/kubenode-memory-guard"
TEXTFILES = "/var/lib/node_exporter"
METRICS = TEXTFILES + "/kubenode_memory.prom"
KILL_SWITCH = "/etc/kubenode-memory/disabled"
IMAGE = 45272
BYTES_PER_MIB = 1 << 20
# All of NUMA node 0 but 10 MiB: what the image takes there no longer fits.
FULL: state.Entries = {
    "8d5e7a3c-0000-4000-8000-000000000009": {
        "app": [Block((0,), TWO_NODES.nodes[0].memory * 1024 - RESERVED[0] - 10 * BYTES_PER_MIB)]
    }
}
# What a kubelet logs next once its memory manager runs; /healthz answers earlier, for a moment, where it does not.
UP = "Eviction manager: starting control loop"
FETCH = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9100/metrics', timeout=5).read().decode())"
SECONDS = 60.0


DOWN, NEAR, OFF, SLOW, SILENT = (
    "KubenodeMemory" + name
    for name in ("KubeletDidNotComeBack", "DriftNearBound", "ToleranceOff", "SlowLoss", "GuardDidNotRun")
)


@dataclasses.dataclass(frozen=True)
class Boot:
    """What a node boots with; its file is that of `TWO_NODES`, or what the boot before has left.

    `code` is the guard's, `error` the kubelet's; `alerts` are those that Prometheus fires then.
    """

    name: str
    topology: Topology = TWO_NODES
    entries: t.Mapping[str, t.Any] = dataclasses.field(default_factory=lambda: ENTRIES)
    config: str = dataclasses.field(default_factory=static)
    keeps_file: bool = False
    disabled: bool = False
    code: str = "refuse"
    error: str = DIFFERENT
    alerts: tuple[str, ...] = (DOWN,)

    @property
    def comes_back(self) -> bool:
        return not self.error


def tolerated(name: str, topology: Topology, *alerts: str, **more: t.Any) -> Boot:
    return Boot(name, topology, code="rebaselined", error="", alerts=alerts, **more)


MOVED = TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)
# The bound is 116 MiB.
BOOTS = (
    Boot("nothing", code="match", error="", alerts=()),
    tolerated("image", MOVED),
    tolerated("near", TWO_NODES.moved(n0=-105 * MIB), NEAR),
    Boot("dimm", TWO_NODES.moved(n1=-16 * GIB)),
    Boot("topology", TWO_NODES.changed({2: NumaNode(GIB)})),
    Boot("hugepages", TWO_NODES.changed({0: TWO_NODES.nodes[0].with_pages(p2048=256)})),
    Boot("reservation", config=static(memory(n0="700Mi", n1="300Mi"))),
    Boot("no-fit", MOVED, FULL),
    Boot("disabled", MOVED, disabled=True, code="disabled", alerts=(OFF,)),
    tolerated("loss-1", TWO_NODES.moved(n0=-50 * MIB)),
    tolerated("loss-2", TWO_NODES.moved(n0=-100 * MIB), keeps_file=True),
    tolerated("loss-3", TWO_NODES.moved(n0=-150 * MIB), SLOW, keeps_file=True),
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a boot: the texts of the state file, the unit's journal, and the guard's metrics at a `time`."""

    boot: Boot
    attempts: int
    is_up: bool
    before: str
    after: str
    journal: str
    metrics: str
    time: float

    @property
    def guard_lines(self) -> list[str]:
        return [line for line in self.journal.splitlines() if line.startswith("kubenode-memory-guard: ")]

    @property
    def kubelet_errors(self) -> list[str]:
        return log.errors_of(self.journal.splitlines())


def play(node: nodes.Node, boot: Boot) -> Outcome:
    """Boot a node and wait until its kubelet is up, or has been started once more in vain."""
    node.systemctl("stop", "kubelet.service")
    if not boot.keeps_file:
        recorded = state.of_machine(TWO_NODES, RESERVED, boot.entries)
        node.write(STATE_FILE, state.v3(recorded) if node.release >= V137 else state.v1(recorded))
    before = node.read(STATE_FILE)
    node.exec(*(["touch"] if boot.disabled else ["rm", "--force"]), KILL_SWITCH)
    node.write(CONFIG, document(boot.config + nodes.MACHINE))
    node.boot_with(boot.topology)
    new_lines(node)
    node.systemctl("reset-failed", "kubelet.service")  # NRestarts too
    node.systemctl("start", "--no-block", "kubelet.service")
    until(f"{node.name} has settled", lambda: is_up(node) or attempts(node) > 1, SECONDS)
    count, up = attempts(node), is_up(node)
    # what a crash loop writes from here on is of no interest
    if not up:
        node.systemctl("stop", "kubelet.service")
    after, metrics, now = node.read(STATE_FILE), node.read(METRICS), time.time()
    return Outcome(boot, count, up, before, after, new_lines(node), metrics, now)


def attempts(node: nodes.Node) -> int:
    """Starts since somebody asked for one."""
    return int(node.unit("NRestarts")["NRestarts"]) + 1


def is_up(node: nodes.Node) -> bool:
    """Whether the memory manager of this start of the kubelet runs."""
    chosen = "_SYSTEMD_INVOCATION_ID=" + node.unit("InvocationID")["InvocationID"]
    return bool(node.exec("journalctl", "--quiet", "--no-pager", f"--grep={UP}", chosen, check=False))


def new_lines(node: nodes.Node) -> str:
    """What the kubelet's unit has written to the journal since the last call."""
    command = ["journalctl", "--unit=kubelet", "--no-pager", "--output=cat", "--cursor-file=/run/guard-test-cursor"]
    return node.exec(*command)


def scrape(node: nodes.Node, exporter: pathlib.Path) -> str:
    """What a node_exporter serves on the node, as a user who is not root."""
    shutil.copy(exporter, node.root / "node_exporter")
    node.exec(
        *("systemd-run", "--unit=node-exporter", "--property=User=nobody", "/fixture/node_exporter"),
        *("--collector.disable-defaults", "--collector.stat", "--collector.textfile"),
        f"--collector.textfile.directory={TEXTFILES}",
    )
    served = until("node_exporter answers", lambda: node.exec("python3", "-c", FETCH, check=False))
    node.systemctl("stop", "node-exporter.service")
    return served


SAMPLE = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$")


def samples(metrics: str) -> dict[str, float]:
    """The samples by their name with labels, which are in the order of the alphabet, whatever order they were in."""
    found = (SAMPLE.match(line) for line in metrics.splitlines() if not line.startswith("#"))
    return {_sorted_labels(match["name"], match["labels"]): float(match["value"]) for match in found if match}


def _sorted_labels(name: str, labels: str | None) -> str:
    return f"{name}{{{','.join(sorted(labels.split(',')))}}}" if labels else name
