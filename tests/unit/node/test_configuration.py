# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML and JSON as the kubelet reads them, and the files that it reads; expectations are answers of kubelet 1.37.2."""

from __future__ import annotations

import contextlib
import typing as t

import pytest
from hypothesis import given, strategies as st
from node_tree import ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node import documents
from ansible_collections.kubenode.memory.plugins.module_utils._node.configuration import (
    LibraryMissing,
    parse_document,
    read_drop_ins,
    read_inputs,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletFacts
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import (
    HostRoot,
    NodeError,
    PermissionMissing,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import Document
from ansible_collections.kubenode.memory.plugins.module_utils._policy.decode import Number


def value(text: str) -> t.Any:
    document = parse_document("/c", f"a: {text}\n".encode())
    assert document.problem is None
    return document.value["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("y", True),
        ("ON", True),
        ("n", False),
        ("Off", False),
        ("'yes'", "yes"),
        ("!!str yes", "yes"),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("010", 8),
        ("0o17", 15),
        ("0b11", 3),
        ("-0x1", -1),
        ("08", 8),
        ("1_000", 1000),
        ("+5", 5),
        ("1.0", 1),
        ("1.50", Number("1.5")),
        ("1e9", 1000000000),
        (".5", Number("0.5")),
        ("1e999", "1e999"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("0-1,8-11", "0-1,8-11"),
        ("9223372036854775808", 9223372036854775808),
        ("18446744073709551616", 18446744073709552000),
        ("1Gi", "1Gi"),
        ("5%", "5%"),
        ("!!binary U3RhdGlj", "Static"),
        ("!foo Static", "Static"),
        ("!!int '5'", 5),
        ("!!float 1", 1),
        ("!!bool 'yes'", True),
        ("0x1p3", "0x1p3"),
        (".", "."),
    ],
)
def test_scalars(text: str, expected: t.Any) -> None:
    found = value(text)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'kubelet config file "/c" was empty'),
        ("a: b: c\n", "yaml: line 1: mapping values are not allowed in this context"),
        ("a:\n\tb: 1\n", "yaml: line 2: found character that cannot start any token"),
        ("a: \x01\n", "yaml: control characters are not allowed"),
        ("a: *b\n", "yaml: unknown anchor 'b' referenced"),
        ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
        ("a: .inf\n", "json: unsupported value: +Inf"),
        ("~: 1\n", "unsupported map key"),
        ("a: !!int 'x'\n", "yaml: cannot decode !!str `x` as a !!int"),
        ("%YAML 1.2\n---\na: 1\n", "yaml: found incompatible YAML document"),
        ('a: "\\ud800"\n', "yaml: found invalid Unicode character escape code"),
        ("{a: 1}", "couldn't get version/kind; json parse error: invalid character 'a' looking for beginning"),
        ('{"a": 1', "couldn't get version/kind; json parse error:"),
        ('{"a": NaN}', "couldn't get version/kind; json parse error:"),
        ('{"a": 1} x', "couldn't get version/kind; json parse error: invalid character 'x' after top-level value"),
    ],
)
def test_problems_have_the_kubelets_text(text: str, problem: str) -> None:
    document = parse_document("/c", text.encode())
    assert document.value is None
    assert document.problem is not None
    assert document.problem.startswith(problem)


def test_merge_keys_override_what_stands_before_them() -> None:
    text = b"x: &a {memory: 1Gi}\nw: {memory: 2Gi, <<: *a}\nz: {<<: [*a, {cpu: 1}], memory: 3Gi}\n"
    document = parse_document("/c", text)
    assert document.value["w"] == {"memory": "1Gi"}
    assert document.value["z"] == {"memory": "3Gi", "cpu": 1}
    (duplicates,) = document.duplicate_keys
    assert duplicates.count("already set in map") == 2


def test_duplicate_keys() -> None:
    document = parse_document("/c", b"a: 1\na: 2\n")
    assert document.value == {"a": 2}
    assert document.duplicate_keys == ('yaml: unmarshal errors:\n  line 2: key "a" already set in map',)
    merged = parse_document("/c", b'{"a": {"x": 1}, "a": {"y": 2}}')
    assert merged.value == {"a": {"x": 1, "y": 2}}
    assert merged.duplicate_keys == ('duplicate field "a"',)


def test_only_the_first_document_counts() -> None:
    assert parse_document("/c", b"a: 1\n---\na: 2\n").value == {"a": 1}
    assert parse_document("/c", b"# nothing\n").value is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks(encoding: str) -> None:
    assert parse_document("/c", "a: é\n".encode(encoding)).value == {"a": "é"}


def test_numbers_keep_their_spelling_in_json() -> None:
    assert parse_document("/c", b'{"a": 1.0, "b": 18446744073709551616}').value == {"a": Number("1.0"), "b": 2**64}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi")
)


@pytest.mark.parametrize(
    "text", [BOMB, "[" * 5000, "- " * 5000 + "x", '{"a":' * 5000, '{"a":' * 200 + "1" + "}" * 200], ids=range(5)
)
def test_bombs_end_in_a_clear_error(text: str) -> None:
    with contextlib.suppress(NodeError):
        assert parse_document("/c", text.encode()).problem is not None


def test_missing_library_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "HAS_YAML", False)
    with pytest.raises(LibraryMissing, match="python3-yaml") as caught:
        parse_document("/var/lib/kubelet/config.yaml", b"a: 1\n")
    assert "/var/lib/kubelet/config.yaml" in str(caught.value)
    assert parse_document("/c", b'{"a": 1}').value == {"a": 1}


def test_drop_ins_in_walk_order() -> None:
    with temporary_tree() as tree:
        for name in ("20.conf", "10/z.conf", "10/a.conf", "10/deep/x.conf", "30.yaml", ".conf", "10.conf"):
            tree.write(f"/etc/d/{name}", "a: 1\n")
        tree.link("/etc/d/40.conf", "../elsewhere")
        tree.link("/etc/d/50", "10")
        tree.write("/etc/elsewhere", "a: 2\n")
        found = read_drop_ins(HostRoot(str(tree.base)), "/etc/d")
    names = [document.path[len("/etc/d/") :] for document in found]
    assert names == [".conf", "10/a.conf", "10/deep/x.conf", "10/z.conf", "10.conf", "20.conf", "40.conf"]
    assert found[-1].value == {"a": 2}


def test_directory_that_is_a_link_is_not_entered() -> None:
    with temporary_tree() as tree:
        tree.write("/etc/real/1.conf", "a: 1\n")
        tree.link("/etc/d", "real")
        root = HostRoot(str(tree.base))
        assert read_drop_ins(root, "/etc/d") == ()
        assert len(read_drop_ins(root, "/etc/d/")) == 1


def test_missing_files_are_the_kubelets_problem() -> None:
    with temporary_tree() as tree:
        inputs = read_inputs(HostRoot(str(tree.base)), KubeletFacts(config_path="/c", config_dir="/d", argv=("-v=1",)))
    assert inputs.flags == ("-v=1",)
    assert inputs.main == Document(
        "/c", problem='failed to read kubelet config file "/c", error: open /c: no such file or directory'
    )
    assert inputs.dropins is not None
    assert inputs.dropins[0].problem == (
        'failed to walk through kubelet dropin directory "/d": lstat /d: no such file or directory'
    )


def test_without_flags_nothing_is_read() -> None:
    with temporary_tree() as tree:
        inputs = read_inputs(HostRoot(str(tree.base)), KubeletFacts())
    assert (inputs.main, inputs.dropins) == (None, None)


def test_unreadable_and_huge_files_are_errors_with_the_path() -> None:
    with temporary_tree() as tree:
        tree.write("/c", "a: 1\n").chmod(0)
        tree.write("/huge", "a" * 300_000)
        root = HostRoot(str(tree.base))
        with ordinary_user(), pytest.raises(PermissionMissing, match="/c"):
            read_inputs(root, KubeletFacts(config_path="/c"))
        with pytest.raises(NodeError, match="/huge"):
            read_inputs(root, KubeletFacts(config_path="/huge"))


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    with contextlib.suppress(NodeError):
        assert isinstance(parse_document("/c", data), Document)


@given(st.text(alphabet="abk:&*[]{}-,!<|>'\"\\%#?~01.e_xy \n", max_size=60))
def test_random_yaml(text: str) -> None:
    with contextlib.suppress(NodeError):
        document = parse_document("/c", text.encode())
        assert document.problem is None or document.value is None
