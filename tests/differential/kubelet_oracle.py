# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of the oracle, the kubelet's own memory manager as a long-running process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

BUILD_SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "build_kubernetes.py"
RELEASES = ("v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2")

Json = t.Dict[str, t.Any]


class OracleError(Exception):
    """The oracle could not answer; that is a defect of the tests, never a verdict."""


def build_oracle(release: str) -> str:
    """Path of the oracle of a release, built if need be."""
    command = [sys.executable, str(BUILD_SCRIPT), "oracle", release]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class Oracle:
    """One oracle process. Requests and answers are those of oracle/README.md."""

    def __init__(self, binary: str) -> None:
        # A third of its time would go into collecting garbage.
        environment = {**os.environ, "GOGC": "800"}
        self._process = subprocess.Popen(
            [binary],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.communicate()

    def ask(self, requests: t.Sequence[Json]) -> t.List[Json]:
        """The answers to a batch of requests, in their order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OracleError(f"the oracle ended with exit code {self._process.wait()}")
        answers: t.List[Json] = json.loads(line)
        for request, answer in zip(requests, answers):
            if "oracle_error" in answer:
                raise OracleError("{}\nrequest: {}".format(answer["oracle_error"], json.dumps(request)))
        return answers

    def gates(self) -> t.List[Json]:
        """Every gate of this release's kubelet: name, stage, default, locked."""
        return t.cast(t.List[Json], self.ask([{"type": "gates"}])[0])
