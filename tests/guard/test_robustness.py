# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is wrong with a node: one line that says so, exit code 0, in time, and the state file whole."""

from __future__ import annotations

import dataclasses
import sys
import time
import typing as t
from pathlib import Path

import pytest
from rebaseline.node import MIB, OURS, STATE_FILE

from ansible_collections.kubenode.memory.plugins.plugin_utils._guard_archive import guard_archive

from .sandbox import GUARD, KUBELET, METRICS, TEXTFILES, Sandbox
from .test_command import code_of

STATE = OURS[1:]
FULL = "mount -t tmpfs -o size=64k,mode=0700 none {0}; head -c 1M /dev/zero > {0}/filler 2>/dev/null || :"
FULL_KUBELET = f"""cp -p {STATE_FILE[1:]} saved
mount -t tmpfs -o size=64k,mode=0700 none var/lib/kubelet
cp -p saved {STATE_FILE[1:]}
cat /dev/zero > var/lib/kubelet/filler 2>/dev/null || :"""
YAML = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@dataclasses.dataclass(frozen=True)
class Trouble:
    """What is wrong, and what the line says of it. `before` is shell in the node's tree."""

    name: str
    code: str
    says: str
    prepare: t.Callable[[Sandbox], object] = lambda _node: None
    before: str = ""
    python: str = sys.executable
    rewritten: bool = False
    shown: bool = True
    """Whether the metrics tell of this run."""


def settings(content: t.Union[str, bytes]) -> t.Callable[[Sandbox], object]:
    return lambda node: node.write("/etc/kubenode-memory/tolerance", content)


def file(path: str, content: t.Union[str, bytes]) -> t.Callable[[Sandbox], object]:
    return lambda node: node.write(path, content)


def no_file(path: str) -> t.Callable[[Sandbox], object]:
    return lambda node: (node.base / path[1:]).unlink()


def read_only(path: str) -> str:
    return f"mount --bind {path} {path}; mount -o remount,bind,ro {path}"


TROUBLES = (
    Trouble(
        "no PyYAML",
        "error",
        "install python3-yaml or python3-pyyaml",
        file("/etc/kubelet", YAML),
        before="mount -t tmpfs none usr/lib/python3/dist-packages",
        python="/usr/bin/python3",
    ),
    Trouble("no state directory", "rebaselined", "re-baselined", before=f"rmdir {STATE}", rewritten=True),
    Trouble("read-only state directory", "write_failed", "read-write", before=read_only(STATE)),
    Trouble("all read-only", "write_failed", "read-write", before=read_only("var"), shown=False),
    Trouble("full disk", "write_failed", "free some space", before=FULL.format(STATE)),
    Trouble("full disk below the kubelet", "write_failed", "free some space", before=FULL_KUBELET),
    Trouble(
        "full disk below the metrics",
        "rebaselined",
        f"cannot write {METRICS}",
        before=FULL.format(TEXTFILES[1:]),
        rewritten=True,
        shown=False,
    ),
    Trouble("empty settings", "error", "/etc/kubenode-memory/tolerance has 0 values", settings("\n")),
    Trouble("settings that are no quantity", "error", "Correct the file", settings("ten\n")),
    Trouble("settings that are no text", "error", "is not UTF-8 text", settings(b"\xff\xfe")),
    Trouble("no iomem", "refuse", "/proc/iomem", no_file("/proc/iomem")),
    Trouble("hidden iomem", "refuse", "/proc/iomem", file("/proc/iomem", "00000000-00000000 : Kernel code\n")),
    Trouble("no proc", "refuse", "/proc/iomem", before="mount -t tmpfs none proc"),
    Trouble("no configuration", "refuse", "/etc/kubelet", no_file("/etc/kubelet")),
    Trouble("torn state file", "unreadable", "unexpected end of JSON", file(STATE_FILE, '{"policyName":"Sta')),
    Trouble("no kubelet", "not_applicable", "no_kubelet", lambda node: node.remove_kubelet()),
    Trouble("a binary that is none", "rebaselined", "", file(KUBELET, b"\x7fELF"), rewritten=True),
    Trouble("counters that are none", "rebaselined", "begin again", file(OURS + "/guard.json", "[]"), rewritten=True),
    Trouble("history that is none", "rebaselined", "", file(OURS + "/history.jsonl", b"\xff{"), rewritten=True),
    Trouble("bytecode that is none", "rebaselined", "", file(OURS + "/guard.bytecode", b"x" * 99), rewritten=True),
    Trouble("a directory for all", "unsafe_path", "chmod", lambda node: (node.base / STATE).chmod(0o777)),
)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name.replace(" ", "_"))
def test_one_line_and_the_start_goes_on(tmp_path: Path, trouble: Trouble) -> None:
    node = Sandbox(tmp_path, trouble.python)
    trouble.prepare(node)
    before = node.content
    done = node.start(before=trouble.before, INVOCATION_ID="1")
    assert (done.returncode, done.stdout) == (0, ""), done
    assert code_of(done.stderr) == trouble.code
    assert trouble.says in done.stderr
    assert (node.content != before) == trouble.rewritten
    if trouble.shown:
        assert node.metrics["kubenode_memory_guard_last_run_success"] == (trouble.code != "error")
    else:
        assert not (tmp_path / METRICS[1:]).exists()


def delivered(tmp_path: Path) -> Sandbox:
    """A node with the guard as it is delivered, which has compiled its code already."""
    node = Sandbox(tmp_path)
    node.write(GUARD, guard_archive("/usr/bin/python3"))
    node.guard("status")
    return node


def test_a_kubelet_that_hangs_is_not_waited_for(
    tmp_path: Path, record_property: t.Callable[[str, object], None]
) -> None:
    """A sandbox waits a minute."""
    node = delivered(tmp_path)
    node.kubelet("case $1 in --version) echo Kubernetes v1.36.3;; *) sleep 600;; esac")
    begin = time.monotonic()
    done = node.start()
    record_property("figure", f"a kubelet that hangs on --help: start held up for {time.monotonic() - begin:.2f} s")
    assert (done.returncode, code_of(done.stderr) in ("rebaselined", "deadline")) == (0, True)
    assert node.asked[-2:] == ["--version", "--help"]


def test_a_lock_that_is_held_is_not_waited_for(tmp_path: Path) -> None:
    node = delivered(tmp_path)
    before = node.content
    done = node.start(before=f"flock {STATE}/lock sleep 100 >/dev/null 2>&1 & sleep 1")
    assert (done.returncode, code_of(done.stderr) in ("busy", "deadline")) == (0, True)
    assert node.content == before


@pytest.mark.parametrize("module", ["fnmatch", "hashlib"])
def test_a_python_that_lacks_something(tmp_path: Path, module: str) -> None:
    """Before the deadline's process, and in it."""
    node = Sandbox(tmp_path, "/usr/bin/python3")
    broken = node.write("/opt/broken.py", f"raise ImportError('no {module} in this build')\n")
    without = f"for file in usr/lib/python3.*/{module}.py; do mount --bind {broken} $file; done"
    done = node.start(before=without)
    assert (done.returncode, code_of(done.stderr)) == (0, "error")
    assert f"no {module} in this build" in done.stderr


def test_the_line_says_by_how_much(tmp_path: Path) -> None:
    """The drift of the fixture, so that the journal alone tells what has happened."""
    node = Sandbox(tmp_path, drift=(-512 * MIB, 0))
    line = node.start().stderr
    assert "node 0 -512.0 MiB" in line
    assert line.startswith("<3>")
