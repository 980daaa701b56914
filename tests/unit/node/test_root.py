# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The path resolver: nothing below host_root leads out of it, nothing hangs, no OSError gets out."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading
import typing as t
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node import root as root_module
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import (
    HostRoot,
    NodeError,
    NotFound,
    PermissionMissing,
)

INSIDE = b"inside"
SECRET = b"outside"


@pytest.fixture
def tree(tmp_path: Path) -> NodeTree:
    """A root with a secret beside it."""
    (tmp_path / "secret").write_bytes(SECRET)
    base = tmp_path / "node"
    base.mkdir()
    return NodeTree(base)


def root_of(tree: NodeTree) -> HostRoot:
    return HostRoot(str(tree.base))


@pytest.mark.parametrize(
    "target",
    ["/etc/file", "etc/file", "../../../etc/file", "/../etc/./file", "/link2", "dir/../etc/file", "/dir/up/etc//file"],
)
def test_links_stay_below_the_root(tree: NodeTree, target: str) -> None:
    tree.write("/etc/file", INSIDE)
    tree.link("/link2", "/etc/../link3")
    tree.link("/link3", "etc/file")
    tree.write("/dir/x", b"")
    tree.link("/dir/up", "../../../..")
    tree.link("/link", target)
    assert root_of(tree).read_bytes("/link") == INSIDE
    assert root_of(tree).realpath("/link") == "/etc/file"


@pytest.mark.parametrize("form", ["../secret", "{outside}", "/../secret", "../../../../../../../../{outside}"])
def test_no_path_and_no_link_leads_out(tree: NodeTree, form: str) -> None:
    outside = form.format(outside=tree.base.parent / "secret")
    tree.link("/link", outside)
    for path in (outside, "/link"):
        with pytest.raises(NotFound):
            root_of(tree).read_bytes(path)


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("/none", NotFound, "No such file"),
        ("/file/below", NotFound, "Not a directory"),
        ("/dangling", NotFound, "No such file"),
        ("/loop", NodeError, "symbolic links"),
        ("/self", NodeError, "symbolic links"),
        ("/dir", NodeError, "not a file"),
        ("/fifo", NodeError, "not a file"),
        ("/socket", NodeError, "not a file"),
        ("/", NodeError, "not a file"),
        ("/" + "x" * 300, NodeError, "too long"),
        ("/nul\0", NodeError, "not a path"),
        ("/surrogate\ud800", NodeError, "not a path"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_path(
    tree: NodeTree, path: str, kind: t.Type[NodeError], text: str
) -> None:
    tree.write("/file", INSIDE)
    tree.write("/dir/x", b"")
    tree.link("/dangling", "nowhere")
    tree.link("/loop", "/loop2")
    tree.link("/loop2", "dir/../loop")
    tree.link("/self", "self/x")
    os.mkfifo(tree.base / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree.base / "socket"))
    with pytest.raises(kind, match=text) as caught:
        root_of(tree).read_bytes(path)
    assert path[:8].rstrip("\0\ud800") in str(caught.value)


def test_a_device_is_not_opened() -> None:
    with pytest.raises(NodeError, match="/dev/null: it is a directory, a pipe or a device"):
        HostRoot("/").read_bytes("/dev/null")


def test_forty_links_are_followed_and_not_one_more(tree: NodeTree) -> None:
    tree.write("/0", INSIDE)
    for number in range(1, 42):
        tree.link(f"/{number}", str(number - 1))
    assert root_of(tree).read_bytes("/40") == INSIDE
    with pytest.raises(NodeError, match="symbolic links"):
        root_of(tree).read_bytes("/41")


def test_size_cap(tree: NodeTree) -> None:
    tree.write("/file", b"x" * 1000)
    with open(tree.base / "huge", "wb") as file:
        file.truncate(100 * root_module.MIB)
    assert len(root_of(tree).read_bytes("/file", limit=1000)) == 1000
    with pytest.raises(NodeError, match="larger than 999 bytes"):
        root_of(tree).read_bytes("/file", limit=999)
    with pytest.raises(NodeError, match=r"/huge below host_root .* larger than 16777216 bytes"):
        root_of(tree).read_bytes("/huge")


def test_kernel_files_that_report_no_size() -> None:
    live = HostRoot("/")
    assert live.is_live
    assert live.read_bytes("/proc/meminfo").startswith(b"MemTotal:")
    assert live.read_bytes("/sys/devices/system/cpu/possible")


def test_procfs_magic_links_are_text_and_lead_nowhere(tree: NodeTree) -> None:
    live = HostRoot("/")
    with open(tree.base.parent / "secret", "rb") as file:
        link = f"/proc/self/fd/{file.fileno()}"
        assert live.readlink(link) == file.name
        os.unlink(file.name)
        with pytest.raises(NotFound):
            live.read_bytes(link)
    assert str(live.readlink("/proc/self/ns/mnt")).startswith("mnt:[")
    with pytest.raises(NotFound):
        live.read_bytes("/proc/self/ns/mnt")
    assert live.realpath("/proc/self") == f"/proc/{os.getpid()}"


def test_text(tree: NodeTree) -> None:
    tree.write("/file", "k\u00e4se")
    tree.write("/binary", b"abc\xff")
    assert root_of(tree).read_text("/file") == "k\u00e4se"
    assert root_of(tree).read_text("/binary", errors="replace") == "abc\ufffd"
    with pytest.raises(NodeError, match=r"/binary .* not UTF-8 text \(byte 4 of 4\)"):
        root_of(tree).read_text("/binary")


def test_listdir_and_glob_sort_as_go_does(tree: NodeTree) -> None:
    for name in ("node10", "node2", "node0", "node1x", ".node3", "has_cpu"):
        tree.write(f"/sys/node/{name}/meminfo", b"")
    tree.link("/alias", "/sys/node")
    root = root_of(tree)
    assert root.listdir("/alias") == (".node3", "has_cpu", "node0", "node10", "node1x", "node2")
    assert root.glob("/sys/node/node*[0-9]") == ("/sys/node/node0", "/sys/node/node10", "/sys/node/node2")
    assert root.glob("/alias/*[3x]/mem*") == ("/alias/.node3/meminfo", "/alias/node1x/meminfo")
    assert root.glob("/none/*") == root.glob("/sys/node/has_cpu/meminfo/*") == ()
    with pytest.raises(NotFound, match="Not a directory"):
        root.listdir("/sys/node/has_cpu/meminfo")


def test_stat_exists_and_readlink(tree: NodeTree) -> None:
    tree.write("/dir/file", INSIDE)
    tree.link("/link", "/dir/file")
    tree.link("/dangling", "none")
    root = root_of(tree)
    assert root.stat("/link").st_ino == root.stat("/dir/file").st_ino != root.stat("/link", follow=False).st_ino
    assert [root.exists(path) for path in ("/link", "/dir", "/dangling", "/dir/none")] == [True, True, False, False]
    assert [root.readlink(path) for path in ("/link", "/dangling", "/dir")] == ["/dir/file", "none", None]


def test_open_directory(tree: NodeTree) -> None:
    tree.write("/disk/kubelet/memory_manager_state", INSIDE)
    tree.link("/var/lib/kubelet", "/disk/kubelet")
    fd = root_of(tree).open_directory("/var/lib/kubelet")
    try:
        assert os.listdir(fd) == ["memory_manager_state"]
    finally:
        os.close(fd)


@pytest.mark.parametrize("path", ["/", "//", "/.", "/proc/..", "/proc/self/root/../"])
def test_live_root_in_every_spelling(path: str) -> None:
    assert HostRoot(path).is_live


def test_host_root_that_is_missing_or_no_path(tmp_path: Path) -> None:
    root = HostRoot(str(tmp_path / "none"))
    assert not root.is_live
    with pytest.raises(NotFound, match=r"/proc/iomem below host_root .*/none: No such file"):
        root.read_bytes("/proc/iomem")
    with pytest.raises(NodeError):
        HostRoot("/nul\0").read_bytes("/proc/iomem")


def test_display_is_the_nodes_own_path(tree: NodeTree) -> None:
    shown = [root_of(tree).display(path) for path in ("/proc/iomem", "proc//iomem", "/../x", "/\udcff", "/\ud800")]
    assert shown == ["/proc/iomem", "/proc/iomem", "/x", "/\\udcff", "/\\ud800"]


def test_no_descriptor_is_left_open(tree: NodeTree) -> None:
    tree.write("/a/b/file", INSIDE)
    tree.link("/a/link", "/a/b/../b/none")
    before = os.listdir("/proc/self/fd")
    root_of(tree).read_bytes("/a/b/../b/file")
    root_of(tree).glob("/a/*/*")
    for path in ("/a/link", "/a/b"):
        with pytest.raises(NodeError):
            root_of(tree).read_bytes(path)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("closed", ["file", "directory"])
def test_ordinary_user_is_told_the_file_and_become(closed: str) -> None:
    with temporary_tree() as tree:
        file = tree.write("/var/lib/kubelet/state", INSIDE)
        tree.write("/var/lib/open", INSIDE)
        shut = file if closed == "file" else file.parent
        shut.chmod(0)
        root = root_of(tree)
        with ordinary_user():
            assert root.read_bytes("/var/lib/open") == INSIDE
            with pytest.raises(PermissionMissing, match=r"/var/lib/kubelet/state .*Permission denied; .*become: true"):
                root.read_bytes("/var/lib/kubelet/state")
            if closed == "directory":
                for call in (root.exists, root.stat, root.readlink, root.realpath):
                    with pytest.raises(PermissionMissing):
                        call("/var/lib/kubelet/state")
                with pytest.raises(PermissionMissing):
                    root.glob("/var/lib/kubelet/*")
        shut.chmod(0o700)


def test_root_without_the_capability_is_told_so(tree: NodeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_args: t.Any, **_kwargs: t.Any) -> t.NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(PermissionMissing, match=r"root is not enough here.*CAP_SYS_ADMIN"):
        root_of(tree).read_bytes("/proc/iomem")


def test_swapping_a_directory_for_a_link_meanwhile_does_not_help(tree: NodeTree) -> None:
    tree.write("/dir/secret", INSIDE)
    swap, stop = tree.base / "swap", threading.Event()
    swap.symlink_to(tree.base.parent)

    def swapper() -> None:
        while not stop.is_set():
            for old, new in (("dir", "kept"), ("swap", "dir"), ("dir", "swap"), ("kept", "dir")):
                os.rename(tree.base / old, tree.base / new)

    thread, root, seen = threading.Thread(target=swapper), root_of(tree), set()
    thread.start()
    try:
        for _rest in range(3000):
            try:
                seen.add(root.read_bytes("/dir/secret"))
            except NodeError as error:
                seen.add(type(error))
    finally:
        stop.set()
        thread.join()
    assert INSIDE in seen
    assert seen <= {INSIDE, NotFound, NodeError}


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _kernel_read(base: Path, path: str) -> t.Union[bytes, int]:
    """The same file through openat2(2) with RESOLVE_IN_ROOT: the kernel's own answer, or its errno."""
    how = _OpenHow(os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, 0, 0x10)
    libc = ctypes.CDLL(None, use_errno=True)
    directory = os.open(base, os.O_PATH)
    try:
        fd = libc.syscall(437, directory, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if fd < 0:
            return ctypes.get_errno()
        with open(fd, "rb") as file:
            return file.read()
    except IsADirectoryError:
        os.close(fd)
        return errno.EISDIR
    finally:
        os.close(directory)


def _our_read(root: HostRoot, path: str) -> t.Union[bytes, int]:
    try:
        return root.read_bytes(path)
    except NodeError as error:
        number = t.cast(OSError, error.__cause__).errno
        return errno.EISDIR if number == errno.EINVAL else number


_names = st.sampled_from(["a", "b", "c"])
_steps = st.lists(st.one_of(_names, st.just("..")), min_size=1, max_size=5)
_targets = st.one_of(
    st.builds("".join, st.tuples(st.sampled_from(["", "/", "../../../", "//", "./"]), _steps.map("/".join))),
    st.sampled_from(["/etc/passwd", "/", "..", ".", "/proc/self/root/etc/passwd", "OUTSIDE", "OUTSIDE/secret"]),
)
_entries = st.tuples(
    st.lists(_names, min_size=1, max_size=3).map("/".join),
    st.one_of(st.just("file"), st.just("directory"), _targets.map(lambda target: "-> " + target)),
)


def _build(base: Path, entries: t.Sequence[t.Tuple[str, str]]) -> None:
    for path, kind in entries:
        file = base / path
        if any(parent.is_symlink() or parent.is_file() for parent in [file, *file.parents]):
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if kind.startswith("-> "):
            file.exists() or file.symlink_to(kind[3:].replace("OUTSIDE", str(base.parent)))
        elif kind == "directory" or file.is_dir():
            file.mkdir(exist_ok=True)
        else:
            file.write_bytes(INSIDE)


@settings(max_examples=150)
@given(entries=st.lists(_entries, min_size=1, max_size=12), paths=st.lists(_steps.map("/".join), max_size=12))
def test_any_tree_reads_as_the_kernel_would_read_it_in_that_root(
    entries: t.Sequence[t.Tuple[str, str]], paths: t.Sequence[str]
) -> None:
    with temporary_tree() as outer:
        (outer.base / "secret").write_bytes(SECRET)
        base = outer.base / "node"
        base.mkdir()
        _build(base, entries)
        root = HostRoot(str(base))
        for path in [*paths, *(path for path, _rest in entries)]:
            ours, kernels = _our_read(root, path), _kernel_read(base, path)
            assert ours in (INSIDE, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR)
            if kernels != errno.ENOSYS:
                assert ours == kernels, path
