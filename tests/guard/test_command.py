# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The executable on a node: every command, every Python, what it keeps and what it asks."""

from __future__ import annotations

import binascii
import json
import os
import typing as t
from pathlib import Path

import pytest
from rebaseline.node import BOUND, MIB, OURS

from .sandbox import GUARD, PYTHONS, TEXTFILES, Sandbox, pythons

HEADER = 4 + 64
"""Python's magic number, and the digest of the code; then there is a checksum."""
BYTECODE = OURS[1:] + "/guard.bytecode"
FOUND = pythons()


@pytest.fixture
def node(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def code_of(line: str) -> str:
    assert len(line.splitlines()) == 1, line
    prefix, _blank, fields = line.partition("kubenode-memory-guard: code=")
    assert prefix in ("<3>", "<4>", "<5>", "<6>"), line
    return fields.split()[0]


def test_pythons_are_there() -> None:
    """One that is missing on a developer's machine is left out; CI has the oldest and the newest."""
    assert {"3.8", "3.13"} <= set(FOUND) or not os.environ.get("CI"), FOUND


@pytest.mark.parametrize("version", [version for version in PYTHONS if version in FOUND])
def test_each_python(tmp_path: Path, version: str) -> None:
    node = Sandbox(tmp_path, FOUND[version])
    first, second = node.start(INVOCATION_ID="1"), node.start(INVOCATION_ID="2")
    assert [code_of(one.stderr) for one in (first, second)] == ["rebaselined", "match"]
    assert [one.returncode for one in (first, second)] == [0, 0]
    assert (tmp_path / BYTECODE).stat().st_mode & 0o777 == 0o600
    assert node.metrics["kubenode_memory_guard_boot_attempts"] == 2
    status = node.guard("status")
    assert status.returncode == 0, status.stderr
    assert status.stdout.splitlines()[0] == (
        "guards; tolerance auto (nothing is set), bound 116.0 MiB, kernel image 52.0 MiB"
    )


def test_the_binary_is_not_asked_again_while_it_is_unchanged(node: Sandbox) -> None:
    for _start in range(3):
        node.start()
    assert node.asked == ["--version", "--help"]
    node.kubelet("case $1 in --version) echo Kubernetes v1.37.2;; esac")
    node.start()
    node.start()
    assert node.asked == ["--version", "--help"] * 2


def test_compiled_code_is_used_and_never_needed(node: Sandbox) -> None:
    node.start()
    kept = (node.base / BYTECODE).read_bytes()
    node.start()
    assert (node.base / BYTECODE).read_bytes() == kept
    middle = len(kept) // 2
    for torn in (kept[:2000], kept[:middle] + bytes(4096) + kept[middle + 4096 :]):
        (node.base / BYTECODE).write_bytes(torn)
        assert code_of(node.start().stderr) == "match"
        assert (node.base / BYTECODE).read_bytes()[:HEADER] == kept[:HEADER]


def test_compiled_code_of_others_is_not_run(node: Sandbox) -> None:
    """Whoever may write the file could have root run it."""
    node.start()
    file = node.base / BYTECODE
    kept = file.read_bytes()
    body = kept[HEADER + 4 :].replace(b"there is nothing to do", b"it was changed by us!!")
    evil = kept[:HEADER] + binascii.crc32(body).to_bytes(4, "big") + body
    assert evil != kept
    file.write_bytes(evil)
    assert "it was changed by us!!" in node.start().stderr
    file.chmod(0o620)
    assert "there is nothing to do" in node.start().stderr
    file.write_bytes(evil)
    file.chmod(0o600)
    os.chown(file, 65534, 0)
    assert "there is nothing to do" in node.start().stderr


def test_nothing_is_made_where_only_a_question_is_asked(node: Sandbox) -> None:
    (node.base / OURS[1:]).rmdir()
    before = node.fingerprint(ignore=(BYTECODE,))
    for command in ("status", "validate", "bound", "history"):
        node.guard(command)
    made = set(node.fingerprint()) - set(before)
    assert {path for path in made if path.startswith(("var/lib/kubenode", "var/lib/kubelet", "etc"))} == set()


def test_validate(node: Sandbox) -> None:
    asked = node.guard("validate", "--json")
    result = json.loads(asked.stdout)
    assert (asked.returncode, result["verdict"], result["will_start"]) == (0, "tolerable", False)
    assert node.guard("validate", "--tolerance", "1Mi").returncode == 1
    bad = node.guard("validate", "--tolerance", "ten")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "tolerance is 'ten'" in bad.stderr


def test_bound(node: Sandbox) -> None:
    assert json.loads(node.guard("bound", "--json").stdout)["bound_bytes"] == BOUND
    assert node.guard("bound").stdout == "bound 116.0 MiB, kernel image 52.0 MiB\n"


def test_rebaseline_history_and_restore(node: Sandbox) -> None:
    before = node.content
    predicted = node.guard("rebaseline", "--check", "--json")
    assert json.loads(predicted.stdout)["changed"] is True
    assert node.content == before
    done = json.loads(node.guard("rebaseline", "--json").stdout)
    assert (done["reason"], done["changed"]) == ("rebaselined", True)
    history = json.loads(node.guard("history", "--json").stdout)
    assert [record["verdict"] for record in history["records"]] == ["tolerable", "tolerable"]
    node.drift((0, 0))
    restored = node.guard("restore", history["backups"][0])
    assert restored.stdout.startswith("changed (restored)"), restored
    assert node.content == before
    assert node.guard("restore", "none").returncode == 2


def test_rebaseline_under_a_live_kubelet(node: Sandbox) -> None:
    node.start_kubelet()
    refused = node.guard("rebaseline")
    assert (refused.returncode, refused.stdout.split(":")[0]) == (2, "unchanged (kubelet_in_use)")
    assert code_of(node.start().stderr) == "kubelet_in_use"


def test_metrics_of_now_count_no_start(node: Sandbox) -> None:
    node.guard("status", "--textfile-directory", TEXTFILES, INVOCATION_ID="1")
    assert node.metrics['kubenode_memory_guard_verdict{verdict="tolerable"}'] == 1
    assert node.metrics["kubenode_memory_guard_last_run_timestamp_seconds"] == 0
    assert node.metrics["kubenode_memory_guard_boot_attempts"] == 0
    assert node.metrics['kubenode_memory_drift_bytes{numa_node="0"}'] == 44 * MIB


def test_a_start_and_its_end(node: Sandbox) -> None:
    node.start(INVOCATION_ID="1")
    ended = node.guard("stopped", INVOCATION_ID="1", SERVICE_RESULT="exit-code")
    assert code_of(ended.stderr) == "failed"
    assert "failed 1" in node.guard("status").stdout


@pytest.mark.parametrize("arguments", [(), ("what",), ("restore",), ("validate", "--what"), ("history", "extra")])
def test_a_command_line_that_is_not_understood(node: Sandbox, arguments: t.Tuple[str, ...]) -> None:
    done = node.guard(*arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_hook_that_is_not_understood_ends_well(node: Sandbox) -> None:
    done = node.guard("run", "--what")
    assert (done.returncode, code_of(done.stderr)) == (0, "usage")


def test_another_root(node: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Then nothing is executed."""
    outer = Sandbox(tmp_path_factory.mktemp("outer"))
    before = "mkdir -p mnt; mount --rbind " + str(node.base) + " mnt"
    done = outer.guard("validate", "--json", "--host-root", "/mnt", before=before)
    assert json.loads(done.stdout)["verdict"] == "tolerable"
    assert outer.asked == node.asked == []
    assert (node.base / GUARD[1:]).exists()
