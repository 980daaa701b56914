# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What is judged: everything about one node, its kubelet and its state file, as plain values."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import feature_gates
from .configuration import MemoryReservation
from .findings import Finding
from .hints import BootContext
from .machine import MachineInfo
from .release import NEWEST, Release
from .reservation import ResourceList

STATIC = "Static"
NONE = "None"


@dataclass(frozen=True)
class StateFile:
    """The state file: its path as the kubelet names it, and its bytes; None where there is no file."""

    path: str
    content: t.Optional[bytes] = None


@dataclass(frozen=True)
class Subject:
    """Everything that a judgement is made of.

    `reservation` is what Node Allocatable reserves; None where the configuration does not let it be computed.
    `findings` are those that reading the node and its configuration gave already. `iomem` is the text of /proc/iomem,
    None where `iomem_reason` says why it could not be read. `listed_gates` are those of `kubelet --help`.
    """

    machine: MachineInfo
    state_file: StateFile
    policy: str = NONE
    release: t.Optional[Release] = None
    reserved_memory: t.Tuple[MemoryReservation, ...] = ()
    reservation: t.Optional[ResourceList] = None
    policy_options: t.Mapping[str, str] = field(default_factory=dict)
    feature_gates: t.Mapping[str, bool] = field(default_factory=dict)
    overridden_gates: t.Mapping[str, bool] = field(default_factory=dict)
    gate_sources: t.Mapping[str, str] = field(default_factory=dict)
    listed_gates: t.Optional[t.FrozenSet[str]] = None
    iomem: t.Optional[str] = None
    iomem_reason: str = ""
    memory_block_size: t.Optional[int] = None
    kernel_release: t.Optional[str] = None
    context: BootContext = field(default_factory=BootContext)
    findings: t.Tuple[Finding, ...] = ()

    @property
    def rules(self) -> Release:
        """The release whose rules are used where the kubelet's is not known."""
        return self.release or Release(*NEWEST)

    @property
    def pod_level(self) -> bool:
        return feature_gates.is_enabled(self.rules, self.feature_gates, feature_gates.POD_LEVEL_RESOURCE_MANAGERS)
