# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook with an inventory of the test's nodes."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

from kubelet.harness import apiserver as api

from . import nodes

ROOT = nodes.HERE.parents[1]
LOGS = ROOT / ".work/logs/systemd"
SECONDS = 1200
IN_CONTAINERS = {
    "ansible_connection": "node_namespaces",
    "ansible_python_interpreter": "/usr/bin/python3",
    "memmgr_become": False,
}
ENVIRONMENT = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_PIPELINING": "1",
    "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "0",
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_CONNECTION_PLUGINS": str(nodes.HERE / "connection"),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """What a run of ansible-playbook led to."""

    code: int
    output: str
    report: pathlib.Path

    def results(self) -> dict[str, dict[str, t.Any]]:
        """The last record of each host."""
        files = sorted(self.report.glob("hosts/*.jsonl"))
        return {file.stem: json.loads(file.read_text().splitlines()[-1]) for file in files}

    def messages(self, host: str) -> str:
        """The texts with which tasks of a host failed."""
        found = re.findall(rf"^(?:fatal|failed): \[{re.escape(host)}\].*? => (\{{.*\}})$", self.output, re.MULTILINE)
        return "\n".join(str(json.loads(one)["msg"]) for one in found)

    def limit(self) -> list[str]:
        """The hosts in failed.limit."""
        file = self.report / "failed.limit"
        return file.read_text().split() if file.exists() else []

    def recap(self, host: str) -> dict[str, int]:
        line = next(line for line in reversed(self.output.splitlines()) if line.split(":")[0].strip() == host)
        return {name: int(number) for name, number in (word.split("=") for word in line.split(":", 1)[1].split())}


@dataclasses.dataclass(frozen=True)
class Controller:
    """Runs playbooks below `directory`, where the inventory and the reports are. `path` comes first on PATH."""

    directory: pathlib.Path
    collections: str = ""
    path: str = ""

    def playbook(self, name: str, *arguments: str, **variables: t.Any) -> Run:
        """Run a playbook of the collection, or a file: of this directory, or with its whole path."""
        number = len(list(self.directory.glob("run-*")))
        report = self.directory / f"run-{number}"
        report.mkdir()
        chosen = str(nodes.HERE / name) if name.endswith(".yml") else "kubenode.memory." + name
        values = {"memmgr_report_dir": str(self.directory), "memmgr_report_run": report.name, **variables}
        command = ["ansible-playbook", chosen, "--inventory", str(self.directory / "inventory.json")]
        paths = [os.environ.get("ANSIBLE_COLLECTIONS_PATH", str(ROOT / ".work/collections")), self.collections]
        done = subprocess.run(
            [*command, "--extra-vars", json.dumps(values), *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                **ENVIRONMENT,
                "ANSIBLE_COLLECTIONS_PATH": ":".join(filter(None, paths)),
                "PATH": ":".join(filter(None, [self.path, os.environ["PATH"]])),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        LOGS.mkdir(parents=True, exist_ok=True)
        (LOGS / f"{self.directory.name}-{number}-{pathlib.Path(name).name}.txt").write_text(done.stdout)
        return Run(done.returncode, done.stdout, report)


def write_inventory(directory: pathlib.Path, hosts: t.Mapping[str, t.Mapping[str, t.Any]], **shared: t.Any) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))


def collections_path() -> str:
    """Where the collections are that the tests need beside this one."""
    command = [str(nodes.HERE / "collections.sh")]
    env = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def for_containers(directory: pathlib.Path, server: api.Api, workers: t.Sequence[nodes.Node]) -> Controller:
    """A controller that enters the nodes' namespaces, and reaches the API as memmgr_api says."""
    hosts = {worker.name: {"memmgr_node_name": worker.named} for worker in workers}
    write_inventory(
        directory,
        hosts,
        **IN_CONTAINERS,
        memmgr_api={
            "host": f"https://127.0.0.1:{server.port}",
            "api_key": api.TOKEN,
            "validate_certs": False,
        },
        kubelet_restart_stable_seconds=5,
        kubelet_restart_timeout=60,
    )
    return Controller(directory, collections_path())
