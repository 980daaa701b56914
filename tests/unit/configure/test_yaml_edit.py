# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Editing in place: what is asked for changes, and no other byte does."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._node.documents import parse_document
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import ABSENT, Edit, value_at
from ansible_collections.kubenode.memory.plugins.plugin_utils._yaml_edit import EditError, edit_document

GATE = ("featureGates", "MemoryManagerDriftTolerance")
POLICY = ("memoryManagerPolicy",)
RESERVED = ("reservedMemory",)


def value_of(text: str) -> t.Any:
    document = parse_document("text", text.encode())
    assert document.problem is None, (document.problem, text)
    return document.value


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("a: 1\n", POLICY, "Static", "a: 1\nmemoryManagerPolicy: Static\n"),
        ("a: 1", POLICY, "Static", "a: 1\nmemoryManagerPolicy: Static"),
        ("a: 1\r\n", POLICY, "Static", "a: 1\r\nmemoryManagerPolicy: Static\r\n"),
        ("a: 1\n# end\n", POLICY, "Static", "a: 1\nmemoryManagerPolicy: Static\n# end\n"),
        ("a: 1 # one\n...\n", POLICY, "Static", "a: 1 # one\nmemoryManagerPolicy: Static\n...\n"),
        ("a: 1\n---\nb: 2\n", POLICY, "Static", "a: 1\nmemoryManagerPolicy: Static\n---\nb: 2\n"),
        ("a: |\n  x\n", POLICY, "Static", "a: |\n  x\nmemoryManagerPolicy: Static\n"),
        ("a: |-\n  x", POLICY, "Static", "a: |-\n  x\nmemoryManagerPolicy: Static"),
        ("a: {b, c: }\n", ("a", "b"), 1, "a: {b: 1, c: }\n"),
        ("a: {b, c:}\n", ("a", "d"), 1, "a: {b, c:, d: 1}\n"),
        ("a:\n- &x\n- b\nc: &y\nd: 1\n", ("c",), 1, "a:\n- &x\n- b\nc: 1\nd: 1\n"),
        ("a: |+\n  x\n\n", POLICY, "Static", "a: |+\n  x\n\nmemoryManagerPolicy: Static\n"),
        ("a: 1\n", GATE, True, "a: 1\nfeatureGates:\n  MemoryManagerDriftTolerance: true\n"),
        ("a:\n- b: {c: 1}\n", POLICY, "Static", "a:\n- b: {c: 1}\nmemoryManagerPolicy: Static\n"),
        (
            "featureGates:\n    X: true # x\n\nb: 1\n",
            GATE,
            True,
            "featureGates:\n    X: true # x\n    MemoryManagerDriftTolerance: true\n\nb: 1\n",
        ),
        ("featureGates: {}\n", GATE, True, "featureGates: {MemoryManagerDriftTolerance: true}\n"),
        ("featureGates:\n", GATE, True, "featureGates: {MemoryManagerDriftTolerance: true}\n"),
        (
            "featureGates: # none\nb: 1\n",
            GATE,
            True,
            "featureGates: {MemoryManagerDriftTolerance: true} # none\nb: 1\n",
        ),
        ("featureGates: null # none\n", GATE, True, "featureGates: {MemoryManagerDriftTolerance: true} # none\n"),
        ("featureGates: {X: true,}\n", GATE, False, "featureGates: {X: true, MemoryManagerDriftTolerance: false,}\n"),
        ("b: &x {X: true}\nfeatureGates: *x\n", GATE, True, None),
        ("memoryManagerPolicy: None # why\n", POLICY, "Static", "memoryManagerPolicy: Static # why\n"),
        ("memoryManagerPolicy: 'None'\n", POLICY, "Static", "memoryManagerPolicy: 'Static'\n"),
        ('memoryManagerPolicy: "None"\n', POLICY, "Static", 'memoryManagerPolicy: "Static"\n'),
        ("memoryManagerPolicy:\n  None\n", POLICY, "Static", "memoryManagerPolicy:\n  Static\n"),
        ("memoryManagerPolicy: |-\n  None\nb: 1\n", POLICY, "Static", "memoryManagerPolicy: Static\nb: 1\n"),
        (
            "memoryManagerPolicy: a\nmemoryManagerPolicy: b\n",
            POLICY,
            "c",
            "memoryManagerPolicy: a\nmemoryManagerPolicy: c\n",
        ),
        ("? memoryManagerPolicy\n: None\n", POLICY, "Static", "? memoryManagerPolicy\n: Static\n"),
        ("# only\n", POLICY, "Static", "# only\nmemoryManagerPolicy: Static\n"),
        ("", POLICY, "Static", "memoryManagerPolicy: Static\n"),
        ("---\n", POLICY, "Static", "---\nmemoryManagerPolicy: Static\n"),
        (
            "evictionHard: {}\n",
            ("evictionHard", "memory.available"),
            "10%",
            'evictionHard: {memory.available: "10%"}\n',
        ),
        ("a: 1\n", ("a",), "yes", 'a: "yes"\n'),
        ("a: 1\n", ("a",), "1e3", 'a: "1e3"\n'),
        ("a: 1\n", ("a",), "500Mi", "a: 500Mi\n"),
        ("a: 1\nb: 2\n", ("b",), ABSENT, "a: 1\n"),
        ("a: 1\nb: 2", ("b",), ABSENT, "a: 1"),
        ("a: 1\nb: 2 # two\n# after\nc: 3\n", ("b",), ABSENT, "a: 1\n# after\nc: 3\n"),
        ("a:\n  b: 1\nc: 2\n", ("a", "b"), ABSENT, "a: {}\nc: 2\n"),
        ("a: {b: 1, c: 2}\n", ("a", "b"), ABSENT, "a: {c: 2}\n"),
        ("a: {b: 1}\n", ("a", "b"), ABSENT, "a: {}\n"),
        (
            "reservedMemory: # by hand\n- numaNode: 0 # first\n  limits:\n    memory: 1Gi # one\n",
            RESERVED,
            [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
            "reservedMemory: # by hand\n- numaNode: 0 # first\n  limits:\n    memory: 2Gi # one\n",
        ),
        (
            "reservedMemory:\n  - numaNode: 0\n    limits: {memory: 1Gi}\nb: 1\n",
            RESERVED,
            [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": "1Gi"}}],
            "".join(
                (
                    "reservedMemory:\n",
                    *(f"  - numaNode: {n}\n    limits:\n      memory: 1Gi\n" for n in (0, 1)),
                    "b: 1\n",
                )
            ),
        ),
        ("reservedMemory:\n- numaNode: 0\nb: 1\n", RESERVED, [], "reservedMemory: []\nb: 1\n"),
        ('{"a": 1}', POLICY, "Static", '{"a": 1, "memoryManagerPolicy": "Static"}'),
        ('{\n\t"a": 1\n}\n', POLICY, "Static", '{\n\t"a": 1,\n\t"memoryManagerPolicy": "Static"\n}\n'),
        ("{}", GATE, True, '{"featureGates": {"MemoryManagerDriftTolerance": true}}'),
        ('{"a": 1, "b": "x\\"{"}', ("b",), ABSENT, '{"a": 1}'),
        ('{"a": {"b": 1.50}}', ("a", "c"), "2", '{"a": {"b": 1.50, "c": "2"}}'),
        ("\ufeffa: 1\n", POLICY, "Static", "\ufeffa: 1\nmemoryManagerPolicy: Static\n"),
    ],
)
def test_edits(before: str, path: t.Tuple[str, ...], value: t.Any, after: t.Optional[str]) -> None:
    edited = edit_document(before, [Edit(path, value)])
    assert after is None or edited == after
    assert edit_document(edited, [Edit(path, value)]) == edited


@pytest.mark.parametrize(
    ("text", "path", "value", "reason"),
    [
        ("a: &x None\nb: *x\n", ("a",), "Static", "the anchor &x"),
        ("a: &x {c: 1}\nb: *x\n", ("a", "c"), 2, "concerns b"),
        ("a: [\n", ("b",), 1, "cannot read it"),
        ("- a\n", ("b",), 1, "mapping"),
        ("text\n", ("b",), 1, "mapping"),
        ('{"a": 1,}', ("b",), 1, "cannot read it"),
        ("a: 1\n", ("a",), ABSENT, "nothing would be left"),
        ("a: |\n  x", ("b",), 1, "concerns a"),
        ("a: 1\na: 2\nb: 3\n", ("a",), ABSENT, "repeated key"),
    ],
)
def test_refusals(text: str, path: t.Tuple[str, ...], value: t.Any, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        edit_document(text, [Edit(path, value)])


# --- random documents ------------------------------------------------------------------------------------------------

COMMENTS = st.sampled_from(["", "", "", " # why", "  # {not: yaml}", " # a: b"])
LINES = st.sampled_from(["", "# a comment\n", "\n", "  # indented: comment\n", "#\n\n"])
QUANTITIES = st.sampled_from(
    ["1Gi", "'500Mi'", '"10%"', "100Mi", "5%", '"a # b"', "'it''s'", "|-\n         x\n         y", ">\n         z"]
)
SCALARS = st.sampled_from(
    ["1", "true", "None", "'None'", '"x"', "~", "", "1m0s", "[a, b]", "{a: b}", "&anchor 5", "!!str yes"]
)


@st.composite
def entries(draw: st.DrawFn) -> str:
    key = draw(st.sampled_from(["evictionHard", "featureGates", "kubeReserved", "authentication", "evictionSoft"]))
    keys = draw(st.lists(st.sampled_from(["memory.available", "A", "B", "x509"]), min_size=1, max_size=3, unique=True))
    style = draw(st.sampled_from(["block", "flow", "wide", "multi"]))
    if style == "flow":
        return "{0}: {{{1}}}{2}\n".format(key, ", ".join(f"{name}: 1" for name in keys), draw(COMMENTS))
    if style == "multi":
        return "{0}: {{\n  {1}\n}}\n".format(key, ",\n  ".join(f'"{name}": yes' for name in keys))
    indent = "  " if style == "block" else "      "
    body = "".join(f"{draw(LINES)}{indent}{name}: {draw(QUANTITIES)}".rstrip() + "\n" for name in keys)
    return f"{key}:{draw(COMMENTS)}\n{body}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    head = draw(st.sampled_from(["", "---\n", "# head\n", "---\n# head\n\n"]))
    parts = [head, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"]
    seen = set()
    for index in range(draw(st.integers(0, 4))):
        part = draw(entries()) if draw(st.booleans()) else f"field{index}: {draw(SCALARS)}{draw(COMMENTS)}\n"
        name = part.partition(":")[0]
        if name not in seen and part.count("&anchor") + len([p for p in parts if "&anchor" in p]) < 2:
            parts += [draw(LINES), part]
        seen.add(name)
    if any("&anchor" in part for part in parts) and draw(st.booleans()):
        parts.append("shared: *anchor\n")
    text = "".join(parts) + draw(st.sampled_from(["", "# the end\n", "\n\n", "...\n"]))
    if draw(st.booleans()) and not text.endswith("\n\n"):
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


WANTED = [
    Edit(POLICY, "Static"),
    Edit(GATE, True),
    Edit(("memoryManagerPolicyOptions", "memory-drift-tolerance"), "128Mi"),
    Edit(("evictionHard", "memory.available"), "500Mi"),
    Edit(("evictionHard", "nodefs.available"), "10%"),
    Edit(("kernelMemcgNotification",), True),
    Edit(RESERVED, [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": "512Mi"}}]),
]


@given(documents(), st.lists(st.sampled_from(WANTED), min_size=1, max_size=7, unique_by=lambda edit: edit.path))
def test_random_documents(text: str, edits: t.List[Edit]) -> None:
    before = value_of(text)
    edited = edit_document(text, edits)
    after = value_of(edited)
    assert all(value_at(after, edit.path) == edit.value for edit in edits)
    touched = {edit.path[0] for edit in edits}
    assert {k: v for k, v in before.items() if k not in touched} == {k: v for k, v in after.items() if k not in touched}
    assert edit_document(edited, edits) == edited
    added = [edit for edit in edits if value_at(before, edit.path) is ABSENT and _stays(before, edit)]
    untouched = edit_document(text, [edit for edit in edits if edit not in added])
    with_added = edit_document(untouched, added)
    assert edit_document(with_added, [Edit(path, ABSENT) for path in _given_back(before, added)]) == untouched
    assert ("\r\n" in edited) == ("\r\n" in text)


def _stays(before: t.Any, edit: Edit) -> bool:
    """Whether the mapping that it goes into is there and not empty, or is not there at all."""
    return len(edit.path) == 1 or bool(value_at(before, edit.path[:1]))


def _given_back(before: t.Any, edits: t.Sequence[Edit]) -> t.Iterator[t.Tuple[t.Any, ...]]:
    for edit in reversed(edits):
        if edit.path[0] in before:
            yield edit.path
    yield from dict.fromkeys((edit.path[0],) for edit in reversed(edits) if edit.path[0] not in before)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4),
    st.sampled_from([None, 1, "\t"]),
    st.sampled_from(WANTED),
)
def test_json_stays_json(document: t.Any, indent: t.Any, edit: Edit) -> None:
    text = json.dumps(document, indent=indent)
    edited = edit_document(text, [edit])
    assert value_at(json.loads(edited), edit.path) == edit.value
    assert edit_document(edited, [edit]) == edited
    assert edit_document(edited, [Edit(edit.path[:1], ABSENT)]) == text or not document
