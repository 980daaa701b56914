# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Typed decoding of JSON values as the kubelet's decoder does it, with its error texts (semantics 6.3).

Values are mappings with text keys, lists, text, bool, int, None and :class:`Number`. Decoding goes on after an error,
as Go's does; the first error of a document is the one that the kubelet prints.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from decimal import Decimal

from .quantity import QuantityError, parse_quantity

Json = t.Any


@dataclass(frozen=True)
class Number:
    """A number that is no plain integer, as it stands in the JSON text: `1.5`, `1e+23`."""

    text: str


@dataclass(frozen=True)
class Scalar:
    """A Go scalar type."""

    go_name: str


@dataclass(frozen=True)
class MapOf:
    """A Go map with text keys."""

    element: GoType
    go_name: str


@dataclass(frozen=True)
class ListOf:
    """A Go slice."""

    element: GoType
    go_name: str


@dataclass(frozen=True)
class Struct:
    """A Go struct; fields by their JSON name."""

    name: str
    fields: t.Mapping[str, GoType] = field(hash=False)
    package: str = "v1beta1"

    @property
    def go_name(self) -> str:
        return f"{self.package}.{self.name}"


GoType = t.Union[Scalar, MapOf, ListOf, Struct]

ANY = Scalar("interface {}")
BOOL = Scalar("bool")
STRING = Scalar("string")
INT32 = Scalar("int32")
INT64 = Scalar("int64")
FLOAT64 = Scalar("float64")
DURATION = Scalar("v1.Duration")
QUANTITY = Scalar("resource.Quantity")

_INTEGER_BITS = {INT32: 32, INT64: 64}
_ZERO: t.Mapping[GoType, Json] = {BOOL: False, STRING: "", INT32: 0, INT64: 0, QUANTITY: "0"}
_DURATION_PART = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)([^0-9.]*)", re.ASCII)
_DURATION_UNITS = frozenset(("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"))


@dataclass(frozen=True)
class DecodeError:
    """One value that does not fit its type; `text` is the kubelet's, `field` is dotted from the root."""

    field: str
    text: str


@dataclass(frozen=True)
class Decoded:
    """The fields that could be decoded; quantities are text as written. Absent ones and null are left out."""

    fields: t.Mapping[str, Json]
    errors: t.Tuple[DecodeError, ...]
    unknown: t.Tuple[str, ...]


def decode_struct(value: t.Mapping[str, Json], struct: Struct, fold_case: bool = False) -> Decoded:
    """Decode a mapping into a struct.

    :param fold_case: match keys without regard to case where no field has the exact name. The kubelet does so only for
        the result of a drop-in merge.
    """
    decoder = _Decoder(fold_case)
    fields = decoder.struct(value, struct, ())
    return Decoded(fields, tuple(decoder.errors), tuple(decoder.unknown))


def decoded_again(old: Json, new: Json) -> Json:
    """Two values for one field (a key given twice, or in two spellings): Go decodes the second into the first."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: decoded_again(old.get(key), item) for key, item in new.items()}}
    if isinstance(old, list) and isinstance(new, list):
        return [*(decoded_again(before, item) for before, item in zip(old, new)), *new[len(old) :]]
    return new


def json_kind(value: Json) -> str:
    """The name that Go's decoder has for a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float, Number)):
        return "number"
    if isinstance(value, t.Mapping):
        return "object"
    return "null" if value is None else "array"


class _Decoder:
    def __init__(self, fold_case: bool) -> None:
        self.errors: t.List[DecodeError] = []
        self.unknown: t.List[str] = []
        self._fold_case = fold_case
        self._struct = ""

    def struct(self, value: t.Mapping[str, Json], struct: Struct, path: t.Tuple[str, ...]) -> t.Dict[str, Json]:
        fields: t.Dict[str, Json] = {}
        outer, self._struct = self._struct, struct.name
        for key in sorted(value):
            name = self._field_name(key, struct)
            if name is None:
                self.unknown.append(".".join((*path, key)))
            elif value[key] is not None:
                self._into(fields, name, value[key], struct.fields[name], (*path, name))
        self._struct = outer
        return fields

    def _field_name(self, key: str, struct: Struct) -> t.Optional[str]:
        if key in struct.fields:
            return key
        if self._fold_case:
            return next((name for name in struct.fields if name.lower() == key.lower()), None)
        return None

    def _into(
        self, target: t.Dict[str, Json], name: str, value: Json, go_type: GoType, path: t.Tuple[str, ...]
    ) -> None:
        decoded = self._value(value, go_type, path)
        if decoded is None:
            return
        target[name] = decoded_again(target.get(name), decoded)

    def _value(self, value: Json, go_type: GoType, path: t.Tuple[str, ...]) -> Json:
        """The decoded value; None where it does not fit."""
        if isinstance(go_type, Scalar):
            return self._scalar(value, go_type, path)
        expected: t.Type[t.Any] = list if isinstance(go_type, ListOf) else dict
        if not isinstance(value, expected):
            return self._mismatch(json_kind(value), go_type.go_name, path)
        if isinstance(go_type, Struct):
            return self.struct(value, go_type, path)
        if isinstance(go_type, ListOf):
            return [item for item in (self._element(each, go_type.element, path) for each in value) if item is not None]
        pairs = ((key, self._element(value[key], go_type.element, path)) for key in sorted(value))
        return {key: item for key, item in pairs if item is not None}

    def _element(self, value: Json, go_type: GoType, path: t.Tuple[str, ...]) -> Json:
        if value is None:
            return {} if isinstance(go_type, Struct) else _ZERO.get(go_type)
        return self._value(value, go_type, path)

    def _scalar(self, value: Json, go_type: Scalar, path: t.Tuple[str, ...]) -> Json:
        kind = json_kind(value)
        if go_type == ANY:
            return value
        if go_type == QUANTITY:
            return self._quantity(value, path)
        if go_type == DURATION:
            return self._duration(value, path)
        if go_type in _INTEGER_BITS and kind == "number":
            return self._integer(value, go_type, path)
        if kind == {BOOL: "bool", STRING: "string", FLOAT64: "number"}.get(go_type):
            return value
        return self._mismatch(kind, go_type.go_name, path)

    def _integer(self, value: Json, go_type: Scalar, path: t.Tuple[str, ...]) -> Json:
        limit = 1 << (_INTEGER_BITS[go_type] - 1)
        if isinstance(value, int) and -limit <= value < limit:
            return value
        return self._mismatch("number " + number_text(value), go_type.go_name, path)

    def _quantity(self, value: Json, path: t.Tuple[str, ...]) -> Json:
        kind = json_kind(value)
        text = value if kind == "string" else number_text(value) if kind == "number" else json_fragment(value)
        try:
            parse_quantity(text.strip())
        except QuantityError as err:
            return self._error(str(err), path)
        return text.strip()

    def _duration(self, value: Json, path: t.Tuple[str, ...]) -> Json:
        if not isinstance(value, str):
            return self._mismatch(json_kind(value), STRING.go_name, path)
        problem = duration_problem(value)
        return value if problem is None else self._error(problem, path)

    def _mismatch(self, kind: str, go_name: str, path: t.Tuple[str, ...]) -> None:
        self._error(
            "json: cannot unmarshal {} into Go struct field {}.{} of type {}".format(
                kind, self._struct, ".".join(path), go_name
            ),
            path,
        )

    def _error(self, text: str, path: t.Tuple[str, ...]) -> None:
        self.errors.append(DecodeError(".".join(path), text))


def number_text(value: Json) -> str:
    """A number as it stands in the JSON text; Python floats get Go's spelling."""
    if isinstance(value, Number):
        return value.text
    return go_float(value) if isinstance(value, float) else str(value)


def go_float(value: float) -> str:
    """A float as Go's encoding/json writes it."""
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(repr(value)):f}"
        return text[:-2] if text.endswith(".0") else text
    mantissa, _e, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent or 0):+d}"


def json_fragment(value: Json) -> str:
    """What a quantity's decoder is given for a value of another type: enough for it to refuse the text."""
    return {"bool": "true", "array": "[]"}.get(json_kind(value), "{}")


def duration_problem(text: str) -> t.Optional[str]:
    """Go's complaint about a duration such as `10s`, or None."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return None
    parts = list(_DURATION_PART.finditer(rest))
    if not rest or "".join(part.group(0) for part in parts) != rest:
        return f"time: invalid duration {go_quote(text)}"
    for part in parts:
        if not part.group(1):
            return f"time: missing unit in duration {go_quote(text)}"
        if part.group(1) not in _DURATION_UNITS:
            return f"time: unknown unit {go_quote(part.group(1))} in duration {go_quote(text)}"
    return None


def go_quote(text: str) -> str:
    """Text in quotes as Go's %q writes it."""
    return '"{}"'.format("".join(_QUOTED.get(char) or _quoted_char(char) for char in text))


_QUOTED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted_char(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}"
