# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running kubelets, found in /proc below the root."""

from __future__ import annotations

import os
import shutil
import signal
import time
import typing as t
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node import processes
from ansible_collections.kubenode.memory.plugins.module_utils._node.processes import (
    KubeletProcess,
    ProcessReading,
    flag_value,
    read_kubelets,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NotFound


def stat_line(pid: int, name: str, state: str = "S", start: int = 4242) -> str:
    numbers = f"1 {pid} {pid} 0 -1 4194560 9 0 0 0 1 2 0 -3 20 0 12 0 {start} 1234 56 18446744073709551615"
    return f"{pid} ({name}) {state} {numbers}\n"


def add(tree: NodeTree, pid: int, name: str, argv: t.Sequence[str] = (), state: str = "S", mounts: int = 1) -> None:
    tree.write(f"/proc/{pid}/stat", stat_line(pid, name, state))
    tree.write(f"/proc/{pid}/cmdline", "".join(word + "\0" for word in argv))
    tree.link(f"/proc/{pid}/ns/mnt", f"mnt:[{mounts}]")


@pytest.fixture
def tree(tmp_path: Path) -> NodeTree:
    tree = NodeTree(tmp_path)
    add(tree, 1, "systemd", ["/sbin/init"])
    tree.write("/proc/self/x", "")
    return tree


def read(tree: NodeTree) -> ProcessReading:
    return read_kubelets(HostRoot(str(tree.base)))


def test_kubelet(tree: NodeTree) -> None:
    argv = ("/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml", "--root_dir", "/data/k")
    add(tree, 77, "kubelet", argv)
    add(tree, 100, "containerd", ["containerd"])
    expected = KubeletProcess(77, "kubelet", 4242, argv, "/data/k", True)
    assert read(tree) == ProcessReading((expected,))
    assert expected.started_at(1000) == 1042


@pytest.mark.parametrize(
    ("name", "argv", "root_dir"),
    [
        ("kubelet", ["kubelet"], "/var/lib/kubelet"),
        ("kubelet", ["kubelet", "--root-dir=/a", "--root-dir", "/b"], "/b"),
        ("kubelet", ["kubelet", "--root-dir=data"], None),
        ("kubelet", [], None),
        ("k3s-server", ["/usr/local/bin/k3s server"], None),
        ("k3s-agent", ["/usr/local/bin/k3s", "agent"], None),
        ("rke2", ["/usr/local/bin/rke2", "server"], None),
        ("kubelite", ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/x"], None),
    ],
)
def test_root_directory(tree: NodeTree, name: str, argv: t.Sequence[str], root_dir: t.Optional[str]) -> None:
    add(tree, 9, name, argv)
    (process,) = read(tree).kubelets
    assert (process.argv, process.root_dir) == (tuple(argv), root_dir)


@pytest.mark.parametrize("name", ["kubelet-wrapper", "kubelet.sh", "k3", "a) S (kubelet", "kubectl", "x\nkubelet"])
def test_not_a_kubelet(tree: NodeTree, name: str) -> None:
    add(tree, 9, name, ["kubelet"])
    assert read(tree) == ProcessReading(())


@pytest.mark.parametrize("state", ["Z", "X"])
def test_dead_process(tree: NodeTree, state: str) -> None:
    add(tree, 9, "kubelet", ["kubelet"], state)
    assert read(tree) == ProcessReading(())


def test_kubelet_in_a_container(tree: NodeTree) -> None:
    add(tree, 9, "kubelet", ["kubelet"], mounts=2)
    assert read(tree).kubelets[0].in_node_namespace is False
    (tree.base / "proc/1/ns/mnt").unlink()
    assert read(tree).kubelets[0].in_node_namespace is None


def test_may_use(tree: NodeTree) -> None:
    tree.write("/disk/kubelet/x", "")
    tree.link("/var/lib/kubelet", "/disk/kubelet")
    add(tree, 9, "kubelet", ["kubelet"])
    add(tree, 10, "k3s-agent", ["k3s agent"])
    root = HostRoot(str(tree.base))
    kubelet, k3s = read(tree).kubelets
    assert kubelet.may_use(root, "/disk/kubelet/")
    assert not kubelet.may_use(root, "/disk/other")
    assert k3s.may_use(root, "/disk/other")


def test_processes_that_vanish(tree: NodeTree) -> None:
    for pid in (8, 9, 10):
        add(tree, pid, "kubelet", ["kubelet"])
    shutil.rmtree(tree.base / "proc/8")
    (tree.base / "proc/8").mkdir()
    (tree.base / "proc/9/cmdline").unlink()
    (tree.base / "proc/10/ns/mnt").unlink()
    reading = read(tree)
    assert [(process.pid, process.in_node_namespace) for process in reading.kubelets] == [(10, None)]
    assert reading.incomplete is None


@pytest.mark.parametrize("make", [lambda tree: None, lambda tree: tree.write("/proc/meminfo", "")])
def test_captured_tree_shows_no_processes(tmp_path: Path, make: t.Callable[[NodeTree], None]) -> None:
    make(NodeTree(tmp_path))
    reading = read(NodeTree(tmp_path))
    assert reading.kubelets == ()
    assert "/proc" in str(reading.incomplete)


def test_hidden_processes_are_told() -> None:
    with temporary_tree() as tree:
        add(tree, 1, "systemd")
        add(tree, 9, "kubelet", ["kubelet"])
        (tree.base / "proc/9/stat").chmod(0)
        with ordinary_user():
            reading = read(tree)
        assert reading.kubelets == ()
        assert "become: true" in str(reading.incomplete)
        shutil.rmtree(tree.base / "proc/1")
        assert "hidepid" in str(read(tree).incomplete)


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["k", "--a-b=1", "--a_b", "2"], "2"),
        (["k", "--a-b="], ""),
        (["k", "--a-b"], ""),
        (["k", "-a-b=1", "a-b=1", "--a-bc=1"], None),
        (["k", "--", "--a-b=1"], None),
        (["--a-b=x=y"], "x=y"),
    ],
)
def test_flag_value(argv: t.Sequence[str], value: t.Optional[str]) -> None:
    assert flag_value(argv, "a-b") == value


def _wait_for(condition: t.Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_real_process(tmp_path: Path) -> None:
    """A program that is called kubelet is found while it runs, and not as a zombie."""
    binary = tmp_path / "kubelet"
    shutil.copy(str(shutil.which("sleep")), binary)
    live = HostRoot("/")

    def ours() -> t.List[KubeletProcess]:
        return [process for process in read_kubelets(live).kubelets if process.pid == pid]

    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"exec {binary} 600 600"], os.environ)
    try:
        _wait_for(lambda: bool(ours()))
        (process,) = ours()
        assert process.argv == (str(binary), "600", "600")
        assert process.root_dir == processes.DEFAULT_ROOT_DIR
        boot_time = int(Path("/proc/stat").read_text().split("btime ")[1].split()[0])
        assert abs(process.started_at(boot_time) - time.time()) < 60
        os.kill(pid, signal.SIGKILL)
        _wait_for(lambda: not ours())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with pytest.raises(NotFound):
        live.read_bytes(f"/proc/{pid}/stat")


@settings(max_examples=100)
@given(
    stat=st.one_of(st.binary(max_size=80), st.text("0123456789 ()SZ-kubelet", max_size=120).map(str.encode)),
    cmdline=st.binary(max_size=40),
    name=st.sampled_from(["2", "02", "\u0662", "999999999999999999999999", "-1"]),
)
def test_any_bytes_end_in_a_reading(stat: bytes, cmdline: bytes, name: str) -> None:
    with temporary_tree() as tree:
        add(tree, 1, "systemd")
        add(tree, 3, "kubelet", ["kubelet"])
        tree.write("/proc/3/cmdline", cmdline)
        tree.write(f"/proc/{name}/stat", stat)
        reading = read(tree)
    assert 3 in [process.pid for process in reading.kubelets]
