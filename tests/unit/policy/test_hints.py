# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drift looks like, on figures of recorded boots (KiB; `drift-evidence`: 885 x86-64 boots, 126 of arm64)."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import pytest
from policy_builders import GIB, block, codes, judged, machine, recorded, subject

from ansible_collections.kubenode.memory.plugins.module_utils._policy.hints import (
    CRASH_KERNEL_MOVED,
    CRASH_KERNEL_OFF,
    CRASH_KERNEL_ON,
    CRASH_KERNEL_RESIZED,
    IMAGE_MOVED,
    INTERRUPTED_WRITE,
    MEMORY_BLOCKS,
    OTHER_KERNEL,
    PAGES_ONLY,
    BootContext,
    hints,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.history import BootRecord
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kernel_image import KernelImage, ResourceRange
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import MachineInfo
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import Block

KIB = 1024
MIB = 1024 * KIB


def image(span: int) -> KernelImage:
    return KernelImage(0x1000000, 0x1000000 + span * KIB - 1, ())


def crash(size: int) -> t.Tuple[ResourceRange, ...]:
    return (ResourceRange("Crash kernel", 0x30000000, 0x30000000 + size * KIB - 1),) if size else ()


def boot(span: int, crash_size: int = 0, before: t.Optional[int] = None, kernels: str = "6.1 6.1") -> BootContext:
    """A boot with memory blocks of 128 MiB; `before` is the crash kernel of the last recorded boot, if any."""
    old, new = kernels.split()
    ranges = tuple((row.start, row.end) for row in crash(before or 0))
    record = BootRecord("boot", "sha", {}, kernel_release=old, crash_kernels=ranges)
    return BootContext(image(span), crash(crash_size), 128 * MIB, new, None if before is None else record)


def kinds(context: BootContext, *drift: int) -> t.List[str]:
    return [hint.kind for hint in hints({node: size * KIB for node, size in enumerate(drift)}, context)]


@pytest.mark.parametrize(
    ("span", "drift"),
    [
        # x86-64, 2 x 2 GiB, kernel 6.1, boots 0 and 1, and back
        (53248, (-45272, 45272)),
        (53248, (45272, -45264)),
        # cloud kernel: 0.791 of the span, the least of all
        (40960, (-32412, 32404)),
        # arm64 6.12: a page more than the sum of the rows
        (37952, (34816, -34820)),
        # four nodes, two of them as before
        (53248, (0, 45272, -45272, 4)),
        # an image across a node border: its loss is split
        (37952, (34816, -28096, -6720)),
    ],
)
def test_the_image_moved(span: int, drift: t.Tuple[int, ...]) -> None:
    assert kinds(boot(span), *drift) == [IMAGE_MOVED]


def test_where_from_and_where_to() -> None:
    hint = hints({0: -45272 * KIB, 1: 45272 * KIB}, boot(53248))[0]
    assert (hint.numa_nodes, hint.size) == ((1, 0), 45272 * KIB)
    assert hint.message == "the kernel image (44.2 MiB) moved from NUMA node 1 to NUMA node 0"


@pytest.mark.parametrize("drift", [(-4,), (8, -12), (0, 16), (-20, 0, 4)])
def test_pages_only(drift: t.Tuple[int, ...]) -> None:
    assert kinds(boot(53248), *drift) == [PAGES_ONLY]


def test_no_drift_has_no_hint() -> None:
    assert kinds(boot(53248), 0, 0) == []


@pytest.mark.parametrize(
    ("span", "size", "drift"),
    [
        (32768, 524288, (-498240, 498012)),
        (32768, 524288, (-524284, 524292)),
        (53248, 524288, (-524288, 524288)),
        (53248, 786432, (786432, -786436)),
    ],
)
def test_the_crash_kernel_moved(span: int, size: int, drift: t.Tuple[int, ...]) -> None:
    assert kinds(boot(span, size), *drift) == [CRASH_KERNEL_MOVED]


@pytest.mark.parametrize(
    ("before", "now", "drift", "kind"),
    [
        (0, 262144, (0, -262144), CRASH_KERNEL_ON),
        (None, 262144, (0, -262144), CRASH_KERNEL_ON),
        # switched on while the image moves beside it
        (0, 262144, (-45272, 45272 - 262144), CRASH_KERNEL_ON),
        (262144, 0, (0, 262144), CRASH_KERNEL_OFF),
        (262144, 524288, (-262144, 0), CRASH_KERNEL_RESIZED),
    ],
)
def test_crashkernel_changed(before: t.Optional[int], now: int, drift: t.Tuple[int, ...], kind: str) -> None:
    assert kinds(boot(53248, now, before), *drift) == [kind]


@pytest.mark.parametrize("lost", [131072, 262144, 16777216 * 984 // 1000])
def test_memory_blocks(lost: int) -> None:
    """A lost DIMM takes 1.6 % less than its size: its page structs go with it."""
    assert kinds(boot(53248), -lost, 0) == [MEMORY_BLOCKS]
    assert kinds(boot(53248), 0, lost) == [MEMORY_BLOCKS]


def test_a_number_that_nothing_explains() -> None:
    assert kinds(boot(53248, 0, 0), -200000, 0) == []
    assert kinds(BootContext(), -200000, 0) == []


def test_another_kernel() -> None:
    assert kinds(boot(45056, 0, 0, "6.1 6.12"), -8544, -8504) == [OTHER_KERNEL]
    assert kinds(boot(45056, 0, 0, "6.1 6.12"), -34832, 26268) == [OTHER_KERNEL]
    assert kinds(boot(45056, 0, 0, "6.1 6.12"), 4, 0) == [PAGES_ONLY, OTHER_KERNEL]
    assert kinds(boot(45056), 6824, 0) == [OTHER_KERNEL]


def test_without_an_image_nothing_is_less_than_an_image() -> None:
    assert kinds(replace(boot(53248), kernel_image=None), -45272, 45272) == []
    assert kinds(boot(45056), 45056, 0) == []


# --- a kubelet that was killed ---------------------------------------------------------------------------------------

TWO = machine(2 * GIB, 2 * GIB, pages=10)
ALONE, BESIDE, SPREAD, PAGES = block([0], 256), block([0], 128), block([0, 1], 900), block([0], 4, "hugepages-2Mi")


def hints_of(counted: t.Sequence[Block], listed: t.Sequence[Block], on: MachineInfo = TWO) -> t.List[t.Optional[str]]:
    """Hints where the machine state counts some blocks and the assignments list others."""
    state = replace(recorded(TWO, *listed), machine_state=recorded(TWO, *counted).machine_state)
    evaluation = judged(subject(on, state))
    assert evaluation.verdict == "refuse"
    assert "assignments_differ" in codes(evaluation)
    return [one.hint for one in evaluation.findings if one.code == "assignments_differ"]


@pytest.mark.parametrize(
    ("counted", "listed"),
    [([ALONE], []), ([ALONE, BESIDE], [BESIDE]), ([SPREAD], []), ([ALONE, PAGES], [])],
    ids="first second group pages".split(),
)
def test_one_container_more_is_counted_than_listed(counted: t.Sequence[Block], listed: t.Sequence[Block]) -> None:
    assert set(hints_of(counted, listed)) == {INTERRUPTED_WRITE}


@pytest.mark.parametrize(
    ("counted", "listed"),
    [
        ([], [ALONE]),
        ([ALONE, ALONE, ALONE, ALONE], []),
        ([ALONE, block([1], 256)], []),
        ([block([0], 64), block([0], 64)], [ALONE]),
        ([SPREAD], [ALONE]),
        ([block([1], 256), ALONE], [block([1], 128)]),
    ],
    ids="fewer many two-nodes smaller regrouped other-sizes".split(),
)
def test_what_no_kill_leaves(counted: t.Sequence[Block], listed: t.Sequence[Block]) -> None:
    assert set(hints_of(counted, listed)) == {None}


def test_a_drift_beside_it_keeps_its_own_hint() -> None:
    drifted = machine(2 * GIB - 12 * KIB, 2 * GIB, pages=10)
    assert set(hints_of([ALONE], [], drifted)) == {INTERRUPTED_WRITE}
