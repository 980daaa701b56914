# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that a person, a tool or a broken disk may leave, most of it near the borders of what Go's decoder accepts."""

from __future__ import annotations

import random
import re
import typing as t

Oddity = t.Callable[[str, random.Random], str]
ByteOddity = t.Callable[[bytes, random.Random], bytes]

_KEY = re.compile(r'(?<!\\)"(\w+)":')
_MEMBER = re.compile(r'"(\w+)":(\d+|"\w*")')
_NUMBER = re.compile(r"(?<=:)\d+")
_NODE_KEY = re.compile(r'"(\d+)":(?=\{"n)')
_VALUE = re.compile(r'(?<=:)(\d+|"[\w-]*"|\[[\d,]*\]|\{\})')


def _replace_one(pattern: t.Pattern[str], text: str, rng: random.Random, new: t.Callable[[t.Match[str]], str]) -> str:
    """`text` with one match, chosen at random, replaced."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + new(match) + text[match.end() :]


def key_case(text: str, rng: random.Random) -> str:
    change = rng.choice((str.upper, str.capitalize, str.swapcase, lambda key: key.replace("s", "\u017f")))
    return _replace_one(_KEY, text, rng, lambda match: f'"{change(match.group(1))}":')


def duplicate_key(text: str, rng: random.Random) -> str:
    """A key twice: the last value counts."""
    other = rng.choice(("5", "null", None))

    def twice(match: t.Match[str]) -> str:
        same, again = match.group(0), f'"{match.group(1)}":{other or match.group(2)}'
        return ",".join(rng.sample((same, again), 2))

    return _replace_one(_MEMBER, text, rng, twice)


def duplicate_object(text: str, rng: random.Random) -> str:
    """An object key twice: Go decodes the second into what the first left."""
    member = rng.choice(
        (
            '"machineState":{}',
            '"machineState":null',
            '"entries":{}',
            '"entries":null',
            '"entries":{"x":{}}',
            '"machineState":{"0":{}}',
        )
    )
    return rng.choice(("{" + member + "," + text[1:], text[:-1] + "," + member + "}"))


def null_value(text: str, rng: random.Random) -> str:
    return _replace_one(_VALUE, text, rng, lambda _match: "null")


def other_type(text: str, rng: random.Random) -> str:
    value = rng.choice(('"x"', "{}", "[]", "true", "false", '""', "[1]", '{"a":1}', "-1", "1.5"))
    return _replace_one(_VALUE, text, rng, lambda _match: value)


def unknown_key(text: str, rng: random.Random) -> str:
    value = rng.choice(("1", "null", '"x"', "[1,{}]", '{"a":[1.5e3]}', "-0", "1E400", "tru", "01", "\\u0041"))
    return _replace_one(re.compile(r"\{(?=\")"), text, rng, lambda _match: f'{{"unknown":{value},')


def number_form(text: str, rng: random.Random) -> str:
    forms = (
        "{0}.0",
        "{0}e3",
        "{0}E0",
        "-{0}",
        "0{0}",
        "+{0}",
        '"{0}"',
        "{0}0000000000000000000",
        "0x{0}",
        "-0",
        "{0}.",
        ".{0}",
    )
    fixed = ("18446744073709551615", "18446744073709551616", "9223372036854775807", "9223372036854775808", "1e2", "0")
    form = rng.choice(forms + fixed)
    return _replace_one(_NUMBER, text, rng, lambda match: form.format(match.group(0)))


def white_space(text: str, rng: random.Random) -> str:
    space = rng.choice((" ", "\n", "\t", "\r", "  \n", "\x0b", "\xa0", "\x00"))
    place = rng.choice(
        (re.compile(r","), re.compile(r":"), re.compile(r"[{}\[\]]"), re.compile(r"^"), re.compile(r"$"))
    )
    return _replace_one(place, text, rng, lambda match: rng.choice((match.group(0) + space, space + match.group(0))))


def node_key(text: str, rng: random.Random) -> str:
    form = rng.choice(
        ("+{0}", "0{0}", " {0}", "{0} ", "-{0}", "zero", "", "{0}.0", "0x{0}", "{0}e0", "1_0", "99999999999999999999")
    )
    return _replace_one(_NODE_KEY, text, rng, lambda match: f'"{form.format(match.group(1))}":')


def escape(text: str, rng: random.Random) -> str:
    """Escapes in a string: right, lone surrogates, wrong."""
    odd = rng.choice(
        (
            "\\u0041",
            "\\ud800",
            "\\udc00x",
            "\\ud834\\udd1e",
            "\\/",
            "\\x41",
            "\\u12",
            "\\u00e9",
            "\\ud800\\u0041",
            "\\",
            "\n",
            "\x01",
            "\\b",
        )
    )
    return _replace_one(re.compile(r'(?<=")[\w-]+(?=":\{)'), text, rng, lambda match: match.group(0) + odd)


def key_escape(text: str, rng: random.Random) -> str:
    return _replace_one(_KEY, text, rng, lambda match: f'"\\u{ord(match.group(1)[0]):04x}{match.group(1)[1:]}":')


def truncated(text: str, rng: random.Random) -> str:
    return text[: rng.choice((0, 1, len(text) // 2, len(text) - 1, rng.randrange(len(text) + 1)))]


def after_the_end(text: str, rng: random.Random) -> str:
    return text + rng.choice(("\n", " \r\n\t", "x", "{}", ",", "\x00", "}", "\ufeff"))


def before_the_beginning(text: str, rng: random.Random) -> str:
    return rng.choice(("\n", "  ", "\ufeff", "x", "//\n", "\x00")) + text


def whole_value(_text: str, rng: random.Random) -> str:
    return rng.choice(
        (
            "",
            " ",
            "null",
            "[]",
            "{}",
            '""',
            "1",
            "true",
            "nul",
            "[",
            "{",
            '{"',
            '{"a"',
            '{"a":',
            '{"a":1',
            '{"a":1,',
            "hello",
            "'",
            "{]",
        )
    )


def punctuation(text: str, rng: random.Random) -> str:
    """One character of the syntax lost, doubled or another."""
    other = rng.choice(("", ",,", ";", "'", "::", "[", "}"))
    return _replace_one(re.compile(r"[{}\[\]:,\"]"), text, rng, lambda _match: other)


def deep(text: str, rng: random.Random) -> str:
    """Nesting around Go's limit of 10000 levels."""
    levels = rng.choice((100, 9998, 9999, 10000, 10001))
    return '{"deep":' + "[" * levels + "]" * levels + "," + text[1:]


ODDITIES: t.Sequence[Oddity] = (
    key_case,
    key_case,
    duplicate_key,
    duplicate_key,
    duplicate_object,
    null_value,
    null_value,
    other_type,
    other_type,
    unknown_key,
    number_form,
    number_form,
    white_space,
    node_key,
    node_key,
    escape,
    key_escape,
    truncated,
    after_the_end,
    before_the_beginning,
    whole_value,
    punctuation,
    deep,
)


def bad_utf8(content: bytes, rng: random.Random) -> bytes:
    odd = rng.choice(
        (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe2\x82", b"\xf0\x9f\x98")
    )
    places = [match.end() for match in re.finditer(rb'"[a-z]', content)] or [0]
    place = rng.choice(places)
    return content[:place] + odd + content[place:]


def lost_bytes(content: bytes, rng: random.Random) -> bytes:
    """A block of zeros, as a crash leaves."""
    start = rng.randrange(len(content) + 1)
    return content[:start] + b"\x00" * rng.choice((1, len(content) - start))


def flipped_bit(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :]


ODD_BYTES: t.Sequence[ByteOddity] = (bad_utf8, bad_utf8, lost_bytes, flipped_bit)
