# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet's log says about its memory manager."""

from __future__ import annotations

import ast
import re
import typing as t

# V(4) of memory_manager.go, in every release tried: the policy has validated the state and runs.
STARTED = '"memorymanager started"'

_ERROR_LINE = re.compile(r'^[EF]\d{4} .*?\] (?P<text>".*)$')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_PANIC = re.compile(r"^panic: (.*)$")
_PLAIN_ERROR = re.compile(r"^Error: (.*)$")


def unquoted(text: str) -> str:
    """A Go string literal without its quotes; what Python cannot read stays as it is."""
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def has_started(line: str) -> bool:
    return STARTED in line


def errors_of(lines: t.Iterable[str]) -> list[str]:
    """Every error text of the log in plain words: messages and values of error lines, panics, cobra's `Error:`."""
    return [text for line in _records(lines) for text in _errors_of_line(line)]


def _records(lines: t.Iterable[str]) -> t.Iterator[str]:
    """The log's records: klog writes a value of several lines as `key=<`, the lines after a tab each, and ` >`."""
    open_value: list[str] = []
    for line in lines:
        if open_value and line.startswith("\t"):
            open_value.append(line[1:])
        elif open_value:
            yield open_value[0] + _go_quoted("\n".join(open_value[1:]))
            open_value = []
        elif line.endswith("=<"):
            open_value = [line[:-1]]
        else:
            yield line


def _go_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _errors_of_line(line: str) -> list[str]:
    for pattern in (_PANIC, _PLAIN_ERROR):
        found = pattern.match(line)
        if found:
            return [found.group(1)]
    structured = _ERROR_LINE.match(line)
    return [unquoted(text) for text in _QUOTED.findall(structured.group("text"))] if structured else []


def panicked(lines: t.Iterable[str]) -> bool:
    return any(_PANIC.match(line) for line in lines)
