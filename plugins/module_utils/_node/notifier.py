# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Everything about the memory threshold notifier of a node: configuration, control groups, counters."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from .._policy.configuration import EffectiveConfiguration, KubeletConfiguration, effective_configuration
from .._policy.findings import info
from .._policy.notifier import Assessment, assess, pods_group
from .cgroup import read_cgroups
from .cgroup_statistics import first_existing, read_statistics
from .configuration import parse_document, read_inputs
from .kubelet import KubeletFacts, KubeletOverrides, find_kubelet
from .root import HostRoot

_DRIVERS = ("systemd", "cgroupfs")


@dataclass(frozen=True)
class NotifierReading:
    """A node's notifier, and what it was read from."""

    kubelet: KubeletFacts
    effective: EffectiveConfiguration
    assessment: Assessment


def read_notifier(root: HostRoot, overrides: KubeletOverrides, candidate: t.Optional[str] = None) -> NotifierReading:
    """Read and assess a node; `candidate` is the text of a KubeletConfiguration that is merged last.

    :raises NodeError: with the path, if something cannot be read (PermissionMissing: without the rights)
    """
    kubelet = find_kubelet(root, overrides)
    document = parse_document("candidate_config", candidate.encode("utf-8")) if candidate else None
    effective = effective_configuration(read_inputs(root, kubelet), kubelet.version, document)
    cgroups = read_cgroups(root)
    groups = pods_groups(effective.configuration)
    node = read_statistics(root, cgroups, "/")
    pods = read_statistics(root, cgroups, first_existing(root, cgroups, groups))
    assessment = assess(effective.configuration, cgroups, node, pods)
    return NotifierReading(kubelet, effective, assessment if kubelet.found else _without_kubelet(assessment))


def _without_kubelet(assessment: Assessment) -> Assessment:
    """What the kernel could do stays; nothing is configured where nobody reads a configuration."""
    finding = info("no_kubelet", "There is no kubelet on this node: nothing is configured.")
    return replace(assessment, configured=False, refuses_v1=False, thresholds=(), findings=(finding,))


def pods_groups(configuration: KubeletConfiguration) -> t.Tuple[str, ...]:
    """The pods' control group by the configured driver, then by the other: the runtime may overrule the driver."""
    drivers = sorted(_DRIVERS, key=lambda driver: driver != configuration.cgroup_driver)
    return tuple(pods_group(configuration.cgroup_root, configuration.cgroups_per_qos, driver) for driver in drivers)
