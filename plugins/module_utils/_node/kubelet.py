# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Which kubelet this node runs: layout, command line, files, version (semantics 6.6, 6.7; design, section 6)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._policy.findings import Finding
from .._policy.release import Release

if t.TYPE_CHECKING:  # pragma: no cover
    from .root import HostRoot

KUBEADM = "kubeadm"
K3S = "k3s"
RKE2 = "rke2"
MICROK8S = "microk8s"
EKS = "eks"
OPENSHIFT = "openshift"
TALOS = "talos"
BOTTLEROCKET = "bottlerocket"
PLAIN = "plain"
PROCESS = "process"
NONE = "none"

MANAGED = (OPENSHIFT, TALOS, BOTTLEROCKET)
"""Layouts whose distribution rewrites what is edited on the node."""


@dataclass(frozen=True)
class KubeletOverrides:
    """What the user knows better than we can find out; None and "" mean: find out."""

    config: t.Optional[str] = None
    config_dir: t.Optional[str] = None
    root_dir: t.Optional[str] = None
    version: t.Optional[str] = None
    known_feature_gates: t.Optional[t.Tuple[str, ...]] = None
    cache_file: t.Optional[str] = None


@dataclass(frozen=True)
class KubeletFacts:
    """The kubelet that the next start on this node would run.

    `argv` is the command line on disk without the binary (from the unit, or from k3s' and RKE2's configuration);
    without a unit it is the running process's. `running_argv` is None where no kubelet runs or cannot be seen.
    `changed_flags` are the flags in which both differ. `known_gates` is None where the binary was not asked; a gate that
    is missing in it is not proven unknown (design, section 6). `sources` says where each attribute comes from.
    """

    layout: str = NONE
    unit: t.Optional[str] = None
    binary: t.Optional[str] = None
    argv: t.Tuple[str, ...] = ()
    environment: t.Mapping[str, str] = field(default_factory=dict)
    config_path: t.Optional[str] = None
    config_dir: t.Optional[str] = None
    root_dir: str = "/var/lib/kubelet"
    version: t.Optional[Release] = None
    known_gates: t.Optional[t.FrozenSet[str]] = None
    running_pid: t.Optional[int] = None
    running_argv: t.Optional[t.Tuple[str, ...]] = None
    changed_flags: t.Tuple[str, ...] = ()
    findings: t.Tuple[Finding, ...] = ()
    sources: t.Mapping[str, str] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        return self.layout != NONE

    @property
    def state_file(self) -> str:
        return self.root_dir.rstrip("/") + "/memory_manager_state"


def find_kubelet(root: HostRoot, overrides: KubeletOverrides = KubeletOverrides()) -> KubeletFacts:
    """Find the kubelet below a root; runs the kubelet's binary (`--version`, `--help`) only if the root is live.

    :raises NodeError: with the path, where a file cannot be read (PermissionMissing) or is no text
    """
    raise NotImplementedError
