# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""reservedMemory against what Node Allocatable reserves: the checks before the state file is read (semantics 3.4)."""

from __future__ import annotations

import struct
import typing as t
from dataclasses import dataclass

from .configuration import DEFAULT_EVICTION_HARD, KubeletConfiguration, MemoryReservation
from .machine import MEMORY, MachineInfo, is_hugepages
from .machine_state import SystemReserved
from .quantity import BINARY_SI, Quantity, QuantityError, add, parse_quantity, same_value

MEMORY_AVAILABLE = "memory.available"
SIGNALS = frozenset(DEFAULT_EVICTION_HARD) | {
    "allocatableMemory.available",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
}
RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")

NOT_SPECIFIED = "[memorymanager] you should specify the system reserved memory"
NOT_INT64 = "could not covert a variable of type Quantity to int64"

ResourceList = t.Mapping[str, Quantity]


@dataclass(frozen=True)
class ReservationFault:
    """One reason why the memory manager is not built. `kubelet_error` is the kubelet's text.

    `found` is what is configured, `expected` what it should be; both as text, in the kubelet's canonical form.
    """

    code: str
    kubelet_error: str
    numa_node: t.Optional[int] = None
    resource: t.Optional[str] = None
    field: str = "reservedMemory"
    found: t.Optional[str] = None
    expected: t.Optional[str] = None


class ReservationError(ValueError):
    """The configuration cannot be evaluated at all; carries the fault."""

    def __init__(self, fault: ReservationFault) -> None:
        super().__init__(fault.kubelet_error)
        self.fault = fault


# --- Node Allocatable ------------------------------------------------------------------------------------------------


def node_allocatable_reservation(configuration: KubeletConfiguration, memory_capacity: int) -> ResourceList:
    """What Node Allocatable reserves of memory: kubeReserved + systemReserved + hard eviction threshold.

    :param memory_capacity: MemTotal of /proc/meminfo in bytes
    :raises ReservationError: with the kubelet's text for an unusable value
    """
    kube = parse_resource_list(configuration.kube_reserved, "kubeReserved", "--kube-reserved")
    system = parse_resource_list(configuration.system_reserved, "systemReserved", "--system-reserved")
    total = Quantity(0)
    for part in (system.get(MEMORY), kube.get(MEMORY), hard_eviction_reservation(configuration, memory_capacity)):
        total = total if part is None else add(total, part)
    return {} if total.is_zero() else {MEMORY: total}


def parse_resource_list(values: t.Mapping[str, str], field: str, flag: str) -> ResourceList:
    """systemReserved or kubeReserved.

    :raises ReservationError: for a resource that cannot be reserved (huge pages, for one) or a bad quantity
    """
    return {resource: _reserved_quantity(resource, text, field, flag) for resource, text in sorted(values.items())}


def _reserved_quantity(resource: str, text: str, field: str, flag: str) -> Quantity:
    if resource not in RESERVABLE:
        raise _reserved_error(field, flag, resource, text, f'cannot reserve "{resource}" resource')
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        cause = f'failed to parse quantity "{text}" for "{resource}" resource: {error}'
        raise _reserved_error(field, flag, resource, text, cause) from None
    if quantity.unscaled < 0:
        cause = f'resource quantity for "{resource}" cannot be negative: {text}'
        raise _reserved_error(field, flag, resource, text, cause)
    return quantity


def _reserved_error(field: str, flag: str, resource: str, text: str, cause: str) -> ReservationError:
    message = f"{flag} value failed to parse: {cause}"
    return ReservationError(
        ReservationFault("reserved_value_invalid", message, resource=resource, field=field, found=text)
    )


def hard_eviction_reservation(configuration: KubeletConfiguration, memory_capacity: int) -> t.Optional[Quantity]:
    """The memory.available part of evictionHard; None where there is no threshold.

    :raises ReservationError: for any bad threshold in evictionHard
    """
    if configuration.allocatable_ignore_eviction:
        return None
    thresholds = {
        signal: parse_threshold(signal, text, "evictionHard")
        for signal, text in sorted((configuration.eviction_hard or {}).items())
    }
    threshold = thresholds.get(MEMORY_AVAILABLE)
    return None if threshold is None else threshold.quantity(memory_capacity)


@dataclass(frozen=True)
class Threshold:
    """An eviction threshold: an absolute amount, or a fraction as float32."""

    amount: t.Optional[Quantity] = None
    fraction: float = 0.0

    def quantity(self, capacity: int) -> Quantity:
        """The threshold as a quantity; a fraction is taken of `capacity` bytes and truncated."""
        if self.amount is not None:
            return self.amount
        return Quantity(int(float(capacity) * self.fraction), 0, BINARY_SI)


def parse_threshold(signal: str, text: str, field: str) -> t.Optional[Threshold]:
    """One statement of evictionHard or evictionSoft; None for `0%` and `100%`, which mean no threshold.

    :raises ReservationError: with the kubelet's text
    """
    if signal not in SIGNALS:
        raise _threshold_error(field, signal, text, f"unsupported eviction signal {signal}")
    if text.endswith("%"):
        return _parse_percentage(signal, text, field)
    try:
        amount = parse_quantity(text)
    except QuantityError as error:
        raise _threshold_error(field, signal, text, str(error)) from None
    if amount.unscaled <= 0:
        cause = f"eviction threshold {signal} must be positive: {amount}"
        raise _threshold_error(field, signal, text, cause)
    return Threshold(amount)


def _parse_percentage(signal: str, text: str, field: str) -> t.Optional[Threshold]:
    if text in ("0%", "100%"):
        return None
    try:
        percentage = float32(float(_go_float(text.rstrip("%"))))
    except (ValueError, OverflowError):
        cause = 'strconv.ParseFloat: parsing "{0}": invalid syntax'.format(text.rstrip("%"))
        raise _threshold_error(field, signal, text, cause) from None
    fraction = float32(percentage / float32(100.0))
    if not 0 <= fraction <= 1:
        limit = ">= 0%" if fraction < 0 else "<= 100%"
        cause = f"eviction percentage threshold {signal} must be {limit}: {text}"
        raise _threshold_error(field, signal, text, cause)
    return Threshold(fraction=fraction)


def _go_float(text: str) -> str:
    # Python's float() reads blanks, underscores and other scripts' digits, strconv.ParseFloat does not.
    if text != text.strip() or "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def float32(value: float) -> float:
    """The nearest 32 bit float; the kubelet keeps percentages in that."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _threshold_error(field: str, signal: str, text: str, cause: str) -> ReservationError:
    return ReservationError(ReservationFault("eviction_invalid", cause, resource=signal, field=field, found=text))


# --- reservedMemory --------------------------------------------------------------------------------------------------


def static_validation(reserved_memory: t.Sequence[MemoryReservation]) -> t.List[ReservationFault]:
    """What the kubelet checks of reservedMemory under every policy (semantics 6.5)."""
    faults = []
    seen = set()
    for entry in reserved_memory:
        for resource, text in sorted(entry.limits.items()):
            message = _static_fault(entry.numa_node, resource, text, (entry.numa_node, resource) in seen)
            seen.add((entry.numa_node, resource))
            if message is not None:
                faults.append(
                    ReservationFault(
                        "reserved_memory_invalid", "invalid configuration: " + message, entry.numa_node, resource
                    )
                )
    return faults


def _static_fault(node: int, resource: str, text: str, duplicate: bool) -> t.Optional[str]:
    if resource != MEMORY and not is_hugepages(resource):
        return (
            f'the limit type "{resource}" for NUMA node {node} is not supported, only '
            "[memory hugepages-<HugePageSize>] is accepted"
        )
    if parse_quantity(text).is_zero():
        return f'reserved memory may not be zero for NUMA node {node} and resource "{resource}"'
    if duplicate:
        return f'the reserved memory has a duplicate value for NUMA node {node} and resource "{resource}"'
    return None


def reservation_faults(
    machine: MachineInfo, reservation: ResourceList, reserved_memory: t.Sequence[MemoryReservation]
) -> t.List[ReservationFault]:
    """Every fault of reservedMemory under the Static policy, the one that the kubelet meets first in front.

    Sums of several resources are checked in random order, so any sum fault may be the one it names.
    """
    known = {node.id for node in machine.topology}
    faults = [
        ReservationFault(
            "reserved_memory_unknown_node",
            f"the reserved memory configuration references a NUMA node {entry.numa_node} that does not exist on this "
            "machine",
            numa_node=entry.numa_node,
        )
        for entry in reserved_memory
        if entry.numa_node not in known
    ]
    faults.extend(_sum_faults(reservation, reserved_memory))
    faults.extend(_int64_faults(reserved_memory))
    if not faults and not _is_specified(reserved_memory):
        faults.append(ReservationFault("reserved_memory_missing", NOT_SPECIFIED, resource=MEMORY))
    return faults


def reserved_totals(reserved_memory: t.Sequence[MemoryReservation]) -> ResourceList:
    """Sum over NUMA nodes by resource; the text has the format of the last entry, as the kubelet's."""
    totals: t.Dict[str, Quantity] = {}
    for entry in reserved_memory:
        for resource, text in entry.limits.items():
            quantity = parse_quantity(text)
            totals[resource] = add(quantity, totals[resource]) if resource in totals else quantity
    return totals


def _sum_faults(
    reservation: ResourceList, reserved_memory: t.Sequence[MemoryReservation]
) -> t.Iterator[ReservationFault]:
    totals = reserved_totals(reserved_memory)
    named = set(totals) | {name for name in reservation if name == MEMORY or is_hugepages(name)}
    for resource in sorted(named):
        reserved = add(Quantity(0), totals.get(resource, Quantity(0)))
        allocatable = add(Quantity(0), reservation.get(resource, Quantity(0)))
        if not same_value(reserved, allocatable):
            yield ReservationFault(
                "reserved_memory_sum",
                f'the total amount "{reserved}" of type "{resource}" is not equal to the value "{allocatable}" '
                "determined by Node Allocatable feature",
                resource=resource,
                found=str(reserved),
                expected=str(allocatable),
            )


def _int64_faults(reserved_memory: t.Sequence[MemoryReservation]) -> t.Iterator[ReservationFault]:
    for entry in reserved_memory:
        for resource, text in sorted(entry.limits.items()):
            quantity = parse_quantity(text)
            if quantity.as_int64() is None:
                yield ReservationFault(
                    "reserved_memory_not_int64",
                    NOT_INT64,
                    entry.numa_node,
                    resource,
                    found=text,
                    expected=str(quantity.ceil()),
                )


def _is_specified(reserved_memory: t.Sequence[MemoryReservation]) -> bool:
    total = sum(node.get(MEMORY, 0) for node in system_reserved(reserved_memory).values())
    return total % (1 << 64) != 0


def system_reserved(reserved_memory: t.Sequence[MemoryReservation]) -> SystemReserved:
    """Reserved bytes by node and resource; a later entry for the same node and resource overwrites."""
    reserved: t.Dict[int, t.Dict[str, int]] = {}
    for entry in reserved_memory:
        for resource, text in entry.limits.items():
            value = parse_quantity(text).as_int64()
            # A negative amount passes the kubelet's checks and is read as unsigned.
            reserved.setdefault(entry.numa_node, {})[resource] = (value or 0) & ((1 << 64) - 1)
    return reserved
