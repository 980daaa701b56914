# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""YAML and JSON as the kubelet reads them: the values of sigs.k8s.io/yaml, which are YAML 1.1's, but not PyYAML's.

`yes` and `y` are true, `010` is 8, `1e3` is a number, `1:30` and dates are text. Only PyYAML's parser is used; what a
plain scalar means is decided here.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import typing as t

from .._policy.configuration import Document
from .._policy.decode import Number, decoded_again, go_float, go_quote
from .root import NodeError

try:
    import yaml
except ImportError:
    HAS_YAML = False
else:
    HAS_YAML = True

MAX_VALUES = 100_000
MAX_DEPTH = 100

Json = t.Any

_TAG = "tag:yaml.org,2002:"
_WORDS: t.Mapping[str, t.Optional[bool]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE: t.Mapping[str, str] = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DIGITS = 400
_JSON_TEXTS = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting value": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
}
_TEXTS = {
    "mapping values are not allowed here": "mapping values are not allowed in this context",
    "found character ": "found character that cannot start any token",
    "expected the node content": "did not find expected node content",
    "expected <block end>": "did not find expected key",
    "expected ',' or ']'": "did not find expected ',' or ']'",
    "expected ',' or '}'": "did not find expected ',' or '}'",
    "expected escape sequence of": "did not find expected hexdecimal number",
    "unacceptable character #x0": "control characters are not allowed",
}


class LibraryMissing(NodeError):
    """A file is YAML and PyYAML cannot be imported."""

    library = "PyYAML"


class _Problem(Exception):
    """The kubelet refuses the text; the message is its own, as far as the parsers agree."""


def parse_document(path: str, data: bytes) -> Document:
    """Parse a configuration file's content. What begins with a brace is JSON and nothing else, as for the kubelet.

    :raises LibraryMissing: where it is YAML and PyYAML is not importable
    :raises NodeError: where it is nested or repeated beyond any sense
    """
    if not data:
        return Document(path, problem=f"kubelet config file {go_quote(path)} was empty")
    if data.lstrip().startswith(b"{"):
        return _parse_json(path, data)
    if not HAS_YAML:
        raise LibraryMissing(
            f"cannot read {path}: it is YAML, and PyYAML is not importable on this node; "
            "install python3-yaml or python3-pyyaml, or convert the file to JSON"
        )
    return _parse_yaml(path, data)


def _parse_json(path: str, data: bytes) -> Document:
    duplicates: t.List[str] = []

    def pairs(items: t.List[t.Tuple[str, Json]]) -> Json:
        value: t.Dict[str, Json] = {}
        for key, item in items:
            if key in value:
                duplicates.append(f"duplicate field {go_quote(key)}")
            value[key] = decoded_again(value.get(key), item)
        return value

    try:
        text = data.decode("utf-8", "replace")
        value = json.loads(text, object_pairs_hook=pairs, parse_float=Number, parse_constant=_no_constant)
    except RecursionError as error:
        raise _too_complex(path) from error
    except ValueError as error:
        return Document(path, problem=f"couldn't get version/kind; json parse error: {_json_text(error)}")
    return Document(path, _without_surrogates(value, path), duplicate_keys=tuple(duplicates))


def _json_text(error: ValueError) -> str:
    """The kubelet's words for Python's complaint, where there is one for one."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if not error.doc[error.pos :].strip():
        return "unexpected end of JSON input"
    theirs = _JSON_TEXTS.get(error.msg)
    return str(error) if theirs is None else f"invalid character {error.doc[error.pos]!r} {theirs}"


def _no_constant(text: str) -> Json:
    raise ValueError(text)


def _without_surrogates(value: Json, path: str, depth: int = 0) -> Json:
    if depth > MAX_DEPTH:
        raise _too_complex(path)
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item, path, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            _SURROGATE.sub("\ufffd", key): _without_surrogates(item, path, depth + 1) for key, item in value.items()
        }
    return value


def _too_complex(path: str) -> NodeError:
    return NodeError(
        f"cannot read {path}: it is nested deeper than {MAX_DEPTH} levels or has more than {MAX_VALUES} values "
        "(aliases counted), which no kubelet configuration is; look at it on the node"
    )


def _parse_yaml(path: str, data: bytes) -> Document:
    builder = _Builder(path)
    try:
        value = builder.document(yaml.parse(data, Loader=yaml.BaseLoader))
    except _Problem as error:
        return Document(path, problem=str(error))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        return Document(path, problem=f"yaml: {where}{_go_text(error.problem or error.context or '')}")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        return Document(path, problem="yaml: " + _go_text(" ".join(str(error).split())))
    duplicates = ["yaml: unmarshal errors:\n  " + "\n  ".join(builder.duplicates)] if builder.duplicates else []
    return Document(path, value, duplicate_keys=tuple(duplicates))


def _go_text(problem: str) -> str:
    """The kubelet's words for a complaint of PyYAML; both parsers stem from libyaml. Line numbers may differ by one."""
    for ours, theirs in _TEXTS.items():
        if problem.startswith(ours):
            return theirs
    return problem


class _Builder:
    """Values from the parser's events, for the first document of a stream."""

    def __init__(self, path: str) -> None:
        self.duplicates: t.List[str] = []
        self._path = path
        self._anchors: t.Dict[str, t.Tuple[Json, int]] = {}
        self._open: t.List[str] = []
        self._count = 0
        self._events: t.Iterator[t.Any] = iter(())

    def document(self, events: t.Iterable[t.Any]) -> Json:
        self._events = iter(events)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if event.version not in (None, (1, 1)):
                    raise _Problem("yaml: found incompatible YAML document")
                return self._value(next(self._events), 0)
        return None

    def _value(self, event: t.Any, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise _too_complex(self._path)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        before = self._count
        self._add(1)
        anchor = event.anchor
        if anchor is not None:
            self._open.append(anchor)
        value = self._node(event, depth)
        if anchor is not None:
            self._open.remove(anchor)
            self._anchors[anchor] = (value, self._count - before)
        return value

    def _node(self, event: t.Any, depth: int) -> Json:
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(item, depth + 1) for item in self._until(yaml.SequenceEndEvent)]
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(depth)
        return scalar(event.tag, event.implicit[0], event.value)

    def _alias(self, anchor: t.Any) -> Json:
        if anchor in self._open:
            raise _Problem(f"yaml: anchor '{anchor}' value contains itself")
        if anchor not in self._anchors:
            raise _Problem(f"yaml: unknown anchor '{anchor}' referenced")
        value, size = self._anchors[anchor]
        self._add(size)
        return value

    def _add(self, values: int) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            raise _too_complex(self._path)

    def _until(self, end: t.Type[t.Any]) -> t.Iterator[t.Any]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event

    def _mapping(self, depth: int) -> t.Dict[str, Json]:
        mapping: t.Dict[str, Json] = {}
        for event in self._until(yaml.MappingEndEvent):
            merges = isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]
            key = "" if merges else _key(self._value(event, depth + 1))
            start = next(self._events)
            value = self._value(start, depth + 1)
            for name, item in _merged(value) if merges else ((key, value),):
                if name in mapping:
                    line = start.start_mark.line + 1
                    self.duplicates.append(f"line {line}: key {go_quote(name)} already set in map")
                mapping[name] = item
        return mapping


def _key(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Number):
        return value.text
    raise _Problem("unsupported map key")


def _merged(value: Json) -> t.List[t.Tuple[str, Json]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return [pair for item in reversed(value) for pair in item.items()]
    raise _Problem("yaml: map merge requires map or sequence of maps as the value")


def scalar(tag: t.Optional[str], plain: bool, text: str) -> Json:
    """The JSON value of a YAML scalar; `plain` means neither quoted nor tagged."""
    if _SURROGATE.search(text):
        raise _Problem("yaml: found invalid Unicode character escape code")
    kind = (tag or "").replace(_TAG, "", 1)
    if kind == "binary":
        return _binary(text)
    if not plain and kind not in ("bool", "int", "float", "null", "timestamp"):
        return text
    value = plain_scalar(text)
    if not plain and _kind(value) != kind and not (kind == "float" and _kind(value) == "int"):
        raise _Problem(f"yaml: cannot decode !!{_kind(value)} `{text}` as a !!{kind}")
    return value


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if value is None:
        return "null"
    return {int: "int", Number: "float"}.get(type(value), "str")


def plain_scalar(text: str) -> Json:
    """What a plain scalar means to goyaml.v2."""
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_FINITE:
        raise _Problem(f"json: unsupported value: {_NOT_FINITE[text]}")
    if text[0] == ".":
        return _float(text, text)
    if text[0] not in "+-0123456789" or len(text) > _MAX_DIGITS:
        return text
    digits = text.replace("_", "")
    match = _INTEGER.match(digits)
    value = _integer(match) if match is not None else None
    return _float(digits, text) if value is None else value


def _integer(match: t.Match[str]) -> t.Optional[int]:
    """None where it exceeds 64 bit."""
    sign, *texts = match.groups()
    base, digits = next((base, digits) for base, digits in zip((16, 2, 8, 10), texts) if digits)
    value = int(digits, base)
    if value >= (1 << 63) and (sign or value >= 1 << 64) and not (sign == "-" and value == 1 << 63):
        return None
    return -value if sign == "-" else value


def _float(digits: str, text: str) -> Json:
    if not _FLOAT.match(digits):
        return text
    value = float(digits)
    if math.isinf(value):
        return text
    number = go_float(value)
    return int(number) if number.lstrip("-").isdigit() else Number(number)


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError) as error:
        raise _Problem("yaml: !!binary value contains invalid base64 data") from error
