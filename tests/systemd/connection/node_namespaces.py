# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection to a node of the tests: nsenter takes 6 ms, `podman exec` 300.

Also to the machines of tests/maintenance, which are no containers and go down while something runs on them.
"""

from __future__ import annotations

import pathlib
import shlex
import subprocess
import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: node_namespaces
short_description: Runs commands in the namespaces of a container
description:
  - Enters all namespaces of a container on the controller.
author: The kubenode.memory authors
options:
  remote_addr:
    description: The name of the container.
    type: str
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
  pid_file:
    description: File with the id of the first process, by default that of the container. Without it the node is down.
    type: path
    vars:
      - name: node_pid_file
  variables:
    description: What commands find in their environment beside or in place of the usual, as NAME=VALUE.
    type: list
    elements: str
    default: []
    vars:
      - name: node_variables
"""

PID_FILES = pathlib.Path("/run/kubenode-memory-nodes")
ENVIRONMENT = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8")


def pid_file(name: str) -> pathlib.Path:
    """Has the id of a container's first process; `podman run --pidfile` writes it."""
    PID_FILES.mkdir(exist_ok=True)
    return PID_FILES / f"{name}.pid"


def enter(name: str) -> t.List[str]:
    """What comes before a command that is to run in a container.

    :raises OSError: if there is none of that name
    """
    return enter_process(pid_file(name).read_text(encoding="ascii"))


def enter_process(pid: str, variables: t.Iterable[str] = ()) -> t.List[str]:
    return ["nsenter", "--target", pid.strip(), "--all", "env", "--ignore-environment", *ENVIRONMENT, *variables]


class Connection(ConnectionBase):
    """As the connection `chroot` of community.general, with namespaces in its place."""

    transport = "node_namespaces"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(
        self, cmd: str, in_data: t.Optional[bytes] = None, sudoable: bool = True
    ) -> t.Tuple[int, bytes, bytes]:
        return self._run(["/bin/sh", "-c", cmd], in_data or b"")

    def put_file(self, in_path: str, out_path: str) -> None:
        with open(in_path, "rb") as file:
            self._succeed(f"cat >{shlex.quote(out_path)}", file.read())

    def fetch_file(self, in_path: str, out_path: str) -> None:
        content = self._succeed(f"cat {shlex.quote(in_path)}", b"")
        with open(out_path, "wb") as file:
            file.write(content)

    def close(self) -> None:
        self._connected = False

    def reset(self) -> None:
        """After a reboot of the node; nothing is kept open."""

    def _succeed(self, command: str, stdin: bytes) -> bytes:
        code, stdout, stderr = self._run(["/bin/sh", "-c", command], stdin)
        if code:
            raise AnsibleConnectionFailure(f"{command}: {stderr.decode(errors='replace')}")
        return stdout

    def _run(self, command: t.List[str], stdin: bytes) -> t.Tuple[int, bytes, bytes]:
        pid = self._pid()
        if not pid:
            raise AnsibleConnectionFailure("the node is down")
        variables = self.get_option("variables")  # type: ignore[no-untyped-call]
        enter = enter_process(pid, variables)
        done = subprocess.run([*enter, *command], input=stdin, capture_output=True, check=False)
        if done.returncode and self._pid() != pid:
            raise AnsibleConnectionFailure("the node went down")
        return done.returncode, done.stdout, done.stderr

    def _pid(self) -> str:
        """The id of the node's first process, or nothing while it is down."""
        name, file = (self.get_option(option) for option in ("remote_addr", "pid_file"))  # type: ignore[no-untyped-call]
        try:
            return pathlib.Path(file or pid_file(name)).read_text(encoding="ascii")
        except FileNotFoundError:
            return ""
