# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes table, limit files and query of the results of runs. The documentation is the module's of the same name."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.memory.plugins.plugin_utils import _results as results
from ansible_collections.kubenode.memory.plugins.plugin_utils._query import query_results, selected_hosts

VERDICTS = ("match", "tolerable", "refuse", "unreadable", "absent", "not_applicable")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Optional[str] = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: t.Dict[str, t.Any] = super().run(tmp, task_vars)
        _rest, arguments = t.cast(t.Any, self).validate_argument_spec(
            {
                "runs": {"type": "list", "elements": "path", "required": True},
                "dest": {"type": "path"},
                "query": {"type": "str"},
                "bad_verdicts": {
                    "type": "list",
                    "elements": "str",
                    "choices": list(VERDICTS),
                    "default": ["refuse", "unreadable"],
                },
            }
        )
        try:
            result.update(report(arguments))
        except results.ResultsError as error:
            raise AnsibleActionFail(str(error)) from None
        return result


def report(arguments: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """:raises ResultsError: if the runs cannot be read, the query is wrong, or `dest` cannot be written"""
    runs = [Path(run).absolute() for run in arguments["runs"]]
    found = results.read_runs(runs)
    hosts = found.hosts
    dest = Path(arguments["dest"]).absolute() if arguments["dest"] else runs[0] if len(runs) == 1 else None
    failed = results.failed_hosts(hosts, arguments["bad_verdicts"])
    lines = [*results.table(hosts), "", results.count_line(hosts)]
    answer: t.Dict[str, t.Any] = {
        "changed": dest is not None,
        "table": lines,
        "counts": results.counts(hosts),
        "hosts": [result.host for result in hosts],
        "failed_hosts": failed,
        "dest": None if dest is None else str(dest),
        "warnings": list(found.problems),
    }
    if arguments["query"]:
        answer.update(_query(hosts, arguments["query"]))
    if dest is not None:
        _write(dest, hosts, answer)
    return answer


def _query(hosts: t.Sequence[results.HostResult], expression: str) -> t.Dict[str, t.Any]:
    """The answer; its hosts, and lines to show: a table where it selects whole records, else the answer itself."""
    answer = query_results(hosts, expression)
    names = {result.host for result in hosts}
    selected = [host for host in selected_hosts(answer) if host in names]
    records = [result for result in hosts if result.data and isinstance(answer, list) and result.data in answer]
    if records and len(records) == len(answer):
        lines = results.table(records)
    else:
        lines = [results.plain(item) for item in (answer if isinstance(answer, list) else [answer])]
    return {"query_result": answer, "query_table": lines, "selected_hosts": selected}


def _write(dest: Path, hosts: t.Sequence[results.HostResult], answer: t.Mapping[str, t.Any]) -> None:
    results.write_file(dest / "table.txt", "\n".join(answer["table"]) + "\n")
    records = (json.dumps(result.data, sort_keys=True) + "\n" for result in hosts if result.data)
    results.write_file(dest / "results.jsonl", "".join(records))
    results.write_limit(dest / results.FAILED_LIMIT, answer["failed_hosts"])
    results.write_limit(dest / results.SELECTED_LIMIT, answer.get("selected_hosts", []))
