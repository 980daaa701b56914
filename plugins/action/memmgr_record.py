# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes on the controller what became of a host. The documentation is the module's of the same name."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.memory.plugins.plugin_utils._results import (
    NOT_STARTED,
    ResultsError,
    append_record,
    start_run,
)

NOT_STARTED_YET = {"verdict": None, "status": NOT_STARTED}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Optional[str] = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: t.Dict[str, t.Any] = super().run(tmp, task_vars)
        _rest, arguments = t.cast(t.Any, self).validate_argument_spec(
            {
                "run_dir": {"type": "path", "required": True},
                "result": {"type": "dict"},
                "results": {"type": "dict"},
                "pending": {"type": "list", "elements": "str", "default": []},
                "hosts": {"type": "list", "elements": "str"},
            },
            required_one_of=[["result", "results", "hosts"]],
        )
        host = str((task_vars or {})["inventory_hostname"])
        try:
            result.update(write(Path(arguments["run_dir"]).absolute(), host, arguments))
        except ResultsError as error:
            raise AnsibleActionFail(str(error)) from None
        return result


def write(run: Path, host: str, arguments: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """:raises ResultsError: if the run's directory cannot be written"""
    time = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    written: t.Dict[str, t.Any] = {"changed": False, "run_dir": str(run)}
    if arguments["hosts"] is not None:
        written["changed"] = start_run(run, arguments["hosts"], time)
    if arguments["result"] is not None:
        written.update(changed=True, path=str(write_record(run, host, arguments["result"], time)))
    if arguments["results"] is not None:
        results = arguments["results"]
        pending = set(arguments["pending"])
        for name, result in results.items():
            write_record(run, name, {**result, **(NOT_STARTED_YET if name in pending else {})}, time)
        written.update(changed=bool(results), summaries={name: one.get("summary") for name, one in results.items()})
    return written


def write_record(run: Path, host: str, result: t.Mapping[str, t.Any], time: str) -> Path:
    return append_record(run, host, {"status": "failed", **result, "time": time})
