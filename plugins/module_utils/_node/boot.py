# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What is true of a node from one boot to the next: boot id, kernel, memory map."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .root import HostRoot, NodeError, PermissionMissing

T = t.TypeVar("T")

BOOT_ID = "/proc/sys/kernel/random/boot_id"
STAT = "/proc/stat"
OSRELEASE = "/proc/sys/kernel/osrelease"
VERSION = "/proc/version"
ARCH = "/proc/sys/kernel/arch"
CPUINFO = "/proc/cpuinfo"
IOMEM = "/proc/iomem"
BLOCK_SIZE = "/sys/devices/system/memory/block_size_bytes"
CMDLINE = "/proc/cmdline"

_ARCHITECTURES = (
    ("x86_64", re.compile(r"^flags\s*:.*\blm\b", re.M)),
    ("aarch64", re.compile(r"^CPU architecture\s*:\s*(?:8|AArch64)", re.M)),
    ("s390x", re.compile(r"^vendor_id\s*:\s*IBM/S390", re.M)),
    ("ppc64le", re.compile(r"^cpu\s*:\s*POWER(?:[89]|\d\d)", re.M)),
    ("riscv64", re.compile(r"^isa\s*:\s*rv64", re.M)),
)


@dataclass(frozen=True)
class Fact(t.Generic[T]):
    """One thing read from the node, or why it is not known; `denied` where only permission is missing."""

    value: t.Optional[T] = None
    reason: str = ""
    denied: bool = False


@dataclass(frozen=True)
class BootFacts:
    """Sizes are bytes, `boot_time` is seconds since the epoch, `iomem` is the text of /proc/iomem.

    A reader without CAP_SYS_ADMIN is shown an iomem of zeros, which is a value here: the bound's parser tells.
    """

    boot_id: Fact[str]
    boot_time: Fact[int]
    kernel_release: Fact[str]
    architecture: Fact[str]
    iomem: Fact[str]
    memory_block_size_bytes: Fact[int]


def read_boot_facts(root: HostRoot) -> BootFacts:
    """Read all facts; what cannot be read has its reason, nothing is raised."""
    return BootFacts(
        boot_id=_fact(root, BOOT_ID, _boot_id),
        boot_time=_fact(root, STAT, _boot_time),
        kernel_release=_first(_fact(root, OSRELEASE, _word), _fact(root, VERSION, _release)),
        architecture=_first(_fact(root, ARCH, _word), _fact(root, CPUINFO, _architecture)),
        iomem=_fact(root, IOMEM, _text),
        memory_block_size_bytes=_fact(root, BLOCK_SIZE, _hex),
    )


def _fact(root: HostRoot, path: str, parse: t.Callable[[str], t.Optional[T]]) -> Fact[T]:
    try:
        value = parse(root.read_text(path, errors="replace"))
    except NodeError as error:
        return Fact(reason=str(error), denied=isinstance(error, PermissionMissing))
    if value is None:
        return Fact(reason=f"{root.display(path)} does not have the form that the kernel gives it")
    return Fact(value)


def _first(one: Fact[T], other: Fact[T]) -> Fact[T]:
    return other if one.value is None and other.value is not None else one


def _group(pattern: str, text: str) -> t.Optional[str]:
    match = re.search(pattern, text, re.M | re.A)
    return match.group(1) if match else None


def _text(text: str) -> t.Optional[str]:
    return text or None


def _word(text: str) -> t.Optional[str]:
    return _group(r"\A\s*([!-~]{1,255})\s*\Z", text)


def _boot_id(text: str) -> t.Optional[str]:
    return _group(r"\A([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*\Z", text)


def _boot_time(text: str) -> t.Optional[int]:
    seconds = _group(r"^btime (\d{1,15})$", text)
    return None if seconds is None else int(seconds)


def _release(text: str) -> t.Optional[str]:
    return _group(r"\ALinux version ([!-~]{1,255}) ", text)


def _hex(text: str) -> t.Optional[int]:
    digits = _group(r"\A([0-9a-f]{1,16})\s*\Z", text)
    return int(digits, 16) or None if digits else None


def _architecture(text: str) -> t.Optional[str]:
    return next((name for name, pattern in _ARCHITECTURES if pattern.search(text)), None)
