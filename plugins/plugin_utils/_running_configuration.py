# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The configuration that a kubelet runs with, as it logged it at its start, and where it is not what is expected."""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

import yaml

from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity

Configuration = t.Mapping[str, t.Any]

MESSAGE = "Effective KubeletConfiguration"
_TEXT_LOG = re.compile(rf'"{MESSAGE}" config=<\n(.*?)\n >', re.DOTALL)


@dataclass(frozen=True)
class Difference:
    """A setting that is not as it should be. None: it is not set."""

    field: str
    expected: t.Any
    found: t.Any


def logged_configuration(log: str) -> t.Optional[Configuration]:
    """What a kubelet since 1.37 logs once, in klog's text format or as JSON; None where it is not there."""
    found = _TEXT_LOG.search(log)
    texts = [] if found is None else ["\n".join(line[1:] for line in found.group(1).split("\n"))]
    for line in [] if texts else log.splitlines():
        if MESSAGE in line and line.startswith("{"):
            texts.append(str(_json(line).get("config", "")))
    value = yaml.safe_load(texts[0]) if texts else None
    return value if isinstance(value, dict) else None


def _json(line: str) -> t.Dict[str, t.Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def differences(expected: t.Iterable[t.Tuple[str, t.Any]], running: Configuration) -> t.Tuple[Difference, ...]:
    """The fields, such as `evictionHard.memory.available`, that do not have the value that is expected (None: none)."""
    pairs = ((field, value, value_of(field, running)) for field, value in expected)
    return tuple(Difference(*one) for one in pairs if _plain(one[0], one[1]) != _plain(one[0], one[2]))


def value_of(field: str, running: Configuration) -> t.Any:
    """The value of a field, or of one key of a field that is a map; None where there is none."""
    name, dot, key = field.partition(".")
    value = running.get(name)
    return value if not dot else value.get(key) if isinstance(value, dict) else None


def _plain(field: str, value: t.Any) -> t.Any:
    """A form in which equal settings are equal: the kubelet writes quantities anew, and leaves out what is false."""
    if field == "reservedMemory":
        entries = ((entry.get("numaNode", 0), entry.get("limits") or {}) for entry in value or [])
        return sorted((node, name, _bytes(text)) for node, limits in entries for name, text in limits.items())
    if isinstance(value, dict) and value:
        return {key: _plain("", item) for key, item in value.items()}
    if not value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(text: t.Any) -> str:
    try:
        return str(parse_quantity(str(text)).ceil())
    except ValueError:
        return str(text)
