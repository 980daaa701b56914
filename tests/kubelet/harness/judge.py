# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own judgement of a node directory: what the module memmgr_validate answers for it."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubenode.memory.plugins.module_utils._arguments import node_arguments, request_from
from ansible_collections.kubenode.memory.plugins.module_utils._preflight import validate
from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_report

from .node import NodeDirectory

STOPS_START = "stops_start"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A finding, as far as it is compared with the kubelet."""

    code: str
    severity: str
    kubelet_error: str | None


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What we say about the next start; `kubelet_errors` are the texts with which we expect it to stop."""

    verdict: str
    will_start: bool | None
    kubelet_errors: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def deciding(self) -> list[Finding]:
        """The findings that stop the start."""
        return [finding for finding in self.findings if finding.severity == STOPS_START]

    def __str__(self) -> str:
        return f"{self.verdict}, will_start {self.will_start}: " + "; ".join(
            f"{finding.code} ({finding.kubelet_error})" for finding in self.deciding
        )


def judge(directory: NodeDirectory, release: str) -> Judgement:
    """Judge the tree with nothing but its root and the version: the rest must be found."""
    defaults = {name: argument.get("default") for name, argument in node_arguments().items()}
    given = {"host_root": str(directory.root), "kubelet_version": release}
    return parse(present_report(validate(request_from({**defaults, **given}))))


def parse(result: t.Mapping[str, t.Any]) -> Judgement:
    """A judgement from the module's result."""
    findings = tuple(Finding(f["code"], f["severity"], f.get("kubelet_error")) for f in result["findings"])
    return Judgement(result["verdict"], result["will_start"], tuple(result["kubelet_errors"]), findings)
