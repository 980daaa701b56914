# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""A service's command line and environment from its unit files, without systemd (systemd.unit, systemd.exec)."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from .presence import SEARCH_PATH
from .root import HostRoot, NodeError, NotFound, PermissionMissing
from .systemd_syntax import (
    Assignment,
    Command,
    SyntaxProblem,
    parse_assignments,
    parse_commands,
    parse_environment_file,
    parse_unit,
    split_words,
)

UNIT_LIMIT = 1024 * 1024
MASK = "/dev/null"

_SPECIFIER = re.compile(r"%(.?)", re.S)
_FIXED_SPECIFIERS = {
    "%": "%",
    "h": "/root",
    "u": "root",
    "U": "0",
    "g": "root",
    "G": "0",
    "s": "/bin/sh",
    "t": "/run",
    "S": "/var/lib",
    "C": "/var/cache",
    "L": "/var/log",
    "E": "/etc",
    "T": "/tmp",
    "V": "/var/tmp",
}
_FILE_SPECIFIERS = {
    "H": ("/proc/sys/kernel/hostname", "/etc/hostname"),
    "m": ("/etc/machine-id",),
    "v": ("/proc/sys/kernel/osrelease",),
    "b": ("/proc/sys/kernel/random/boot_id",),
}


@dataclass(frozen=True)
class Unit:
    """A service as systemd would load it now.

    `files` are the unit file and its drop-ins in the order in which they apply, `environment_files` those that were
    read. `problem` says why systemd would not start it.
    """

    name: str
    files: t.Tuple[str, ...]
    masked: bool = False
    commands: t.Tuple[Command, ...] = ()
    environment: t.Mapping[str, str] = field(default_factory=dict)
    environment_files: t.Tuple[str, ...] = ()
    problem: t.Optional[str] = None

    @property
    def path(self) -> str:
        return self.files[0]

    @property
    def argv(self) -> t.Tuple[str, ...]:
        """The main command with variables replaced; empty without one."""
        return self.commands[-1].argv(self.environment) if self.commands else ()


def read_unit(root: HostRoot, name: str) -> t.Optional[Unit]:
    """Load a service; None where there is no unit file for it.

    :raises NodeError: where a file cannot be read
    """
    path = _find(root, name)
    if path is None:
        return None
    if _is_masked(root, path):
        return Unit(name, (path,), masked=True, problem=f"{path} masks {name}")
    files = (path, *_drop_ins(root, name))
    assignments = [item for file in files for item in parse_unit(_text(root, file)) if item.section == "Service"]
    return _Loader(root, name).load(files, assignments)


def _find(root: HostRoot, name: str) -> t.Optional[str]:
    for directory in SEARCH_PATH:
        path = posixpath.join(directory, name)
        try:
            root.stat(path, follow=False)
        except NotFound:
            continue
        return path
    return None


def _is_masked(root: HostRoot, path: str) -> bool:
    if root.readlink(path) == MASK:
        return True
    return root.stat(path).st_size == 0


def _text(root: HostRoot, path: str) -> str:
    return root.read_text(path, UNIT_LIMIT, "surrogateescape").replace("\0", "")


def _drop_ins(root: HostRoot, name: str) -> t.List[str]:
    """The *.conf files that apply, by name; of equal names the one in the directory that comes first."""
    found: t.Dict[str, str] = {}
    for directory in (posixpath.join(base, sub) for sub in _drop_in_directories(name) for base in SEARCH_PATH):
        try:
            names = root.listdir(directory)
        except NotFound:
            continue
        for file in names:
            if file.endswith(".conf"):
                found.setdefault(file, posixpath.join(directory, file))
    return [found[file] for file in sorted(found) if root.readlink(found[file]) != MASK]


def _drop_in_directories(name: str) -> t.List[str]:
    """`a-b.service` has a-b.service.d, a-.service.d and service.d."""
    stem, _dot, kind = name.rpartition(".")
    parts = stem.split("-")
    prefixes = ["-".join(parts[:count]) + "-" for count in range(len(parts) - 1, 0, -1)]
    return [f"{name}.d", *(f"{prefix}.{kind}.d" for prefix in prefixes), f"{kind}.d"]


class _Loader:
    """Applies the assignments of [Service] one after the other."""

    def __init__(self, root: HostRoot, name: str) -> None:
        self._root = root
        self._name = name
        self._commands: t.List[Command] = []
        self._environment: t.Dict[str, str] = {}
        self._environment_files: t.List[str] = []
        self._unset: t.List[str] = []
        self._type = "simple"
        self._problem: t.Optional[str] = None

    def load(self, files: t.Tuple[str, ...], assignments: t.Iterable[Assignment]) -> Unit:
        setters: t.Mapping[str, t.Callable[[str], None]] = {
            "ExecStart": self._exec_start,
            "Environment": self._set_environment,
            "EnvironmentFile": self._environment_file,
            "UnsetEnvironment": self._unset_environment,
            "Type": self._set_type,
        }
        for assignment in assignments:
            setter = setters.get(assignment.key)
            if setter is not None:
                # systemd ignores what it cannot parse and goes on.
                try:
                    setter(assignment.value)
                except SyntaxProblem:
                    continue
        read = self._read_environment_files()
        if len(self._commands) != 1 and self._type != "oneshot":
            count = len(self._commands)
            self._problem = f"{self._name} has {count} ExecStart= commands; a service of type {self._type} needs one"
        commands = tuple(self._commands)
        return Unit(self._name, files, False, commands, self._final_environment(), tuple(read), self._problem)

    def _exec_start(self, value: str) -> None:
        if not value:
            self._commands.clear()
        for command in parse_commands(value):
            words = tuple(self._specifiers(word) for word in command.words)
            self._commands.append(Command(self._specifiers(command.path), words, command.expands))

    def _set_environment(self, value: str) -> None:
        if not value:
            self._environment.clear()
        for name, text in parse_assignments(value).items():
            self._environment[name] = self._specifiers(text)

    def _environment_file(self, value: str) -> None:
        if not value:
            self._environment_files.clear()
        else:
            self._environment_files.append(self._specifiers(value))

    def _unset_environment(self, value: str) -> None:
        if not value:
            self._unset.clear()
        self._unset.extend(split_words(value))

    def _set_type(self, value: str) -> None:
        self._type = value or "simple"

    def _read_environment_files(self) -> t.List[str]:
        read: t.List[str] = []
        for entry in self._environment_files:
            pattern = entry.lstrip("-")
            paths = self._root.glob(pattern) if any(char in pattern for char in "*?[") else (pattern,)
            try:
                for path in paths:
                    self._environment.update(parse_environment_file(_text(self._root, path)))
                    read.append(path)
            except PermissionMissing:
                raise
            except NodeError as error:
                if not entry.startswith("-"):
                    self._problem = f"{self._name} needs the environment file {pattern}: {error}"
        return read

    def _final_environment(self) -> t.Dict[str, str]:
        pairs = self._environment.items()
        return {name: text for name, text in pairs if name not in self._unset and f"{name}={text}" not in self._unset}

    def _specifiers(self, text: str) -> str:
        return _SPECIFIER.sub(lambda match: self._specifier(match.group(1)), text)

    def _specifier(self, char: str) -> str:
        stem = self._name.rpartition(".")[0]
        prefix, _at, instance = stem.partition("@")
        named = {"n": self._name, "N": stem, "p": prefix, "i": instance, "I": instance, "j": prefix.rpartition("-")[2]}
        known = {**_FIXED_SPECIFIERS, **named}
        if char in known:
            return known[char]
        for path in _FILE_SPECIFIERS.get(char, ()):
            try:
                return self._root.read_text(path, 4096, "replace").strip()
            except NotFound:
                continue
        return "%" + char
