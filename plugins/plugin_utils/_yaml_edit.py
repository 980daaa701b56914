# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Edit a YAML or JSON text in place: every byte outside the edited values stays as it is.

Each edit is one splice at positions that the parser found. The result is parsed as the kubelet parses it, and has to
say what was wanted and nothing else; where it does not, nothing is changed and the reason is given.
"""

from __future__ import annotations

import json
import re
import typing as t

from ..module_utils._node.documents import parse_document, plain_scalar
from ..module_utils._node.root import NodeError
from ..module_utils._policy.configuration import Document
from ..module_utils._policy.decode import Number
from ..module_utils._policy.document_edit import Edit, Json, Path, apply_edits, effective_edits, is_same, value_at
from ._positions import ALIAS, MAPPING, SEQUENCE, EditError, Entry, Node, is_json, tree_of

__all__ = ["EditError", "edit_document", "edit_text"]

_BREAK = re.compile(r"\r\n|\r|\n")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*\Z")
_STEP = 2


def edit_document(text: str, edits: t.Iterable[Edit]) -> str:
    """The text after the edits.

    :raises EditError: where the text cannot be read, or cannot be edited without changing something else
    """
    before = _read(text)
    if before.problem is not None and before.value is None and text.strip():
        raise EditError(f"the kubelet itself cannot read it: {before.problem}")
    changes = [leaf for edit in effective_edits(before.value, edits) for leaf in _leaves(before.value, edit)]
    result = edit_text(text, changes)
    after = _read(result)
    wanted = apply_edits(before.value, changes)
    if after.problem is not None or not is_same(after.value, wanted):
        raise EditError(f"it cannot be edited without changing something else ({_difference(after, wanted)})")
    if _repeated(after) > _repeated(before):
        raise EditError("the key is there already through a merge (<<); edit it by hand")
    return result


def _read(text: str) -> Document:
    try:
        return parse_document("the file", text.encode("utf-8", "surrogatepass"))
    except NodeError as error:
        raise EditError(str(error)) from error


def _repeated(document: Document) -> int:
    return sum(text.count("already set") for text in document.duplicate_keys) + len(document.duplicate_keys)


def _difference(after: Document, wanted: Json) -> str:
    if after.problem is not None:
        return after.problem
    value = after.value if isinstance(after.value, dict) else {}
    keys = [key for key in {**wanted, **value} if not is_same(value_at(value, (key,)), value_at(wanted, (key,)))]
    return "an anchor, a merge or a repeated key concerns {0}".format(", ".join(map(str, keys)))


def _leaves(document: Json, edit: Edit) -> t.Iterator[Edit]:
    """The edit as edits of single values, where old and new value have the same form: comments between them stay."""
    old = value_at(document, edit.path)
    if _has_form_of(old, edit.value):
        keys: t.Iterable[t.Any] = old if isinstance(old, dict) else range(len(old))
        for key in keys:
            below = Edit((*edit.path, key), edit.value[key])
            if not is_same(old[key], below.value):
                yield from _leaves(document, below)
    else:
        yield edit


def _has_form_of(old: Json, new: Json) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return bool(old) and old.keys() == new.keys()
    return isinstance(old, list) and isinstance(new, list) and bool(old) and len(old) == len(new)


# --- one edit --------------------------------------------------------------------------------------------------------


def edit_text(text: str, edits: t.Iterable[Edit]) -> str:
    """The text after the edits, not checked.

    :raises EditError: where it has no place for one
    """
    for edit in edits:
        text = _Splice(text).apply(edit)
    return text


def _nested(path: Path, value: Json) -> Json:
    for key in reversed(path):
        value = {key: value}
    return value


class _Splice:
    """One text, to be changed once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = tree_of(text)
        self._json = is_json(text)
        found = _BREAK.search(text)
        self._break = found.group(0) if found else "\n"

    def apply(self, edit: Edit) -> str:
        if self._root is None or (self._root.kind != MAPPING and self._root.start == self._root.end):
            return self._text if edit.removes else self._append(_nested(edit.path, edit.value))
        if self._root.kind != MAPPING:
            raise EditError("it is no mapping")
        parent, holder = self._root, None
        for index, key in enumerate(edit.path):
            entry = parent.entries[key] if isinstance(key, int) else parent.entry(key)
            rest = edit.path[index + 1 :]
            if entry is None:
                return self._text if edit.removes else self._insert(parent, str(key), _nested(rest, edit.value))
            if not rest:
                return self._remove(parent, entry, holder) if edit.removes else self._replace(entry, edit.value)
            if entry.value.kind not in (MAPPING, SEQUENCE):
                return self._replace(entry, self._below(edit, index + 1))
            parent, holder = entry.value, entry
        raise EditError("an edit needs a path")

    def _below(self, edit: Edit, depth: int) -> Json:
        """The value at the first keys of an edit's path after it: what an alias stands for is written out."""
        changed = apply_edits(_read(self._text).value, [edit])
        return value_at(changed, edit.path[:depth])

    def _append(self, value: Json) -> str:
        """To a text that holds comments at most."""
        lines = self._text if not self._text or self._text.endswith(("\n", "\r")) else self._text + self._break
        return lines + self._break.join(_block_lines(value, 0)) + self._break

    # insert

    def _insert(self, parent: Node, key: str, value: Json) -> str:
        if parent.kind != MAPPING:
            raise EditError(f"{key} would stand in a list")
        if parent.flow:
            return self._insert_flow(parent, key, value)
        position = parent.last.end if parent.last.literal else self._next_line(parent.last.end)
        body = self._break.join(_block_lines({key: value}, parent.column))
        before = self._text[:position]
        if before and not before.endswith(("\n", "\r")):
            body = self._break + body
        else:
            body += self._break
        return before + body + self._text[position:]

    def _insert_flow(self, parent: Node, key: str, value: Json) -> str:
        item = f"{_scalar(key, self._json)}: {_flow(value, self._json)}"
        if not parent.entries:
            opening = self._text.index("{", parent.start) + 1
            return self._text[:opening] + item + self._text[opening:]
        last = parent.entries[-1]
        start = self._line_start(last.key.start)
        lead = self._text[start : last.key.start]
        own_line = start > parent.start and not lead.strip()
        return self._spliced(last.value.end, last.value.end, "," + (self._break + lead if own_line else " ") + item)

    # replace

    def _replace(self, entry: Entry, value: Json) -> str:
        node = entry.value
        self._require_unshared(node)
        if node.flow or node.kind not in (MAPPING, SEQUENCE):
            return self._replace_inline(entry, value)
        same_kind = isinstance(value, dict if node.kind == MAPPING else list)
        if same_kind and value and node.anchor is None:
            lines = _block_lines(value, node.column)
            return self._spliced(node.start, node.end, self._break.join(lines).lstrip(" "), node.last.literal)
        return self._spliced(entry.key.end, node.end, ": " + _flow(value, self._json), node.last.literal)

    def _replace_inline(self, entry: Entry, value: Json) -> str:
        node = entry.value
        new = self._in_quotes_of(node, value) or _flow(value, self._json)
        if node.start == node.end:
            new = (" " if node.start > entry.key.end else ": ") + new
        return self._spliced(node.start, node.end, new, node.literal)

    def _in_quotes_of(self, node: Node, value: Json) -> t.Optional[str]:
        """Text in the quotes that the old value has."""
        old = self._text[node.start : node.start + 1]
        if not isinstance(value, str) or self._json or node.kind != "scalar" or not _PLAIN.match(value):
            return None
        return old + value + old if old in ("'", '"') else None

    def _require_unshared(self, node: Node) -> None:
        anchor = node.anchor
        if anchor is not None and self._root is not None and anchor in _aliases(self._root):
            raise EditError(f"the value carries the anchor &{anchor}, and what refers to it would change too")

    # remove

    def _remove(self, parent: Node, entry: Entry, holder: t.Optional[Entry]) -> str:
        if parent.flow:
            return self._remove_flow(parent, entry)
        if len(parent.entries) == 1:
            if holder is None:
                raise EditError("nothing would be left of it")
            return self._spliced(holder.key.end, parent.end, ": {}", parent.last.literal)
        start = self._line_start(entry.key.start)
        if self._text[start : entry.key.start].strip():
            raise EditError(f"{entry.key.text} does not stand on a line of its own")
        literal = entry.value.last.literal
        end = entry.value.last.end if literal else self._next_line(entry.value.last.end)
        before = self._text[:start]
        if end == len(self._text) and not self._text.endswith(("\n", "\r")):
            before = before[: -len(self._break)] if before.endswith(self._break) else before
        return before + self._text[end:]

    def _remove_flow(self, parent: Node, entry: Entry) -> str:
        index = parent.entries.index(entry)
        if index:
            return self._spliced(parent.entries[index - 1].value.end, entry.value.end, "")
        if len(parent.entries) > 1:
            return self._spliced(entry.key.start, parent.entries[1].key.start, "")
        return self._spliced(self._text.index("{", parent.start) + 1, parent.end - 1, "")

    # positions

    def _spliced(self, start: int, end: int, new: str, ends_line: bool = False) -> str:
        rest = self._text[end:]
        return self._text[:start] + new + (self._break if ends_line and rest else "") + rest

    def _line_start(self, position: int) -> int:
        found = [match.end() for match in _BREAK.finditer(self._text, 0, position)]
        return found[-1] if found else 0

    def _next_line(self, position: int) -> int:
        """The start of the line after the one that a position is in."""
        match = _BREAK.search(self._text, position)
        return match.end() if match else len(self._text)


def _aliases(node: Node) -> t.Set[str]:
    if node.kind == ALIAS:
        return {node.text}
    nodes = [one for entry in node.entries for one in (entry.key, entry.value)]
    return {name for one in nodes for name in _aliases(one)}


# --- text ------------------------------------------------------------------------------------------------------------


def _block_lines(value: Json, indent: int) -> t.List[str]:
    """A mapping or list in block style, as the kubelet's own library writes it: dashes stand below the key."""
    pad = " " * indent
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _entry_lines(_scalar(key, False), item, indent)]
    lines: t.List[str] = []
    for item in value:
        below = _block_lines(item, indent + _STEP) if item and isinstance(item, (dict, list)) else [_flow(item, False)]
        lines += [f"{pad}- {below[0].lstrip(' ')}", *below[1:]]
    return lines


def _entry_lines(key: str, value: Json, indent: int) -> t.List[str]:
    pad = " " * indent
    if value and isinstance(value, (dict, list)):
        return [f"{pad}{key}:", *_block_lines(value, indent + (_STEP if isinstance(value, dict) else 0))]
    return [f"{pad}{key}: {_flow(value, False)}"]


def _flow(value: Json, as_json: bool) -> str:
    if isinstance(value, dict):
        pairs = (f"{_scalar(key, as_json)}: {_flow(item, as_json)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item, as_json) for item in value) + "]"
    return _scalar(value, as_json)


def _scalar(value: Json, as_json: bool) -> str:
    if isinstance(value, Number):
        return value.text
    if not isinstance(value, str):
        return json.dumps(value)
    if not as_json and _PLAIN.match(value) and _is_text(value):
        return value
    return json.dumps(value, ensure_ascii=as_json or not value.isprintable())


def _is_text(value: str) -> bool:
    """Whether YAML takes the plain scalar for text. Dates and sexagesimals are quoted for others' eyes."""
    return plain_scalar(value) == value and not re.match(r"[-+.]?\d[\d.:_-]*\Z", value)
