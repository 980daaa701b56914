# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The usual case, fast: a state in which nothing is odd, read by Python's own decoder.

Plain means every field by its exact name and once, every value of its exact type, no null and no number that Go might
take otherwise. On such a text the general decoder of `checkpoint` gives the same state, at ten times the cost; every
other text is left to it.
"""

from __future__ import annotations

import json
import re
import typing as t

from .gojson import int_key
from .state import UINT64_MASK, Block, MemoryManagerState, MemoryTable, NumaNodeState

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_INT64_MAX = (1 << 63) - 1
_STATE = frozenset(("policyName", "machineState", "entries", "podEntries"))


class _NotPlainError(ValueError):
    pass


def read_plain(text: str) -> t.Optional[MemoryManagerState]:
    """The state of the text `{"policyName":...}`; None if it is not plain."""
    if _ESCAPED_SURROGATE.search(text):
        return None
    try:
        return _state(
            json.loads(text, object_pairs_hook=_object, parse_int=_uint64, parse_float=_refuse, parse_constant=_refuse)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _refuse(_text: str) -> t.NoReturn:
    raise _NotPlainError


def _uint64(text: str) -> int:
    value = int(text) if len(text) <= 20 and text[0] != "-" else -1
    if not 0 <= value <= UINT64_MASK:
        raise _NotPlainError
    return value


def _object(pairs: t.List[t.Tuple[str, t.Any]]) -> t.Dict[str, t.Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotPlainError
    return members


def _state(value: t.Dict[str, t.Any]) -> MemoryManagerState:
    if not _STATE.issuperset(value):
        raise _NotPlainError
    return MemoryManagerState(
        _text(value["policyName"]),
        {int_key(key): _node(node) for key, node in value["machineState"].items()},
        {pod: {name: _blocks(blocks) for name, blocks in each.items()} for pod, each in _optional(value, "entries")},
        {pod: _pod_entry(entry) for pod, entry in _optional(value, "podEntries")},
    )


def _optional(value: t.Dict[str, t.Any], key: str) -> t.ItemsView[str, t.Any]:
    members: t.Dict[str, t.Any] = value.get(key, {})
    return members.items()


def _node(value: t.Dict[str, t.Any]) -> NumaNodeState:
    _has(value, 3)
    tables = {name: _table(table) for name, table in value["memoryMap"].items()}
    return NumaNodeState(_int(value["numberOfAssignments"]), tables, _ints(value["cells"]))


def _table(value: t.Dict[str, t.Any]) -> MemoryTable:
    _has(value, 5)
    names = ("total", "systemReserved", "allocatable", "reserved", "free")
    return MemoryTable(*(_size(value[name]) for name in names))


def _pod_entry(value: t.Dict[str, t.Any]) -> t.Tuple[Block, ...]:
    _has(value, 1)
    return _blocks(value["memoryBlocks"])


def _blocks(value: t.List[t.Dict[str, t.Any]]) -> t.Tuple[Block, ...]:
    if not isinstance(value, list):
        raise _NotPlainError
    return tuple(map(_block, value))


def _block(value: t.Dict[str, t.Any]) -> Block:
    _has(value, 3)
    return Block(_ints(value["numaAffinity"]), _text(value["type"]), _size(value["size"]))


def _ints(value: t.List[int]) -> t.Tuple[int, ...]:
    if not isinstance(value, list):
        raise _NotPlainError
    return tuple(map(_int, value))


def _has(value: t.Dict[str, t.Any], fields: int) -> None:
    if len(value) != fields:
        raise _NotPlainError


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise _NotPlainError
    return value


def _size(value: int) -> int:
    # bool is an int, and JSON's true none of Go's
    if not isinstance(value, int) or isinstance(value, bool):
        raise _NotPlainError
    return value


def _int(value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value > _INT64_MAX:
        raise _NotPlainError
    return value
