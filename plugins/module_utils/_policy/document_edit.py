# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Edits of a configuration document as values: what is to stand at a path, and what the document then says.

The text is edited on the controller, which knows positions; both sides check the text against `apply_edits`.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

Json = t.Any
Path = t.Tuple[t.Union[str, int], ...]


class Absent:
    """No such key; `null` is a value, this is none."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


@dataclass(frozen=True)
class Edit:
    """`value` is to stand at `path` (keys of nested mappings, from the root); ABSENT removes the key."""

    path: Path
    value: Json

    @property
    def removes(self) -> bool:
        return self.value is ABSENT


def value_at(document: Json, path: Path) -> Json:
    """The value at a path; ABSENT where a key on the way is missing or is no mapping's."""
    for key in path:
        if isinstance(key, int):
            document = document[key] if isinstance(document, list) and key < len(document) else ABSENT
        else:
            document = document.get(key, ABSENT) if isinstance(document, t.Mapping) else ABSENT
    return document


def is_same(left: Json, right: Json) -> bool:
    """Equality that tells `true` from 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and bool(left == right)


def apply_edits(document: Json, edits: t.Iterable[Edit]) -> Json:
    """The document's value after the edits; mappings that are missing on the way are made."""
    for edit in edits:
        document = _with(document, edit.path, edit.value)
    return document


def _with(document: Json, path: Path, value: Json) -> Json:
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return [_with(item, rest, value) if index == key else item for index, item in enumerate(document)]
    result = dict(document) if isinstance(document, t.Mapping) else {}
    if value is ABSENT and (key not in result or not rest):
        result.pop(key, None)
        return result
    result[key] = _with(result.get(key), rest, value)
    return result


def effective_edits(document: Json, edits: t.Iterable[Edit]) -> t.Tuple[Edit, ...]:
    """Those of the edits that change the document."""
    return tuple(edit for edit in edits if not is_same(value_at(document, edit.path), edit.value))


def edits_to_json(edits: t.Iterable[Edit]) -> t.List[t.Dict[str, Json]]:
    """For the way to the controller: an edit without `value` removes."""
    return [
        {"path": list(edit.path)} if edit.removes else {"path": list(edit.path), "value": edit.value} for edit in edits
    ]


def edits_from_json(items: t.Iterable[t.Mapping[str, Json]]) -> t.Tuple[Edit, ...]:
    """The inverse of `edits_to_json`."""
    return tuple(Edit(tuple(item["path"]), item.get("value", ABSENT)) for item in items)
