# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of an answer: all that other roles and the report need, and a reason where there is no verdict."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.memory.plugins.filter.memmgr_result import memmgr_result


def test_a_verdict_is_kept_without_what_is_long() -> None:
    answer = {"verdict": "match", "summary": "match", "numa_nodes": [1], "assignments": [2], "changed": False}
    assert memmgr_result(answer) == {"verdict": "match", "summary": "match", "step": "validate", "status": "judged"}


def test_a_verdict_that_fails_the_task_is_judged() -> None:
    assert memmgr_result({"verdict": "refuse", "failed": True, "msg": "refuse"})["status"] == "judged"


@pytest.mark.parametrize(
    ("answer", "status", "summary"),
    [
        ({"unreachable": True, "msg": "ssh:\n refused"}, "unreachable", "unreachable: ssh: refused"),
        ({"failed": True, "msg": "/proc/iomem: become"}, "failed", "failed: /proc/iomem: become"),
        ({"failed": True, "msg": None}, "failed", "failed: no answer"),
        ({}, "failed", "failed: no answer"),
    ],
)
def test_a_reason_where_there_is_no_verdict(answer: t.Dict[str, t.Any], status: str, summary: str) -> None:
    assert memmgr_result(answer) == {
        "verdict": None,
        "will_start": None,
        "summary": summary,
        "step": "validate",
        "status": status,
    }
