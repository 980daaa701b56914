# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What a command of the guard is given, and what it answers."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, field

from ._node.history import DIRECTORY
from ._node.overrides import KubeletOverrides
from ._request import Request

DONE, REFUSED, ERROR = 0, 1, 2
"""Exit codes: all is well; a person has to look; it could not be done."""

HOOKS = ("run", "stopped")
"""Commands that systemd runs: they end in time, and without an error, whatever happens."""

PATIENCE_SECONDS = 0.4
"""How long another run may hold the lock."""

ANSWERS = DIRECTORY + "/kubelet-answers.json"
"""What the kubelet's binary said of itself."""


class UsageError(ValueError):
    """A command line that is not understood; the message says what is wrong with it."""


@dataclass(frozen=True)
class Options:
    """The command line. Empty values mean: not given."""

    command: str
    host_root: str = "/"
    json: bool = False
    unit: str = ""
    textfile_directory: str = ""
    tolerance: t.Optional[str] = None
    kubelet_version: t.Optional[str] = None
    check: bool = False
    kubelet_is_stopped: bool = False
    max_cumulative_drift: t.Optional[str] = None
    backup: str = ""

    def request(self, **overrides: t.Any) -> Request:
        known = KubeletOverrides(version=self.kubelet_version, cache_file=ANSWERS, **overrides)
        return Request(host_root=self.host_root, tolerance=self.tolerance, overrides=known)


@dataclass(frozen=True)
class Answer:
    """`text` is for people, `data` for --json; `line` goes to standard error, which is the journal for a hook."""

    data: t.Mapping[str, t.Any] = field(default_factory=dict)
    text: str = ""
    line: str = ""
    status: int = DONE


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Clock:
    """`now` is seconds since the epoch, `since_boot` those since the boot, sleep included."""

    now: t.Callable[[], float] = time.time
    since_boot: t.Callable[[], float] = _since_boot


def hook_options(arguments: t.Sequence[str]) -> Options:
    """The command line of a hook.

    :raises UsageError: for what is not understood
    """
    given: t.Dict[str, t.Any] = {"command": arguments[0]}
    words = iter(arguments[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--json":
            given["json"] = True
        elif name in ("--unit", "--textfile-directory", "--host-root"):
            text = value if equals else next(words, None)
            if not text:
                raise UsageError(f"{name} has no value")
            given[name[2:].replace("-", "_")] = text
        else:
            raise UsageError(f"{word!r} is no argument of {arguments[0]}")
    return Options(**given)
