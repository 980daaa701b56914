# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What stops every start of a kubelet, whatever its memory manager would say: soft thresholds, and cgroup v1."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .configuration import KubeletConfiguration
from .decode import duration_problem
from .findings import Finding, stops_start
from .reservation import SIGNALS, ReservationError, parse_threshold

V1 = "v1"
HYBRID = "hybrid"
V2 = "v2"
NONE = "none"

CGROUP_V1_REFUSED = (
    "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed "
    "in a future release"
)


@dataclass(frozen=True)
class CgroupFacts:
    """The control groups of a node.

    `mode` is `v2` where /sys/fs/cgroup is cgroup v2 (the kubelet's own test), `hybrid` where there are hierarchies of
    both versions, else `v1`; `none` where there is none. `memory_mount` is the mount point of the v1 memory hierarchy
    in `v1` and `hybrid`, the unified one in `v2`. `usage_file` and `event_control` say whether the controller's files
    are there; a directory alone proves nothing. `realtime` is a PREEMPT_RT kernel, which refuses to register events.
    """

    mode: str
    memory_mount: t.Optional[str] = None
    usage_file: bool = False
    event_control: bool = False
    realtime: bool = False


def start_findings(configuration: KubeletConfiguration, cgroups: CgroupFacts) -> t.Tuple[Finding, ...]:
    """What stops every start of this kubelet, notifier or not: soft thresholds that it refuses, and cgroup v1."""
    soft = tuple(one for one in eviction_findings(configuration) if not (one.field or "").startswith("evictionHard"))
    return soft + ((v1_refused_finding(configuration),) if refuses_v1(configuration, cgroups) else ())


def refuses_v1(configuration: KubeletConfiguration, cgroups: CgroupFacts) -> bool:
    """Whether this kubelet does not even start on the node's cgroup version (failCgroupV1, true since 1.35)."""
    return configuration.fail_cgroup_v1 is True and cgroups.mode in (V1, HYBRID)


def v1_refused_finding(configuration: KubeletConfiguration) -> Finding:
    source = configuration.sources.get("failCgroupV1", "default")
    message = (
        f"failCgroupV1 is true ({source}) and this node runs cgroup v1: the kubelet does not start. Move the node to "
        "cgroup v2, or set failCgroupV1 to false for the time being."
    )
    return stops_start("cgroup_v1_refused", message, field="failCgroupV1", kubelet_error=CGROUP_V1_REFUSED)


def eviction_findings(configuration: KubeletConfiguration) -> t.Tuple[Finding, ...]:
    """What the kubelet refuses of evictionHard, evictionSoft and evictionSoftGracePeriod."""
    try:
        _signals(configuration.eviction_hard or {}, "evictionHard")
        soft = _signals(configuration.eviction_soft, "evictionSoft")
    except ReservationError as error:
        fault = error.fault
        return (_invalid(fault.field, f"{fault.resource} is {fault.found!r}", fault.kubelet_error),)
    grace = configuration.eviction_soft_grace_period
    problems = [(signal, text, _grace_problem(signal, text)) for signal, text in sorted(grace.items())]
    found = [
        _invalid("evictionSoftGracePeriod", f"{signal} is {text!r}", problem)
        for signal, text, problem in problems
        if problem
    ]
    return tuple(found) + tuple(_without_grace(signal) for signal in soft if signal not in grace)


def _signals(statements: t.Mapping[str, str], field: str) -> t.List[str]:
    """The signals with a threshold.

    :raises ReservationError: with the kubelet's text, for a statement that stops it
    """
    return [signal for signal, text in sorted(statements.items()) if parse_threshold(signal, text, field) is not None]


def _grace_problem(signal: str, text: str) -> t.Optional[str]:
    if signal not in SIGNALS:
        return f"unsupported eviction signal {signal}"
    problem = duration_problem(text)
    if problem is None and text.startswith("-") and re.search("[1-9]", text):
        return f"invalid eviction grace period specified: {text}, must be a positive value"
    return problem


def _without_grace(signal: str) -> Finding:
    text = f"grace period must be specified for the soft eviction threshold {signal}"
    return _invalid("evictionSoft", f"{signal} has no entry in evictionSoftGracePeriod", text)


def _invalid(field: str, what: str, kubelet_error: str) -> Finding:
    message = (
        f"{field}: {what}; the kubelet does not start: {kubelet_error}. Correct it before the kubelet is restarted."
    )
    return stops_start("eviction_invalid", message, field=field, kubelet_error=kubelet_error)
