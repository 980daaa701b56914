# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Where a node's kubelet takes settings from that outlive the next start and the next upgrade (design, section 6)."""

from __future__ import annotations

import posixpath
import stat
import typing as t
from dataclasses import dataclass

from .kubelet import K3S, KUBEADM, MANAGED, MICROK8S, RKE2, KubeletFacts
from .root import HostRoot, NodeError, NotFound

AUTO = "auto"
DROP_IN = "drop_in"
IN_PLACE = "in_place"
KUBELET_ARG = "kubelet_arg"
PLACES = (AUTO, DROP_IN, IN_PLACE, KUBELET_ARG)

DROP_IN_NAME = "50-kubenode-memory.conf"
KUBELET_ARG_NAME = "50-kubenode-memory.yaml"
PATCH_NAME = "kubeletconfiguration50-kubenode-memory+merge.json"
PATCHES = "/etc/kubernetes/patches"


class NoPlace(NodeError):
    """There is no file that settings could be written to; the message says why, and what to do instead."""


@dataclass(frozen=True)
class Place:
    """A file of the node that the kubelet reads. `patch` is the file that tells kubeadm the same for an upgrade."""

    kind: str
    path: str
    patch: t.Optional[str] = None

    @property
    def is_flags(self) -> bool:
        return self.kind == KUBELET_ARG


def choose_place(
    root: HostRoot, kubelet: KubeletFacts, asked: str = AUTO, name: str = DROP_IN_NAME, patches: str = PATCHES
) -> Place:
    """The place that was asked for, or the best one that there is.

    :param name: file name of the drop-in
    :param patches: directory of kubeadm's patches; "" for no patch
    :raises NoPlace: with the reason
    """
    _require_editable(kubelet)
    kind = _best(kubelet) if asked == AUTO else asked
    if kind == DROP_IN:
        return _drop_in(root, kubelet, name)
    if kind == KUBELET_ARG:
        return _kubelet_arg(kubelet)
    if kubelet.config_path is None:
        instead = "use the place auto" if kubelet.layout in (K3S, RKE2) else "start it with one of them"
        raise NoPlace(f"the kubelet is started without --config and --config-dir, so that it reads no file; {instead}")
    patch = posixpath.join(patches, PATCH_NAME) if patches and kubelet.layout == KUBEADM else None
    return Place(IN_PLACE, kubelet.config_path, patch)


def _require_editable(kubelet: KubeletFacts) -> None:
    if kubelet.layout in MANAGED:
        raise NoPlace(
            f"{kubelet.layout} manages the kubelet's configuration and would undo an edit on the node; set it where "
            f"{kubelet.layout} takes it from"
        )
    if kubelet.layout == MICROK8S:
        raise NoPlace(
            "MicroK8s gives its kubelet flags only; write them to /var/snap/microk8s/current/args/kubelet by hand"
        )


def _best(kubelet: KubeletFacts) -> str:
    if kubelet.config_dir:
        return DROP_IN
    return KUBELET_ARG if kubelet.layout in (K3S, RKE2) else IN_PLACE


def _drop_in(root: HostRoot, kubelet: KubeletFacts, name: str) -> Place:
    directory = kubelet.config_dir
    if not directory:
        instead = KUBELET_ARG if kubelet.layout in (K3S, RKE2) else IN_PLACE
        raise NoPlace(f"the kubelet is started without --config-dir and reads no drop-in; use the place {instead}")
    if not name.endswith(".conf") or "/" in name:
        raise NoPlace(f"the drop-in's name is {name!r}; the kubelet reads files whose names end with .conf only")
    try:
        is_link = stat.S_ISLNK(root.stat(directory, follow=False).st_mode)
    except NotFound:
        is_link = False
    if is_link and not directory.endswith("/"):
        raise NoPlace(
            f"{directory} is a symbolic link, which the kubelet skips without a word; end --config-dir with a slash, "
            "or make it a directory"
        )
    return Place(DROP_IN, posixpath.join(directory, name))


def _kubelet_arg(kubelet: KubeletFacts) -> Place:
    if kubelet.layout not in (K3S, RKE2):
        raise NoPlace(f"kubelet-arg belongs to k3s and RKE2; this node's kubelet is started by {kubelet.layout}")
    return Place(KUBELET_ARG, f"/etc/rancher/{kubelet.layout}/config.yaml.d/{KUBELET_ARG_NAME}")
