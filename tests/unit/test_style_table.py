# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The style table counts what it says it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import style_table

SAMPLE = '''# one
# two
# three
"""A module."""
from __future__ import annotations

DOCUMENTATION = r"""
one
"""

# why
def typed(a: int, *b: str, c: bool = True, **d: int) -> None:
    """A contract."""
    return None  # why, again


class A:
    def method(self, a) -> int:
        return a
'''


def test_a_file_is_measured() -> None:
    file = style_table.measure(SAMPLE)
    assert (file.lines, file.documentation, file.code, file.comments) == (19, 3, 16, 2)
    assert file.annotations_import
    assert file.functions == (style_table.Function(3, True, True), style_table.Function(2, False, False))


@pytest.mark.parametrize(
    "signature",
    ["a", "a: int, *b", "a: int, *, b", "a: int, **b", "a, /, b: int"],
)
def test_one_parameter_without_a_type_makes_a_function_untyped(signature: str) -> None:
    file = style_table.measure(f"def f({signature}) -> None: ...\n")
    assert [function.typed for function in file.functions] == [False]


def test_a_row_sums_up_its_files() -> None:
    files = [style_table.measure(SAMPLE), style_table.measure("def f():\n" + "    pass\n" * 9)]
    assert style_table.row("x", files) == "| x | 2 | 13 / 16 | 10 % | 3 / 10 / 10 | 33 % | 33 % | 6.9 | 1/2 |"


def test_the_table_of_a_repository(tmp_path: Path) -> None:
    for name in ("plugins/modules", "plugins/module_utils/_policy", "tests/unit", "tests/integration/targets/a/tasks"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "plugins/modules/a.py").write_text("A = 1\nB = 2\n", encoding="utf-8")
    (tmp_path / "plugins/module_utils/_policy/__init__.py").touch()
    (tmp_path / "tests/unit/test_a.py").write_text("A = 1\n\nB = 2\nC = 3\n", encoding="utf-8")
    (tmp_path / "tests/integration/targets/a/tasks/main.yml").write_text("---\n", encoding="utf-8")
    lines = list(style_table.table(tmp_path))
    assert [line.split(" | ")[0] for line in lines[2:-2]] == ["| plugins/modules", "| tests/unit"]
    assert lines[-1] == "plugins: 2 lines; unit tests: 3 (1.50 : 1); integration: 1 (0.50 : 1) in 1 targets"
