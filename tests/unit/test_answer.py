# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node without a kubelet gets the answer that the whole judgement gives, and loads next to nothing for it."""

from __future__ import annotations

import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from node_tree import NodeTree

from ansible_collections.kubenode.memory.plugins.module_utils._answer import answer
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._preflight import validate
from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_report
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError, Request

UTILS = "ansible_collections.kubenode.memory.plugins.module_utils"


@pytest.fixture
def tree(tmp_path: Path) -> NodeTree:
    tree = NodeTree(tmp_path)
    tree.write("/proc/sys/kernel/osrelease", "6.1.0-57-amd64\n")
    return tree


def whole_answer(request: Request) -> t.Dict[str, t.Any]:
    return present_report(validate(request))


@pytest.mark.parametrize("state_file", [None, "left behind"])
def test_without_a_kubelet(tree: NodeTree, state_file: t.Optional[str]) -> None:
    if state_file:
        tree.write("/var/lib/kubelet/memory_manager_state", state_file)
    request = Request(str(tree.base))
    assert answer(request) == whole_answer(request)
    assert answer(request)["boot"]["kernel"] == "6.1.0-57-amd64"


def test_this_machine() -> None:
    assert answer(Request()) == whole_answer(Request())


@pytest.mark.parametrize("request_", [{"tolerance": "32Mi"}, {"candidate_config": "{}"}, {"state_file": "/x"}])
def test_what_is_asked_for_is_answered(tree: NodeTree, request_: t.Dict[str, str]) -> None:
    request = Request(str(tree.base), **request_)
    assert answer(request) == whole_answer(request)


def test_a_setting_of_the_guard_is_read(tree: NodeTree) -> None:
    tree.write("/etc/kubenode-memory/tolerance", "64Mi\n")
    assert answer(Request(str(tree.base)))["tolerance"] == {"value": "64Mi", "source": "guard"}
    tree.write("/etc/kubenode-memory/tolerance", "much\n")
    with pytest.raises(NodeError):
        answer(Request(str(tree.base)))


def test_a_wrong_argument_is_refused(tree: NodeTree) -> None:
    with pytest.raises(InputError):
        answer(Request(str(tree.base), tolerance="lots"))


def test_the_judgement_is_not_loaded(tree: NodeTree) -> None:
    script = (
        f"import conftest, sys; from {UTILS}._answer import answer; from {UTILS}._request import Request;"
        "answer(Request(sys.argv[1])); print(*[name for name in sys.modules if 'module_utils._policy' in name])"
    )
    tests = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", script, str(tree.base)]
    done = subprocess.run(command, cwd=tests, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == []
