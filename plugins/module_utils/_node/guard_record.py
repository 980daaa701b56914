# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""`guard.json`: what the guard counts and what its last run found, as they are between two runs."""

from __future__ import annotations

import json
import typing as t
from dataclasses import asdict

from .._policy.guard_metrics import GuardMetrics, Judged
from .._policy.starts import Ledger, Start
from .history import DIRECTORY
from .root import HostRoot, NodeError, NotFound

FILE_NAME = "guard.json"
GUARD_RECORD = DIRECTORY + "/" + FILE_NAME

_LIMIT = 256 * 1024


def read_guard_record(root: HostRoot) -> GuardMetrics:
    """What the last run left; nothing where there was none.

    :raises NodeError: if the file cannot be read, or is none of ours
    """
    try:
        return parse_guard_record(root.read_text(GUARD_RECORD, _LIMIT))
    except NotFound:
        return GuardMetrics(0, Ledger())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NodeError(
            f"{root.display(GUARD_RECORD)} is not what the guard writes ({type(error).__name__}: {error}); its "
            "counters begin again at 0"
        ) from None


def guard_record_text(metrics: GuardMetrics) -> str:
    return json.dumps(asdict(metrics), separators=(",", ":")) + "\n"


def parse_guard_record(text: str) -> GuardMetrics:
    """:raises ValueError, KeyError, TypeError, AttributeError, RecursionError: if it is not what we write"""
    record = json.loads(text)
    judged = record["judged"]
    return GuardMetrics(
        _is(int, record["time"]),
        _ledger(record["ledger"]),
        None if judged is None else _judged(judged),
        _is(bool, record["enabled"]),
    )


def _ledger(item: t.Mapping[str, t.Any]) -> Ledger:
    return Ledger(
        last=None if item["last"] is None else _start(item["last"]),
        attempts=_is(int, item["attempts"]),
        started=_is(bool, item["started"]),
        starts={str(name): _is(int, count) for name, count in item["starts"].items()},
        boots={str(name): _is(int, count) for name, count in item["boots"].items()},
        rebaselines=_is(int, item["rebaselines"]),
    )


def _start(item: t.Mapping[str, t.Any]) -> Start:
    return Start(
        invocation=_is(str, item["invocation"]),
        boot_id=_is(str, item["boot_id"]),
        at=_is(int, item["at"]),
        time=_is(int, item["time"]),
        will_start=_is_or_none(bool, item["will_start"]),
        outcome=_is(str, item["outcome"]),
    )


def _judged(item: t.Mapping[str, t.Any]) -> Judged:
    return Judged(
        verdict=_is(str, item["verdict"]),
        will_start=_is_or_none(bool, item["will_start"]),
        bound=_is_or_none(int, item["bound"]),
        drift={int(node): _is(int, size) for node, size in item["drift"].items()},
        cumulative={int(node): _is(int, size) for node, size in item["cumulative"].items()},
        tolerance=_is(str, item["tolerance"]),
        source=_is(str, item["source"]),
        mode=_is(str, item["mode"]),
    )


def _is(kind: t.Type[t.Any], value: t.Any) -> t.Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _is_or_none(kind: t.Type[t.Any], value: t.Any) -> t.Any:
    return None if value is None else _is(kind, value)
