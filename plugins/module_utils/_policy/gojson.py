# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""JSON as Go's encoding/json reads and writes it (semantics 1.1, 1.3).

`parse` keeps what Python's decoder would lose: duplicate keys, the spelling of numbers, and Go's replacement of bytes
that are not UTF-8. `StructDecoder` fills typed values by Go's rules and remembers the first type error in Go's words.
"""

from __future__ import annotations

import json
import re
import typing as t

JsonObject = t.Tuple[t.Tuple[str, t.Any], ...]
"""An object: its members in order, duplicates included."""

MAX_DEPTH = 10000
KEPT_DEPTH = 64

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^"{}\[\]]+', re.S)
_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_GO_ESCAPE = re.compile("[<>&\u2028\u2029]")


class GoJsonError(ValueError):
    """The document is refused; the message is Go's. `where` is for people: `line 3, column 7`, if it is one place."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class Number(str):
    """A number as it is spelt in the document."""


def go_text(data: bytes) -> str:
    """Decode as Go does: each byte that is not UTF-8 becomes U+FFFD."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))


def parse(text: str) -> t.Any:
    """Parse a document into None, bool, str, `Number`, list and `JsonObject`.

    :raises GoJsonError: with Go's words for the first syntax error
    """
    if _ESCAPED_SURROGATE.search(text):
        text = _without_lone_surrogates(text)
    try:
        return _loads(text)
    except RecursionError:
        _Scanner(text).check()
        return _loads(_pruned(text))
    except ValueError:
        _Scanner(text).check()
        raise GoJsonError("the document cannot be decoded") from None


def parse_bytes(data: bytes) -> t.Any:
    """`parse` of a file. A syntax error at a byte that is not UTF-8 names that byte.

    :raises GoJsonError: as `parse`
    """
    try:
        return parse(go_text(data))
    except GoJsonError:
        _Scanner(data.decode("utf-8", "surrogateescape")).check()
        raise


def _loads(text: str) -> t.Any:
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_no_constant, object_pairs_hook=tuple)


def _pruned(text: str) -> str:
    """A valid document with every array and object below KEPT_DEPTH levels made null.

    Python's decoder gives up long before Go's does; no type that is decoded here is nearly as deep.
    """
    kept, depth = [], 0
    for token in _TOKEN.findall(text):
        depth += token in "{["
        if depth <= KEPT_DEPTH:
            kept.append(token)
        elif depth == KEPT_DEPTH + 1 and token in "{[":
            kept.append("null")
        depth -= token in "}]"
    return "".join(kept)


def quote(text: str) -> str:
    """A JSON string as Go writes it, with the three HTML characters and U+2028/2029 escaped."""
    return _GO_ESCAPE.sub(lambda match: _GO_ESCAPES[match.group()], _ENCODER.encode(text))


def _no_constant(name: str) -> t.NoReturn:
    raise ValueError(name)


def _without_lone_surrogates(text: str) -> str:
    """Each escaped surrogate that is not half of a pair becomes U+FFFD, as in Go."""
    return _ESCAPE.sub(lambda match: "\\ufffd" if match.group(1) else match.group(), text)


class _SyntaxError(Exception):
    pass


class _Scanner:
    """Finds the first syntax error of a text that Python's decoder refused, in the words of Go's scanner."""

    _ESCAPES = frozenset('bfnrt\\/"')
    _HEX = frozenset("0123456789abcdefABCDEF")
    _DIGITS = frozenset("0123456789")
    _SPACE = frozenset(" \t\r\n")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def check(self) -> None:
        """:raises GoJsonError: with the first error and its place, if there is one"""
        try:
            self._document()
        except _SyntaxError as error:
            raise GoJsonError(str(error), self.where()) from None

    def where(self) -> str:
        before = self._text[: self._at]
        return "line {0}, column {1}".format(before.count("\n") + 1, len(before) - before.rfind("\n"))

    def _document(self) -> None:
        """Token after token with a stack of the brackets that are open: depth is limited by MAX_DEPTH alone."""
        open_brackets: t.List[str] = []
        is_new = self._value(open_brackets)
        while open_brackets:
            is_new = self._first_in(open_brackets) if is_new else self._next_in(open_brackets)
        self._space()
        if self._at < len(self._text):
            self._fail("after top-level value")

    def _value(self, open_brackets: t.List[str]) -> bool:
        """Scan a value, of an array or object the bracket only; whether it was such a bracket."""
        self._space()
        char = self._peek()
        if char in "{[":
            if len(open_brackets) == MAX_DEPTH:
                self._fail("exceeded max depth")
            self._at += 1
            open_brackets.append(char)
            return True
        if char == '"':
            self._string()
        elif char == "-" or char in self._DIGITS:
            self._number()
        elif char in "tfn":
            self._literal({"t": "true", "f": "false", "n": "null"}[char])
        else:
            self._fail("looking for beginning of value")
        return False

    def _first_in(self, open_brackets: t.List[str]) -> bool:
        self._space()
        if self._peek() == self._closing(open_brackets):
            return self._close(open_brackets)
        return self._member(open_brackets)

    def _next_in(self, open_brackets: t.List[str]) -> bool:
        self._space()
        char = self._peek()
        if char == self._closing(open_brackets):
            return self._close(open_brackets)
        if char != ",":
            self._fail("after object key:value pair" if open_brackets[-1] == "{" else "after array element")
        self._at += 1
        return self._member(open_brackets)

    @staticmethod
    def _closing(open_brackets: t.Sequence[str]) -> str:
        return "}" if open_brackets[-1] == "{" else "]"

    def _close(self, open_brackets: t.List[str]) -> bool:
        self._at += 1
        open_brackets.pop()
        return False

    def _member(self, open_brackets: t.List[str]) -> bool:
        if open_brackets[-1] == "{":
            self._space()
            if self._peek() != '"':
                self._fail("looking for beginning of object key string")
            self._string()
            self._space()
            if self._peek() != ":":
                self._fail("after object key")
            self._at += 1
        return self._value(open_brackets)

    def _string(self) -> None:
        self._at += 1
        while self._peek() != '"':
            char = self._peek()
            if char < " ":
                self._fail("in string literal")
            self._at += 1
            if char == "\\":
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        char = self._char()
        if char != "u" and char not in self._ESCAPES:
            self._fail("in string escape code")
        self._at += 1
        for _digit in range(4 if char == "u" else 0):
            if self._char() not in self._HEX:
                self._fail("in \\u hexadecimal character escape")
            self._at += 1

    def _number(self) -> None:
        if self._char() == "-":
            self._at += 1
            self._need_digit("in numeric literal")
        if self._char() == "0":
            self._at += 1
        else:
            self._digits()
        if self._text[self._at : self._at + 1] == ".":
            self._at += 1
            self._need_digit("after decimal point in numeric literal")
            self._digits()
        if self._text[self._at : self._at + 1] in ("e", "E"):
            self._at += 1
            if self._char() in "+-":
                self._at += 1
            self._need_digit("in exponent of numeric literal")
            self._digits()

    def _need_digit(self, context: str) -> None:
        if self._char() not in self._DIGITS:
            self._fail(context)

    def _digits(self) -> None:
        while self._text[self._at : self._at + 1] in self._DIGITS:
            self._at += 1

    def _literal(self, word: str) -> None:
        for expected in word:
            if self._char() != expected:
                self._fail(f"in literal {word} (expecting {_quote_char(expected)})")
            self._at += 1

    def _space(self) -> None:
        while self._text[self._at : self._at + 1] in self._SPACE:
            self._at += 1

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise _SyntaxError("unexpected end of JSON input")
        return self._text[self._at]

    def _char(self) -> str:
        """The next character where no blank is allowed; Go ends a document by scanning a blank."""
        return self._text[self._at] if self._at < len(self._text) else " "

    def _fail(self, context: str) -> t.NoReturn:
        # Go scans bytes and prints the first one of a longer character; `parse_bytes` keeps odd bytes as surrogates.
        char = self._char()
        odd = "\udc80" <= char <= "\udcff"
        first_byte = ord(char) - 0xDC00 if odd else char.encode("utf-8", "surrogatepass")[0]
        raise _SyntaxError(f"invalid character {_quote_char(chr(first_byte))} {context}")


def _quote_char(char: str) -> str:
    """Go's quoteChar: one byte as a quoted character."""
    named = {"'": "\\'", '"': '"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"}
    named.update({"\t": "\\t", "\v": "\\v"})
    if char in named:
        return "'" + named[char] + "'"
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"'\\x{code:02x}'"
    if 0x80 <= code <= 0xA0 or code == 0xAD:
        return f"'\\u{code:04x}'"
    return "'" + char + "'"


T = t.TypeVar("T")
FieldDecoder = t.Callable[["StructDecoder", t.Any, t.Any], t.Any]
"""(decoder, JSON value, present value) gives the new value; Go decodes into what is there already."""


class Field(t.NamedTuple):
    """A struct field: its JSON name, how it is decoded, and the embedded struct that it comes from (error texts)."""

    name: str
    decode: FieldDecoder
    embedded: t.Tuple[str, ...] = ()


class StructDecoder:
    """Decodes into typed values as Go does: a type error is remembered, the rest is still decoded."""

    def __init__(self) -> None:
        self.error: t.Optional[str] = None
        self._struct = ""
        self._path: t.Tuple[str, ...] = ()

    def mismatch(self, value: t.Any, go_type: str, literal: bool = False) -> None:
        """Remember that `value` is none of `go_type`; `literal` adds the number's spelling, as Go does for integers."""
        self._save(_go_kind(value) + (" " + str(value) if literal else ""), go_type)

    def _save(self, value: str, go_type: str) -> None:
        if self.error is not None:
            return
        where = "value" if not self._path else "struct field {0}.{1}".format(self._struct, ".".join(self._path))
        self.error = f"json: cannot unmarshal {value} into Go {where} of type {go_type}"

    def struct(
        self, value: t.Any, go_type: str, fields: t.Mapping[str, Field], present: t.Mapping[str, t.Any]
    ) -> t.Dict[str, t.Any]:
        """Members of a JSON object by field, on top of `present`; keys match whatever their case."""
        decoded = dict(present)
        if not isinstance(value, tuple):
            if value is not None:
                self.mismatch(value, go_type)
            return decoded
        outer = (self._struct, self._path)
        for key, item in value:
            field = fields.get(key) or fields.get(fold(key))
            if field is not None:
                self._struct, self._path = go_type.rpartition(".")[2], outer[1] + field.embedded + (field.name,)
                decoded[field.name] = field.decode(self, item, decoded.get(field.name))
        self._struct, self._path = outer
        return decoded

    def map(
        self, value: t.Any, go_type: str, decode: FieldDecoder, present: t.Any, key: t.Callable[[str], T]
    ) -> t.Optional[t.Dict[T, t.Any]]:
        """A Go map: null is nil, a later duplicate of a key replaces the value, other keys stay."""
        if value is None:
            return None
        if not isinstance(value, tuple):
            self.mismatch(value, go_type)
            return t.cast(t.Optional[t.Dict[T, t.Any]], present)
        decoded = dict(present or {})
        for name, item in value:
            element = decode(self, item, None)
            try:
                decoded[key(name)] = element
            except ValueError:
                self._save("number " + name, "int")
        return decoded

    def slice(
        self, value: t.Any, go_type: str, decode: FieldDecoder, present: t.Any
    ) -> t.Optional[t.Tuple[t.Any, ...]]:
        """A Go slice: null is nil; elements are decoded over those that are there."""
        if value is None:
            return None
        if not isinstance(value, list):
            self.mismatch(value, go_type)
            return t.cast(t.Optional[t.Tuple[t.Any, ...]], present)
        old = present or ()
        return tuple(decode(self, item, old[i] if i < len(old) else None) for i, item in enumerate(value))

    def string(self, value: t.Any, present: t.Any, go_type: str = "string") -> str:
        if isinstance(value, str) and not isinstance(value, Number):
            return value
        if value is not None:
            self.mismatch(value, go_type)
        return present or ""

    def integer(self, value: t.Any, present: t.Any, go_type: str, low: int, high: int) -> int:
        """A Go integer between `low` and `high`; fractions, exponents and quoted numbers are type errors."""
        if isinstance(value, Number):
            if _is_integer(value, unsigned=low == 0) and low <= int(value) <= high:
                return int(value)
            self.mismatch(value, go_type, literal=True)
        elif value is not None:
            self.mismatch(value, go_type)
        return present or 0


def fold(key: str) -> str:
    """Go's case folding of keys, as far as an ASCII field name can be met: U+017F is an s, U+212A a k."""
    return key.lower().replace("\u017f", "s")


def int_key(text: str) -> int:
    """A map key of type int: a sign and leading zeros are read, blanks are not.

    :raises ValueError: if it is no 64 bit integer
    """
    if not _is_integer(text, unsigned=False) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(text)
    return int(text)


def _is_integer(text: str, unsigned: bool) -> bool:
    # The length first: int() of millions of digits is slow, and newer Pythons refuse it.
    return len(text) <= 64 and _INTEGER.match(text) is not None and not (unsigned and text[0] in "+-")


def _go_kind(value: t.Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Number):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
