# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The one line that the guard leaves in the journal: fields for programs, a sentence for people."""

from __future__ import annotations

import json
import typing as t

NAME = "kubenode-memory-guard"

ERROR, WARNING, NOTICE, INFO = 3, 4, 5, 6
"""Priorities of syslog(3); the journal reads them from the `<N>` in front of a line."""

_LONGEST = 2000

Value = t.Union[None, bool, int, str, t.Sequence[str]]


def journal_line(priority: int, fields: t.Mapping[str, Value], message: str) -> str:
    """`<6>kubenode-memory-guard: code=match verdict=match ... msg="..."`; an empty list or text is left out."""
    words = [f"{name}={_value(value)}" for name, value in fields.items() if value not in ("", (), [])]
    return f"<{priority}>{NAME}: {' '.join(words)} msg={json.dumps(_shortened(message), ensure_ascii=False)}"


def _value(value: Value) -> str:
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    text = value if isinstance(value, str) else ",".join(value)
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
