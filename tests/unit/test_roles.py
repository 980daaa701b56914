# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles: their argument specs, defaults and READMEs say the same, and their variables carry their name."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from tools import role_readmes

ROLES = sorted(path for path in (Path(__file__).resolve().parents[2] / "roles").iterdir() if path.is_dir())


def options(role: Path) -> t.Dict[str, t.Any]:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return {name: option for spec in specs.values() for name, option in (spec.get("options") or {}).items()}


def test_readmes_are_current() -> None:
    assert role_readmes.outdated() == [], "run python tests/tools/role_readmes.py"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_are_those_of_the_argument_specs(role: Path) -> None:
    file = role / "defaults" / "main.yml"
    defaults = yaml.safe_load(file.read_text()) or {} if file.is_file() else {}
    specs = options(role)
    stated = {name: option["default"] for name, option in specs.items() if "default" in option}
    templated = {name for name, value in defaults.items() if "{{" in str(value)}
    assert {name: stated[name] for name in stated if name not in templated} == {
        name: defaults.get(name) for name in stated if name not in templated
    }


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_variables_carry_the_role_s_name(role: Path) -> None:
    assert [name for name in options(role) if not name.startswith(role.name + "_")] == []
