# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role memcg_notifier on a real kubelet that is a systemd unit, on this machine's control groups."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml
from kubelet.cases import V137

from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup import read_cgroups
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import obstacle

from . import controller, nodes

CONFIG = "/var/lib/kubelet/config.yaml"
WORKS = obstacle(read_cgroups(HostRoot())) is None


@pytest.fixture
def worker(lab_root: pathlib.Path) -> t.Iterator[nodes.Node]:
    """A node of its own without an API, so that nothing but its unit is restarted."""
    image = nodes.run(str(nodes.HERE / "image.sh")).strip()
    name = f"notifier-{lab_root.name[-4:].lower().replace('_', 'x')}"
    with nodes.node(lab_root, image, name, V137, 4, None) as this:
        this.systemctl("start", "kubelet.service")
        yield this


def test_the_role_writes_restarts_and_verifies_once(worker: nodes.Node, lab_root: pathlib.Path) -> None:
    """On cgroup v1 the setting is switched on after a real event; on v2 there is nothing to do."""
    directory = lab_root / "notifier"
    hosts: t.Dict[str, t.Dict[str, str]] = {worker.name: {}}
    controller.write_inventory(directory, hosts, **controller.IN_CONTAINERS, kubelet_restart_stable_seconds=3)
    ansible = controller.Controller(directory, controller.collections_path())
    before = worker.unit("InvocationID")

    wanted = {"action": "switched_on", "verified": True, "path": CONFIG, "restart_needed": False}
    first = ansible.playbook("notifier.yml", wanted=wanted if WORKS else {"action": "none"})
    assert first.code == 0, first.output
    assert yaml.safe_load(worker.read(CONFIG)).get("kernelMemcgNotification", False) is WORKS
    after = worker.unit("InvocationID")
    assert (after != before) is WORKS

    second = ansible.playbook("notifier.yml", wanted={"action": "none", "restart_needed": False})
    assert second.code == 0, second.output
    assert second.recap(worker.name)["changed"] == 0
    assert worker.unit("InvocationID") == after
