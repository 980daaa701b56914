# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a boot: each is a value, or says why it is missing."""

from __future__ import annotations

import os
import typing as t
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node import boot
from ansible_collections.kubenode.memory.plugins.module_utils._node.boot import BootFacts, Fact, read_boot_facts
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot

FILES = {
    boot.BOOT_ID: "b34aee69-c7c9-4389-8203-b273c90ba3e0\n",
    boot.STAT: "cpu  1 2 3\nintr 5 btime 7\nbtime 1795972282\nprocesses 9\n",
    boot.OSRELEASE: "6.1.0-57-amd64\n",
    boot.VERSION: "Linux version 6.1.0-57-amd64 (debian-kernel@lists.debian.org) #1 SMP\n",
    boot.CPUINFO: "processor\t: 0\nflags\t\t: fpu sse2 lm constant_tsc\n",
    boot.IOMEM: "00000000-00000fff : Reserved\n",
    boot.BLOCK_SIZE: "8000000\n",
}


def facts_of(files: t.Mapping[str, t.Union[str, bytes]], base: Path) -> BootFacts:
    tree = NodeTree(base)
    for path, data in files.items():
        tree.write(path, data)
    return read_boot_facts(HostRoot(str(base)))


def test_all_facts(tmp_path: Path) -> None:
    assert facts_of(FILES, tmp_path) == BootFacts(
        boot_id=Fact("b34aee69-c7c9-4389-8203-b273c90ba3e0"),
        boot_time=Fact(1795972282),
        kernel_release=Fact("6.1.0-57-amd64"),
        architecture=Fact("x86_64"),
        iomem=Fact("00000000-00000fff : Reserved\n"),
        memory_block_size_bytes=Fact(128 * 1024 * 1024),
    )


def test_an_empty_tree_gives_reasons_with_paths(tmp_path: Path) -> None:
    facts = facts_of({}, tmp_path)
    for field in fields(facts):
        fact = getattr(facts, field.name)
        assert (fact.value, fact.denied) == (None, False)
        assert fact.reason.startswith(("cannot read /proc/", "cannot read /sys/"))


@pytest.mark.parametrize(
    ("path", "data", "name", "value"),
    [
        (boot.BOOT_ID, "../../etc\n", "boot_id", None),
        (boot.BOOT_ID, "", "boot_id", None),
        (boot.STAT, "btime x\n", "boot_time", None),
        (boot.OSRELEASE, "a b\n", "kernel_release", None),
        (boot.VERSION, "Linux version 6.12.1 (x)", "kernel_release", "6.12.1"),
        (boot.VERSION, "Darwin", "kernel_release", None),
        (boot.ARCH, "aarch64\n", "architecture", "aarch64"),
        (boot.CPUINFO, "BogoMIPS\t: 50.00\nCPU architecture: 8\n", "architecture", "aarch64"),
        (boot.CPUINFO, "vendor_id       : IBM/S390\n", "architecture", "s390x"),
        (boot.CPUINFO, "cpu\t\t: POWER9 (architected), altivec supported\n", "architecture", "ppc64le"),
        (boot.CPUINFO, "isa\t\t: rv64imafdch_zicntr\n", "architecture", "riscv64"),
        (boot.CPUINFO, "flags : fpu\n", "architecture", None),
        (boot.IOMEM, "", "iomem", None),
        (boot.BLOCK_SIZE, "0x8000000\n", "memory_block_size_bytes", None),
        (boot.BLOCK_SIZE, "0\n", "memory_block_size_bytes", None),
        (boot.BLOCK_SIZE, "80000000\n", "memory_block_size_bytes", 2 * 1024**3),
    ],
)
def test_one_fact(tmp_path: Path, path: str, data: t.Union[str, bytes], name: str, value: object) -> None:
    fact = getattr(facts_of({path: data}, tmp_path), name)
    assert fact.value == value
    assert (fact.reason == "") == (value is not None)


def test_ordinary_user_is_told_what_is_missing_for_iomem() -> None:
    with temporary_tree() as tree:
        tree.write(boot.IOMEM, "0-1 : System RAM\n").chmod(0o400 if os.geteuid() == 0 else 0)
        tree.write(boot.BLOCK_SIZE, "8000000\n")
        with ordinary_user():
            facts = read_boot_facts(HostRoot(str(tree.base)))
    assert facts.iomem.denied
    assert "/proc/iomem" in facts.iomem.reason
    assert "become: true" in facts.iomem.reason
    assert facts.memory_block_size_bytes.value == 0x8000000


def test_the_running_system() -> None:
    facts = read_boot_facts(HostRoot("/"))
    assert facts.kernel_release.value == os.uname().release
    assert facts.boot_id.value == Path(boot.BOOT_ID).read_text().strip()
    assert facts.architecture.value == os.uname().machine
    assert facts.boot_time.value


_texts = st.one_of(st.binary(max_size=80), st.sampled_from(list(FILES.values())).map(lambda text: text[:-3].encode()))


@settings(max_examples=100)
@given(files=st.dictionaries(st.sampled_from([*FILES, boot.ARCH]), _texts))
def test_any_bytes_end_in_a_value_or_a_reason(files: t.Mapping[str, bytes]) -> None:
    with temporary_tree() as tree:
        facts = facts_of(files, tree.base)
    for field in fields(facts):
        fact = getattr(facts, field.name)
        assert (fact.value is None) == bool(fact.reason)
