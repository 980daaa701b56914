# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real kubelets on this machine's cgroup v1: the thresholds in their log are ours."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
import threading
import typing as t

import pytest
from kubelet.harness import topology
from kubelet.harness.kubelet import Kubelet, Surroundings, kubelet
from kubelet.harness.node import Node, NodeDirectory
from kubelet.harness.process import until

from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup import read_cgroups
from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup_statistics import read_statistics
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.notifier import pods_groups, read_notifier
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kubelet_start import CGROUP_V1_REFUSED, HYBRID, V1
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import (
    Assessment,
    GroupStatistics,
    MemoryCounters,
    assess,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity

from .conftest import FIGURE

REAL = HostRoot()
CGROUPS = read_cgroups(REAL)
RELEASES = ("v1.34.4", "v1.37.2")
SECONDS = 45.0
SAMPLE_SECONDS = 0.05

CONFIG = """
kernelMemcgNotification: {on}
evictionHard: {{memory.available: 5%}}
evictionSoft: {{memory.available: 1Gi}}
evictionSoftGracePeriod: {{memory.available: 1m30s}}
systemReserved: {{memory: 1Gi}}
"""
NAMES = [
    "hard memory eviction threshold",
    "soft memory eviction threshold",
    "hard allocatable memory eviction threshold",
]

_SETTING = re.compile(r'"Eviction manager: setting notifier to capacity" notifier="([^"]+)" capacity="([^"]+)"')
_OBSERVED = re.compile(r'log="observations" signal="memory\.available" .*available="([^"]+)" capacity="([^"]+)"')

pytestmark = pytest.mark.skipif(
    CGROUPS.mode not in (V1, HYBRID) or not CGROUPS.event_control, reason=f"cgroup {CGROUPS.mode} here"
)


class Log:
    """What the log of one kubelet says in its first pass."""

    def __init__(self, lines: t.Sequence[str]) -> None:
        found = [match for match in map(_SETTING.search, lines) if match]
        self.settings = {match.group(1): parse_quantity(match.group(2)).value() for match in reversed(found)}
        observed = next(match for match in map(_OBSERVED.search, lines) if match)
        self.available, self.capacity = (parse_quantity(text).value() for text in observed.groups())


def laid_out(node_root: pathlib.Path, surroundings: Surroundings, on: bool, *flags: str) -> NodeDirectory:
    """A node with this machine's own amount of memory."""
    text = REAL.read_text("/proc/meminfo")
    memory = int(re.findall(r"^MemTotal: +(\d+) kB", text, re.M)[0])
    machine = dataclasses.replace(topology.ONE_NODE, memory_capacity=memory)
    config = CONFIG.format(on=str(on).lower())
    directory = NodeDirectory(node_root, Node(machine, config=config, flags=("--v=3", *flags)))
    directory.lay_out(surroundings.flags())
    return directory


def started(release: str, directory: NodeDirectory, surroundings: Surroundings) -> t.ContextManager[Kubelet]:
    return kubelet(release, directory, [*surroundings.flags(), *directory.node.own_flags])


def our_answer(directory: NodeDirectory, release: str, node: GroupStatistics, pods: GroupStatistics) -> Assessment:
    """Configuration from the node's tree, control groups from this machine."""
    reading = read_notifier(HostRoot(str(directory.root)), KubeletOverrides(version=release))
    return assess(reading.effective.configuration, CGROUPS, node, pods)


def pods_of(directory: NodeDirectory) -> GroupStatistics:
    configuration = read_notifier(HostRoot(str(directory.root)), KubeletOverrides()).effective.configuration
    return read_statistics(REAL, CGROUPS, pods_groups(configuration)[0])


@contextlib.contextmanager
def inactive_file() -> t.Iterator[t.List[int]]:
    """Samples of the root's inactive file bytes, taken until the block is left."""
    samples: t.List[int] = []
    done = threading.Event()

    def sample() -> None:
        while True:
            counters = read_statistics(REAL, CGROUPS, "/").counters
            assert counters is not None
            samples.append(counters.inactive_file)
            if done.wait(SAMPLE_SECONDS):
                return

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("release", RELEASES)
def test_our_thresholds_are_those_in_the_log(
    release: str,
    node_root: pathlib.Path,
    surroundings: Surroundings,
    record_property: t.Callable[[str, object], None],
) -> None:
    directory = laid_out(node_root, surroundings, True)
    with inactive_file() as samples, started(release, directory, surroundings) as running:
        first = running.process.log.first
        assert first(lambda line: 'log="observations" signal="memory.available"' in line, SECONDS)
        log = Log(running.process.log.lines)
        pods = pods_of(directory)
    assert sorted(log.settings) == sorted(NAMES)

    # What the log does not say, the inactive file bytes, follows from one of its lines; the others must agree.
    total, available = log.capacity, log.available
    blind = our_answer(directory, release, GroupStatistics("/", MemoryCounters(total, total - available, 0)), pods)
    inactive = log.settings[NAMES[0]] - (blind.thresholds[0].notify_at or 0)
    counters = MemoryCounters(total, total - available + inactive, inactive)
    answer = our_answer(directory, release, GroupStatistics("/", counters), pods)
    ours = {one.origin.description: one.notify_at for one in answer.thresholds}
    assert answer.active
    assert ours == log.settings

    # And those bytes are what we read ourselves meanwhile, but for what moved between two samples.
    moved = max(samples) - min(samples)
    tolerance = moved + 16 * 1024 * 1024
    assert min(samples) - tolerance <= inactive <= max(samples) + tolerance
    off = min(abs(inactive - sample) for sample in samples)
    figure = f"{len(ours)} thresholds equal those in the log; inactive file {inactive} bytes"
    compared = f"{off} from the nearest of our {len(samples)} samples, in which it moved by {moved}"
    record_property(FIGURE, f"{release}: {figure}, {compared}")


@pytest.mark.parametrize("release", RELEASES)
def test_with_the_field_off_there_is_none(release: str, node_root: pathlib.Path, surroundings: Surroundings) -> None:
    directory = laid_out(node_root, surroundings, False)
    with started(release, directory, surroundings) as running:
        # The observations follow the update of the notifiers in the same pass.
        assert running.process.log.first(lambda line: 'log="observations"' in line, SECONDS)
        lines = running.process.log.lines
    assert not [line for line in lines if "otifier" in line and "viction manager" in line]
    assert not our_answer(directory, release, GroupStatistics("/"), GroupStatistics("/kubepods")).active


def test_a_kubelet_that_refuses_version_1_says_so_in_our_words(
    node_root: pathlib.Path, surroundings: Surroundings
) -> None:
    directory = laid_out(node_root, surroundings, True, "--fail-cgroupv1=true")
    with started("v1.37.2", directory, surroundings) as running:
        until("it has ended", lambda: running.process.popen.poll() is not None, SECONDS)
        running.process.log.join()
        assert any(CGROUP_V1_REFUSED in line for line in running.process.log.lines)
    answer = our_answer(directory, "v1.37.2", GroupStatistics("/"), GroupStatistics("/kubepods"))
    assert answer.refuses_v1
    assert not answer.active
