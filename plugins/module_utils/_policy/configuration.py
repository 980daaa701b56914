# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""KubeletConfiguration, as far as the memory manager and the eviction manager read it (semantics 6.1).

Quantities stay text: the kubelet compares and prints them as written, and its int64 trap depends on the spelling.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .findings import Finding
from .release import Release


@dataclass(frozen=True)
class MemoryReservation:
    """One entry of `reservedMemory`: resource name to quantity text on one NUMA node."""

    numa_node: int
    limits: t.Mapping[str, str]


@dataclass(frozen=True)
class KubeletConfiguration:
    """The effective configuration: defaults, --config, drop-ins and flags merged (semantics 6.2).

    `eviction_hard` is None where no threshold was configured and no default applies; an empty mapping is `{}` as
    written. `reserialised` is true where the whole configuration went through a drop-in merge, after which quantities
    are in canonical text (semantics 3.4, point 3). `sources` says where a field's value comes from, by field name:
    a path, `flag --NAME` or `default`. Its names are the kubelet's (`memoryManagerPolicy`), a key of a map is
    `featureGates.NAME`, `evictionHard.memory.available` and so on.
    """

    memory_manager_policy: str = "None"
    memory_manager_policy_options: t.Mapping[str, str] = field(default_factory=dict)
    reserved_memory: t.Tuple[MemoryReservation, ...] = ()
    feature_gates: t.Mapping[str, bool] = field(default_factory=dict)
    system_reserved: t.Mapping[str, str] = field(default_factory=dict)
    kube_reserved: t.Mapping[str, str] = field(default_factory=dict)
    eviction_hard: t.Optional[t.Mapping[str, str]] = None
    eviction_soft: t.Mapping[str, str] = field(default_factory=dict)
    eviction_soft_grace_period: t.Mapping[str, str] = field(default_factory=dict)
    merge_default_eviction_settings: bool = False
    kernel_memcg_notification: bool = False
    fail_cgroup_v1: t.Optional[bool] = None
    enforce_node_allocatable: t.Tuple[str, ...] = ("pods",)
    cgroup_root: str = ""
    cgroup_driver: str = "cgroupfs"
    cgroups_per_qos: bool = True
    allocatable_ignore_eviction: bool = False
    static_pod_path: str = ""
    hostname_override: str = ""
    reserialised: bool = False
    sources: t.Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """One configuration file, parsed by the edge.

    `value` is what the text says as JSON values (mappings with text keys, lists, text, int, float, bool, None).
    `problem` is the kubelet's text where the file cannot be read or parsed; `value` is None then. `duplicate_keys` are
    keys that occur twice in one mapping, where the last one wins.
    """

    path: str
    value: t.Any = None
    problem: t.Optional[str] = None
    duplicate_keys: t.Tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfigurationInputs:
    """Everything that a kubelet's configuration is made from.

    `main` is None without --config. `dropins` is None without --config-dir (an empty directory still makes the kubelet
    serialise its configuration again). `flags` is the command line without the binary.
    """

    main: t.Optional[Document] = None
    dropins: t.Optional[t.Tuple[Document, ...]] = None
    flags: t.Tuple[str, ...] = ()


@dataclass(frozen=True)
class UnknownField:
    """A field that this release does not know, and where it is written; `name` is dotted from the document's root."""

    name: str
    source: str


@dataclass(frozen=True)
class EffectiveConfiguration:
    """The configuration that the kubelet would run with; findings that stop the start carry the kubelet's text."""

    configuration: KubeletConfiguration
    findings: t.Tuple[Finding, ...] = ()
    unknown_fields: t.Tuple[UnknownField, ...] = ()


def effective_configuration(
    inputs: ConfigurationInputs,
    release: t.Optional[Release] = None,
    candidate: t.Optional[Document] = None,
) -> EffectiveConfiguration:
    """Merge documents and flags as the kubelet of this release does (semantics 6.2, 6.3).

    `candidate` is merged as one more drop-in after all others. Without a release the newest one's rules apply.
    Never raises: what the kubelet would refuse is a finding, and the configuration holds what could be understood.
    """
    raise NotImplementedError
