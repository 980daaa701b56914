# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what this repository's Python looks like: sizes, types, docstrings and comments, and the weight of the tests.

Lines are physical lines. "code" is a file without DOCUMENTATION, EXAMPLES and RETURN. A function is typed if each
parameter and the return value is annotated. Comments do not count the licence at the top.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
import typing as t
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
HEADER_LINES = 3
HEADINGS = (
    "| files | code lines: median / max | docs share | function lines: median / p90 / max"
    " | typed | docstrings | comments per 100 lines | `annotations` import |"
)
FunctionNode = t.Union[ast.FunctionDef, ast.AsyncFunctionDef]


@dataclass(frozen=True)
class Function:
    lines: int
    typed: bool
    docstring: bool


@dataclass(frozen=True)
class File:
    """One Python file; every count is in lines, `comments` in comments."""

    lines: int
    documentation: int
    comments: int
    annotations_import: bool
    functions: t.Tuple[Function, ...]

    @property
    def code(self) -> int:
        return self.lines - self.documentation


def _length(node: t.Union[ast.stmt, FunctionNode]) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _is_documentation(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(x, ast.Name) and x.id in DOCUMENTATION for x in node.targets)


def _is_annotations_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and node.names[0].name == "annotations"


def _is_typed(node: FunctionNode) -> bool:
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return node.returns is not None and all(
        argument is None or argument.annotation or argument.arg in ("self", "cls") for argument in named
    )


def _function(node: FunctionNode) -> Function:
    return Function(_length(node), _is_typed(node), ast.get_docstring(node) is not None)


def _comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and token.start[0] > HEADER_LINES for token in tokens)


def measure(text: str) -> File:
    """Measures the text of one Python file; raises SyntaxError where it is none."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return File(
        lines=len(text.splitlines()),
        documentation=sum(_length(node) for node in tree.body if _is_documentation(node)),
        comments=_comments(text),
        annotations_import=any(_is_annotations_import(node) for node in tree.body),
        functions=tuple(_function(node) for node in functions),
    )


def measure_tree(directory: Path) -> t.List[File]:
    """Measures every Python file below `directory` that is not empty."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(directory.rglob("*.py"))]
    return [measure(text) for text in texts if text]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _spread(lengths: t.List[int]) -> str:
    if not lengths:
        return "-"
    p90 = sorted(lengths)[(9 * len(lengths) - 1) // 10]
    return f"{statistics.median(lengths):.0f} / {p90} / {max(lengths)}"


def row(name: str, files: t.Sequence[File]) -> str:
    """One line of the table: the figures of `files`, which must not be empty."""
    lines = sum(file.lines for file in files)
    functions = [function for file in files for function in file.functions]
    code = [file.code for file in files]
    cells = [
        name,
        str(len(files)),
        f"{statistics.median(code):.0f} / {max(code)}",
        _percent(sum(file.documentation for file in files), lines),
        _spread([function.lines for function in functions]),
        _percent(sum(function.typed for function in functions), len(functions)),
        _percent(sum(function.docstring for function in functions), len(functions)),
        f"{100 * sum(file.comments for file in files) / lines:.1f}",
        f"{sum(file.annotations_import for file in files)}/{len(files)}",
    ]
    return f"| {' | '.join(cells)} |"


def _lines(directory: Path, *suffixes: str) -> int:
    paths = [path for path in directory.rglob("*") if path.suffix in suffixes]
    return sum(bool(line.strip()) for path in paths for line in path.read_text(encoding="utf-8").splitlines())


def test_row(root: Path) -> str:
    """One line on how much the tests weigh beside the plugins, in lines that are not blank."""
    code = _lines(root / "plugins", ".py") or 1
    unit = _lines(root / "tests/unit", ".py")
    integration = _lines(root / "tests/integration", ".py", ".yml")
    targets = len(list((root / "tests/integration/targets").glob("*/tasks/main.yml")))
    return (
        f"plugins: {code} lines; unit tests: {unit} ({unit / code:.2f} : 1); "
        f"integration: {integration} ({integration / code:.2f} : 1) in {targets} targets"
    )


def table(root: Path) -> t.Iterator[str]:
    plugins = root / "plugins"
    kinds = [path for path in sorted(plugins.iterdir()) if path.is_dir()]
    parts = [path for path in sorted((plugins / "module_utils").iterdir()) if path.is_dir()]
    yield "| " + HEADINGS
    yield "|" + "---|" * HEADINGS.count("|")
    for directory in [*kinds, *parts, root / "tests/tools", root / "tests/unit"]:
        files = measure_tree(directory)
        if files:
            yield row(str(directory.relative_to(root)), files)
    yield ""
    yield test_row(root)


def main() -> int:
    print("\n".join(table(ROOT)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
