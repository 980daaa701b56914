# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the policy core passes around does not change under its readers' hands."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils import _policy

MODULES = [one.name for one in pkgutil.iter_modules(_policy.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_dataclass_is_frozen(name: str) -> None:
    module = importlib.import_module(f"{_policy.__name__}.{name}")
    classes = [one for one in vars(module).values() if isinstance(one, type) and dataclasses.is_dataclass(one)]
    assert [one.__name__ for one in classes if not vars(one)["__dataclass_params__"].frozen] == []


def test_there_are_some() -> None:
    assert {"machine_state", "checkpoint", "static_policy", "tolerance"} <= set(MODULES)
