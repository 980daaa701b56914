# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units and environment files as systemd reads them."""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from hypothesis import given, strategies as st
from node_tree import NodeTree, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._node.systemd import Unit, read_unit
from ansible_collections.kubenode.memory.plugins.module_utils._node.systemd_syntax import (
    Assignment,
    SyntaxProblem,
    expand,
    parse_commands,
    parse_environment_file,
    parse_unit,
    split_relaxed,
    split_words,
)

NAME = "kubelet.service"
BASE = "[Service]\nExecStart=/usr/bin/kubelet\n"


def load(
    files: t.Mapping[str, str], links: t.Optional[t.Mapping[str, str]] = None, name: str = NAME
) -> t.Optional[Unit]:
    with temporary_tree() as tree:
        for path, text in files.items():
            tree.write(path, text)
        for path, target in (links or {}).items():
            tree.link(path, target)
        return read_unit(HostRoot(str(tree.base)), name)


def loaded(service: str, files: t.Optional[t.Mapping[str, str]] = None, name: str = NAME) -> Unit:
    unit = load({f"/etc/systemd/system/{name}": f"[Service]\n{service}\n", **(files or {})}, name=name)
    assert unit is not None
    return unit


def test_no_unit() -> None:
    assert load({}) is None


def test_comments_continuation_and_sections() -> None:
    text = "# c\n[Unit]\nExecStart=/no\n[Service]\n; c\nExecStart = /usr/bin/kubelet \\\n# inside\n  --a=1 \\\n  --b\n"
    assert parse_unit(text) == [
        Assignment("Unit", "ExecStart", "/no"),
        Assignment("Service", "ExecStart", "/usr/bin/kubelet  --a=1  --b"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"e f'g'", ["a b", "c de", "fg"]),
        (r"a\x20b \"q\" \sx \u00e9 \101", ["a b", '"q"', " x", "é", "A"]),
        (r"\d \xzz", [r"\d", r"\xzz"]),
        ('""', [""]),
    ],
)
def test_words(text: str, words: t.List[str]) -> None:
    assert split_words(text) == words


def test_open_quote_makes_systemd_ignore_the_line() -> None:
    with pytest.raises(SyntaxProblem):
        split_words("'a")
    unit = loaded("ExecStart=/usr/bin/kubelet --a\nEnvironment='X=1\nEnvironment=Y=2")
    assert unit.environment == {"Y": "2"}


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("-/bin/k a", "/bin/k", ("/bin/k", "a")),
        ("@/bin/k name a", "/bin/k", ("name", "a")),
        ("+!!/bin/k a ';' b", "/bin/k", ("/bin/k", "a", ";", "b")),
        (r"/bin/k \; b", "/bin/k", ("/bin/k", ";", "b")),
    ],
)
def test_commands(text: str, path: str, words: t.Tuple[str, ...]) -> None:
    (command,) = parse_commands(text)
    assert (command.path, command.words) == (path, words)


def test_several_commands_in_one_line() -> None:
    assert [command.path for command in parse_commands("/bin/a x ; /bin/b")] == ["/bin/a", "/bin/b"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("$ARGS", ["--a=1", "--b=x y"]),
        ("${ARGS}", ["--a=1 '--b=x y'"]),
        ("--x=${ONE}/${NONE}y", ["--x=1/y"]),
        ("--x=$ONE", ["--x=$ONE"]),
        ("$NONE", []),
        ("${NONE}", [""]),
        ("$$ONE", ["$ONE"]),
        ("a$$b", ["a$b"]),
    ],
)
def test_variables(word: str, expected: t.List[str]) -> None:
    assert expand(word, {"ARGS": "--a=1 '--b=x y'", "ONE": "1"}) == expected


def test_no_variables_with_the_colon_prefix() -> None:
    unit = loaded("Environment=A=1\nExecStart=:/usr/bin/kubelet $A ${A}")
    assert unit.argv == ("/usr/bin/kubelet", "$A", "${A}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\n# B=2\n; C=3\nD = 4 \n", {"A": "1", "D": "4"}),
        ("A=\"x y\"\nB='p \\q'\nC=a\\ b\n", {"A": "x y", "B": "p \\q", "C": "a b"}),
        ('A="1\\\n2"\nB=3\\\n4\n', {"A": "12", "B": "34"}),
        ('A="a \\"b\\" \\c $d"\n', {"A": 'a "b" \\c $d'}),
        ("export A=1\nB\n=x\n1C=2\nE=\n", {"E": ""}),
        ("A='x'\"y\" z\n", {"A": "xyz"}),
        ('A=b"c"d\n', {"A": 'b"c"d'}),
        ("# c \\\nA=1\nB=2", {"B": "2"}),
    ],
)
def test_environment_files(text: str, expected: t.Mapping[str, str]) -> None:
    assert parse_environment_file(text) == expected


def test_search_order_and_drop_ins() -> None:
    unit = load(
        {
            "/usr/lib/systemd/system/kubelet.service": BASE,
            "/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/no\n",
            "/usr/lib/systemd/system/kubelet.service.d/10-a.conf": "[Service]\nEnvironment=A=lib B=lib\n",
            "/etc/systemd/system/kubelet.service.d/10-a.conf": "[Service]\nEnvironment=A=etc\n",
            "/run/systemd/system/kubelet.service.d/20-b.conf": "[Service]\nExecStart=\nExecStart=/k --x $A\n",
            "/etc/systemd/system/service.d/05-all.conf": "[Service]\nEnvironment=A=all C=all\n",
            "/etc/systemd/system/kubelet.service.d/30.txt": "[Service]\nExecStart=/no\n",
            "/usr/lib/systemd/system/kubelet.service.d/40-off.conf": "[Service]\nExecStart=\n",
        },
        {"/etc/systemd/system/kubelet.service.d/40-off.conf": "/dev/null"},
    )
    assert unit is not None
    assert unit.argv == ("/k", "--x", "etc")
    assert unit.environment == {"A": "etc", "C": "all"}
    assert unit.problem is None
    assert [path.rpartition("/")[2] for path in unit.files] == [
        "kubelet.service",
        "05-all.conf",
        "10-a.conf",
        "20-b.conf",
    ]


@pytest.mark.parametrize("how", ["link", "empty"])
def test_masked(how: str) -> None:
    path = "/etc/systemd/system/kubelet.service"
    lower = {"/usr/lib/systemd/system/kubelet.service": BASE}
    unit = load(lower, {path: "/dev/null"}) if how == "link" else load({**lower, path: ""})
    assert unit is not None
    assert unit.masked
    assert unit.path == path
    assert unit.argv == ()


def test_two_commands_do_not_start() -> None:
    unit = loaded("ExecStart=/a\nExecStart=/b")
    assert unit.problem is not None
    assert "2 ExecStart" in unit.problem
    assert loaded("Type=oneshot\nExecStart=/a\nExecStart=/b").problem is None


def test_environment_file_wins_and_may_be_optional() -> None:
    unit = loaded(
        "Environment=A=1 B=1\nEnvironmentFile=-/etc/none\nEnvironmentFile=/etc/k/*.env\nUnsetEnvironment=B\n"
        "ExecStart=/k $A",
        {"/etc/k/1.env": "A=2\n", "/etc/k/2.env": "A=3\n"},
    )
    assert unit.argv == ("/k", "3")
    assert "B" not in unit.environment
    assert unit.environment_files == ("/etc/k/1.env", "/etc/k/2.env")
    missing = loaded("EnvironmentFile=/etc/none\nExecStart=/k")
    assert missing.problem is not None
    assert "/etc/none" in missing.problem


def test_resets() -> None:
    unit = loaded(
        "Environment=A=1\nEnvironment=\nEnvironmentFile=/x\nEnvironmentFile=\nExecStart=/a\nExecStart=\nExecStart=/b"
    )
    assert (unit.environment, unit.argv, unit.problem) == ({}, ("/b",), None)


def test_specifiers() -> None:
    unit = loaded(
        "ExecStart=/k --n=%n --N=%N --p=%p --i=%i --h=%H --pc=100%% --s=%S --q=%q",
        {"/proc/sys/kernel/hostname": "node-a\n"},
        name="kubelet@x.service",
    )
    assert unit.argv[1:] == (
        "--n=kubelet@x.service",
        "--N=kubelet@x",
        "--p=kubelet",
        "--i=x",
        "--h=node-a",
        "--pc=100%",
        "--s=/var/lib",
        "--q=%q",
    )


@given(st.binary(max_size=200), st.binary(max_size=100), st.binary(max_size=100))
def test_random_bytes(unit: bytes, dropin: bytes, environment: bytes) -> None:
    with temporary_tree() as tree:
        tree.write("/etc/systemd/system/kubelet.service", b"[Service]\nEnvironmentFile=/env\nExecStart=" + unit)
        tree.write("/etc/systemd/system/kubelet.service.d/1.conf", dropin)
        tree.write("/env", environment)
        _check(tree)


directive = st.sampled_from(
    ["ExecStart=", "Environment=", "EnvironmentFile=", "UnsetEnvironment=", "[Service]", "Type="]
)
noise = st.text(alphabet="ab=$ {}'\"\\;%*@-:+!/\n\t[]x0\x00\udc80", max_size=20)


@given(st.lists(st.tuples(directive, noise), max_size=6))
def test_random_units(lines: t.List[t.Tuple[str, str]]) -> None:
    text = "[Service]\n" + "\n".join(key + value for key, value in lines)
    with temporary_tree() as tree:
        tree.write("/etc/systemd/system/kubelet.service", text.encode("utf-8", "surrogateescape"))
        _check(tree)


def _check(tree: NodeTree) -> None:
    with contextlib.suppress(NodeError):
        assert isinstance(read_unit(HostRoot(str(tree.base)), NAME), Unit)


@given(st.text(alphabet="ab \\'\"\n", max_size=30))
def test_splitting_a_value_never_fails(text: str) -> None:
    assert all(isinstance(word, str) for word in split_relaxed(text))
