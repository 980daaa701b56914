# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The results of a run on the controller: one directory a run, one JSON lines file a host in it.

RUN/run.json            the hosts that the run was to reach
RUN/hosts/HOST.jsonl    what became of a host, one line a step; no two forks write to one file at a time
RUN/table.txt, RUN/results.jsonl, RUN/failed.limit, RUN/selected.limit    what a report makes of them
"""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

RUN_FILE = "run.json"
HOSTS_DIRECTORY = "hosts"
FAILED_LIMIT = "failed.limit"
SELECTED_LIMIT = "selected.limit"

FAILED = "failed"
UNREACHABLE = "unreachable"
NOT_STARTED = "not_started"

SEVERITY = (
    "refuse",
    "unreadable",
    FAILED,
    UNREACHABLE,
    NOT_STARTED,
    "tolerable",
    "absent",
    "match",
    "not_applicable",
)
"""What became of a host, the worst first: a verdict, or why there is none."""

Json = t.Dict[str, t.Any]


class ResultsError(Exception):
    """The results of a run cannot be read or written; the text names the file and the next step."""


@dataclass(frozen=True)
class HostResult:
    """The last record of a host. `outcome` is one of `SEVERITY`; `data` is the record as it was written."""

    host: str
    outcome: str
    summary: str = ""
    will_start: t.Optional[bool] = None
    kubelet: str = ""
    time: str = ""
    data: Json = field(default_factory=dict)

    @property
    def is_judged(self) -> bool:
        return self.outcome not in (FAILED, UNREACHABLE, NOT_STARTED)


@dataclass(frozen=True)
class Results:
    """The newest result of each host of some runs; `problems` names lines that could not be read."""

    hosts: t.Tuple[HostResult, ...]
    problems: t.Tuple[str, ...] = ()


# --- writing ---------------------------------------------------------------------------------------------------------


def start_run(run: Path, hosts: t.Sequence[str], time: str) -> bool:
    """Note which hosts a run is to reach; False if that is noted already.

    :raises ResultsError: if the directory cannot be written
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        with (run / RUN_FILE).open("x", encoding="utf-8") as stream:
            stream.write(json.dumps({"started": time, "hosts": sorted(hosts)}) + "\n")
    except FileExistsError:
        return False
    except OSError as error:
        raise _write_error(run, error) from error
    return True


def append_record(run: Path, host: str, record: Json) -> Path:
    """Add a line to the host's file; one write, so that a killed run leaves whole lines.

    :raises ResultsError: if it cannot be written
    """
    file = run / HOSTS_DIRECTORY / (quote(host, safe="@:+,") + ".jsonl")
    line = json.dumps({**record, "host": host}, sort_keys=True).encode() + b"\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _write_error(file, error) from error
    return file


def write_file(file: Path, text: str) -> None:
    """:raises ResultsError: if it cannot be written"""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _write_error(file, error) from error


def write_limit(file: Path, hosts: t.Sequence[str]) -> None:
    """A file for --limit; none at all for no hosts, since Ansible takes an empty one for every host.

    :raises ResultsError: if it cannot be written
    """
    if hosts:
        write_file(file, "".join(host + "\n" for host in hosts))
        return
    try:
        file.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _write_error(file, error) from error


def _write_error(path: Path, error: OSError) -> ResultsError:
    return ResultsError(f"{path}: {error.strerror}. Set memmgr_report_dir to a directory that you may write.")


# --- reading ---------------------------------------------------------------------------------------------------------


def read_runs(runs: t.Iterable[Path]) -> Results:
    """The newest result of every host of these runs; a host without any is `not_started`.

    :raises ResultsError: if a directory is none of a run's, or cannot be read
    """
    expected: t.Set[str] = set()
    newest: t.Dict[str, HostResult] = {}
    problems: t.List[str] = []
    for run in runs:
        hosts, results = _read_run(run, problems)
        expected |= hosts
        for result in results:
            if result.host not in newest or result.time >= newest[result.host].time:
                newest[result.host] = result
    missing = (HostResult(host, NOT_STARTED, "no result") for host in expected - set(newest))
    return Results(tuple(sorted((*newest.values(), *missing), key=_order)), tuple(problems))


def _order(result: HostResult) -> t.Tuple[int, str]:
    return SEVERITY.index(result.outcome), result.host


def _read_run(run: Path, problems: t.List[str]) -> t.Tuple[t.Set[str], t.List[HostResult]]:
    try:
        files = sorted((run / HOSTS_DIRECTORY).glob("*.jsonl"))
        if not files and not (run / RUN_FILE).is_file():
            raise ResultsError(f"{run} is not the directory of a run: it has neither {RUN_FILE} nor hosts/*.jsonl.")
        return _expected_hosts(run / RUN_FILE), [result for file in files for result in _read_host(file, problems)]
    except OSError as error:
        raise ResultsError(f"{error.filename}: {error.strerror}. Look at the directory of the run.") from error


def _expected_hosts(file: Path) -> t.Set[str]:
    if not file.is_file():
        return set()
    try:
        hosts = json.loads(file.read_text(encoding="utf-8"))["hosts"]
        return {str(host) for host in hosts}
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{file} is damaged ({error}). Remove it to report the hosts that have a result.") from error


def _read_host(file: Path, problems: t.List[str]) -> t.Iterator[HostResult]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            record = json.loads(line)
            yield host_result(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append(f"{file}, line {number}: not a result, it is left out")


def host_result(record: Json) -> HostResult:
    """:raises ValueError, KeyError, TypeError: if the record is none of ours"""
    outcome = record.get("verdict") or record["status"]
    if outcome not in SEVERITY:
        raise ValueError(outcome)
    return HostResult(
        host=str(record["host"]),
        outcome=outcome,
        summary=str(record.get("summary") or ""),
        will_start=record.get("will_start"),
        kubelet=str((record.get("kubelet") or {}).get("version") or ""),
        time=str(record["time"]),
        data=record,
    )


# --- presenting ------------------------------------------------------------------------------------------------------

_COLUMNS = ("HOST", "VERDICT", "STARTS", "KUBELET", "WHAT")


def table(hosts: t.Sequence[HostResult]) -> t.List[str]:
    """The results as aligned lines, in the order given."""
    rows = [_COLUMNS, *map(_row, hosts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _row(result: HostResult) -> t.Tuple[str, ...]:
    starts = {True: "yes", False: "no", None: "?" if result.outcome in ("refuse", "unreadable") else "-"}
    return (
        result.host,
        result.outcome.replace("_", " "),
        starts[result.will_start],
        result.kubelet or "-",
        _what(result),
    )


def _what(result: HostResult) -> str:
    """The summary without the verdict, on one line, what the drift looks like, and what there is to say of a reboot."""
    text = result.summary
    if text.startswith(result.outcome):
        text = text[len(result.outcome) :].lstrip(": ")
    hints = dict.fromkeys(finding.get("hint") for finding in result.data.get("findings") or ())
    notes = [str(hint).replace("_", " ") for hint in hints if hint]
    if result.is_judged:
        notes += _reboot_notes(result.data.get("reboot") or {})
    return " ".join(f"{text} [{', '.join(notes)}]".split() if notes else text.split())


def _reboot_notes(reboot: Json) -> t.Iterator[str]:
    if reboot.get("needed"):
        yield "needs a reboot"
    if reboot.get("status") == "rebooted":
        yield "rebooted"
        if reboot.get("cordon") == "kept":
            yield "still cordoned by somebody else"


def plain(value: t.Any) -> str:
    """A part of a query's answer on one line, without JSON's quotes."""
    if isinstance(value, dict):
        return "  ".join(f"{key}={plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or "-"
    return value if isinstance(value, str) else json.dumps(value)


def counts(hosts: t.Sequence[HostResult]) -> t.Dict[str, int]:
    """How many hosts have each outcome, the worst first; outcomes that no host has are left out."""
    found = [result.outcome for result in hosts]
    return {outcome: found.count(outcome) for outcome in SEVERITY if outcome in found}


def count_line(hosts: t.Sequence[HostResult]) -> str:
    parts = [f"{number} {outcome.replace('_', ' ')}" for outcome, number in counts(hosts).items()]
    stopped = sum(result.will_start is False for result in hosts)
    names = (_number(len(hosts), "host"), _number(stopped, "kubelet"))
    return f"{names[0]} = {' + '.join(parts) or 'none'}; {names[1]} will not start"


def _number(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def failed_hosts(hosts: t.Iterable[HostResult], bad_verdicts: t.Collection[str]) -> t.List[str]:
    """Hosts without a verdict, or with a bad one."""
    return [result.host for result in hosts if not result.is_judged or result.outcome in bad_verdicts]
