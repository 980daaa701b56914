# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The machine as cAdvisor reports it: NUMA nodes, their memory and huge pages (semantics 3.1, 3.2)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .quantity import format_binary

KIB = 1024
MEMORY = "memory"
HUGEPAGES_PREFIX = "hugepages-"


@dataclass(frozen=True)
class HugePagesInfo:
    """One huge page size of a NUMA node: page size in KiB and the number of pages (nr_hugepages)."""

    page_size: int
    num_pages: int

    @property
    def resource(self) -> str:
        return hugepages_resource(self.page_size)

    @property
    def total(self) -> int:
        """Size of the pool in bytes."""
        return self.page_size * KIB * self.num_pages


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node; `memory` is its MemTotal in bytes, huge pages included."""

    id: int
    memory: int
    hugepages: t.Tuple[HugePagesInfo, ...] = ()


@dataclass(frozen=True)
class MachineInfo:
    """What the memory manager is given at the kubelet's start.

    `memory_capacity` is the MemTotal of /proc/meminfo in bytes; None where it is not known. It is not the sum of the
    nodes' memory and only eviction percentages are taken of it.
    """

    topology: t.Tuple[NumaNode, ...]
    memory_capacity: t.Optional[int] = None


def hugepages_resource(page_size: int) -> str:
    """The resource name for a page size in KiB: 2048 gives `hugepages-2Mi` (semantics 3.2)."""
    return HUGEPAGES_PREFIX + format_binary(page_size * KIB)


def is_hugepages(resource: str) -> bool:
    return resource.startswith(HUGEPAGES_PREFIX)
