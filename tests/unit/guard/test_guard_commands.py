# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person asks: the first line of the status, exit codes, and errors without a traceback."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from rebaseline.node import MIB, DriftedNode

from ansible_collections.kubenode.memory.plugins.module_utils._guard import main


class Shell:
    """The command line, on a node below a directory."""

    def __init__(self, node: DriftedNode, capfd: pytest.CaptureFixture[str]) -> None:
        self.node = node
        self.capfd = capfd

    def __call__(self, *arguments: str, code: int = 0) -> str:
        status = main([*arguments, "--host-root", str(self.node.base)], {})
        out, err = self.capfd.readouterr()
        assert (status, "Traceback" in err) == (code, False), err
        return err or out


@pytest.fixture
def shell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shell:
    node = DriftedNode(tmp_path)
    node.write("/var/lib/dpkg/status", "Package: kubelet\nVersion: 1.36.3-1.1\n\n")
    return Shell(node, capfd)


IN_FORCE: t.Mapping[str, t.Tuple[t.Mapping[str, str], str]] = {
    "nothing set": ({}, "guards; tolerance auto (nothing is set), bound 116.0 MiB, kernel image 52.0 MiB"),
    "quantity": (
        {"/etc/kubenode-memory/tolerance": "128Mi\n"},
        "guards; tolerance 128Mi (set in /etc/kubenode-memory/tolerance), bound 128.0 MiB",
    ),
    "off": (
        {"/etc/kubenode-memory/tolerance": "# for now\noff\n"},
        "guards; tolerance off (set in /etc/kubenode-memory/tolerance), no drift is tolerated",
    ),
    "file": (
        {"/etc/kubenode-memory/disabled": ""},
        "off: switched off by the file /etc/kubenode-memory/disabled",
    ),
    "word": (
        {"/proc/cmdline": "ro kubenode_memory.guard=off\n"},
        "off: switched off by kubenode_memory.guard=off on the kernel's command line",
    ),
    "hidden": (
        {"/proc/iomem": "00000000-00000000 : Kernel code\n"},
        "guards; tolerance auto (nothing is set), no drift is tolerated: ",
    ),
}


@pytest.mark.parametrize("case", IN_FORCE)
def test_first_line_of_the_status(shell: Shell, case: str) -> None:
    files, line = IN_FORCE[case]
    for path, text in files.items():
        shell.node.write(path, text)
    found = shell("status").splitlines()[0]
    assert found == line or (line.endswith(": ") and found.startswith(line))
    assert json.loads(shell("status", "--json"))["in_force"] == found


def test_exit_codes_of_validate(shell: Shell) -> None:
    assert shell("validate").startswith("tolerable: node 0 -44.0 MiB, node 1 +44.0 MiB, bound 116.0 MiB\n")
    shell.node.drift((-512 * MIB, 0))
    assert "stops_start  memory_changed: NUMA node 0" in shell("validate", code=1)
    shell.node.write("/etc/kubenode-memory/tolerance", "\n")
    assert shell("validate", code=2).startswith("kubenode-memory-guard: /etc/kubenode-memory/tolerance has 0 values")


def test_writing_from_the_command_line(shell: Shell) -> None:
    before = shell.node.content
    assert shell("rebaseline", "--check").startswith("would be changed (rebaselined)")
    assert shell.node.content == before
    assert "max_cumulative_drift is 'much'" in shell("rebaseline", "--max-cumulative-drift", "much", code=2)
    assert shell("rebaseline").startswith("changed (rebaselined)")
    shell.node.drift((-48 * MIB, 48 * MIB))
    assert shell("rebaseline", "--max-cumulative-drift", "46Mi", code=1).startswith("unchanged (cumulative_drift)")
    assert "backup memory_manager_state." in shell("history")
    assert "Backups in" in shell("restore", "/none", code=2)


def test_history_of_a_node_without_one(shell: Shell) -> None:
    assert shell("history") == "nothing is remembered yet\n"
    assert json.loads(shell("history", "--json")) == {"records": [], "damaged": 0, "problem": None, "backups": []}


def test_help(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments, {})
        assert stop.value.code == 0
    assert "ExecStartPre=" in capfd.readouterr().out
