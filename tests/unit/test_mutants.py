# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the mutation check breaks code (tests/tools/mutants.py)."""

from __future__ import annotations

import ast
import typing as t

import pytest
from tools.mutants import mutants


def broken(expression: str) -> t.List[str]:
    return [one.after for one in mutants(f"def f():\n    return {expression}\n") if one.before == expression]


@pytest.mark.parametrize(
    ("expression", "others"),
    [
        ("a == b", ["a != b"]),
        ("a < b", ["a >= b", "a <= b"]),
        ("a < b < c", ["not a < b < c"]),
        ("a is None", ["a is not None"]),
        ("a in b", ["a not in b"]),
        ("a and b", ["a or b"]),
        ("not a", ["a"]),
        ("a ^ b", ["a & b"]),
        ("any(a)", ["all(a)"]),
        ("min(a, b)", ["max(a, b)"]),
        ("True", ["False"]),
        ("7", ["8"]),
        ("a", []),
        ("'a'", []),
    ],
)
def test_each_kind_of_expression(expression: str, others: t.List[str]) -> None:
    assert broken(expression) == others


def test_a_condition_is_negated() -> None:
    found = [(one.before, one.after) for one in mutants("def f():\n    if a:\n        return [b for b in c if b]\n")]
    assert found == [("a", "not a"), ("b", "not b")]


def test_one_place_is_broken_and_nothing_else() -> None:
    text = "def f(a, b):\n    return a < b\n\ndef g(a, b):\n    return a < b\n"
    sources = [one.source for one in mutants(text)]
    assert len(set(sources)) == len(sources) == 4
    assert all(source.count("a < b") == 1 for source in sources)
    assert ast.unparse(ast.parse(text)) not in sources


def test_what_the_import_evaluates() -> None:
    text = "A = 1\nB = f()\n\ndef f(a=2):\n    return 3\n\ndef g():\n    return 4\n\nclass C:\n    d = 5\n"
    found = {one.before: (one.scope, one.at_import) for one in mutants(text)}
    assert found == {"1": ("", True), "2": ("", True), "3": ("f", True), "4": ("g", False), "5": ("C", True)}
