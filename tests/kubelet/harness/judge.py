# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own judgement of a node directory: the module memmgr_validate, asked as Ansible would ask it."""

from __future__ import annotations

import dataclasses
import io
import json
import pathlib
import subprocess
import sys
import typing as t

from .node import NodeDirectory

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULE = ROOT / "plugins" / "modules" / "memmgr_validate.py"
COLLECTIONS = ROOT / ".work" / "collections"
STOPS_START = "stops_start"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A finding, as far as it is compared with the kubelet."""

    code: str
    severity: str
    kubelet_error: str | None


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What we say about the next start."""

    verdict: str
    will_start: bool | None
    findings: tuple[Finding, ...]

    @property
    def deciding(self) -> list[Finding]:
        """The findings that stop the start."""
        return [finding for finding in self.findings if finding.severity == STOPS_START]

    def __str__(self) -> str:
        return f"{self.verdict}, will_start {self.will_start}: " + "; ".join(
            f"{finding.code} ({finding.kubelet_error})" for finding in self.deciding
        )


def is_there() -> bool:
    """False while the module has not been written."""
    return MODULE.exists()


def judge(directory: NodeDirectory, release: str) -> Judgement:
    """Ask the module about the tree, with nothing but the root and the version: it must find the rest by itself."""
    arguments = {"host_root": str(directory.root), "kubelet_version": release}
    return parse(run_module(arguments))


def run_module(arguments: t.Mapping[str, object]) -> dict[str, t.Any]:
    """Run the module in a process of its own; returns what it printed."""
    name = "ansible_collections.kubenode.memory.plugins.modules.memmgr_validate"
    program = (
        "import json, runpy, sys\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = sys.stdin.buffer.read()\n"
        "basic._ANSIBLE_PROFILE = 'legacy'\n"
        f"runpy.run_module({name!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": dict(arguments)}),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(COLLECTIONS), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
        check=False,
    )
    lines = [line for line in io.StringIO(done.stdout) if line.startswith("{")]
    assert lines, f"the module printed no result: {done.stdout}{done.stderr}"
    result: dict[str, t.Any] = json.loads(lines[-1])
    assert not result.get("failed"), result.get("msg")
    return result


def parse(result: t.Mapping[str, t.Any]) -> Judgement:
    findings = tuple(Finding(f["code"], f["severity"], f.get("kubelet_error")) for f in result["findings"])
    return Judgement(result["verdict"], result["will_start"], findings)
