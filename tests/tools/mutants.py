# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way to break one expression of a module: the source with it, and where it is."""

from __future__ import annotations

import ast
import dataclasses
import typing as t

# The opposite first; then, for an order, the other side of its boundary.
OTHERS: t.Mapping[t.Type[ast.cmpop], t.Sequence[t.Type[ast.cmpop]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: t.Mapping[t.Type[ast.operator], t.Type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
FUNCTIONS = {"any": "all", "all": "any", "min": "max", "max": "min"}

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A module's source with one expression broken.

    `scope` is the function it is in, `at_import` says whether it is evaluated while the module is imported.
    """

    scope: str
    line: int
    before: str
    after: str
    source: str
    at_import: bool

    def __str__(self) -> str:
        return f"line {self.line}, {self.scope or 'module'}: {self.before}  ->  {self.after}"


def mutants(text: str) -> t.Iterator[Mutant]:
    """One mutant for each way in which each expression can be broken, in the order of the source."""
    tree = ast.parse(text)
    called = {function for statement in tree.body for function in _called_by(statement)}
    for place, node in list(_expressions(tree, _Place())):
        at_import = place.at_import or place.scope in called
        for other in _broken(node, place.is_condition):
            _Replacing(node, other).visit(tree)
            source = ast.unparse(tree)
            _Replacing(other, node).visit(tree)
            yield Mutant(place.scope, node.lineno, ast.unparse(node), ast.unparse(other), source, at_import)


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> t.Any:
        return self.new if node is self.old else self.generic_visit(node)


def _called_by(statement: ast.stmt) -> t.Iterator[str]:
    """Functions of this module that a statement at its top calls."""
    if isinstance(statement, (*_FUNCTION, ast.ClassDef)):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


class _Place(t.NamedTuple):
    """Where an expression is: its scope, whether that is run by the import, whether it decides a branch."""

    scope: str = ""
    at_import: bool = True
    is_condition: bool = False


def _expressions(node: ast.AST, place: _Place) -> t.Iterator[t.Tuple[_Place, ast.expr]]:
    """Every expression but annotations."""
    if isinstance(node, ast.expr):
        yield place, node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        inside = place._replace(is_condition=field in ("test", "ifs"))
        if field == "body" and isinstance(node, (*_FUNCTION, ast.ClassDef)):
            name = f"{place.scope}.{node.name}".lstrip(".")
            inside = _Place(name, place.at_import and isinstance(node, ast.ClassDef))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _expressions(child, inside)


def _broken(node: ast.expr, is_condition: bool) -> t.Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator in OTHERS[type(node.ops[0])]:
            yield ast.copy_location(ast.Compare(node.left, [operator()], node.comparators), node)
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.copy_location(ast.BoolOp(swapped, node.values), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.copy_location(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right), node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int)):
        value = (not node.value) if isinstance(node.value, bool) else node.value + 1
        yield ast.copy_location(ast.Constant(value), node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        name = ast.copy_location(ast.Name(FUNCTIONS[node.func.id], ast.Load()), node)
        yield ast.copy_location(ast.Call(name, node.args, node.keywords), node)
    elif is_condition or isinstance(node, ast.Compare):
        yield ast.copy_location(ast.UnaryOp(ast.Not(), node), node)
