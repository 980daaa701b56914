# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The arguments with which every module names a node, and the request that they make."""

from __future__ import annotations

import typing as t

from ._node.overrides import KubeletOverrides
from ._request import Request


def node_arguments() -> t.Dict[str, t.Dict[str, t.Any]]:
    """Argument spec of the fragment `kubenode.memory._node`."""
    return {
        "host_root": {"type": "path", "default": "/"},
        "tolerance": {"type": "str"},
        "state_file": {"type": "path"},
        "kubelet_config": {"type": "path"},
        "kubelet_config_dir": {"type": "path"},
        "kubelet_root_dir": {"type": "path"},
        "kubelet_version": {"type": "str"},
        "known_feature_gates": {"type": "list", "elements": "str"},
        "candidate_config": {"type": "str"},
    }


def request_from(params: t.Mapping[str, t.Any]) -> Request:
    """The request that a module's parameters make."""
    gates = params["known_feature_gates"]
    overrides = KubeletOverrides(
        config=params["kubelet_config"],
        config_dir=params["kubelet_config_dir"],
        root_dir=params["kubelet_root_dir"],
        version=params["kubelet_version"],
        known_feature_gates=None if gates is None else tuple(gates),
    )
    return Request(
        host_root=params["host_root"],
        tolerance=params["tolerance"],
        state_file=params["state_file"],
        overrides=overrides,
        candidate_config=params["candidate_config"],
    )
