# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks each comparison and each rule of the policy core in turn; the tests have to go red every time.

    mutation_check.py [FILE...]      prints every mutant that survives, and fails if there is one that is not explained

A mutant negates one comparison, swaps one `and` with `or`, or turns one boolean round. It lives in a copy of the
checkout, never in the checkout itself.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLICY = "plugins/module_utils/_policy"
DEFAULT = ("machine_state.py", "checkpoint.py")
TESTS = (
    "tests/unit/policy/test_machine_state.py",
    "tests/unit/policy/test_static_policy.py",
    "tests/unit/policy/test_checkpoint.py",
    "tests/unit/policy/test_explain.py",
    "tests/unit/test_vectors.py",
)
OPPOSITE: t.Mapping[t.Type[ast.cmpop], t.Type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

EXPLAINED: t.Mapping[t.Tuple[str, str], str] = {}
"""(file, source of the mutated expression): why no test can tell the mutant from the code."""


class Mutant(t.NamedTuple):
    file: str
    line: int
    before: str
    source: str


def mutants(file: str) -> t.Iterator[Mutant]:
    """One mutant for each place that can be broken, in the order of the file."""
    text = (ROOT / POLICY / file).read_text(encoding="utf-8")
    for index, node in enumerate(ast.walk(ast.parse(text))):
        if not isinstance(node, (ast.Compare, ast.BoolOp, ast.Constant)):
            continue
        tree = ast.parse(text)
        copy = list(ast.walk(tree))[index]
        before = ast.unparse(copy)
        if _break(copy):
            yield Mutant(file, getattr(copy, "lineno", 0), before, ast.unparse(tree))


def _break(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        node.ops = [OPPOSITE[type(node.ops[0])]()]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    else:
        return False
    return True


def survives(checkout: Path, mutant: Mutant) -> bool:
    """Whether the tests stay green with the mutant in place."""
    path = checkout / POLICY / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTS]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, timeout=600, check=False)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    files = sys.argv[1:] or DEFAULT
    unexplained = total = 0
    with tempfile.TemporaryDirectory() as name:
        checkout = Path(name) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".work", ".git"))
        for mutant in (mutant for file in files for mutant in mutants(file)):
            total += 1
            if survives(checkout, mutant):
                why = EXPLAINED.get((mutant.file, mutant.before))
                unexplained += why is None
                print(f"survives: {mutant.file}:{mutant.line}: {mutant.before}: {why or 'NOT EXPLAINED'}", flush=True)
    print(f"{total} mutants, {unexplained} survive without an explanation")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
