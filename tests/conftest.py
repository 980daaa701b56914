# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes `ansible_collections.kubenode.memory` this checkout, whatever its directory is called."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import hypothesis

ROOT = Path(__file__).resolve().parent.parent


def _add_package(name: str, *path: str) -> None:
    package = types.ModuleType(name)
    package.__path__ = list(path)
    sys.modules[name] = package


# ansible-test brings an importer of its own
if "ansible_collections" not in sys.modules:
    _add_package("ansible_collections")
    _add_package("ansible_collections.kubenode")
    _add_package("ansible_collections.kubenode.memory", str(ROOT))

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")
