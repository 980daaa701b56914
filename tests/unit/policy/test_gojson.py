# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON as Go's encoding/json reads and writes it (semantics 1.1, 1.3)."""

from __future__ import annotations

import contextlib
import json
import typing as t

import pytest
from hypothesis import example, given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.gojson import (
    MAX_DEPTH,
    Field,
    GoJsonError,
    Number,
    StructDecoder,
    fold,
    go_text,
    int_key,
    parse,
    parse_bytes,
    quote,
)


def integer(decoder: StructDecoder, value: t.Any, present: t.Any) -> int:
    return decoder.integer(value, present, "uint64", 0, 255)


FIELDS = {"size": Field("size", integer), "name": Field("name", StructDecoder.string)}


def error_of(text: str) -> str:
    with pytest.raises(GoJsonError) as error:
        parse(text)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "unexpected end of JSON input"),
        (" \n\t", "unexpected end of JSON input"),
        ('{"a":[1,', "unexpected end of JSON input"),
        ('"abc', "unexpected end of JSON input"),
        ("hello", "invalid character 'h' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("nul ", "invalid character ' ' in literal null (expecting 'l')"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("+1", "invalid character '+' looking for beginning of value"),
        ('"\x01"', "invalid character '\\x01' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("-Infinity", "invalid character 'I' in numeric literal"),
        ("\x00", "invalid character '\\x00' looking for beginning of value"),
    ],
)
def test_syntax_errors_in_the_words_of_go(text: str, error: str) -> None:
    assert error_of(text) == error


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x", "line 1, column 1"),
        ('{\n  "a": 1,\n  // no', "line 3, column 3"),
        ("[1", "line 1, column 3"),
        ("", "line 1, column 1"),
    ],
)
def test_where_a_syntax_error_is(text: str, where: str) -> None:
    with pytest.raises(GoJsonError) as error:
        parse(text)
    assert error.value.where == where


def test_what_pythons_decoder_would_lose() -> None:
    assert parse('{"a":1,"a":2.0,"b":-0}') == (("a", Number("1")), ("a", Number("2.0")), ("b", Number("-0")))
    assert parse("[]") == []
    assert parse("{}") == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        ("\u00e4".encode(), "\u00e4"),
    ],
)
def test_bytes_that_are_not_utf8(data: bytes, text: str) -> None:
    assert go_text(data) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud800"', "\ufffd"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('"\\udc00x"', "\ufffdx"),
        ('"\\\\ud800"', "\\ud800"),
        ('"\\ud800\\ud83d\\ude00"', "\ufffd\U0001f600"),
    ],
)
def test_surrogates(text: str, value: str) -> None:
    assert parse(text) == value


def test_depth() -> None:
    assert parse("[" * 900 + "]" * 900)
    assert parse("[" * 900 + '"\\ud800"' + "]" * 900)
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for text, char in (
        ("[" * (MAX_DEPTH + 1), "["),
        ('{"a":' * (MAX_DEPTH + 1), "{"),
        ("[" * 10**6 + "]" * 10**6, "["),
    ):
        assert error_of(text) == f"invalid character '{char}' exceeded max depth"


def test_size() -> None:
    """Numbers and texts of a million characters neither stop it nor take long."""
    assert parse("1" * 10**6) == Number("1" * 10**6)
    assert parse('"' + "x" * 10**6 + '"') == "x" * 10**6
    assert error_of('"' + "x" * 10**6) == "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<a>&\u2028\u2029", '"\\u003ca\\u003e\\u0026\\u2028\\u2029"'),
        ("\n\r\t\b\f\x1f", '"\\n\\r\\t\\b\\f\\u001f"'),
        ("\x7f\u00e4/", '"\x7f\u00e4/"'),
    ],
)
def test_texts_as_go_writes_them(text: str, written: str) -> None:
    assert quote(text) == written


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ('{"size":256}', "number 256 into Go struct field T.size of type uint64"),
        ('{"size":1.0}', "number 1.0 into Go struct field T.size of type uint64"),
        ('{"size":-0}', "number -0 into Go struct field T.size of type uint64"),
        ('{"size":"1"}', "string into Go struct field T.size of type uint64"),
        ('{"name":true,"size":[]}', "bool into Go struct field T.name of type string"),
        ("[]", "array into Go value of type state.T"),
    ],
)
def test_type_errors_in_the_words_of_go(value: str, error: str) -> None:
    decoder = StructDecoder()
    decoder.struct(parse(value), "state.T", FIELDS, {})
    assert decoder.error == "json: cannot unmarshal " + error


def test_decoding_goes_on_after_a_type_error() -> None:
    decoder = StructDecoder()
    assert decoder.struct(parse('{"size":"x","NAME":"a","other":1}'), "T", FIELDS, {"size": 7}) == {
        "size": 7,
        "name": "a",
    }


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("+0", 0), ("00", 0), ("-5", -5)])
def test_keys_that_are_integers(text: str, value: int) -> None:
    assert int_key(text) == value


@pytest.mark.parametrize("text", [" 0", "zero", "", "+", "1.0", "9223372036854775808", "\u0663", "1" * 5000])
def test_keys_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        int_key(text)


def test_case_folding() -> None:
    assert fold("policyName") == fold("POLICYNAME") == fold("policyname")
    assert fold("\u017fize") == "size"
    assert fold("\u212aey") == "key"


def plain(value: t.Any) -> t.Any:
    """What json.loads would give."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, tuple):
        return {key: plain(item) for key, item in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)
PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', "\\", "u", "d800", "1", "-", ".", "e", "true", "null", " ", "\x00", "\ud800"]
)


@given(DOCUMENTS, st.booleans())
def test_valid_documents_mean_what_they_mean_to_python(document: t.Any, ascii_only: bool) -> None:
    assert plain(parse(json.dumps(document, ensure_ascii=ascii_only))) == document


@given(st.text() | st.lists(PIECES).map("".join))
@example("[" * 100000)
@example("\ud800")
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    with contextlib.suppress(GoJsonError):
        parse(text)


@given(st.binary())
def test_any_bytes_are_text(data: bytes) -> None:
    text = go_text(data)
    assert "\ud800" not in text
    assert go_text(text.encode()) == text


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_quoted_is_read_back(text: str) -> None:
    assert parse(quote(text)) == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"1.", "invalid character ' ' after decimal point in numeric literal"),
        (b"1e", "invalid character ' ' in exponent of numeric literal"),
        (b'"\\', "invalid character ' ' in string escape code"),
        (b'"\\u12', "invalid character ' ' in \\u hexadecimal character escape"),
        (b'{"a"', "unexpected end of JSON input"),
        (b"{\xac}", "invalid character '\xac' looking for beginning of object key string"),
        (b"[" * 10001, "invalid character '[' exceeded max depth"),
    ],
)
def test_words_at_the_end_and_at_odd_bytes(data: bytes, message: str) -> None:
    with pytest.raises(GoJsonError) as refused:
        parse_bytes(data)
    assert str(refused.value) == message


def test_a_deep_value_is_read_as_far_as_anything_is_decoded() -> None:
    deep = '{"a":' + "[" * 9000 + '"]"' + "]" * 9000 + ',"b":1}'
    assert dict(parse(deep))["b"] == "1"
