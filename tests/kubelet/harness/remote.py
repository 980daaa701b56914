# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose kubelet is a systemd unit, wherever it runs: what its unit, its log and its state file say."""

from __future__ import annotations

import abc
import json
import typing as t

from .process import until

STATE_FILE = "/var/lib/kubelet/memory_manager_state"


class KubeletNode(abc.ABC):
    """What there is to ask of such a node, once it is said how a command is run on it."""

    @abc.abstractmethod
    def exec(self, *command: str, check: bool = True, stdin: str = "") -> str:
        """Run a command as root and return its standard output; with `check` it has to succeed."""

    def read(self, path: str) -> str:
        return self.exec("cat", path)

    @property
    def state(self) -> dict[str, t.Any]:
        """The memory manager's state file."""
        found: dict[str, t.Any] = json.loads(self.read(STATE_FILE))
        return found

    def unit(self, *properties: str) -> dict[str, str]:
        """Properties of the kubelet's unit."""
        text = self.exec("systemctl", "show", "--property=" + ",".join(properties), "kubelet.service")
        return dict(line.split("=", 1) for line in text.splitlines())

    def systemctl(self, *command: str) -> None:
        self.exec("systemctl", *command)

    def log(self) -> str:
        return self.exec("journalctl", "--unit=kubelet", "--no-pager", "--output=cat")

    def additions(self) -> str:
        """What the log of the running kubelet says of pods that it was given."""
        invocation = self.unit("InvocationID")["InvocationID"]
        log = self.exec("journalctl", "--no-pager", "--output=cat", f"_SYSTEMD_INVOCATION_ID={invocation}")
        return "\n".join(line for line in log.splitlines() if "SyncLoop ADD" in line)

    def await_crash_loop(self, seconds: float = 60.0) -> None:
        """Wait until systemd has started the kubelet for the second time in vain."""
        before = int(self.unit("NRestarts")["NRestarts"])
        until("the kubelet crash-loops", lambda: int(self.unit("NRestarts")["NRestarts"]) >= before + 2, seconds)
