# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kill at any point leaves the old or the new file, whole; an error leaves the old one and nothing else."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._node.writer import TEMPORARY
from ansible_collections.kubenode.memory.plugins.module_utils._rebaseline import POINTS
from rebaseline.node import KIB, OURS, DriftedNode
from rebaseline.tracer import KILL, MACHINE, NAMES, Call, run_traced

pytestmark = pytest.mark.skipif(MACHINE not in NAMES, reason=f"the tracer does not know {MACHINE}")

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
SAMPLE = int(os.environ.get("KILL_SAMPLE", "100"))
"""At how many of all calls, evenly spread, a process is killed beside those that change something."""


class Expected(t.NamedTuple):
    old: bytes
    new: bytes
    changes: t.List[str]
    calls: int


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """What an undisturbed run does: its calls, all of them, and those that change something."""
    node = DriftedNode(tmp_path_factory.mktemp("undisturbed"), "V3", release="v1.37.2")
    old = node.content
    calls: t.List[Call] = []
    whole: t.Set[bytes] = set()

    def look(_index: int, call: Call) -> None:
        calls.append(call)
        whole.add(node.content)

    assert run_traced(lambda: rebaseline(node), look, every_call=True) == 0
    new = node.content
    assert whole == {old, new}, "at every single call the file is the old or the new one"
    return Expected(old, new, [call.name for call in calls if call.changes], len(calls))


def rebaseline(node: DriftedNode, **plan: t.Any) -> int:
    outcome = node.run(**plan)
    return 0 if outcome.changed else 3 if outcome.reason == "write_failed" else 4


def temporaries(node: DriftedNode) -> t.List[str]:
    return [str(path) for path in node.base.rglob(".*") if path.name == TEMPORARY]


def require_whole(node: DriftedNode, expected: Expected) -> None:
    """The file is whole, and what has a backup's or the history's name is whole as well."""
    assert node.content in (expected.old, expected.new)
    assert [backup for backup in node.backups if backup.name != TEMPORARY and backup.read_bytes() != expected.old] == []
    if node.content == expected.new:
        assert len(node.backups) == 1
    if (node.base / OURS[1:] / "history.jsonl").exists():
        assert {line["content_sha256"] == line["replaces"] for line in node.history} <= {False}


def require_rerun_succeeds(node: DriftedNode, expected: Expected) -> None:
    outcome = node.run()
    assert (outcome.reason, outcome.failed) in (("rebaselined", False), ("match", False)), outcome.message
    assert node.content == expected.new
    assert [backup.read_bytes() for backup in node.backups] == [expected.old]
    assert temporaries(node) == []
    assert [(line["epoch"], line["replaces"] is None) for line in node.history] == [(1, True), (1, False)]


def killed_at(base: Path, number: int, every_call: bool) -> DriftedNode:
    node = DriftedNode(base, "V3", release="v1.37.2")
    status = run_traced(lambda: rebaseline(node), lambda index, _call: KILL if index == number else None, every_call)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    return node


def test_a_kill_at_any_call_leaves_the_old_or_the_new_file_whole(
    expected: Expected, tmp_path: Path, record_property: t.Callable[[str, object], None]
) -> None:
    sample = range(0, expected.calls, max(1, expected.calls // SAMPLE))
    points = [(number, False) for number in range(len(expected.changes))] + [(number, True) for number in sample]
    new = 0
    for number, every_call in points:
        base = tmp_path / f"{number}-{every_call}"
        node = killed_at(base, number, every_call)
        require_whole(node, expected)
        new += node.content == expected.new
        assert len(temporaries(node)) <= 1
        require_rerun_succeeds(node, expected)
        shutil.rmtree(base)
    assert 0 < new < len(points)
    record_property(
        "figure",
        f"{expected.calls} system calls, the file whole at each; killed at {len(points)}: before each of the "
        f"{len(expected.changes)} that change something and {len(sample)} others; the new file was there {new}x",
    )


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_point_between_judging_and_writing(expected: Expected, tmp_path: Path, point: str) -> None:
    node = DriftedNode(tmp_path, "V3", release="v1.37.2")
    pid = os.fork()
    if pid == 0:
        rebaseline(node, at=lambda here: os.kill(os.getpid(), signal.SIGKILL) if here == point else None)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    assert node.content == expected.old
    require_rerun_succeeds(node, expected)


def failing_at(node: DriftedNode, number: int, error: int) -> int:
    return run_traced(lambda: rebaseline(node), lambda index, _call: error if index == number else None)


@pytest.mark.parametrize("error", ERRORS, ids=[errno.errorcode[error] for error in ERRORS])
def test_an_error_of_any_call_leaves_the_old_file_and_nothing_else(
    expected: Expected, tmp_path: Path, error: int, record_property: t.Callable[[str, object], None]
) -> None:
    failed = 0
    for number, name in enumerate(expected.changes):
        node = DriftedNode(tmp_path / str(number), "V3", release="v1.37.2")
        status = failing_at(node, number, error)
        last_fsync = name == "fsync" and number == len(expected.changes) - 1
        assert os.WEXITSTATUS(status) == (0 if last_fsync else 3), (number, name)
        assert node.content == (expected.new if last_fsync else expected.old), (number, name)
        # A file system on which even a removal fails keeps what was there; the next run removes it.
        assert temporaries(node) == [] or name == "unlinkat", (number, name)
        require_whole(node, expected)
        require_rerun_succeeds(node, expected)
        failed += 1
        shutil.rmtree(tmp_path / str(number))
    record_property(
        "figure", f"{errno.errorcode[error]} at each of {failed} system calls: {', '.join(expected.changes)}"
    )


def test_the_file_is_durable_before_the_rename_and_the_directory_after_it(expected: Expected) -> None:
    """Backup, history and state file, in this order, each in the same five steps; only then is it done."""
    steps = ["openat", "fchmod", "write", "fsync", "renameat", "fsync"]
    assert expected.changes[-18:] == steps * 3


def test_an_error_after_the_rename_says_that_the_file_is_written(expected: Expected, tmp_path: Path) -> None:
    node = DriftedNode(tmp_path, "V3", release="v1.37.2")
    answer = tmp_path / "answer"

    def report() -> int:
        outcome = node.run()
        answer.write_text(json.dumps([outcome.changed, outcome.failed, outcome.message]))
        return 0

    last = len(expected.changes) - 1
    assert run_traced(report, lambda index, _call: errno.EIO if index == last else None) == 0
    changed, failed, message = json.loads(answer.read_text())
    assert (changed, failed) == (True, True)
    assert "is written, but its directory cannot be synced" in message


@pytest.mark.parametrize("left", [1, 2, 4, 8, 12])
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_disk_that_is_really_full(expected: Expected, tmp_path: Path, left: int) -> None:
    base = tmp_path / "node"
    base.mkdir()
    mount(["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(base)])
    try:
        node = DriftedNode(base, "V3", release="v1.37.2")
        free = os.statvfs(base).f_bavail * os.statvfs(base).f_frsize
        (base / "filler").write_bytes(b"x" * max(0, free - left * 4 * KIB))
        outcome = node.run()
        assert node.content == (expected.new if outcome.changed else expected.old)
        assert outcome.changed or (outcome.reason == "write_failed" and "free some space there" in outcome.message)
        assert temporaries(node) == []
        (base / "filler").unlink()
        require_rerun_succeeds(node, expected)
    finally:
        subprocess.run(["umount", str(base)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
@pytest.mark.parametrize("directory", ["var/lib/kubelet", "var/lib"])
def test_a_read_only_file_system(expected: Expected, tmp_path: Path, directory: str) -> None:
    node = DriftedNode(tmp_path, "V3", release="v1.37.2")
    path = str(tmp_path / directory)
    mount(["--bind", path, path])
    try:
        mount(["-o", "remount,ro,bind", path])
        before = node.fingerprint()
        prediction = node.run(check=True)
        assert (prediction.reason, prediction.changed) == ("rebaselined", True)
        assert node.fingerprint() == before
        outcome = node.run()
        assert (outcome.reason, outcome.changed) == ("write_failed", False)
        assert "Read-only file system; remount the file system read-write" in outcome.message
        assert node.content == expected.old
    finally:
        subprocess.run(["umount", path], check=True)
    require_rerun_succeeds(node, expected)


def mount(arguments: t.Sequence[str]) -> None:
    done = subprocess.run(["mount", *arguments], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")


def test_only_our_own_leftover_is_removed(expected: Expected, tmp_path: Path) -> None:
    """The kubelet's own, `.` and other digits, stays; ours goes, also where there is nothing to write."""
    node = DriftedNode(tmp_path, "V3", release="v1.37.2")
    kubelets = node.write("/var/lib/kubelet/.123456789", "half")
    node.write(f"/var/lib/kubelet/{TEMPORARY}", "half")
    node.run()
    assert kubelets.read_text() == "half"
    assert temporaries(node) == []
    node.write(f"/var/lib/kubelet/{TEMPORARY}", "half")
    assert node.run().reason == "match"
    assert temporaries(node) == []
    assert node.content == expected.new
