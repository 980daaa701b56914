# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting and giving back on a node: places, previous values, refusals, files."""

from __future__ import annotations

import json
import stat
import typing as t
from pathlib import Path

import pytest
from configure_node import CONFIG, HEADER, STATIC, ConfiguredNode

from ansible_collections.kubenode.memory.plugins.module_utils._configure import Wish
from ansible_collections.kubenode.memory.plugins.module_utils._node.configuration_writer import Changed, replace_file
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation_plan import Rule
from ansible_collections.kubenode.memory.plugins.module_utils._preflight import validate
from ansible_collections.kubenode.memory.plugins.module_utils._present_configuration import present_outcome
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

PATCH = "/etc/kubernetes/patches/kubeletconfiguration50-kubenode-memory+merge.json"
GATES = ("MemoryManagerDriftTolerance",)
HARD = "evictionHard/memory.available"
MEMCG = "kernelMemcgNotification"
GATE = "featureGates/MemoryManagerDriftTolerance"
OPTION = "memoryManagerPolicyOptions/memory-drift-tolerance"


def codes(outcome: t.Any) -> t.List[str]:
    return [finding.code for finding in outcome.decision.refused]


@pytest.fixture
def node(tmp_path: Path) -> ConfiguredNode:
    return ConfiguredNode(tmp_path, HEADER + "# ours\nmaxPods: 110 # many\n")


def test_set_again_and_give_back(node: ConfiguredNode) -> None:
    before = node.text
    node.config.chmod(0o640)
    assert node.set(**{MEMCG: True}).written
    assert node.text == before + "kernelMemcgNotification: true\n"
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o640
    assert not node.set(**{MEMCG: True}).decision.changed
    assert node.set(**{MEMCG: False}).decision.changed
    assert node.give_back().written
    assert node.text == before
    assert not node.give_back().decision.changed


def test_check_mode_writes_nothing(node: ConfiguredNode) -> None:
    before = node.text
    outcome = node.run(Wish(edits=(Edit((MEMCG,), True),)), check_mode=True)
    assert outcome.decision.changed
    assert not outcome.written
    assert node.text == before
    assert not node.path("/var/lib/kubenode-memory").exists()


def test_all_five_signals_where_the_defaults_are_in_force(node: ConfiguredNode) -> None:
    before = node.text
    node.set(**{HARD: "200Mi"})
    assert node.text == before + (
        'evictionHard:\n  memory.available: 200Mi\n  nodefs.available: "10%"\n  nodefs.inodesFree: "5%"\n'
        '  imagefs.available: "15%"\n  imagefs.inodesFree: "5%"\n'
    )
    assert not node.set(**{HARD: "200Mi"}).decision.changed
    node.give_back()
    assert node.text == before


def test_an_eviction_map_of_somebody_else_is_merged_into(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, HEADER + "evictionHard: {pid.available: 5%}\n")
    node.set(**{HARD: "200Mi"})
    assert node.text == HEADER + "evictionHard: {pid.available: 5%, memory.available: 200Mi}\n"


def test_default_signals_stay_where_somebody_added_to_them(node: ConfiguredNode) -> None:
    node.set(**{HARD: "200Mi"})
    node.config.write_text(node.text.replace("  memory.available", "  pid.available: 5%\n  memory.available"))
    outcome = node.give_back()
    assert "nodefs.available" in node.text
    assert "memory.available: 200Mi" not in node.text
    assert outcome.decision.change.kept[0].field == "evictionHard.nodefs.available"


def test_a_value_that_somebody_changed_since_stays(node: ConfiguredNode) -> None:
    node.set(**{MEMCG: True, "evictionSoft/memory.available": "1Gi", "evictionSoftGracePeriod/memory.available": "1m"})
    node.config.write_text(node.text.replace("kernelMemcgNotification: true", "kernelMemcgNotification: false"))
    outcome = node.give_back()
    assert node.text == HEADER + "# ours\nmaxPods: 110 # many\nkernelMemcgNotification: false\n"
    assert [one.field for one in outcome.decision.change.kept] == [MEMCG]
    assert "changed by somebody" in " ".join(present_outcome(outcome)["notes"])


def test_fields_are_given_back_one_by_one(node: ConfiguredNode) -> None:
    before = node.text
    node.set(**{MEMCG: True, HARD: "200Mi"})
    node.give_back("evictionHard")
    assert node.text == before + "kernelMemcgNotification: true\n"
    node.give_back()
    assert node.text == before


def test_a_previous_value_comes_back_in_its_own_spelling(tmp_path: Path) -> None:
    text = HEADER + "kernelMemcgNotification: !!bool  yes # why\r\n"
    node = ConfiguredNode(tmp_path, text)
    node.set(**{MEMCG: False})
    node.give_back()
    assert node.text == text


def test_kubeadm_patch(node: ConfiguredNode) -> None:
    outcome = node.set(**{HARD: "200Mi"})
    assert json.loads(node.path(PATCH).read_text())["evictionHard"]["imagefs.available"] == "15%"
    assert "--patches /etc/kubernetes/patches" in " ".join(present_outcome(outcome)["notes"])
    node.give_back()
    assert not node.path(PATCH).exists()


def test_the_patch_of_somebody_else_stays(node: ConfiguredNode) -> None:
    node.tree.write(PATCH, '{"maxPods": 7}')
    node.set(**{MEMCG: True})
    assert json.loads(node.path(PATCH).read_text()) == {"maxPods": 7, MEMCG: True}
    node.give_back()
    assert json.loads(node.path(PATCH).read_text()) == {"maxPods": 7}


def test_upgrade_of_kubeadm_loses_the_settings_and_the_next_run_sets_them(node: ConfiguredNode) -> None:
    before = node.text
    node.set(**{MEMCG: True})
    node.config.write_text(before)
    assert node.set(**{MEMCG: True}).written
    node.give_back()
    assert node.text == before


def audit(node: ConfiguredNode) -> t.List[t.Tuple[str, t.Optional[str]]]:
    """(path, fields) of what an audit finds lost."""
    findings = validate(node.request).evaluation.findings
    return [(one.path or "", one.field) for one in findings if one.code == "settings_lost"]


def test_an_audit_reports_what_an_upgrade_has_lost(node: ConfiguredNode) -> None:
    before = node.text
    node.set(**{MEMCG: True, HARD: "200Mi"})
    assert audit(node) == []
    node.config.write_text(node.text + "# theirs\n")
    assert audit(node) == []
    node.config.write_text(before + "kernelMemcgNotification: true\n")
    assert len(audit(node)) == 1
    assert "kernelMemcg" not in (audit(node)[0][1] or "")
    node.config.write_text(before)
    ((path, fields),) = audit(node)
    assert path == CONFIG
    assert "kernelMemcgNotification, evictionHard.memory.available" in (fields or "")
    node.give_back()
    assert audit(node) == []


def test_an_audit_reports_a_drop_in_that_is_gone_and_a_record_that_is_none(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, flags=f"--config={CONFIG} --config-dir=/k")
    node.set(**{MEMCG: True})
    node.path("/k/50-kubenode-memory.conf").unlink()
    assert audit(node) == [("/k/50-kubenode-memory.conf", MEMCG)]
    node.tree.write("/var/lib/kubenode-memory/configuration.json", "[]")
    codes = [one.code for one in validate(node.request).evaluation.findings]
    assert "settings_record_unreadable" in codes


def test_json_stays_json(tmp_path: Path) -> None:
    text = json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}, indent=2)
    node = ConfiguredNode(tmp_path, text)
    node.set(**{HARD: "200Mi"})
    assert json.loads(node.text)["evictionHard"]["nodefs.available"] == "10%"
    node.give_back()
    assert node.text == text


def test_drop_in_of_ours(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, flags=f"--config={CONFIG} --config-dir=/etc/kubernetes/kubelet.conf.d")
    node.path("/etc/kubernetes/kubelet.conf.d").mkdir(parents=True)
    assert node.set(**{HARD: "200Mi"}).decision.target.place.patch is None
    drop_in = node.path("/etc/kubernetes/kubelet.conf.d/50-kubenode-memory.conf")
    assert 'nodefs.available: "10%"' in drop_in.read_text()
    assert node.text == HEADER
    node.give_back()
    assert not drop_in.exists()


def test_a_later_drop_in_or_a_flag_overrides(tmp_path: Path) -> None:
    node = ConfiguredNode(
        tmp_path, flags=f"--config={CONFIG} --config-dir=/k --eviction-soft= --feature-gates=MemoryQoS=true"
    )
    node.tree.write("/k/90-late.conf", HEADER + "kernelMemcgNotification: false\n")
    outcome = node.set(**{MEMCG: True, "featureGates/MemoryQoS": False})
    assert [one.path for one in outcome.decision.overridden] == ["/k/90-late.conf", "flag --feature-gates"]


def test_a_linked_drop_in_directory_is_skipped_by_the_kubelet(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, flags=f"--config={CONFIG} --config-dir=/k")
    node.tree.link("/k", "/etc/k")
    node.path("/etc/k").mkdir(parents=True)
    with pytest.raises(NodeError, match="symbolic link"):
        node.set(**{MEMCG: True})


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "wanted", "code"),
    [
        (STATIC, {GATE: True}, "gate_unknown"),
        (STATIC, {OPTION: "auto"}, "field_unknown"),
        (HEADER, {"memoryManagerPolicy": "Static"}, "reserved_memory_sum"),
        (STATIC, {HARD: "200Mi"}, "reserved_memory_sum"),
        (HEADER, {HARD: "lots"}, "eviction_invalid"),
        (HEADER, {"evictionSoft/memory.available": "1Gi"}, "eviction_invalid"),
        (HEADER, {"featureGates/MemoryManager": True}, "gate_removed"),
        (STATIC.replace("100Mi", "1%"), {HARD: "1%"}, "eviction_percentage"),
        (HEADER, {"reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]}, "reserved_memory_invalid"),
    ],
)
def test_refused(tmp_path: Path, config: str, wanted: t.Dict[str, t.Any], code: str) -> None:
    node = ConfiguredNode(tmp_path, config)
    outcome = node.set(**wanted)
    assert code in codes(outcome)
    assert not outcome.written
    assert node.text == config


def test_merge_defaults_in_a_drop_in_is_ignored(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, flags=f"--config={CONFIG} --config-dir=/k")
    assert codes(node.set(mergeDefaultEvictionSettings=True)) == ["field_ignored"]


def test_gate_and_option_where_the_binary_lists_the_gate(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, STATIC)
    node.overrides = KubeletOverrides(version="v1.38.0", known_feature_gates=GATES)
    assert codes(node.set(**{OPTION: "auto"})) == ["option_without_gate"]
    assert codes(node.set(**{GATE: True, OPTION: "lots"})) == ["option_invalid"]
    assert codes(node.set(**{GATE: True, "memoryManagerPolicyOptions/x": "1"})) == ["option_unknown"]
    assert node.set(**{GATE: True, OPTION: "auto"}).written
    node.give_back()
    assert node.text == STATIC


def test_an_unproven_gate_is_not_written(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, STATIC, version="v1.38.0")
    assert codes(node.set(**{GATE: True})) == ["gate_unverified"]


@pytest.mark.parametrize(("layout", "reason"), [("talos", "talos manages"), ("rhcos", "openshift manages")])
def test_managed_layouts(tmp_path: Path, layout: str, reason: str) -> None:
    node = ConfiguredNode(tmp_path)
    node.tree.write("/etc/os-release", f"ID={layout}\n")
    with pytest.raises(NodeError, match=reason):
        node.set(**{MEMCG: True})


# --- reservation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule("even"), {0: "612Mi", 1: "612Mi"}),
        (Rule("by_size"), {0: "612Mi", 1: "612Mi"}),
        (Rule("one_node", 1), {1: "1224Mi"}),
        (Rule("one_node"), {0: "1224Mi"}),
    ],
)
def test_computed_reservation(tmp_path: Path, rule: Rule, expected: t.Dict[int, str]) -> None:
    node = ConfiguredNode(tmp_path, HEADER + "kubeReserved: {memory: 1Gi}\n")
    wish = Wish(
        edits=(Edit(("memoryManagerPolicy",), "Static"), Edit(("evictionHard", "memory.available"), "200Mi")), rule=rule
    )
    outcome = node.run(wish)
    entries = outcome.decision.comparison.subject.reserved_memory
    assert {one.numa_node: one.limits["memory"] for one in entries} == expected
    assert not node.run(wish).decision.changed


def test_nothing_to_reserve(tmp_path: Path) -> None:
    node = ConfiguredNode(tmp_path, HEADER + "evictionHard: {}\n")
    with pytest.raises(InputError, match="reserves no memory"):
        node.run(Wish(rule=Rule()))


# --- k3s and RKE2 ----------------------------------------------------------------------------------------------------

OLD, NEW = "v1.31.4+k3s1", "v1.33.1+k3s1"
WITH_THEIRS = {"imagefs.available": "5%", "nodefs.available": "5%", "memory.available": "200Mi"}


def rancher(base: Path, layout: str, version: str) -> ConfiguredNode:
    """A node of k3s or RKE2; since 1.32 with their own drop-in."""
    node = ConfiguredNode(base, version=version)
    for path in base.joinpath("etc/systemd/system").rglob("*.*"):
        if path.is_file():
            path.unlink()
    node.tree.write(
        f"/etc/systemd/system/{layout}-agent.service", f"[Service]\nExecStart=/usr/local/bin/{layout} agent\n"
    )
    if version > "v1.32":
        defaults = f"/var/lib/rancher/{layout}/agent/etc/kubelet.conf.d/00-{layout}-defaults.conf"
        node.tree.write(defaults, HEADER + "evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\n")
    return node


def eviction_hard(outcome: t.Any) -> t.Dict[str, str]:
    return dict(outcome.decision.comparison.after_effective.configuration.eviction_hard)


@pytest.mark.parametrize("layout", ["k3s", "rke2"])
def test_before_1_32_they_get_arguments_beside_everybody_s(tmp_path: Path, layout: str) -> None:
    node = rancher(tmp_path, layout, OLD)
    theirs = node.tree.write(f"/etc/rancher/{layout}/config.yaml", "kubelet-arg: [eviction-hard=pid.available<9%]\n")
    config = node.path(f"/etc/rancher/{layout}/config.yaml.d/50-kubenode-memory.yaml")
    outcome = node.set(**{MEMCG: True, HARD: "200Mi"})
    assert json.loads(config.read_text()) == {
        "kubelet-arg+": ["kernel-memcg-notification=true", "eviction-hard+=memory.available<200Mi"]
    }
    assert eviction_hard(outcome) == {"pid.available": "9%", "memory.available": "200Mi"}
    assert not node.set(**{MEMCG: True}).decision.changed
    assert node.set(**{HARD: "300Mi"}).written
    assert "300Mi" in config.read_text()
    node.give_back()
    assert not config.exists()
    assert theirs.read_text() == "kubelet-arg: [eviction-hard=pid.available<9%]\n"


def test_the_thresholds_that_k3s_passes_itself_stay(tmp_path: Path) -> None:
    outcome = rancher(tmp_path, "k3s", OLD).set(**{HARD: "200Mi"})
    assert eviction_hard(outcome) == WITH_THEIRS


@pytest.mark.parametrize("wanted", [{OPTION: "auto"}, {"mergeDefaultEvictionSettings": True, MEMCG: True}])
def test_a_setting_without_a_flag_is_refused_before_1_32(tmp_path: Path, wanted: t.Dict[str, t.Any]) -> None:
    node = rancher(tmp_path, "k3s", OLD)
    outcome = node.set(**wanted)
    assert codes(outcome) == ["flag_missing"]
    assert "k3s before 1.32 reads no file. Upgrade first" in outcome.decision.refused[0].message
    assert present_outcome(outcome)["knows_drift_tolerance"] is not True
    assert not outcome.written
    assert not node.path("/etc/rancher").exists()


@pytest.mark.parametrize(
    ("place", "reason"), [("drop_in", "use the place kubelet_arg"), ("in_place", "reads no file; use the place auto")]
)
def test_places_that_k3s_before_1_32_does_not_have(tmp_path: Path, place: str, reason: str) -> None:
    with pytest.raises(NodeError, match=reason):
        rancher(tmp_path, "k3s", OLD).run(Wish(edits=(Edit((MEMCG,), True),), place=place))


def test_a_later_file_that_replaces_our_arguments_is_reported(tmp_path: Path) -> None:
    node = rancher(tmp_path, "k3s", OLD)
    node.tree.write("/etc/rancher/k3s/config.yaml.d/90-late.yaml", "kubelet-arg: [max-pods=50]\n")
    outcome = node.set(**{MEMCG: True})
    assert [one.field for one in outcome.decision.overridden] == [MEMCG]


def test_arguments_that_somebody_else_edited_are_left_alone(tmp_path: Path) -> None:
    node = rancher(tmp_path, "k3s", OLD)
    node.set(**{MEMCG: True})
    config = node.path("/etc/rancher/k3s/config.yaml.d/50-kubenode-memory.yaml")
    config.write_text("kubelet-arg+: [max-pods=9]\n")
    with pytest.raises(NodeError, match="not as this module wrote it"):
        node.set(**{MEMCG: False})
    assert audit(node) == [("/etc/rancher/k3s/config.yaml.d/50-kubenode-memory.yaml", MEMCG)]
    assert config.read_text() == "kubelet-arg+: [max-pods=9]\n"


@pytest.mark.parametrize("layout", ["k3s", "rke2"])
def test_since_1_32_they_get_a_drop_in(tmp_path: Path, layout: str) -> None:
    node = rancher(tmp_path, layout, NEW)
    outcome = node.set(**{MEMCG: True, HARD: "200Mi"})
    drop_in = node.path(f"/var/lib/rancher/{layout}/agent/etc/kubelet.conf.d/50-kubenode-memory.conf")
    assert "kernelMemcgNotification: true" in drop_in.read_text()
    assert eviction_hard(outcome) == WITH_THEIRS
    assert not node.path("/etc/rancher").exists()
    node.give_back()
    assert not drop_in.exists()


def test_an_argument_of_k3s_overrides_a_drop_in(tmp_path: Path) -> None:
    node = rancher(tmp_path, "k3s", NEW)
    node.tree.write("/etc/rancher/k3s/config.yaml", "kubelet-arg: [kernel-memcg-notification=false]\n")
    (found,) = node.set(**{MEMCG: True}).decision.overridden
    assert (found.field, found.path) == (MEMCG, "flag --kernel-memcg-notification")


def test_kubelet_arg_belongs_to_them(node: ConfiguredNode) -> None:
    with pytest.raises(NodeError, match="kubelet-arg belongs to k3s and RKE2"):
        node.run(Wish(edits=(Edit((MEMCG,), True),), place="kubelet_arg"))


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_that_changed_meanwhile_is_not_replaced(node: ConfiguredNode) -> None:
    with pytest.raises(Changed):
        replace_file(HostRoot(str(node.tree.base)), CONFIG, b"x", "0" * 64)
    assert node.text.startswith(HEADER)


def test_a_linked_file_stays_a_link(node: ConfiguredNode) -> None:
    node.config.rename(node.path("/var/lib/kubelet/real.yaml"))
    node.tree.link(CONFIG, "real.yaml")
    node.set(**{MEMCG: True})
    assert node.config.is_symlink()
    assert "kernelMemcgNotification: true" in node.text


def test_backups_are_bounded(node: ConfiguredNode) -> None:
    for index in range(12):
        node.set(**{MEMCG: index % 2 == 0})
    directory = node.path("/var/lib/kubenode-memory/configuration")
    assert len(list(directory.glob("config.yaml.*"))) == 10
