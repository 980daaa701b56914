# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connection to a machine of tests/maintenance: its namespaces, as long as it is up."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = r"""
name: machine
short_description: Runs commands in the namespaces of a machine of these tests
description:
  - Enters the namespaces of the process whose id is in the machine's directory. Without that file the machine is down.
author:
  - The kubenode.memory authors (@kubenode)
options:
  directory:
    description: Directory of the machine.
    type: path
    required: true
    vars:
      - name: machine_directory
"""

KILLED = (-9, 137)


class Connection(ConnectionBase):
    transport = "machine"
    has_pipelining = True

    def _connect(self) -> Connection:
        return self

    def close(self) -> None:
        """Nothing is kept open."""

    def reset(self) -> None:
        """Nothing is kept open."""

    def exec_command(
        self, cmd: str, in_data: t.Optional[bytes] = None, sudoable: bool = True
    ) -> t.Tuple[int, bytes, bytes]:
        directory = pathlib.Path(self.get_option("directory"))
        try:
            pid = (directory / "pid").read_text(encoding="ascii").strip()
        except OSError:
            raise AnsibleConnectionFailure(f"{directory.name} is down") from None
        path = f"{directory}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["nsenter", f"--target={pid}", "--mount", "--pid", "--uts", "env", f"PATH={path}"]
        done = subprocess.run(
            [*enter, f"FLEET_UNITS={directory}/units", "/bin/sh", "-c", cmd],
            input=in_data or b"",
            capture_output=True,
            check=False,
        )
        if done.returncode in KILLED or (done.returncode and not (directory / "pid").exists()):
            raise AnsibleConnectionFailure(f"{directory.name} went down")
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        self.exec_command(f"cat >'{out_path}'", pathlib.Path(in_path).read_bytes())

    def fetch_file(self, in_path: str, out_path: str) -> None:
        _code, content, _errors = self.exec_command(f"cat '{in_path}'")
        pathlib.Path(out_path).write_bytes(content)
