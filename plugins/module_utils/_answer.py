# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What module `memmgr_validate` returns of a node, with no more code than that node needs."""

from __future__ import annotations

import typing as t

from ._node.boot import read_boot_facts
from ._node.presence import may_have_kubelet
from ._node.root import HostRoot
from ._node.settings import guard_tolerance
from ._request import Request

# What `present_report` makes of such a node, but for its boot.
_WITHOUT_KUBELET: t.Mapping[str, t.Any] = {
    "verdict": "not_applicable",
    "will_start": None,
    "summary": "not_applicable: no_kubelet",
    "findings": [
        {
            "code": "no_kubelet",
            "severity": "info",
            "message": "Nothing to judge: there is no kubelet on this node.",
        }
    ],
    "kubelet_error": None,
    "kubelet_errors": [],
    "policy": "None",
    "bound": {"bytes": 0, "source": "off", "reason": None, "kernel_image_bytes": None},
    "drift_bytes": {},
    "drift_total_bytes": 0,
    "fit_margins": [],
    "hints": [],
    "state_file": {
        "path": "/var/lib/kubelet/memory_manager_state",
        "exists": False,
        "format": None,
        "policy": None,
        "sha256": None,
        "size": None,
    },
    "numa_nodes": [],
    "groups": [],
    "assignments": [],
    "tolerance": {"value": "auto", "source": "default"},
    "kubelet": {
        "version": None,
        "rules": "unknown",
        "layout": "none",
        "unit": None,
        "config": None,
        "config_dir": None,
        "root_dir": "/var/lib/kubelet",
        "node_name": None,
        "running": False,
    },
}


def answer(request: Request) -> t.Dict[str, t.Any]:
    """Judge a node.

    :raises NodeError: with the path, if something cannot be read (PermissionMissing: without the rights)
    :raises InputError: if an argument cannot be used
    """
    root = HostRoot(request.host_root)
    if request == Request(request.host_root) and guard_tolerance(root) is None and not may_have_kubelet(root):
        return without_kubelet(root)
    # The judgement is nine tenths of the code. Python compiles it at each call of the module, which takes longer than
    # the call itself: only a node that may have a kubelet pays for that.
    from ._preflight import validate  # pylint: disable=import-outside-toplevel
    from ._present_report import present_report  # pylint: disable=import-outside-toplevel

    return present_report(validate(request))


def without_kubelet(root: HostRoot) -> t.Dict[str, t.Any]:
    """The answer of a node on which nothing is set and no kubelet is found."""
    boot = read_boot_facts(root)
    facts = {"boot_id": boot.boot_id, "kernel": boot.kernel_release, "architecture": boot.architecture}
    return {**_WITHOUT_KUBELET, "boot": {name: fact.value for name, fact in facts.items()}}
