# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The pods of this node, from its own files: names for the UIDs of the state file, and which are Guaranteed."""

from __future__ import annotations

import re
import typing as t

from .root import HostRoot, NodeError

POD_LOGS = "/var/log/pods"
CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified")

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z|[0-9a-f]{32}\Z")
_LOG_DIRECTORY = re.compile(r"(?P<namespace>[^_]+)_(?P<name>[^_]+)_(?P<uid>[^_]+)\Z")
# Burstable and BestEffort pods are one level below; directly below kubepods only Guaranteed ones are.
_GUARANTEED = re.compile(r"(?:kubepods-)?pod(?P<uid>[0-9a-f_-]{32,36})(?:\.slice)?\Z")


def pod_names(root: HostRoot, root_dir: str, uids: t.Iterable[str]) -> t.Mapping[str, str]:
    """`namespace/name` by UID from the log directories; else the host name that the pod was given; else nothing."""
    logged = dict(_logged_pods(root))
    names = {}
    for uid in uids:
        name = logged.get(uid) or _hosts_name(root, root_dir, uid)
        if name is not None:
            names[uid] = name
    return names


def _logged_pods(root: HostRoot) -> t.Iterator[t.Tuple[str, str]]:
    for name in _listdir(root, POD_LOGS):
        match = _LOG_DIRECTORY.match(name)
        if match:
            yield match.group("uid"), match.group("namespace") + "/" + match.group("name")


def _hosts_name(root: HostRoot, root_dir: str, uid: str) -> t.Optional[str]:
    """The last name of the hosts file that the kubelet writes for a pod."""
    if not _UID.match(uid):
        return None
    try:
        lines = root.read_text(f"{root_dir}/pods/{uid}/etc-hosts", errors="replace").splitlines()
    except NodeError:
        return None
    words = [line.split() for line in lines if line and not line.startswith("#")]
    named = [line[-1] for line in words if len(line) == 2 and line[1] != "localhost"]
    return named[-1] if named and not lines[0].startswith("# Kubernetes-managed hosts file (host network)") else None


def guaranteed_pods(root: HostRoot) -> t.Tuple[str, ...]:
    """UIDs of the Guaranteed pods that have a cgroup now."""
    found = set()
    for mount in CGROUPS:
        for parent in ("kubepods", "kubepods.slice"):
            for name in _listdir(root, mount + "/" + parent):
                match = _GUARANTEED.match(name)
                if match:
                    found.add(match.group("uid").replace("_", "-"))
    return tuple(sorted(found))


def _listdir(root: HostRoot, path: str) -> t.Tuple[str, ...]:
    try:
        return root.listdir(path)
    except NodeError:
        return ()
