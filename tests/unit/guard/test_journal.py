# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line in the journal: one line, fields that a program can split, a priority."""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kubenode.memory.plugins.module_utils._policy.journal import ERROR, INFO, Value, journal_line


def test_fields_and_message() -> None:
    fields: t.Dict[str, Value] = {
        "code": "match",
        "will_start": True,
        "unknown": None,
        "ms": 12,
        "findings": ["a", "b"],
        "unit": "",
    }
    line = journal_line(INFO, fields, "It is as it was.")
    assert line == (
        '<6>kubenode-memory-guard: code=match will_start=true unknown=null ms=12 findings=a,b msg="It is as it was."'
    )


def test_whatever_the_message_is_one_line_of_words() -> None:
    line = journal_line(ERROR, {"unit": 'a "b\nc'}, 'no\nsuch "file"\x00\x1b[31m\u2028' + "x" * 5000)
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert len(line) < 2200
    assert len(shlex.split(line)) == 3
