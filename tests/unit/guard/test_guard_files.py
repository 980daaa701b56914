# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard keeps between two runs, and the file for node_exporter."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest
from node_tree import NodeTree

from ansible_collections.kubenode.memory.plugins.module_utils._node.guard_record import (
    GUARD_RECORD,
    guard_record_text,
    read_guard_record,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._node.settings import switched_off_by
from ansible_collections.kubenode.memory.plugins.module_utils._node.textfile import FILE_NAME, write_textfile
from ansible_collections.kubenode.memory.plugins.module_utils._policy.guard_metrics import GuardMetrics, Judged
from ansible_collections.kubenode.memory.plugins.module_utils._policy.starts import Ledger, Start

METRICS = GuardMetrics(
    7,
    Ledger(Start("a", "b", 1, 2, None), 1, False, {"started": 1}, {}, 2),
    Judged("match", True, 5, {0: -1}, {}, "auto", "default"),
)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    assert read_guard_record(HostRoot(str(tmp_path))) == GuardMetrics(0, Ledger())
    tree.write(GUARD_RECORD, guard_record_text(METRICS))
    assert read_guard_record(HostRoot(str(tmp_path))) == METRICS


@pytest.mark.parametrize(
    "change",
    [
        ('"time":7', '"time":true'),
        ('"time":7', '"time":"7"'),
        ('"starts":{"started":1}', '"starts":[]'),
        ('"starts":{"started":1}', '"starts":{"started":null}'),
        ('"ledger":', '"Ledger":'),
        ('"0":-1', '"x":-1'),
        ('{"time"', '["time"'),
    ],
)
def test_a_record_that_is_none_names_file_and_consequence(tmp_path: Path, change: tuple[str, str]) -> None:
    text = guard_record_text(METRICS)
    assert change[0] in text
    NodeTree(tmp_path).write(GUARD_RECORD, text.replace(*change))
    with pytest.raises(NodeError, match=re.escape(GUARD_RECORD) + ".*counters begin again"):
        read_guard_record(HostRoot(str(tmp_path)))


def test_textfile_has_the_mode_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        write_textfile(HostRoot(str(tmp_path)), "/", "a 1\n")
    finally:
        os.umask(old)
    file = tmp_path / FILE_NAME
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("a 1\n", 0o644)
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_textfile_follows_no_link_and_overwrites_what_a_killed_run_left(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    directory = tmp_path / "textfiles"
    directory.mkdir()
    for name in (FILE_NAME, ".kubenode_memory.tmp"):
        (directory / name).symlink_to(victim)
    write_textfile(HostRoot(str(tmp_path)), "/textfiles", "a 1\n")
    assert victim.read_text() == "precious"
    assert not (directory / FILE_NAME).is_symlink()
    assert os.listdir(directory) == [FILE_NAME]


def test_textfile_without_a_directory_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"/none/kubenode_memory\.prom"):
        write_textfile(HostRoot(str(tmp_path)), "/none", "a 1\n")


def test_textfile_keeps_the_old_one_where_it_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(NodeError, match=r"cannot write /kubenode_memory\.prom"):
        write_textfile(HostRoot(str(tmp_path)), "/", "a 1\n")
    assert os.listdir(tmp_path) == [FILE_NAME]


@pytest.mark.parametrize(
    ("cmdline", "expected"),
    [
        ("quiet kubenode_memory.guard=off ro\n", "kubenode_memory.guard=off on the kernel's command line"),
        ("quiet kubenode_memory.guard=offline\n", None),
        ("kubenode_memory.guard=on", None),
        (None, None),
    ],
)
def test_kill_switch_on_the_command_line(tmp_path: Path, cmdline: str | None, expected: str | None) -> None:
    if cmdline is not None:
        NodeTree(tmp_path).write("/proc/cmdline", cmdline)
    assert switched_off_by(HostRoot(str(tmp_path))) == expected


def test_kill_switch_file(tmp_path: Path) -> None:
    NodeTree(tmp_path).write("/etc/kubenode-memory/disabled", "")
    assert switched_off_by(HostRoot(str(tmp_path))) == "the file /etc/kubenode-memory/disabled"
