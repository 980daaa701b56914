# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on nodes that are directories: the unit that each really has, other settings, and nothing left behind."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import typing as t

import pytest
import yaml
from kubelet.harness.host import plain_python
from systemd import controller

pytestmark = pytest.mark.xdist_group("install")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "playbooks/fleet/nodes"
EXECUTABLE = "/usr/local/sbin/kubenode-memory-guard"
DROP_IN = "50-kubenode-memory-guard.conf"
# The unit that starts the kubelet of each host; none where the guard has nothing to do.
UNITS = {"kubelet": "kubelet.service", "agent": "rke2-agent.service", "none": None}


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Nodes below a directory, by name."""

    roots: t.Mapping[str, pathlib.Path]
    ansible: controller.Controller

    def install(self, *arguments: str, **variables: t.Any) -> controller.Run:
        run = self.ansible.playbook("install_guard", *arguments, memmgr_serial=["100%"], **variables)
        assert run.code == 0, run.output
        return run

    def files(self) -> dict[str, list[str]]:
        return {host: sorted(map(str, root.rglob("*"))) for host, root in self.roots.items()}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    directory = tmp_path_factory.mktemp("fleet")
    shutil.copytree(SAMPLES / "ran-muc-01", directory / "kubelet")
    shutil.copytree(SAMPLES / "cp-ber-01", directory / "none")
    lay_out_rke2_agent(directory / "agent")
    roots = {host: directory / host for host in UNITS}
    for root in roots.values():
        for name in ("etc/systemd/system", "usr/local/sbin"):
            (root / name).mkdir(parents=True, exist_ok=True)
    controller.write_inventory(
        directory / "controller",
        {host: {"memmgr_validate_host_root": str(root)} for host, root in roots.items()},
        ansible_connection="local",
        ansible_python_interpreter=plain_python(directory),
        memmgr_become=False,
        memmgr_validate_kubelet_version="v1.36.2",
    )
    return Fleet(roots, controller.Controller(directory / "controller"))


def lay_out_rke2_agent(root: pathlib.Path) -> None:
    """A node of RKE2 from one of k3s: what they differ in are names."""
    shutil.copytree(SAMPLES / "ran-ham-01", root)
    (root / "etc/rancher/k3s").rename(root / "etc/rancher/rke2")
    (root / "var/lib/rancher/k3s").rename(root / "var/lib/rancher/rke2")
    unit = root / "etc/systemd/system/k3s.service"
    unit.write_text(unit.read_text().replace("k3s server", "rke2 agent"))
    unit.rename(unit.with_name("rke2-agent.service"))


def lay_out_foreign_files(root: pathlib.Path) -> list[pathlib.Path]:
    """Another drop-in, other metrics, and what kubelet_memory_config keeps: not the guard's to remove."""
    names = (
        "etc/systemd/system/kubelet.service.d/20-other.conf",
        "var/lib/node_exporter/other.prom",
        "var/lib/kubenode-memory/configuration.json",
    )
    for name in names:
        (root / name).touch()
    return [root / name for name in names]


def test_install_change_and_remove(fleet: Fleet) -> None:
    """The drop-in is that of the node's own unit, metrics move to another directory, removal leaves what was there."""
    before = fleet.files()
    first = fleet.install()
    foreign = lay_out_foreign_files(fleet.roots["kubelet"])
    for host, unit in list(UNITS.items())[:2]:
        root = fleet.roots[host]
        drop_in = (root / f"etc/systemd/system/{unit}.d/{DROP_IN}").read_text()
        assert first.results()[host]["guard"]["status"] == "installed"
        assert f"ExecStartPre=-+{EXECUTABLE} run --unit %n --textfile-directory /var/lib/node_exporter\n" in drop_in
        assert f"ExecStopPost=-+{EXECUTABLE} stopped --unit %n --textfile-directory /var/lib/node_exporter\n" in drop_in
        assert (root / "etc/kubenode-memory/tolerance").read_text().endswith("\nauto\n")
    assert fleet.files()["none"] == before["none"]
    assert first.results()["none"]["guard"]["summary"] == "memoryManagerPolicy is not Static: nothing to tolerate"

    # what the guard writes at a start
    root = fleet.roots["agent"]
    (root / "var/lib/node_exporter/kubenode_memory.prom").touch()
    for name in (*state_names(), "backups/memory_manager_state.1"):
        (root / "var/lib/kubenode-memory" / name).parent.mkdir(exist_ok=True)
        (root / "var/lib/kubenode-memory" / name).touch()
    (root / "etc/kubenode-memory/disabled").touch()
    changed = {"memmgr_guard_tolerance": "64Mi", "memmgr_guard_textfile_directory": "/srv/metrics/textfile"}
    fleet.install(**changed)
    assert not (root / "var/lib/node_exporter").exists()
    assert (root / "srv/metrics/textfile").is_dir()
    assert (root / "etc/kubenode-memory/tolerance").read_text().endswith("\n64Mi\n")
    assert (root / "etc/kubenode-memory/disabled").exists()

    fleet.install(memmgr_guard_state="absent", memmgr_guard_keep_backups=True)
    backup = root / "var/lib/kubenode-memory/backups/memory_manager_state.1"
    stayed_on_agent = {str(path) for path in (backup, backup.parent, backup.parent.parent)}
    stayed = {str(path) for file in foreign for path in (file, file.parent)}
    assert fleet.files() == {
        **before,
        "kubelet": sorted({*before["kubelet"], *stayed}),
        "agent": sorted({*before["agent"], *stayed_on_agent}),
    }


def test_a_bad_value_fails_before_anything_is_written(fleet: Fleet) -> None:
    before = fleet.files()
    run = fleet.ansible.playbook(
        "install_guard",
        memmgr_serial=["100%"],
        memmgr_guard_tolerance="{{ '128MB' if inventory_hostname == 'agent' else 'auto' }}",
        memmgr_guard_textfile_directory="/var/lib/my files",
    )
    assert run.code == 2, run.output
    summaries = {host: result["summary"] for host, result in run.results().items()}
    assert "tolerance is '128MB'" in summaries["agent"]
    assert "memmgr_guard_textfile_directory is /var/lib/my files" in summaries["kubelet"]
    assert fleet.files() == before


def state_names() -> list[str]:
    variables = yaml.safe_load((ROOT / "roles/memmgr_guard/vars/main.yml").read_text())
    return list(variables["__memmgr_guard_state_names"])
