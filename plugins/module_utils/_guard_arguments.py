# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The command line as a person types it. Hooks have their own reader, which is imported in less time than argparse."""

from __future__ import annotations

import argparse
import typing as t

from ._guard_options import Options, UsageError
from ._policy.journal import NAME

COMMANDS = {
    "run": "re-baselines the state file if that is right; the ExecStartPre= of the kubelet's unit",
    "stopped": "notes how a start of the kubelet's unit ended; its ExecStopPost=",
    "status": "what is in force and why, and what became of the last starts",
    "validate": "whether the kubelet will start its memory manager, and if not why; changes nothing",
    "rebaseline": "rewrites the state file to the memory that the machine has now, if the drift is tolerable",
    "restore": "puts a backup of the state file in its place, if the kubelet starts with it",
    "bound": "how far memory may drift on this machine, and where that comes from",
    "history": "what is remembered of earlier boots, and the backups",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        raise UsageError(f"{message}; see {NAME} --help")


def parse_arguments(arguments: t.Sequence[str]) -> Options:
    """:raises UsageError: for what is not understood"""
    parser = _Parser(prog=NAME, description="Keeps a kubelet's memory manager starting where its memory drifts.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--json", action="store_true", help="print JSON")
        command.add_argument("--host-root", default="/", metavar="DIR", help="judge the node below this directory")
        for add in _ARGUMENTS[name]:
            add(command)
    return Options(**vars(parser.parse_args(arguments)))


def _unit(command: argparse.ArgumentParser) -> None:
    command.add_argument("--unit", default="", help="the unit that is started")


def _textfile(command: argparse.ArgumentParser) -> None:
    command.add_argument("--textfile-directory", default="", metavar="DIR", help="write metrics for node_exporter here")


def _judging(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tolerance", help="instead of the one in force: auto, off or a quantity such as 128Mi")
    command.add_argument("--kubelet-version", help="instead of asking the kubelet, such as v1.36.3")


def _writing(command: argparse.ArgumentParser) -> None:
    command.add_argument("--check", action="store_true", help="say what would be done, and do nothing")
    command.add_argument(
        "--kubelet-is-stopped", action="store_true", help="take my word for it, below a root without processes"
    )


def _limit(command: argparse.ArgumentParser) -> None:
    command.add_argument("--max-cumulative-drift", metavar="QUANTITY", help="refuse beyond, from the first baseline")


def _backup(command: argparse.ArgumentParser) -> None:
    command.add_argument("backup", help="a name that `history` lists, or an absolute path")


_ARGUMENTS: t.Mapping[str, t.Sequence[t.Callable[[argparse.ArgumentParser], None]]] = {
    "run": (_unit, _textfile),
    "stopped": (_unit, _textfile),
    "status": (_judging, _textfile),
    "validate": (_judging,),
    "rebaseline": (_judging, _writing, _limit),
    "restore": (_judging, _writing, _backup),
    "bound": (),
    "history": (),
}
