# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layers point one way: front ends -> _guard -> _rebaseline -> _preflight -> _node -> _policy -> nothing."""

from __future__ import annotations

import ast
import sys
import typing as t
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
COLLECTION = "ansible_collections.kubenode.memory.plugins"

# What each layer may import of the others. They run in the guard too, where there is no Ansible.
NODE = frozenset({"_node", "_policy"})
PRESENTATION = frozenset({"_present_report", "_present_outcome", "_present_bound"})
GUARD = frozenset({"_guard_options", "_guard_deadline", "_guard_hooks", "_guard_arguments", "_guard_commands"})
BELOW: t.Dict[str, t.FrozenSet[str]] = {
    "_policy": frozenset(),
    "_node": frozenset({"_policy"}),
    "_request": NODE,
    "_arguments": NODE | {"_request"},
    "_preflight": NODE | {"_request"},
    "_present_report": NODE | {"_preflight"},
    "_answer": NODE | {"_request", "_preflight", "_present_report"},
    "_mapping": frozenset({"_policy", "_request", "_preflight", "_present_report"}),
    "_remember": NODE | {"_preflight"},
    "_rebaseline": NODE | {"_request", "_preflight", "_remember"},
    "_present_outcome": NODE | {"_present_report", "_rebaseline"},
    "_configure": NODE | {"_request", "_preflight"},
    "_present_configuration": NODE | {"_configure", "_preflight", "_present_report"},
    "_present_bound": NODE,
    "_guard_options": NODE | {"_request"},
    "_guard_deadline": NODE,
    "_guard_memory": NODE | {"_guard_options", "_preflight"},
    "_guard_hooks": NODE | {"_guard_options", "_guard_memory", "_request", "_present_report", "_rebaseline"},
    "_guard_arguments": NODE | {"_guard_options"},
    "_guard_commands": NODE | {"_guard_options", "_guard_memory", "_preflight", "_rebaseline", *PRESENTATION},
    "_guard": NODE | {"_request", *GUARD},
    "_guard_start": NODE | {"_guard"},
}
# What runs under Ansible: all of the above, and what the controller's plugins share.
FRONT_ENDS: t.Dict[str, t.FrozenSet[str]] = {
    "modules": frozenset(BELOW),
    "plugin_utils": frozenset(BELOW),
    "action": frozenset({*BELOW, "plugin_utils"}),
    "filter": frozenset({*BELOW, "plugin_utils"}),
}
LAYERS = {**BELOW, **FRONT_ENDS}

# A list of what computes and nothing else: a module is added here only if it can neither read nor ask for anything.
PURE = frozenset(
    "__future__ abc base64 binascii bisect collections copy dataclasses decimal enum fractions functools hashlib heapq"
    " itertools json math numbers operator re string struct textwrap types typing unicodedata".split()
)
IMPURE_BUILTINS = frozenset({"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"})


def layer_of(path: Path) -> str:
    """The layer of a file, whose path is relative to plugins/: its package in module_utils, else its kind of plugin."""
    parts = path.with_suffix("").parts
    return parts[1] if parts[0] == "module_utils" and len(parts) > 1 else parts[0]


def imported_names(path: Path, tree: ast.AST) -> t.Iterator[str]:
    """Full dotted names of what a file imports; those of this collection begin with a dot."""
    package = path.parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{'.' if node.level else ''}{module}.{alias.name}" for alias in node.names)


def layer_violations(layer: str, target: str) -> t.Iterator[str]:
    if target != layer and target not in LAYERS[layer]:
        yield f"{layer} must not import {target}"


def import_violations(layer: str, name: str) -> t.Iterator[str]:
    if name.startswith(COLLECTION):
        if layer not in FRONT_ENDS:
            yield f"imports inside module_utils are relative, not {name}"
        name = name[len(COLLECTION) :]
    if name.startswith("."):
        yield from layer_violations(layer, layer_of(Path(*name[1:].split("."))))
        return
    top = name.split(".")[0]
    if layer == "_policy" and top not in PURE:
        yield f"_policy must not import {top}"
    elif layer in BELOW and top not in sys.stdlib_module_names and top != "yaml":
        yield f"{layer} must not import {top}: nodes have the standard library only"


def builtin_violations(tree: ast.AST) -> t.Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in IMPURE_BUILTINS:
            yield f"_policy must not use {node.id}()"


def violations(path: Path, source: str) -> t.List[str]:
    """What a file, whose path is relative to plugins/, does against the layers; empty where it keeps to them."""
    layer, tree = layer_of(path), ast.parse(source)
    if layer not in LAYERS:
        return [f"{layer} is not a layer of the design"]
    found = [text for name in imported_names(path, tree) for text in import_violations(layer, name)]
    return found + (list(builtin_violations(tree)) if layer == "_policy" else [])


def plugin_files() -> t.List[Path]:
    paths = sorted(path.relative_to(PLUGINS) for path in PLUGINS.rglob("*.py"))
    return [path for path in paths if path.parts[0] != "doc_fragments" and path != Path("module_utils/__init__.py")]


@pytest.mark.parametrize("path", plugin_files(), ids=str)
def test_each_file_keeps_to_its_layer(path: Path) -> None:
    assert violations(path, (PLUGINS / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "directory",
    sorted({(PLUGINS / path).parent for path in plugin_files() if path.parts[0] == "module_utils"}),
    ids=str,
)
def test_each_package_of_module_utils_has_an_empty_init(directory: Path) -> None:
    assert (directory / "__init__.py").read_bytes() == b""


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("module_utils/_policy/a.py", "import os"),
        ("module_utils/_policy/a.py", "import io"),
        ("module_utils/_policy/a.py", "from pathlib import Path"),
        ("module_utils/_policy/a.py", "import typing, time"),
        ("module_utils/_policy/a.py", "def f():\n    import subprocess"),
        ("module_utils/_policy/a.py", "if t.TYPE_CHECKING:\n    from os import PathLike"),
        ("module_utils/_policy/a.py", "from ansible.module_utils.basic import AnsibleModule"),
        ("module_utils/_policy/a.py", "import yaml"),
        ("module_utils/_policy/a.py", "f = open"),
        ("module_utils/_policy/a.py", "__import__('os')"),
        ("module_utils/_policy/a.py", "from .._node import root"),
        ("module_utils/_policy/a.py", "from .. import _node"),
        ("module_utils/_policy/a.py", "from ansible_collections.kubenode.memory.plugins.module_utils._policy import b"),
        ("module_utils/_policy/sub/a.py", "from ..._node.root import Root"),
        ("module_utils/_node/a.py", "from .._preflight import judge"),
        ("module_utils/_node/a.py", "from .. import _guard"),
        ("module_utils/_node/a.py", "from ...modules import memmgr_validate"),
        ("module_utils/_node/a.py", "from ansible.module_utils.common import text"),
        ("module_utils/_node/a.py", "import ruamel.yaml"),
        ("module_utils/_preflight.py", "from ._guard import main"),
        ("module_utils/_preflight.py", "import jmespath"),
        ("module_utils/_surprise.py", ""),
        ("modules/a.py", "from ansible_collections.kubenode.memory.plugins.filter import b"),
        ("modules/a.py", "from ..action import b"),
        ("modules/a.py", "from .. import module_utils"),
        ("modules/a.py", "from ..plugin_utils import _results"),
        ("plugin_utils/_a.py", "from ..action import b"),
        ("module_utils/_rebaseline.py", "from ._guard import main"),
    ],
)
def test_an_import_the_wrong_way_is_found(path: str, source: str) -> None:
    assert len(violations(Path(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("module_utils/_policy/a.py", "import json\nfrom . import b\nfrom .b import C"),
        ("module_utils/_policy/sub/a.py", "from ..b import C\nfrom . import d"),
        ("module_utils/_node/a.py", "import os\nimport yaml\nfrom .._policy.machine import Machine\nopen('x')"),
        ("module_utils/_preflight.py", "from ._node import root\nfrom . import _policy"),
        ("module_utils/_guard_hooks.py", "from ._rebaseline import run"),
        ("modules/a.py", "from ansible.module_utils.basic import AnsibleModule"),
        ("modules/a.py", "from ansible_collections.kubenode.memory.plugins.module_utils._preflight import judge"),
        ("filter/a.py", "from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import Machine"),
        ("action/a.py", "from ..module_utils._preflight import judge"),
        ("action/a.py", "from ansible_collections.kubenode.memory.plugins.plugin_utils import _results"),
    ],
)
def test_an_import_the_right_way_is_not(path: str, source: str) -> None:
    assert violations(Path(path), source) == []
