# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Command line of the guard: what systemd runs before a start of the kubelet's unit, and what a person asks.

What only a person asks for is imported when it is: before a start, importing is most of what the guard costs.
"""

from __future__ import annotations

import json
import sys
import typing as t

from ._guard_deadline import within_deadline
from ._guard_options import ERROR, HOOKS, Answer, Clock, UsageError, hook_options
from ._node.root import NodeError
from ._policy.journal import NAME, WARNING, journal_line
from ._request import InputError

_HELP = frozenset(("-h", "--help"))


def main(
    arguments: t.Sequence[str],
    environment: t.Mapping[str, str],
    keep_code: t.Callable[[], None] = lambda: None,
    clock: t.Optional[Clock] = None,
) -> int:
    """Run one command; returns the exit code, which for a hook is always 0.

    `keep_code` is called when all that a hook needs is imported: then a start in which compiling it took all the time
    is the last such one.
    """
    command = next(iter(arguments), "")
    is_hook = command in HOOKS and not _HELP.intersection(arguments)

    def work() -> int:
        if is_hook:
            from ._guard_hooks import HOOKS as hooks

            keep_code()
            answer = _answer_of(lambda: hooks[command](hook_options(arguments), environment, clock or Clock()), True)
        else:
            answer = _answer_of(lambda: _asked(arguments), False)
            keep_code()
        _print(answer, "--json" in arguments)
        return answer.status

    if not is_hook:
        return work()
    within_deadline(work, command)
    return 0


def _answer_of(command: t.Callable[[], Answer], is_hook: bool) -> Answer:
    try:
        return command()
    except UsageError as error:
        code, message = "usage", str(error)
    except (NodeError, InputError) as error:
        code, message = "error", str(error)
    line = journal_line(WARNING, {"code": code}, message) if is_hook else f"{NAME}: {message}"
    return Answer({"code": code, "msg": message}, "", line, ERROR)


def _asked(arguments: t.Sequence[str]) -> Answer:
    from ._guard_arguments import parse_arguments
    from ._guard_commands import COMMANDS

    options = parse_arguments(arguments)
    return COMMANDS[options.command](options)


def _print(answer: Answer, as_json: bool) -> None:
    if answer.line:
        sys.stderr.write(answer.line + "\n")
    text = json.dumps(answer.data, indent=2, sort_keys=True) if as_json else answer.text
    if text:
        sys.stdout.write(text + "\n")
