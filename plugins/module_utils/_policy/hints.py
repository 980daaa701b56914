# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What a drift looks like: the kernel image moved, a DIMM is gone, kdump was switched on. Hints never change a verdict.

The figures behind the thresholds are 1,051 recorded boots: an image moves 0.79 to 1.0 of its span, boots differ by at
most 20 KiB otherwise, and a lost DIMM takes 1.6 % less than its size, since its page structs go with it.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .history import BootRecord
from .kernel_image import KernelImage, ResourceRange
from .state import MachineState, NumaNodeState
from .units import MIB, mebibytes

IMAGE_MOVED = "image_moved"
PAGES_ONLY = "pages_only"
MEMORY_BLOCKS = "memory_blocks"
CRASH_KERNEL_ON = "crash_kernel_on"
CRASH_KERNEL_OFF = "crash_kernel_off"
CRASH_KERNEL_RESIZED = "crash_kernel_resized"
CRASH_KERNEL_MOVED = "crash_kernel_moved"
OTHER_KERNEL = "other_kernel"
INTERRUPTED_WRITE = "interrupted_write"

_NOISE = MIB


@dataclass(frozen=True)
class Hint:
    """`size` bytes on `numa_nodes`; `message` is a clause for a person."""

    kind: str
    message: str
    numa_nodes: t.Tuple[int, ...] = ()
    size: int = 0


@dataclass(frozen=True)
class BootContext:
    """What is known of this boot beside the drift, and of the last recorded one."""

    kernel_image: t.Optional[KernelImage] = None
    crash_kernels: t.Tuple[ResourceRange, ...] = ()
    memory_block_size: t.Optional[int] = None
    kernel_release: t.Optional[str] = None
    previous: t.Optional[BootRecord] = None

    @property
    def crash_size(self) -> int:
        return sum(crash.size for crash in self.crash_kernels)

    @property
    def previous_crash_size(self) -> t.Optional[int]:
        if self.previous is None:
            return None
        return sum(end - start + 1 for start, end in self.previous.crash_kernels)


def hints(drift: t.Mapping[int, int], context: BootContext) -> t.Tuple[Hint, ...]:
    """What a drift (bytes by NUMA node, negative where memory is missing) looks like; nothing for no drift."""
    moved = {node: size for node, size in drift.items() if size}
    if not moved:
        return ()
    if all(abs(size) <= _NOISE for size in moved.values()):
        return (Hint(PAGES_ONLY, "a few pages, as between any two boots", tuple(sorted(moved))),) + _kernel(context)
    found = (_crash_moved(moved, context), _crash_resized(moved, context))
    if any(found):
        return tuple(hint for hint in found if hint) + _kernel(context)
    image = _image_moved(moved, context)
    blocks = tuple(_memory_blocks(moved, context)) if image is None else ()
    return ((image,) if image else blocks) + _kernel(context, moved, bool(image or blocks))


def _losers_and_winners(moved: t.Mapping[int, int]) -> t.Tuple[t.Tuple[int, ...], t.Tuple[int, ...]]:
    losers = tuple(sorted(node for node, size in moved.items() if size < -_NOISE))
    winners = tuple(sorted(node for node, size in moved.items() if size > _NOISE))
    return losers, winners


def _is_conserved(moved: t.Mapping[int, int]) -> bool:
    return abs(sum(moved.values())) <= _NOISE


def _lost(moved: t.Mapping[int, int]) -> int:
    return -sum(size for size in moved.values() if size < 0)


def _span(context: BootContext) -> int:
    return context.kernel_image.span if context.kernel_image else 0


def _crash_moved(moved: t.Mapping[int, int], context: BootContext) -> t.Optional[Hint]:
    """The whole reservation on another node, with or without the image beside it (drift evidence, 6)."""
    size = context.crash_size
    if size <= 2 * _span(context) or not _is_conserved(moved):
        return None
    if abs(_lost(moved) - size) > _span(context) + _NOISE:
        return None
    losers, winners = _losers_and_winners(moved)
    text = f"the crash kernel ({mebibytes(size)}) moved {_from_to(winners, losers)}; benign, but beyond the KEP's bound"
    return Hint(CRASH_KERNEL_MOVED, text, winners + losers, size)


def _crash_resized(moved: t.Mapping[int, int], context: BootContext) -> t.Optional[Hint]:
    """The total changed by what crashkernel= reserves more or less than at the last recorded boot."""
    before, now = context.previous_crash_size, context.crash_size
    change = -sum(moved.values())
    if before is None and now and abs(change - now) <= _NOISE:
        return Hint(CRASH_KERNEL_ON, f"crashkernel= was switched on ({mebibytes(now)})", (), now)
    if before is None or before == now or abs(change - (now - before)) > _NOISE:
        return None
    if not before:
        return Hint(CRASH_KERNEL_ON, f"crashkernel= was switched on ({mebibytes(now)})", (), now)
    if not now:
        return Hint(CRASH_KERNEL_OFF, f"crashkernel= was switched off ({mebibytes(before)})", (), before)
    text = f"crashkernel= was resized from {mebibytes(before)} to {mebibytes(now)}"
    return Hint(CRASH_KERNEL_RESIZED, text, (), abs(now - before))


def _image_moved(moved: t.Mapping[int, int], context: BootContext) -> t.Optional[Hint]:
    span, lost = _span(context), _lost(moved)
    if not span or not _is_conserved(moved) or not span // 2 <= lost <= span + _NOISE:
        return None
    losers, winners = _losers_and_winners(moved)
    text = f"the kernel image ({mebibytes(lost)}) moved {_from_to(winners, losers)}"
    return Hint(IMAGE_MOVED, text, winners + losers, lost)


def _memory_blocks(moved: t.Mapping[int, int], context: BootContext) -> t.Iterator[Hint]:
    block = context.memory_block_size
    for node, size in sorted(moved.items()):
        count = (abs(size) + block // 2) // block if block else 0
        if block and count and abs(abs(size) - count * block) <= count * block // 50 + _NOISE:
            text = "NUMA node {0} {1} {2} memory block{3} of {4}: a DIMM, or hot-plug".format(
                node, "lost" if size < 0 else "gained", count, "" if count == 1 else "s", mebibytes(block)
            )
            yield Hint(MEMORY_BLOCKS, text, (node,), abs(size))


def _kernel(
    context: BootContext, moved: t.Optional[t.Mapping[int, int]] = None, explained: bool = True
) -> t.Tuple[Hint, ...]:
    previous = context.previous.kernel_release if context.previous else None
    if previous and context.kernel_release and previous != context.kernel_release:
        text = f"another kernel: {previous} before, {context.kernel_release} now"
        return (Hint(OTHER_KERNEL, text),)
    if not explained and moved and previous is None and all(abs(size) < _span(context) for size in moved.values()):
        return (Hint(OTHER_KERNEL, "perhaps another kernel: the totals changed by less than an image"),)
    return ()


def _from_to(old: t.Sequence[int], new: t.Sequence[int]) -> str:
    def name(nodes: t.Sequence[int]) -> str:
        return "NUMA node " + " and ".join(map(str, nodes)) if nodes else "elsewhere"

    return f"from {name(old)} to {name(new)}"


# --- a kubelet that was killed ---------------------------------------------------------------------------------------


def interrupted_write(recorded: MachineState, expected: MachineState) -> t.Optional[Hint]:
    """Whether the machine state counts exactly one container more than the assignments list.

    The kubelet writes the machine state before the assignments when it admits a container, and after them when it
    removes one; killed in between it leaves a file that it refuses for ever.
    """
    pairs = {node_id: (node, expected.get(node_id)) for node_id, node in recorded.items()}
    both = {node_id: (have, want) for node_id, (have, want) in pairs.items() if have is not None and want is not None}
    surplus = {
        node_id: have.number_of_assignments - want.number_of_assignments for node_id, (have, want) in both.items()
    }
    mask = tuple(sorted(node_id for node_id, count in surplus.items() if count))
    if len(both) != len(expected) or not mask or len({surplus[node_id] for node_id in mask}) != 1:
        return None
    blocks = surplus[mask[0]]
    resources = {name for have, _want in both.values() for name in have.memory_map or {}}
    if not 0 < blocks <= len(resources) or any(tuple(sorted(both[one][0].cells or ())) != mask for one in mask):
        return None
    inside = [both[node_id] for node_id in mask]
    outside = [pair for node_id, pair in both.items() if node_id not in mask]
    if any(_reserved_more(inside, name) < 0 or _reserved_more(outside, name) for name in resources):
        return None
    text = "as a kubelet leaves it that was killed between two writes: one container is counted that is not listed"
    return Hint(INTERRUPTED_WRITE, text, mask)


def _reserved_more(pairs: t.Sequence[t.Tuple[NumaNodeState, NumaNodeState]], resource: str) -> int:
    """By how many bytes more is reserved in the recorded nodes than in the expected ones."""
    return sum(_reserved(have, resource) - _reserved(want, resource) for have, want in pairs)


def _reserved(node: NumaNodeState, resource: str) -> int:
    table = (node.memory_map or {}).get(resource)
    return 0 if table is None else table.reserved
