# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""history.jsonl is read as it was written, whatever happened to it, and backups are found by name."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node.backups import (
    BACKUPS,
    backup_name,
    backup_path,
    is_backup,
    list_backups,
    read_backup,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.history import (
    HISTORY_FILE,
    HistoryReading,
    format_line,
    history_text,
    numa_nodes_of,
    parse_line,
    read_history,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.history import BootRecord

BOOT = "0b4b8dd4-5b4c-4a59-9d1f-9b0f5f4f7a11"
RECORD = BootRecord(
    BOOT, "ab", {0: 1 << 63, 10: 0}, "6.1", (1, 2), ((3, 4), (5, 6)), 7, "match", 2, 9, (0,), ((1,), ())
)

numbers = st.integers(0, 2**64 - 1)
ranges = st.tuples(numbers, numbers)
records = st.builds(
    BootRecord,
    st.text(),
    st.text(),
    st.dictionaries(numbers, numbers),
    st.none() | st.text(),
    ranges,
    st.lists(ranges, max_size=2).map(tuple),
    numbers,
    st.text(),
    numbers,
    numbers,
    replaces=st.none() | st.text(),
)


@given(records)
def test_a_line_is_read_as_it_was_written(record: BootRecord) -> None:
    line = format_line(record)
    assert "\n" not in line
    assert parse_line(line) == replace(record, crash_kernel_nodes=((),) * len(record.crash_kernels))


def test_all_fields() -> None:
    assert parse_line(format_line(RECORD)) == RECORD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("boot_id", 1),
        ("totals", []),
        ("totals", {"x": 1}),
        ("epoch", "1"),
        ("epoch", True),
        ("epoch", -1),
        ("bound", 1.5),
    ],
)
def test_a_line_with_a_wrong_value_is_none(field: str, value: t.Any) -> None:
    assert parse_line(json.dumps({**json.loads(format_line(RECORD)), field: value})) is None


@given(st.text())
def test_any_other_text_is_none(text: str) -> None:
    assert parse_line(text) is None


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    assert read_history(HostRoot(str(tmp_path))) == HistoryReading()
    tree.write(HISTORY_FILE, history_text((RECORD,)) + "\n{}\n" + history_text((RECORD,)))
    assert read_history(HostRoot(str(tmp_path))) == HistoryReading((RECORD, RECORD), 2)


def test_who_may_not_read_it_is_told_and_can_still_judge() -> None:
    with temporary_tree() as tree:
        tree.write(HISTORY_FILE, history_text((RECORD,))).parent.chmod(0o700)
        with ordinary_user():
            reading = read_history(HostRoot(str(tree.base)))
    if os.geteuid() == 0:
        assert reading.records == ()
        assert "run the task with become: true" in (reading.problem or "")


def test_numa_nodes_of_a_range(tmp_path: Path) -> None:
    tree = NodeTree(tmp_path)
    for block, node in ((1, 0), (2, 0), (3, 1)):
        tree.write(f"/sys/devices/system/memory/memory{block}/node{node}/x", "")
    root, size = HostRoot(str(tmp_path)), 1 << 27
    assert numa_nodes_of(root, (size, 2 * size), size) == (0,)
    assert numa_nodes_of(root, (2 * size, 3 * size), size) == (0, 1)
    assert numa_nodes_of(root, (0, 1), size) == ()
    assert numa_nodes_of(root, (size, size), None) == ()


# --- backups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("boot_id", [BOOT, None])
def test_names_sort_by_time(boot_id: t.Optional[str]) -> None:
    names = [backup_name(now, boot_id) for now in (0, 1e9, 1770000000.000001, 1770000000.5, 4e9)]
    assert names == sorted(names)
    assert all(map(is_backup, names))
    assert names[3] == f"memory_manager_state.20260202T024000.500000Z.{boot_id or 'unknown-boot'}"


def test_only_backups_are_listed_and_read(tmp_path: Path) -> None:
    tree, root = NodeTree(tmp_path), HostRoot(str(tmp_path))
    assert list_backups(root) == ()
    name = backup_name(1e9, BOOT)
    tree.write(f"{BACKUPS}/{name}", "content")
    tree.write(f"{BACKUPS}/.123", "half")
    tree.write("/root/copy", "other")
    assert list_backups(root) == (name,)
    assert read_backup(root, name) == b"content"
    assert read_backup(root, "/root/copy") == b"other"
    with pytest.raises(NodeError, match=name):
        read_backup(root, backup_name(1e9, None))


@pytest.mark.parametrize("backup", ["", "../../etc/shadow", "copy", ".123", f"memory_manager_state.1.{BOOT}"])
def test_other_names_are_refused(backup: str) -> None:
    with pytest.raises(NodeError, match="give a name in"):
        backup_path(backup)
