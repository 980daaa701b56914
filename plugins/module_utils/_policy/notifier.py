# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The memory threshold notifier: whether `kernelMemcgNotification` does anything, and at which usage (semantics 7)."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace

from .configuration import KubeletConfiguration
from .findings import Finding, info, warning
from .kubelet_start import V2, CgroupFacts, eviction_findings, refuses_v1, v1_refused_finding
from .quantity import BINARY_SI, Quantity, add
from .reservation import MEMORY_AVAILABLE, Threshold, parse_threshold

ALLOCATABLE_MEMORY_AVAILABLE = "allocatableMemory.available"
FIELD = "kernelMemcgNotification"
POLL_INTERVAL_SECONDS = 10

NO_MOUNT_POINT = "memory cgroup mount point not found"
INCOMPLETE = "summary was incomplete.  Expected MemoryStats and all subfields to be non-nil"


class ImplausibleCounters(ValueError):
    """A control group's numbers contradict each other; the message has them and the next step."""


@dataclass(frozen=True)
class Obstacle:
    """Why the kernel cannot notify the kubelet of this node; `code` is stable."""

    code: str
    message: str


@dataclass(frozen=True)
class MemoryCounters:
    """Bytes of one control group. `capacity` is MemTotal for the root group, the group's limit for any other."""

    capacity: int
    usage: int
    inactive_file: int

    @property
    def working_set(self) -> int:
        """cAdvisor's: usage without inactive file pages, never below zero."""
        return max(0, self.usage - self.inactive_file)

    @property
    def available(self) -> int:
        return self.capacity - self.working_set


@dataclass(frozen=True)
class GroupStatistics:
    """The counters of the control group `group`, or the `reason` why there are none."""

    group: str
    counters: t.Optional[MemoryCounters] = None
    reason: t.Optional[str] = None


@dataclass(frozen=True)
class EvictionThreshold:
    """A statement about memory in evictionHard or evictionSoft, or what the kubelet derives from it.

    `grace_period` is the text of evictionSoftGracePeriod. A soft threshold without any grace is a hard one to the
    kubelet. `derived` marks allocatableMemory.available as made from the hard memory.available.
    """

    signal: str
    text: str
    threshold: Threshold
    grace_period: t.Optional[str] = None
    derived: bool = False

    @property
    def hard(self) -> bool:
        return self.grace_period is None or not re.search("[1-9]", self.grace_period)

    @property
    def allocatable(self) -> bool:
        return self.signal == ALLOCATABLE_MEMORY_AVAILABLE

    @property
    def description(self) -> str:
        """The kubelet's name of its notifier, as in its log."""
        kind = "hard" if self.hard else "soft"
        return f"{kind} {'allocatable ' if self.allocatable else ''}memory eviction threshold"


@dataclass(frozen=True)
class NotifierThreshold:
    """A threshold with its numbers in bytes: evict when less than `eviction` is available, notify at usage `notify_at`.

    None where the group's statistics do not give them; `reason` says why.
    """

    origin: EvictionThreshold
    statistics: GroupStatistics
    eviction: t.Optional[int] = None
    notify_at: t.Optional[int] = None
    reason: t.Optional[str] = None

    @property
    def distance(self) -> t.Optional[int]:
        """By how much usage may grow before it crosses; negative where it has crossed."""
        counters = self.statistics.counters
        return None if self.notify_at is None or counters is None else self.notify_at - counters.usage


@dataclass(frozen=True)
class Assessment:
    """The answer for a node. `active` means that the kernel will wake this kubelet."""

    cgroups: CgroupFacts
    configured: bool
    obstacle: t.Optional[Obstacle]
    refuses_v1: bool
    thresholds: t.Tuple[NotifierThreshold, ...]
    findings: t.Tuple[Finding, ...]

    @property
    def supported(self) -> bool:
        """Whether the kernel can notify a kubelet that starts on this node."""
        return self.obstacle is None and not self.refuses_v1

    @property
    def active(self) -> bool:
        return self.configured and self.supported


# --- thresholds ------------------------------------------------------------------------------------------------------


def memory_thresholds(configuration: KubeletConfiguration) -> t.Tuple[EvictionThreshold, ...]:
    """Every threshold that would get a notifier: hard, soft, and the allocatable ones that the kubelet derives.

    :raises ReservationError: with the kubelet's text, for any statement that stops it, also about disks
    """
    statements = _statements(configuration.eviction_hard or {}, "evictionHard")
    soft = _statements(configuration.eviction_soft, "evictionSoft")
    statements += [replace(one, grace_period=configuration.eviction_soft_grace_period.get(one.signal)) for one in soft]
    memory = [one for one in statements if one.signal in (MEMORY_AVAILABLE, ALLOCATABLE_MEMORY_AVAILABLE)]
    if "pods" in configuration.enforce_node_allocatable and not configuration.allocatable_ignore_eviction:
        memory += [_allocatable(one) for one in memory if one.hard and not one.allocatable]
    return tuple(memory)


def _statements(statements: t.Mapping[str, str], field: str) -> t.List[EvictionThreshold]:
    parsed = [(signal, text, parse_threshold(signal, text, field)) for signal, text in sorted(statements.items())]
    return [EvictionThreshold(signal, text, threshold) for signal, text, threshold in parsed if threshold is not None]


def _allocatable(hard: EvictionThreshold) -> EvictionThreshold:
    return EvictionThreshold(ALLOCATABLE_MEMORY_AVAILABLE, hard.text, hard.threshold, derived=True)


# --- arithmetic ------------------------------------------------------------------------------------------------------


def notification_threshold(threshold: Threshold, counters: MemoryCounters) -> int:
    """The usage in bytes at which the kernel is to notify: capacity - eviction threshold + inactive file.

    The kubelet takes inactive file as usage - working set, and a percentage of the capacity of its statistics.

    :raises ImplausibleCounters: where the kubelet would compute nonsense
    """
    check_plausible(counters)
    eviction = threshold.quantity(counters.capacity)
    minus = replace(eviction, unscaled=-eviction.unscaled, text=None)
    inactive = Quantity(counters.usage - counters.working_set, 0, BINARY_SI)
    return add(add(Quantity(counters.capacity, 0, BINARY_SI), minus), inactive).value()


def check_plausible(counters: MemoryCounters) -> None:
    """:raises ImplausibleCounters: for usage above capacity, negative available memory and negative counters"""
    if min(counters.capacity, counters.usage, counters.inactive_file) < 0 or counters.capacity == 0:
        problem = "a counter is negative, or the capacity is zero"
    elif counters.available < 0:
        problem = f"available memory would be {counters.available} bytes"
    elif counters.usage > counters.capacity:
        problem = "usage is above capacity"
    else:
        return
    numbers = f"capacity {counters.capacity}, usage {counters.usage}, inactive file {counters.inactive_file} bytes"
    raise ImplausibleCounters(
        f"{numbers}: {problem}. The kernel's counters are wrong, and a kubelet evicts pods by them: look for "
        "a kernel update"
    )


# --- a node ----------------------------------------------------------------------------------------------------------


def assess(
    configuration: KubeletConfiguration, cgroups: CgroupFacts, node: GroupStatistics, pods: GroupStatistics
) -> Assessment:
    """Everything about the notifier of one node; `node` and `pods` are the root's and the pods' control group."""
    findings = eviction_findings(configuration)
    origins = () if findings else memory_thresholds(configuration)
    thresholds = tuple(_computed(one, pods if one.allocatable else node) for one in origins)
    what_stops = obstacle(cgroups)
    refused = refuses_v1(configuration, cgroups)
    configured = configuration.kernel_memcg_notification
    findings += (v1_refused_finding(configuration),) if refused else ()
    findings += _effect_findings(configuration, what_stops) if configured else ()
    findings += _counter_findings(thresholds)
    return Assessment(cgroups, configured, what_stops, refused, thresholds, findings)


def obstacle(cgroups: CgroupFacts) -> t.Optional[Obstacle]:
    """Why the kernel cannot notify here; None where it can, as far as files tell."""
    mount = cgroups.memory_mount
    if cgroups.mode == V2:
        text = "cgroup v2 has no memory threshold events; the kubelet makes a notifier that does nothing"
        return Obstacle("cgroup_v2", text)
    if mount is None:
        return Obstacle("no_memory_controller", f"no cgroup v1 memory hierarchy is mounted ({NO_MOUNT_POINT})")
    if not cgroups.usage_file:
        text = f"{mount} has no memory.usage_in_bytes: this kernel has no cgroup v1 memory controller (CONFIG_MEMCG_V1)"
        return Obstacle("no_memory_controller", text)
    if not cgroups.event_control:
        return Obstacle("no_event_control", f"{mount} has no cgroup.event_control: this kernel registers no events")
    if cgroups.realtime:
        text = "this kernel is built with PREEMPT_RT, which refuses memory threshold events (EOPNOTSUPP)"
        return Obstacle("preempt_rt", text)
    return None


def _effect_findings(configuration: KubeletConfiguration, what_stops: t.Optional[Obstacle]) -> t.Tuple[Finding, ...]:
    if what_stops is None:
        return ()
    source = configuration.sources.get(FIELD)
    message = (
        f"{FIELD} is true ({source}) and does nothing: {what_stops.message}. The kubelet polls every "
        f"{POLL_INTERVAL_SECONDS} s, whatever its log says. Remove the setting; soft thresholds act earlier."
    )
    return (info("notifier_without_effect", message, field=FIELD, path=source),)


def _counter_findings(thresholds: t.Sequence[NotifierThreshold]) -> t.Tuple[Finding, ...]:
    reasons = {
        one.statistics.group: one.reason
        for one in thresholds
        if one.reason is not None and one.statistics.counters is not None
    }
    return tuple(
        warning("memcg_counters_implausible", f"Control group {group}: {reason}.", path=group)
        for group, reason in reasons.items()
    )


def _computed(origin: EvictionThreshold, statistics: GroupStatistics) -> NotifierThreshold:
    if statistics.counters is None:
        return NotifierThreshold(origin, statistics, reason=statistics.reason)
    eviction = origin.threshold.quantity(statistics.counters.capacity).value()
    try:
        notify_at = notification_threshold(origin.threshold, statistics.counters)
    except ImplausibleCounters as error:
        return NotifierThreshold(origin, statistics, eviction, reason=str(error))
    return NotifierThreshold(origin, statistics, eviction, notify_at)


def pods_group(cgroup_root: str, cgroups_per_qos: bool, driver: str) -> str:
    """The control group of all pods, as a path below the hierarchy: `/kubepods`, `/kubepods.slice`."""
    parts = [part for part in cgroup_root.strip("/").split("/") if part] + (["kubepods"] if cgroups_per_qos else [])
    if driver != "systemd" or not parts:
        return "/" + "/".join(parts)
    names = "-".join(part.replace("-", "_") for part in parts).split("-")
    return "".join("/" + "-".join(names[:end]) + ".slice" for end in range(1, len(names) + 1))
