# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade by the real kubeadm rewrites the kubelet's file: what survives it, and what the next audit says."""

from __future__ import annotations

import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml
from configure_node import CONFIG, HEADER, ConfiguredNode
from kubelet.harness import apiserver as api, lab
from kubelet.harness.kubelet import ENTER, binary
from kubelet.harness.session import skip_without

from ansible_collections.kubenode.memory.plugins.module_utils._preflight import validate

# One API server for all of them.
pytestmark = pytest.mark.xdist_group("kubeadm")

RELEASE = "v1.37.2"
NODE = "worker-1"
HARD = "evictionHard/memory.available"
SETTINGS = {"kernelMemcgNotification": True, HARD: "300Mi"}
CLUSTER = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.2\n"
KUBELET = HEADER + "maxPods: 50\nfeatureGates: {MemoryQoS: false}\n"
DROP_INS = "/etc/kubernetes/kubelet.conf.d"


@pytest.fixture(scope="module")
def server(lab_directory: Path) -> t.Iterator[api.Api]:
    """A cluster as kubeadm left it: its two ConfigMaps, and the node."""
    skip_without(lab.missing_api_capabilities())
    _certificate, key = lab.certificate(lab_directory)
    with api.apiserver(lab_directory / "api", key) as running:
        for name, data in (
            ("kubeadm-config", {"ClusterConfiguration": CLUSTER}),
            ("kubelet-config", {"kubelet": KUBELET}),
        ):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            running.call("POST", "/api/v1/namespaces/kube-system/configmaps", body)
        running.call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        yield running


class Upgraded(ConfiguredNode):
    """A node that kubeadm can upgrade: it sees the tree's /etc and /var/lib, and the node's name as its own."""

    def __init__(self, base: Path, server: api.Api, flags: str = "") -> None:
        super().__init__(base, HEADER, flags)
        self.tree.write("/etc/kubernetes/kubelet.conf", server.kubeconfig())
        self.tree.write("/var/lib/kubelet/instance-config.yaml", "containerRuntimeEndpoint: unix:///run/x.sock\n")

    def upgrade(self, *flags: str) -> str:
        """What `kubeadm upgrade node` does with the kubelet's configuration."""
        # its backups are named by the second, and two of one second are an error
        shutil.rmtree(self.tree.base / "etc/kubernetes/tmp", ignore_errors=True)
        script = f"hostname {NODE}; " + ENTER.format(paths="/etc /var/lib")
        enter = [
            "unshare",
            "--mount",
            "--uts",
            "--propagation",
            "private",
            "sh",
            "-c",
            script,
            "sh",
            str(self.tree.base),
        ]
        kubeadm = [binary("kubeadm", RELEASE), "upgrade", "node", "phase", "kubelet-config", *flags]
        done = subprocess.run([*enter, *kubeadm], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def value(self) -> t.Dict[str, t.Any]:
        found: t.Dict[str, t.Any] = yaml.safe_load(self.text)
        return found

    def lost(self) -> t.List[str]:
        """What an audit finds lost."""
        findings = validate(self.request).evaluation.findings
        return [one.field or "" for one in findings if one.code == "settings_lost"]


@pytest.fixture
def node(tmp_path: Path, server: api.Api) -> Upgraded:
    """Joined by kubeadm, and configured in place."""
    joined = Upgraded(tmp_path, server)
    joined.upgrade()
    assert joined.value["maxPods"] == 50
    assert joined.set(**SETTINGS).written
    assert joined.value["kernelMemcgNotification"] is True
    return joined


def is_in_force(value: t.Mapping[str, t.Any]) -> bool:
    return bool(
        value.get("kernelMemcgNotification") is True
        and value.get("evictionHard", {}).get("memory.available") == "300Mi"
        and len(value["evictionHard"]) == 5
    )


def test_with_patches_the_settings_survive(node: Upgraded) -> None:
    said = node.upgrade("--patches", "/etc/kubernetes/patches")
    assert "kubeletconfiguration50-kubenode-memory+merge.json" in said
    assert node.value["maxPods"] == 50
    assert node.value["featureGates"] == {"MemoryQoS": False}
    assert is_in_force(node.value)
    assert node.lost() == []
    assert not node.set(**SETTINGS).decision.changed
    node.give_back()
    assert "kernelMemcgNotification" not in node.value
    assert "evictionHard" not in node.value


def test_without_patches_the_next_audit_reports_the_loss(node: Upgraded) -> None:
    node.upgrade()
    assert not node.value.get("kernelMemcgNotification")
    (fields,) = node.lost()
    assert set(fields.split(", ")) >= {"kernelMemcgNotification", "evictionHard.memory.available"}
    assert node.set(**SETTINGS).written
    assert node.lost() == []
    assert is_in_force(node.value)


def test_a_drop_in_survives(tmp_path: Path, server: api.Api) -> None:
    node = Upgraded(tmp_path, server, f"--config={CONFIG} --config-dir={DROP_INS}")
    node.upgrade()
    assert node.set(**SETTINGS).written
    drop_in = node.path(f"{DROP_INS}/50-kubenode-memory.conf")
    before = drop_in.read_text()
    node.upgrade()
    assert drop_in.read_text() == before
    assert is_in_force(yaml.safe_load(before))
    assert node.lost() == []
