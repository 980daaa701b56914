# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs each target below targets/, laid out as for ansible-test, with ansible-playbook against this machine.

NODE_PYTHON names the Python that plays the node's; the default is the controller's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGETS = HERE / "targets"
TIMEOUT_SECONDS = 240


def targets() -> t.List[str]:
    return sorted(path.parents[1].name for path in TARGETS.glob("*/tasks/main.yml") if not _is_setup(path))


def _is_setup(path: Path) -> bool:
    return path.parents[1].name.startswith("setup_")


def modules() -> t.List[str]:
    return sorted(path.stem for path in (ROOT / "plugins/modules").glob("[!_]*.py"))


@pytest.mark.parametrize("module", modules())
def test_each_module_has_a_target(module: str) -> None:
    assert module in targets()


@pytest.mark.parametrize("target", targets())
def test_target(target: str, tmp_path: Path) -> None:
    command = ["ansible-playbook", str(HERE / "target.yml"), "--inventory", "testhost,", "--extra-vars"]
    node_python = os.environ.get("NODE_PYTHON", sys.executable)
    variables = json.dumps({"target": target, "output_dir": str(tmp_path), "node_python": node_python})
    environment = {**os.environ, "ANSIBLE_ROLES_PATH": str(TARGETS), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        [*command, variables],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stdout, pytrace=False)
