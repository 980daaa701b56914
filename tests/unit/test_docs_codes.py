# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every verdict, finding code and hint that the sources can give is in the guide "Reading a verdict", and no other."""

from __future__ import annotations

import ast
import re
import typing as t
from pathlib import Path

from ansible_collections.kubenode.memory.plugins.module_utils._policy import evaluation, hints

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/docsite/rst/guide_reading_a_verdict.rst").read_text()

# What makes a finding, or what one is made of; the code is the first argument.
MAKERS = frozenset(
    "Finding info warning stops_start _stop BadBlock CheckpointError ReservationError ReservationFault".split()
)
CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def codes_in(tree: ast.AST) -> t.Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in MAKERS and node.args:
            yield from _texts(node.args[0])
        elif isinstance(node, ast.Assign) and [_name(target) for target in node.targets] == ["code"]:
            yield from _texts(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("_describe"):
            returned = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
            yield from (code for value in returned if isinstance(value, ast.Tuple) for code in _texts(value.elts[0]))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _texts(node: ast.expr) -> t.Iterator[str]:
    """The constants that an expression can be; a condition is none of them."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
        yield node.value


def documented(before: str = "\nHints\n", after: str = "\nFindings\n") -> t.Set[str]:
    part = GUIDE.partition(after)[2].partition(before)[0]
    return set(re.findall(r"^   \* - ``(\w+)``$", part, re.M))


def test_every_code_is_documented_and_nothing_else() -> None:
    files = sorted((ROOT / "plugins").rglob("*.py"))
    codes = {code for file in files for code in codes_in(ast.parse(file.read_text()))}
    assert len(codes) > 60
    assert codes == documented()


def test_every_verdict_is_documented() -> None:
    assert set(re.findall(r"^   \* - ``(\w+)``$", GUIDE.partition("\nFindings\n")[0], re.M)) == set(evaluation.VERDICTS)


def test_every_hint_is_documented() -> None:
    kinds = {value for name, value in vars(hints).items() if name.isupper() and isinstance(value, str)}
    rows = re.findall(r"^   \* - (``.*)$", GUIDE.partition("\nHints\n")[2], re.M)
    assert kinds == set(re.findall(r"``(\w+)``", " ".join(rows)))
