# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The syntax of systemd units and environment files: text in, words and assignments out."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

WHITESPACE = " \t\n\r"

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_ESCAPES.update((char, char) for char in "\\\"'")
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z0-9_]*)\}", re.ASCII)
_EXEC_PREFIXES = "@-:+!|"


class SyntaxProblem(ValueError):
    """systemd ignores the assignment and logs a warning."""


@dataclass(frozen=True)
class Assignment:
    """One `key=value` of a unit file; continued lines are joined."""

    section: str
    key: str
    value: str


@dataclass(frozen=True)
class Command:
    """One command of an ExecStart line, before variables are replaced.

    `path` is what is executed; `words` is argv, the first of which is the path unless the prefix `@` is used.
    """

    path: str
    words: t.Tuple[str, ...]
    expands: bool = True

    def argv(self, environment: t.Mapping[str, str]) -> t.Tuple[str, ...]:
        """argv as the process gets it."""
        if not self.expands:
            return self.words
        return (*self.words[:1], *(word for raw in self.words[1:] for word in expand(raw, environment)))


def parse_unit(text: str) -> t.List[Assignment]:
    """All assignments of a unit file in order. What systemd ignores (other lines) is left out."""
    assignments: t.List[Assignment] = []
    section = ""
    for line in _logical_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if equals and key.strip():
            assignments.append(Assignment(section, key.strip(WHITESPACE), value.strip(WHITESPACE)))
    return assignments


def _logical_lines(text: str) -> t.Iterator[str]:
    pending = ""
    for raw in text.split("\n"):
        line = raw.strip(WHITESPACE)
        if line.startswith(("#", ";")) or (not line and not pending):
            continue
        if _continues(line):
            pending += line[:-1] + " "
            continue
        yield (pending + line).strip(WHITESPACE)
        pending = ""
    if pending:
        yield pending.strip(WHITESPACE)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def split_words(text: str) -> t.List[str]:
    """Split into words: quotes group and are removed, C escapes are replaced, unknown escapes stay.

    :raises SyntaxProblem: for a quote that is not closed
    """
    return [word for word, _raw in _words(text)]


def _words(text: str) -> t.Iterator[t.Tuple[str, str]]:
    """Each word, and how it is written."""
    position = 0
    while True:
        while position < len(text) and text[position] in WHITESPACE:
            position += 1
        if position >= len(text):
            return
        word, end = _word(text, position)
        yield word, text[position:end]
        position = end


def _word(text: str, position: int) -> t.Tuple[str, int]:
    parts: t.List[str] = []
    quote = ""
    while position < len(text):
        char = text[position]
        if char == "\\":
            part, position = _escape(text, position)
            parts.append(part)
            continue
        position += 1
        if char == quote:
            quote = ""
        elif quote:
            parts.append(char)
        elif char in "\"'":
            quote = char
        elif char in WHITESPACE:
            return "".join(parts), position - 1
        else:
            parts.append(char)
    if quote:
        raise SyntaxProblem(f"a quote ({quote}) is not closed")
    return "".join(parts), position


def _escape(text: str, position: int) -> t.Tuple[str, int]:
    """The character of an escape at the position, and where it ends."""
    char = text[position + 1 : position + 2]
    if char in _ESCAPES:
        return _ESCAPES[char], position + 2
    digits, base, start = "", 16, position + 2
    if char in _HEX_LENGTH:
        digits = text[start : start + _HEX_LENGTH[char]]
    elif char and char in "01234567":
        digits, base, start = text[position + 1 : position + 4], 8, position + 1
    length = _HEX_LENGTH.get(char, 3)
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    if len(digits) != length or not all(digit in allowed for digit in digits):
        return "\\" + char, position + 1 + len(char)
    code = int(digits, base)
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        return "\\" + char, position + 2
    return chr(code), start + length


def parse_commands(text: str) -> t.List[Command]:
    """The commands of one ExecStart value; specifiers are still in them.

    :raises SyntaxProblem: where systemd ignores the line
    """
    commands: t.List[Command] = []
    words: t.List[str] = []
    for word, raw in [*_words(text), (";", ";")]:
        if raw != ";":
            words.append(";" if raw == "\\;" else word)
            continue
        if words:
            commands.append(_command(words))
        words = []
    return commands


def _command(words: t.List[str]) -> Command:
    bare = words[0].lstrip(_EXEC_PREFIXES)
    prefixes = words[0][: len(words[0]) - len(bare)]
    if not bare:
        raise SyntaxProblem("the path of the command is empty")
    rest = words[1:]
    argv0 = bare
    if "@" in prefixes:
        if not rest:
            raise SyntaxProblem("the prefix @ needs a second word")
        argv0, rest = rest[0], rest[1:]
    return Command(bare, (argv0, *rest), ":" not in prefixes)


def expand(word: str, environment: t.Mapping[str, str]) -> t.List[str]:
    """Replace variables in one word: `$VAR` alone becomes its words, `${VAR}` anywhere its text, `$$` a dollar sign."""
    if word.startswith("$") and word[1:2] not in ("{", "$"):
        return split_relaxed(environment.get(word[1:], ""))
    return [_VARIABLE.sub(lambda match: _text_of(match, environment), word)]


def _text_of(match: t.Match[str], environment: t.Mapping[str, str]) -> str:
    return "$" if match.group(0) == "$$" else environment.get(match.group(1), "")


def split_relaxed(text: str) -> t.List[str]:
    """Split a variable's value: quotes group and are removed, a backslash takes the next character."""
    words: t.List[str] = []
    word: t.Optional[str] = None
    quote = ""
    characters = iter(text)
    for char in characters:
        if not quote and char in WHITESPACE:
            if word is not None:
                words.append(word)
            word = None
            continue
        word = word or ""
        if char == "\\":
            word += next(characters, "")
        elif char == quote:
            quote = ""
        elif not quote and char in "\"'":
            quote = char
        else:
            word += char
    return words if word is None else [*words, word]


def parse_assignments(text: str) -> t.Dict[str, str]:
    """The value of an `Environment=` line. Words that assign nothing are ignored.

    :raises SyntaxProblem: for a quote that is not closed
    """
    pairs = (word.partition("=") for word in split_words(text))
    return {name: value for name, equals, value in pairs if equals and _NAME.match(name)}


def parse_environment_file(text: str) -> t.Dict[str, str]:
    """The variables of an EnvironmentFile; lines that assign nothing are ignored."""
    variables: t.Dict[str, str] = {}
    position = 0
    while position < len(text):
        while position < len(text) and text[position] in WHITESPACE:
            position += 1
        if text[position : position + 1] in ("#", ";"):
            position = _end_of_comment(text, position)
            continue
        end = _end_of_line(text, position)
        equals = text.find("=", position, end)
        if equals < 0:
            position = end + 1
            continue
        name = text[position:equals].strip(WHITESPACE)
        value, position = _environment_value(text, equals + 1)
        if _NAME.match(name):
            variables[name] = value
    return variables


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _end_of_comment(text: str, position: int) -> int:
    """A comment goes on in the next line after a backslash."""
    end = _end_of_line(text, position)
    while end < len(text) and text[end - 1] == "\\":
        end = _end_of_line(text, end + 1)
    return end + 1


def _environment_value(text: str, position: int) -> t.Tuple[str, int]:
    """The value that starts at a position, and where the next line starts."""
    parts: t.List[str] = []
    while position < len(text):
        char = text[position]
        if char in "\n\r":
            return "".join(parts), position + 1
        if char in "\"'":
            part, position = _quoted(text, position + 1, char)
        elif char in WHITESPACE:
            part, position = "", position + 1
        else:
            part, position = _unquoted(text, position)
        parts.append(part)
    return "".join(parts), position


def _quoted(text: str, position: int, quote: str) -> t.Tuple[str, int]:
    parts: t.List[str] = []
    while position < len(text):
        char = text[position]
        position += 1
        if char == quote:
            break
        if char != "\\" or quote == "'":
            parts.append(char)
            continue
        escaped = text[position : position + 1]
        position += 1
        parts.append({"\n": ""}.get(escaped, escaped) if escaped in ('"', "\\", "`", "$", "\n") else "\\" + escaped)
    return "".join(parts), position


def _unquoted(text: str, position: int) -> t.Tuple[str, int]:
    parts: t.List[str] = []
    kept = 0
    while position < len(text) and text[position] not in "\n\r":
        char = text[position]
        position += 1
        if char == "\\":
            char = text[position : position + 1]
            position += 1
            if char != "\n":
                parts.append(char)
                kept = len(parts)
            continue
        parts.append(char)
        if char not in WHITESPACE:
            kept = len(parts)
    return "".join(parts[:kept]), position
