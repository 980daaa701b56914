# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Where a kubelet can be found at all: the names of units, files and processes, and whether any of them is there."""

from __future__ import annotations

import posixpath

from .processes import read_kubelets
from .root import HostRoot, NotFound

KUBELET_UNIT = "kubelet.service"
K3S_UNITS = ("k3s.service", "k3s-agent.service")
RKE2_UNITS = ("rke2-server.service", "rke2-agent.service")
MICROK8S_UNITS = ("snap.microk8s.daemon-kubelite.service", "snap.microk8s.daemon-kubelet.service")
MICROK8S_ARGUMENTS = "/var/snap/microk8s/current/args/kubelet"

UNITS = (KUBELET_UNIT, *K3S_UNITS, *RKE2_UNITS, *MICROK8S_UNITS)
"""Every unit that may run a kubelet."""

SEARCH_PATH = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
"""Where systemd looks for units, the strongest first."""


def may_have_kubelet(root: HostRoot) -> bool:
    """False only where `find_kubelet` finds none; it takes little code to say so.

    :raises NodeError: where a directory cannot be read
    """
    return _has_unit(root) or root.exists(MICROK8S_ARGUMENTS) or bool(read_kubelets(root).kubelets)


def _has_unit(root: HostRoot) -> bool:
    return any(_exists(root, posixpath.join(directory, name)) for directory in SEARCH_PATH for name in UNITS)


def _exists(root: HostRoot, path: str) -> bool:
    """Whether there is anything of this name, be it a link that leads nowhere."""
    try:
        root.stat(path, follow=False)
    except NotFound:
        return False
    return True
