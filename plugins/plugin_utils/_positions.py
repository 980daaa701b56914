# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Where each key and value stands in a YAML or JSON text: a tree of nodes with character positions."""

from __future__ import annotations

import json.decoder
import json.scanner
import re
import typing as t
from dataclasses import dataclass, replace

SCALAR, MAPPING, SEQUENCE, ALIAS = "scalar", "mapping", "sequence", "alias"

_BLANK = re.compile(r"[ \t\r\n]*")
_COLON = re.compile(r"\s*:")
_ATOM = re.compile(r"[-+.0-9A-Za-z]+")


class EditError(Exception):
    """The text cannot be edited in place; the message says why, for a person."""


@dataclass(frozen=True)
class Node:
    """A value in the text, `text[start:end]` with its tag and anchor.

    The end of a block collection is that of its last value, without comments and blank lines behind. `column` is that
    of a block collection's first key or dash. `text` is a scalar's value.
    """

    kind: str
    start: int
    end: int
    flow: bool = True
    text: str = ""
    anchor: t.Optional[str] = None
    column: int = 0
    entries: t.Tuple[Entry, ...] = ()
    json: bool = False
    literal: bool = False
    """A block scalar (`|`, `>`), whose end is the start of the next line."""

    def entry(self, key: str) -> t.Optional[Entry]:
        """The entry of a key; of several, the last, which is the one that counts."""
        return next((entry for entry in reversed(self.entries) if entry.key.text == key), None)

    @property
    def last(self) -> Node:
        """The innermost value at the end of the text of this one."""
        if self.flow or not self.entries:
            return self
        return self.entries[-1].value.last


@dataclass(frozen=True)
class Entry:
    """A key with its value; an item of a sequence has itself as key."""

    key: Node
    value: Node


def is_json(text: str) -> bool:
    """Whether the kubelet takes a text for JSON and nothing else."""
    return text.lstrip().startswith("{")


def tree_of(text: str) -> t.Optional[Node]:
    """The root of the first document; None for a text without a value.

    :raises EditError: if it is neither YAML nor JSON
    """
    if is_json(text):
        return _JsonReader(text).document()
    return _yaml_tree(text)


# --- JSON ------------------------------------------------------------------------------------------------------------


class _JsonReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def document(self) -> Node:
        try:
            return self._value(self._skip(0))
        except (ValueError, IndexError, RecursionError, AttributeError) as error:
            raise EditError(f"it is no JSON: {error}") from error

    def _skip(self, position: int) -> int:
        match = _BLANK.match(self._text, position)
        return match.end() if match else position

    def _value(self, start: int) -> Node:
        char = self._text[start]
        if char == '"':
            value, end = json.decoder.py_scanstring(self._text, start + 1)  # type: ignore[attr-defined]
            return Node(SCALAR, start, end, text=value, json=True)
        if char in "{[":
            return self._collection(start, char == "{")
        match = _ATOM.match(self._text, start)
        if match is None:
            raise ValueError(f"unexpected character at position {start}")
        return Node(SCALAR, start, match.end(), text=match.group(0), json=True)

    def _collection(self, start: int, mapping: bool) -> Node:
        entries: t.List[Entry] = []
        position = self._skip(start + 1)
        while self._text[position] not in "}]":
            key = value = self._value(position)
            if mapping:
                colon = self._expect(self._skip(key.end), ":")
                value = self._value(self._skip(colon))
            entries.append(Entry(key, value))
            position = self._skip(value.end)
            if self._text[position] not in "}]":
                position = self._skip(self._expect(position, ","))
        kind = MAPPING if mapping else SEQUENCE
        return Node(kind, start, position + 1, entries=tuple(entries), json=True)

    def _expect(self, position: int, char: str) -> int:
        if self._text[position] != char:
            raise ValueError(f"expected {char} at position {position}")
        return position + 1


# --- YAML ------------------------------------------------------------------------------------------------------------


def _yaml_tree(text: str) -> t.Optional[Node]:
    try:
        import ruamel.yaml
    except ImportError as error:
        raise EditError(
            f"the Python library ruamel.yaml is missing on the controller ({error}); install it for the Python that "
            "runs ansible-playbook, such as with python3 -m pip install ruamel.yaml"
        ) from error
    parser = ruamel.yaml.YAML(typ="safe", pure=True)
    parser.version = (1, 1)
    try:
        return _YamlReader(text, parser.parse(text)).document()
    except (ruamel.yaml.error.YAMLError, ValueError, RecursionError) as error:
        raise EditError(f"it is no YAML: {' '.join(str(error).split())}") from error


class _YamlReader:
    """Nodes from the parser's events, which keep aliases apart from what they stand for."""

    def __init__(self, text: str, events: t.Iterator[t.Any]) -> None:
        self._text = text
        self._events = events

    def document(self) -> t.Optional[Node]:
        for event in self._events:
            if type(event).__name__ == "DocumentStartEvent":
                return self._node(next(self._events))
        return None

    def _node(self, event: t.Any) -> Node:
        name = type(event).__name__
        start, end = event.start_mark.index, event.end_mark.index
        if name == "AliasEvent":
            return Node(ALIAS, start, end, text=str(event.anchor))
        anchor = None if event.anchor is None else str(event.anchor)
        if name == "ScalarEvent":
            if event.style is None:
                end = start + len(self._text[start:end].rstrip())
            return Node(SCALAR, start, end, text=event.value, anchor=anchor, literal=event.style in ("|", ">"))
        if name not in ("MappingStartEvent", "SequenceStartEvent"):
            raise EditError(f"it has an unexpected {name}")
        return self._collection(event, name == "MappingStartEvent", anchor)

    def _placed(self, key: Node, value: Node) -> Node:
        """The parser has a value that is not written at the next token: put it behind the colon, or the key."""
        if value.start != value.end:
            return value
        colon = _COLON.match(self._text, key.end)
        position = colon.end() if colon else key.end
        return replace(value, start=position, end=position)

    def _collection(self, start: t.Any, mapping: bool, anchor: t.Optional[str]) -> Node:
        entries: t.List[Entry] = []
        for event in self._events:
            if type(event).__name__ in ("MappingEndEvent", "SequenceEndEvent"):
                end = event
                break
            key = value = self._node(event)
            if mapping:
                value = self._placed(key, self._node(next(self._events)))
            entries.append(Entry(key, value))
        flow = bool(start.flow_style)
        kind = MAPPING if mapping else SEQUENCE
        stop = end.end_mark.index if flow or not entries else entries[-1].value.last.end
        return Node(kind, start.start_mark.index, stop, flow, "", anchor, start.start_mark.column, tuple(entries))
