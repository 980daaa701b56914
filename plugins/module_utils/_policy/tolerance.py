# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""KEP-6232's tolerance: the grammar of `memory-drift-tolerance`, the bound, and what it forgives (semantics 5)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .kernel_image import KernelImage, KernelImageUnavailable, trusted_kernel_image
from .machine import MEMORY
from .machine_state import Difference, compare
from .quantity import INT64_MAX, QuantityError, parse_quantity
from .state import MachineState, MemoryTable

OPTION = "memory-drift-tolerance"
GATE = "MemoryManagerDriftTolerance"

AUTO = "auto"
OFF = "off"


class ToleranceError(ValueError):
    """The option's value is refused; the message is the kubelet's."""


@dataclass(frozen=True)
class ToleranceSetting:
    """A value of the option: `auto`, `off`, or a number of bytes."""

    text: str
    quantity: t.Optional[int] = None

    @property
    def is_auto(self) -> bool:
        return self.text == AUTO


@dataclass(frozen=True)
class Bound:
    """The bound in force, in bytes; 0 is the exact comparison.

    `source`: `kernel_image` (span + 64 MiB), `quantity`, `off`, or `unavailable` (auto without a readable image; then
    `reason` says why, and `unavailable` is `no_iomem`, `no_rows`, `hidden` or `partly_hidden`).
    """

    bytes: int
    source: str
    kernel_image: t.Optional[KernelImage] = None
    unavailable: t.Optional[str] = None
    reason: t.Optional[str] = None


def parse_tolerance(text: str) -> ToleranceSetting:
    """Parse a value of `memory-drift-tolerance` (semantics 5.5).

    :raises ToleranceError: for anything else, and for amounts that the kubelet would overflow on
    """
    if text in (AUTO, OFF):
        return ToleranceSetting(text)
    prefix = f'bad value for option "{OPTION}": '
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        raise ToleranceError(prefix + str(error)) from None
    if quantity.unscaled < 0:
        raise ToleranceError(f'{prefix}"{text}" is negative')
    if quantity.ceil() > INT64_MAX:
        raise ToleranceError(f'{prefix}"{text}" is larger than {INT64_MAX} bytes')
    return ToleranceSetting(text, quantity.ceil())


def derive_bound(setting: ToleranceSetting, iomem_text: t.Optional[str], why_not: str = "") -> Bound:
    """The bound that a setting gives on a machine.

    :param iomem_text: /proc/iomem as its reader saw it, None where it could not be read
    :param why_not: the reason for None
    """
    if setting.quantity is not None:
        return Bound(setting.quantity, "quantity")
    if not setting.is_auto:
        return Bound(0, OFF)
    if iomem_text is None:
        return Bound(0, "unavailable", None, "no_iomem", why_not or "/proc/iomem was not given")
    try:
        image = trusted_kernel_image(iomem_text)
    except KernelImageUnavailable as error:
        return Bound(0, "unavailable", None, error.reason, str(error))
    return Bound(image.bound, "kernel_image", image)


def not_forgiven(recorded: MachineState, expected: MachineState, bound: int) -> t.Tuple[Difference, ...]:
    """The differences that stay a reason to refuse when each node's memory may drift by `bound` bytes.

    Rules of semantics 5.2, with group sums of `reserved` exact (5.9, 1) and `free` not compared.
    """
    return tuple(difference for difference in compare(recorded, expected) if not _is_forgiven(difference, bound))


def _is_forgiven(difference: Difference, bound: int) -> bool:
    if difference.kind == "group_free":
        return True
    if difference.kind not in ("total", "allocatable") or difference.resource != MEMORY:
        return False
    return bool(abs(difference.recorded - difference.expected) <= bound)


def drift(recorded: MachineState, expected: MachineState) -> t.Dict[int, int]:
    """By NUMA node, how many bytes of memory the machine has more (or, negative, less) than is recorded."""
    found = {}
    for node_id in sorted(set(recorded) & set(expected)):
        tables = (_memory_table(recorded, node_id), _memory_table(expected, node_id))
        if tables[0] is not None and tables[1] is not None:
            found[node_id] = tables[1].total - tables[0].total
    return found


def _memory_table(machine_state: MachineState, node_id: int) -> t.Optional[MemoryTable]:
    node = machine_state[node_id]
    return None if node is None else (node.memory_map or {}).get(MEMORY)
