# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One API server with RBAC for the session; its user has the shipped ClusterRole and nothing else."""

from __future__ import annotations

import pathlib
import sys
import typing as t

import pytest
import yaml
from kubelet.harness import apiserver as api, host, lab
from kubelet.harness.process import until
from kubelet.harness.session import fail_unnamed_skips, skip_without
from systemd import controller

from . import machines

PROGRAMS = ("etcd", "openssl", "setpriv", "unshare", "nsenter", "go")
USER, TOKEN = "ansible", "the-token-of-the-controller"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_ROLE = controller.ROOT / "roles/node_reboot/files/cluster_role.yml"


@pytest.fixture(scope="session")
def server() -> t.Iterator[api.Api]:
    skip_without(host.missing_for_root(PROGRAMS))
    with lab.directory() as root:
        _rest, key = lab.certificate(root)
        with api.apiserver(root / "api", key, "RBAC", {USER: TOKEN}) as running:
            role = yaml.safe_load(CLUSTER_ROLE.read_text())
            running.call("POST", f"{RBAC}/clusterroles", role)
            running.call("POST", f"{RBAC}/clusterrolebindings", binding(role["metadata"]["name"]))
            user = api.Api(running.port, TOKEN)
            until("the user may discover", lambda: user.find("/apis/policy/v1") is not None)
            until("leases have a place", lambda: running.find("/api/v1/namespaces/kube-node-lease") is not None)
            yield running


def binding(role: str) -> api.Document:
    return {
        "metadata": {"name": "ansible"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }


def api_variables(server: api.Api) -> dict[str, t.Any]:
    return {"host": f"https://127.0.0.1:{server.port}", "api_key": TOKEN, "validate_certs": False}


def make_controller(
    directory: pathlib.Path,
    server: api.Api,
    fleet: t.Iterable[machines.Machine],
    own: t.Mapping[str, t.Mapping[str, t.Any]],
) -> controller.Controller:
    """A controller that reaches the machines, and the API with the user's token; with variables of some hosts' own."""
    controller.write_inventory(
        directory,
        {machine.name: {**machine.variables(), **own.get(machine.name, {})} for machine in fleet},
        ansible_connection="node_namespaces",
        ansible_python_interpreter=sys.executable,
        memmgr_become=False,
        memmgr_api=api_variables(server),
        memmgr_validate_kubelet_version="v1.34.4",
        kubelet_restart_healthz_url="",
        kubelet_restart_stable_seconds=0,
        node_reboot_test_command="true",
        node_reboot_timeout=60,
        node_reboot_ready_timeout=30,
        node_reboot_api_timeout=5,
        node_reboot_drain_timeout=20,
    )
    return controller.Controller(directory, controller.collections_path())


def pytest_sessionfinish(session: pytest.Session) -> None:
    fail_unnamed_skips(session, ())
