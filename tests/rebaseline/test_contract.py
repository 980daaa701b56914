# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the state: each sentence of that section of the design has a test of its name."""

from __future__ import annotations

import json
import os
import re
import stat
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._node import writer
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import encode, load, read
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import parse_release
from ansible_collections.kubenode.memory.plugins.module_utils._present_outcome import present_outcome
from ansible_collections.kubenode.memory.plugins.module_utils._rebaseline import BLOCKED, RESTORE, Plan, run
from ansible_collections.kubenode.memory.plugins.module_utils._request import Request
from rebaseline.node import (
    BOOT,
    BOUND,
    GIB,
    LATE_POD,
    MIB,
    OURS,
    PINNED,
    POD,
    RECORDED,
    STATE_FILE,
    DriftedNode,
    state_of,
)

NODE_LAYER = Path(writer.__file__).parent
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="owners take root")
LATER = "5f0f3b0e-6a53-4a3c-8d8b-0a0c7e6f1b22"


@pytest.fixture
def node(tmp_path: Path) -> DriftedNode:
    return DriftedNode(tmp_path)


def untouched(node: DriftedNode, before: t.Mapping[str, t.Any]) -> bool:
    return node.fingerprint() == before


# --- one writer ------------------------------------------------------------------------------------------------------


def test_one_writer_in_node() -> None:
    """One file knows how a state file is written, and one, that of module and guard, has it written."""
    utils = NODE_LAYER.parent
    users = {path.name for path in utils.rglob("*.py") if re.search(r"\bStateDirectory\b", path.read_text("utf-8"))}
    assert users == {"writer.py", "_rebaseline.py"}
    naming = {path.name for path in utils.rglob("*.py") if "memory_manager_state" in path.read_text("utf-8")}
    writing = {
        path.name for path in NODE_LAYER.glob("*.py") if re.search(r"\bos\.(rename|write)\(", path.read_text("utf-8"))
    }
    assert naming & writing <= {"writer.py"}


def test_temporary_file_in_the_same_directory_named_like_the_kubelets(node: DriftedNode) -> None:
    names: t.List[str] = []
    node.run(at=lambda point: names.extend(os.listdir(node.state_file.parent)) if point == "staged" else None)
    (temporary,) = set(names) - {"memory_manager_state"}
    assert temporary[0] == "."
    assert temporary[1:].isdigit()
    assert os.listdir(node.state_file.parent) == ["memory_manager_state"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_mode_0600(node: DriftedNode, mode: int, umask: int) -> None:
    node.state_file.chmod(mode)
    old = os.umask(umask)
    try:
        assert node.run().reason == "rebaselined"
    finally:
        os.umask(old)
    assert stat.S_IMODE(node.state_file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in [*node.backups, node.base / OURS[1:] / "history.jsonl"]} == {
        0o600
    }


@ROOT_ONLY
def test_owner_as_the_kubelets(node: DriftedNode) -> None:
    os.chown(node.state_file, 1234, 4321)
    assert node.run().changed
    assert (node.state_file.stat().st_uid, node.state_file.stat().st_gid) == (1234, 4321)


@ROOT_ONLY
def test_selinux_label_as_the_kubelets(node: DriftedNode) -> None:
    label = b"system_u:object_r:kubernetes_file_t:s0\0"
    try:
        os.setxattr(node.state_file, "security.selinux", label)
    except OSError as error:
        pytest.skip(f"no security.selinux here: {error}")
    assert node.run().changed
    assert os.getxattr(node.state_file, "security.selinux") == label


# --- only when it helps ----------------------------------------------------------------------------------------------


def test_written_when_will_start_is_false_with_the_present_file_and_true_with_the_new_one(node: DriftedNode) -> None:
    old = node.content
    outcome = node.run()
    assert outcome.decision.evaluation.will_start is False
    assert outcome.decision.rewrite is not None
    assert outcome.decision.rewrite.after.will_start is True
    assert (outcome.reason, outcome.changed, outcome.failed) == ("rebaselined", True, False)
    assert node.content != old
    assert node.loaded() == state_of([RECORDED[0] - 44 * MIB, RECORDED[1] + 44 * MIB])


def with_gate(node: DriftedNode, option: str) -> Request:
    node.configure(
        featureGates={"MemoryManagerDriftTolerance": True},
        memoryManagerPolicyOptions={"memory-drift-tolerance": option},
    )
    overrides = KubeletOverrides(version="v1.37.2", known_feature_gates=("MemoryManagerDriftTolerance",))
    return Request(host_root=str(node.base), overrides=overrides, tolerance="auto")


def test_a_kubelet_that_tolerates_the_drift_itself_is_left_alone(node: DriftedNode) -> None:
    request = with_gate(node, "128Mi")
    before = node.fingerprint()
    outcome = run(request, Plan())
    assert (outcome.decision.evaluation.verdict, outcome.reason, outcome.changed) == (
        "tolerable",
        "kubelet_tolerates",
        False,
    )
    assert untouched(node, before)


@pytest.mark.parametrize(
    "fields",
    [
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]},
        {"featureGates": {"NoSuchGate": True}},
        {"memoryManagerPolicy": "static"},
    ],
    ids=["reservation", "gate", "policy"],
)
def test_a_kubelet_that_a_configuration_error_stops_anyway_is_left_alone(
    node: DriftedNode, fields: t.Mapping[str, t.Any]
) -> None:
    node.configure(**fields)
    before = node.fingerprint()
    outcome = node.run()
    assert (outcome.reason, outcome.changed, outcome.failed) == ("refuse", False, False)
    assert outcome.message.startswith("The file is left as it is; a person has to decide.")
    assert untouched(node, before)


def other_verdicts() -> t.Iterator[t.Any]:
    yield pytest.param("match", lambda node: node.drift((0, 0)), id="match")
    yield pytest.param("refuse", lambda node: node.drift((-GIB, 0)), id="lost DIMM")
    yield pytest.param("refuse", lambda node: node.numa_node(2, 1024, {}), id="new node")
    yield pytest.param("refuse", lambda node: node.numa_node(0, 2 << 20, {2048: 8}), id="hugepages")
    yield pytest.param("unreadable", lambda node: node.write(STATE_FILE, "{"), id="unreadable")
    yield pytest.param("absent", lambda node: node.state_file.unlink(), id="absent")
    yield pytest.param("not_applicable", lambda node: node.remove_kubelet(), id="no kubelet")


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("verdict", "change"), list(other_verdicts()))
def test_every_other_verdict_changes_nothing_and_says_why(
    node: DriftedNode, verdict: str, change: t.Callable[[DriftedNode], None], check: bool
) -> None:
    change(node)
    before = node.fingerprint()
    outcome = node.run(check=check)
    assert (outcome.reason, outcome.changed, outcome.failed) == (verdict, False, False)
    assert outcome.decision.evaluation.verdict == verdict
    assert outcome.message.endswith(".")
    assert untouched(node, before)


# --- never under a live kubelet --------------------------------------------------------------------------------------


USES = [
    ("kubelet", "/usr/bin/kubelet", 1),
    ("kubelet", "/usr/bin/kubelet --root-dir=/var/lib/../lib/kubelet", 1),
    ("kubelet", "", 1),
    ("kubelet", "/usr/bin/kubelet --root-dir=/elsewhere", 2),
    ("kubelite", "/snap/microk8s/current/kubelite", 1),
    ("k3s-server", "/usr/local/bin/k3s server", 1),
    ("rke2", "/usr/local/bin/rke2 agent", 1),
]


@pytest.mark.parametrize(("name", "argv", "mounts"), USES, ids=[f"{use[0]}-{use[2]}-{len(use[1])}" for use in USES])
def test_never_under_a_live_process_that_has_that_root_directory(
    node: DriftedNode, name: str, argv: str, mounts: int
) -> None:
    node.start_kubelet(name, argv, mounts)
    before = node.fingerprint()
    for stopped in (False, True):
        outcome = node.run(kubelet_is_stopped=stopped)
        assert (outcome.reason, outcome.changed, outcome.failed) == ("kubelet_in_use", False, True)
        assert f"process 77 ({name})" in outcome.message
        assert untouched(node, before), "nothing overrides that"


def test_a_kubelet_with_another_root_directory_is_no_use(node: DriftedNode) -> None:
    node.write("/data/other/x", "")
    node.start_kubelet(argv="/usr/bin/kubelet --root-dir=/data/other")
    assert node.run().reason == "rebaselined"


@pytest.mark.parametrize("state", ["active", "activating", "reloading", "deactivating", "maintenance", "refreshing"])
@pytest.mark.parametrize("unit", ["kubelet.service", "k3s.service", "rke2-agent.service"])
def test_in_use_means_its_unit_is_active_activating_reloading_or_deactivating(
    node: DriftedNode, state: str, unit: str
) -> None:
    before = node.fingerprint()
    outcome = node.run(show_units=lambda units: {name: state if name == unit else "inactive" for name in units})
    assert (outcome.reason, outcome.failed) == ("kubelet_in_use", True)
    assert f"{unit} is {state}. Stop the kubelet's unit first. Nothing was written." in outcome.message
    assert untouched(node, before)


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_stopped_unit_is_no_use(node: DriftedNode, state: str) -> None:
    assert node.run(show_units=lambda units: dict.fromkeys(units, state)).reason == "rebaselined"


def test_where_systemd_does_not_answer_nothing_is_written(node: DriftedNode) -> None:
    def fail(_units: t.Sequence[str]) -> t.Mapping[str, str]:
        raise ValueError("Connection timed out")

    before = node.fingerprint()
    outcome = node.run(show_units=fail)
    assert (outcome.reason, outcome.failed) == ("kubelet_unproven", True)
    assert "Connection timed out" in outcome.message
    assert untouched(node, before)


def test_for_the_units_own_pre_start_only_live_processes_count(node: DriftedNode) -> None:
    def activating(units: t.Sequence[str]) -> t.Mapping[str, str]:
        return dict.fromkeys(units, "activating")

    node.start_kubelet()
    assert node.run(show_units=activating, own_unit_starts=True).reason == "kubelet_in_use"
    for path in (node.base / "proc/77").rglob("*"):
        if not path.is_dir() or path.is_symlink():
            path.unlink()
    assert node.run(show_units=activating, own_unit_starts=True).reason == "rebaselined"


def hide_proc(node: DriftedNode) -> None:
    (node.base / "proc/1/stat").unlink()
    (node.base / "proc/1").rename(node.base / "proc/x")


def test_with_another_host_root_writing_needs_a_visible_proc(node: DriftedNode) -> None:
    hide_proc(node)
    before = node.fingerprint()
    outcome = node.run()
    assert (outcome.reason, outcome.failed) == ("kubelet_unproven", True)
    assert "or set kubelet_is_stopped" in outcome.message
    assert untouched(node, before)


def test_or_kubelet_is_stopped(node: DriftedNode) -> None:
    hide_proc(node)
    assert node.run(kubelet_is_stopped=True).reason == "rebaselined"


def test_in_check_mode_a_running_kubelet_is_a_warning_and_the_prediction_is_still_given(node: DriftedNode) -> None:
    node.start_kubelet()
    before = node.fingerprint()
    outcome = node.run(check=True)
    assert (outcome.reason, outcome.changed, outcome.failed) == ("rebaselined", True, False)
    (warning,) = outcome.warnings
    assert "is in use: process 77 (kubelet)" in warning
    assert untouched(node, before)


def test_the_prediction_is_what_is_written(node: DriftedNode) -> None:
    predicted = present_outcome(node.run(check=True))["new_state_file"]
    written = present_outcome(node.run())["new_state_file"]
    assert predicted == written
    assert written["machine_state"] == json.loads(node.content)["machineState"]
    assert written["size"] == len(node.content)


# --- links and owners ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [False, True])
def test_a_symlink_in_place_of_the_file_is_refused(node: DriftedNode, check: bool) -> None:
    target = node.state_file.rename(node.base / "var/lib/kubelet/other")
    node.state_file.symlink_to("other")
    before = node.fingerprint()
    outcome = node.run(check=check)
    assert (outcome.reason, outcome.changed, outcome.failed) == ("unsafe_path", False, True)
    assert "is a symbolic link" in outcome.message
    assert untouched(node, before)
    assert target.exists()


def move_kubelet(node: DriftedNode, target: str = "/data/kubelet") -> Path:
    data = node.base / target[1:]
    data.parent.mkdir(parents=True)
    node.state_file.parent.rename(data)
    (node.base / "var/lib/kubelet").symlink_to(target)
    return data


def test_a_symlinked_directory_on_the_way_is_resolved(node: DriftedNode) -> None:
    data = move_kubelet(node)
    assert node.run().reason == "rebaselined"
    assert sorted(os.listdir(data)) == ["memory_manager_state"]
    assert (node.base / "var/lib/kubelet").is_symlink()


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_the_directory_must_not_be_writable_by_group_or_world(node: DriftedNode, mode: int) -> None:
    move_kubelet(node).chmod(mode)
    before = node.fingerprint()
    outcome = node.run()
    assert (outcome.reason, outcome.failed) == ("unsafe_path", True)
    assert "group or world may write to it" in outcome.message
    assert untouched(node, before)


@ROOT_ONLY
def test_the_directory_must_be_roots(node: DriftedNode) -> None:
    os.chown(move_kubelet(node), 1000, 1000)
    outcome = node.run()
    assert outcome.reason == "unsafe_path"
    assert "belongs to user 1000, it has to be root's" in outcome.message


def test_resolved_once_by_descriptor(node: DriftedNode) -> None:
    """A directory that is swapped after it was opened is neither written to nor followed."""
    other = node.base / "var/lib/other"

    def swap(point: str) -> None:
        if point == "staged":
            node.state_file.parent.rename(other)
            node.write(STATE_FILE, (other / "memory_manager_state").read_bytes())

    old = node.content
    outcome = node.run(at=swap)
    assert outcome.reason == "changed_meanwhile"
    assert node.content == (other / "memory_manager_state").read_bytes() == old
    assert os.listdir(other) == ["memory_manager_state"]


def test_a_link_cannot_lead_out_of_the_root(node: DriftedNode, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "memory_manager_state").write_bytes(node.content)
    node.state_file.unlink()
    node.state_file.parent.rmdir()
    (node.base / "var/lib/kubelet").symlink_to(outside)
    assert node.run().reason == "absent"
    assert len(os.listdir(outside)) == 1


@pytest.mark.parametrize("directory", ["", "/backups"])
def test_our_own_directories_are_roots_and_0700(node: DriftedNode, directory: str) -> None:
    path = node.base / (OURS + directory)[1:]
    path.mkdir(parents=True)
    path.chmod(0o755)
    assert node.run().changed
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o777)
    node.record(state_of(RECORDED))
    assert node.run().reason == "unsafe_path"


# --- the bytes -------------------------------------------------------------------------------------------------------

FORMATS = [("V1", "v1.31.0"), ("V1", "v1.34.4"), ("V1", "v1.36.3"), ("V1", "v1.37.2"), ("V3", "v1.37.2")]
FORMATS += [("V3", "v1.34.4"), ("V3", "v1.36.3"), ("V2", "v1.37.2")]


@pytest.mark.parametrize(("fmt", "release"), FORMATS)
def test_format_in_is_format_out(tmp_path: Path, fmt: str, release: str) -> None:
    node = DriftedNode(tmp_path, fmt, release=release)
    assert node.run().reason == "rebaselined"
    today = state_of([RECORDED[0] - 44 * MIB, RECORDED[1] + 44 * MIB])
    assert node.content.decode() == encode(today, fmt)
    assert read(node.content, parse_release("v1.37.2"), True).format == fmt


def test_in_v3_both_halves_and_all_checksums(tmp_path: Path) -> None:
    node = DriftedNode(tmp_path, "V3", release="v1.37.2")
    node.run()
    whole = json.loads(node.content)
    data = json.loads(whole["data"])
    assert {name: whole[name] for name in data} == data
    for release in ("v1.34.4", "v1.36.3", "v1.37.2"):
        assert load(node.content, parse_release(release), False, "Static").state == node.loaded()


@pytest.mark.parametrize("release", ["v1.34.4", "v1.37.2"])
def test_halves_that_differ_are_not_made_equal_behind_anybodys_back(tmp_path: Path, release: str) -> None:
    """A kubelet that reads one half would lose the other."""
    node = DriftedNode(tmp_path, "V3", release=release)
    other = json.loads(encode(state_of(RECORDED, {**PINNED, LATE_POD: (((1,), MIB),)}), "V3"))
    mixed = {**json.loads(node.content), "data": other["data"], "dataChecksum": other["dataChecksum"]}
    node.write(STATE_FILE, json.dumps(mixed, separators=(",", ":")))
    before = node.fingerprint()
    outcome = node.run()
    if release == "v1.34.4":
        assert outcome.reason == "halves_differ"
        assert untouched(node, before)
    else:
        assert set(node.loaded().entries or {}) == {POD, LATE_POD}, "1.37 reads data only, and writes both"


@pytest.mark.parametrize(("fmt", "release"), [("V2", "v1.36.3"), ("V3", "v1.37.2")])
def test_entries_and_pod_entries_are_never_touched(tmp_path: Path, fmt: str, release: str) -> None:
    node = DriftedNode(tmp_path, release=release)
    pods = {**PINNED, LATE_POD: (((1,), 900 * MIB),)}
    node.record(state_of(RECORDED, pods, {LATE_POD: (((1,), GIB),)}), fmt)
    node.configure(featureGates={"PodLevelResourceManagers": True})
    old = node.loaded()
    assert node.run().reason == "rebaselined"
    new = node.loaded()
    assert (new.entries, new.pod_entries) == (old.entries, old.pod_entries)
    assert new.machine_state != old.machine_state


def test_pod_entries_that_the_kubelet_would_drop_are_not_dropped(tmp_path: Path) -> None:
    node = DriftedNode(tmp_path, release="v1.37.2")
    node.record(state_of(RECORDED, PINNED, {POD: (((0,), GIB),)}), "V3")
    before = node.fingerprint()
    assert node.run().reason == "refuse"
    assert untouched(node, before)


# --- backup, restore -------------------------------------------------------------------------------------------------


def test_a_backup_with_a_time_stamp_and_boot_id_first(node: DriftedNode) -> None:
    old = node.content
    seen: t.List[t.Tuple[str, bytes]] = []
    outcome = node.run(at=lambda point: seen.append((point, node.content)) if node.backups else None)
    assert [backup.name for backup in node.backups] == [f"memory_manager_state.20260202T024000.500000Z.{BOOT}"]
    assert node.backups[0].read_bytes() == old
    assert outcome.backup == node.backups[0].name
    assert {content for _rest, content in seen} == {old}, "before anything was written"


def drift_again(node: DriftedNode, boots: int, step: int = 8 * MIB, **plan: t.Any) -> t.List[str]:
    """Boots that each lose some memory on node 0; the reasons."""
    reasons = []
    for number in range(1, boots + 1):
        node.boot(f"0b4b8dd4-5b4c-4a59-9d1f-{number:012d}")
        node.drift((-step * number, 0))
        reasons.append(node.run(now=lambda number=number: 1.77e9 + number, **plan).reason)
    return reasons


def test_a_bounded_number_is_kept(node: DriftedNode) -> None:
    assert set(drift_again(node, 13, MIB)) == {"rebaselined"}
    assert len(node.backups) == 10
    assert [backup.name.split(".")[-1][-2:] for backup in node.backups] == [f"{number:02d}" for number in range(4, 14)]


def restore(node: DriftedNode, backup: t.Optional[str] = None, **plan: t.Any) -> t.Any:
    return node.run(action=RESTORE, backup=backup or node.backups[-1].name, **plan)


def test_restore_puts_back_what_a_kubelet_starts_with(node: DriftedNode) -> None:
    """Somebody deleted the file; the kubelet wrote a fresh one, without the pins of the pods that still run."""
    node.drift((0, 0))
    good = node.content
    node.write("/root/backup", good)
    node.record(state_of(RECORDED, {}))
    outcome = restore(node, "/root/backup")
    assert (outcome.reason, outcome.changed) == ("restored", True)
    assert node.content == good
    node.state_file.unlink()
    assert restore(node, "/root/backup").reason == "restored"
    assert node.content == good
    assert stat.S_IMODE(node.state_file.stat().st_mode) == 0o600
    assert restore(node, "/root/backup").reason == "same_content"


def test_restore_is_judged_like_a_rewrite(node: DriftedNode) -> None:
    """An old file is put back re-baselined; one that does not fit the machine is not put back."""
    old = node.content
    node.run()
    today = node.content
    node.write(STATE_FILE, "{")
    assert restore(node).reason == "restored"
    assert node.content == today != old
    assert [backup.read_bytes() for backup in node.backups] == [old, b"{"]
    node.drift((-GIB, 0))
    outcome = restore(node, node.backups[0].name)
    assert (outcome.reason, outcome.changed, outcome.failed) == ("backup_refuse", False, False)
    assert node.content == today


def test_restore_is_refused_where_it_does_not_help(node: DriftedNode) -> None:
    node.drift((0, 0))
    node.write("/root/backup", encode(state_of(RECORDED, {}), "V1"))
    node.record(state_of(RECORDED, {}), "V3")
    assert restore(node, "/root/backup").reason == "not_needed"


@pytest.mark.parametrize("damaged", [False, True])
def test_restore_is_refused_if_a_pod_of_todays_entries_is_missing_from_the_backup(
    node: DriftedNode, damaged: bool
) -> None:
    node.run()
    today = state_of([RECORDED[0] - 44 * MIB, RECORDED[1] + 44 * MIB], {**PINNED, LATE_POD: (((1,), GIB),)})
    node.record(today)
    if damaged:
        node.write(STATE_FILE, node.content.replace(b'"checksum":', b'"checksum":1'))
    before = node.fingerprint()
    outcome = restore(node)
    assert (outcome.reason, outcome.changed) == ("pods_missing", False)
    assert f"pod {LATE_POD}" in outcome.message
    assert untouched(node, before)


def test_where_todays_entries_cannot_be_read_the_pods_that_run_count(node: DriftedNode) -> None:
    node.run()
    node.write(STATE_FILE, "no JSON")
    node.write(f"/sys/fs/cgroup/kubepods.slice/kubepods-pod{LATE_POD.replace('-', '_')}.slice/x", "")
    outcome = restore(node)
    assert outcome.reason == "pods_missing"
    assert LATE_POD in outcome.message


def test_restore_never_under_a_kubelet_that_runs(node: DriftedNode) -> None:
    node.run()
    node.write(STATE_FILE, "{")
    node.start_kubelet()
    assert restore(node).reason == "kubelet_in_use"
    assert restore(node, check=True).warnings


@pytest.mark.parametrize("backup", ["nothing", "../x", "memory_manager_state.20260202T024000.500000Z.unknown-boot"])
def test_a_backup_that_is_not_there_is_named_beside_those_that_are(node: DriftedNode, backup: str) -> None:
    node.run()
    with pytest.raises(NodeError) as caught:
        restore(node, backup)
    assert (node.backups[0].name in str(caught.value)) == backup.startswith("memory")


# --- history ---------------------------------------------------------------------------------------------------------


def test_history_has_one_line_per_boot_id_and_content_hash(node: DriftedNode) -> None:
    node.run(record=True)
    node.run(record=True)
    node.run(record=True)
    assert [(line["boot_id"], line["verdict"]) for line in node.history] == [(BOOT, "tolerable")] * 2
    node.boot(LATER)
    node.run(record=True)
    node.run(record=True)
    assert [(line["boot_id"], line["verdict"]) for line in node.history][2:] == [(LATER, "match")]


def test_history_has_totals_kernel_image_crash_kernel_and_their_nodes_bound_and_verdict(node: DriftedNode) -> None:
    node.write("/sys/devices/system/memory/memory0/node0/x", "")
    node.write("/sys/devices/system/memory/memory40/node1/x", "")
    node.run()
    line = node.history[0]
    assert line["totals"] == {"0": RECORDED[0], "1": RECORDED[1]}
    assert line["kernel_release"] == "6.1.0-57-amd64"
    assert line["kernel_image"] == {"start": 0x1000000, "end": 0x43FFFFF, "numa_nodes": [0]}
    assert line["crash_kernels"] == [{"start": 0x140000000, "end": 0x14FFFFFFF, "numa_nodes": [1]}]
    assert (line["bound"], line["verdict"], line["epoch"]) == (BOUND, "tolerable", 1)
    assert line["time"] == 1_770_000_000


def test_history_is_bounded(node: DriftedNode) -> None:
    drift_again(node, 8, MIB, keep_history=5)
    assert len(node.history) == 5
    assert node.history[0]["totals"]["0"] == RECORDED[0], "the first baseline stays"


def test_a_file_whose_totals_are_not_the_last_lines_starts_a_new_epoch(node: DriftedNode) -> None:
    drift_again(node, 2)
    fresh = [RECORDED[0] - 100 * MIB, RECORDED[1]]
    node.record(state_of(fresh))
    node.drift((-101 * MIB, 0))
    outcome = node.run()
    assert [line["epoch"] for line in node.history] == [1, 1, 1, 1, 2, 2][-len(node.history) :]
    epoch = present_outcome(outcome)["epoch"]
    assert epoch["first_baseline_bytes"] == {"0": fresh[0], "1": fresh[1]}
    assert epoch["distance_bytes"] == {"0": -MIB, "1": 0}


def test_the_distance_to_the_first_baseline_is_tracked_so_that_slow_loss_shows(node: DriftedNode) -> None:
    """40 boots that lose 8 MiB each: all tolerable, and told from the boot on where the sum passes the bound."""
    told = []
    for number in range(1, 41):
        assert drift_again_once(node, number) == "rebaselined"
        findings = node.run().decision.evaluation.findings
        told.append([(one.severity, one.numa_node, one.found) for one in findings if one.code == "cumulative_drift"])
    passing = BOUND // (8 * MIB)
    assert not any(told[:passing])
    assert told[passing:] == [[("warning", 0, -8 * MIB * number)] for number in range(passing + 1, 41)]


def drift_again_once(node: DriftedNode, number: int, **plan: t.Any) -> str:
    node.boot(f"0b4b8dd4-5b4c-4a59-9d1f-{number:012d}")
    node.drift((-8 * MIB * number, 0))
    return str(node.run(now=lambda: 1.77e9 + number, **plan).reason)


def test_max_cumulative_drift_turns_it_into_a_refusal(node: DriftedNode) -> None:
    for number in (1, 2):
        assert drift_again_once(node, number, max_cumulative_drift=16 * MIB) == "rebaselined"
    before = node.content
    assert drift_again_once(node, 3, max_cumulative_drift=16 * MIB) == "cumulative_drift"
    outcome = node.run(max_cumulative_drift=16 * MIB)
    assert (outcome.decision.evaluation.verdict, outcome.changed, outcome.failed) == ("refuse", False, False)
    assert node.content == before
    assert node.run(max_cumulative_drift=24 * MIB).reason == "rebaselined"


def test_nothing_is_remembered_where_nothing_is_written_unless_it_is_asked_for(node: DriftedNode) -> None:
    node.drift((0, 0))
    node.run()
    assert not (node.base / OURS[1:]).exists()
    node.run(record=True)
    assert [line["verdict"] for line in node.history] == ["match"]


def test_a_damaged_history_is_told_and_stops_nothing(node: DriftedNode) -> None:
    node.write(OURS + "/history.jsonl", '{"time":1}\nrubbish\n')
    outcome = node.run()
    assert outcome.reason == "rebaselined"
    assert "history_damaged" in [one.code for one in outcome.decision.evaluation.findings]
    assert len(node.history) == 2


# --- and again -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fmt", "release"), FORMATS)
def test_a_second_run_changes_nothing(tmp_path: Path, fmt: str, release: str) -> None:
    node = DriftedNode(tmp_path, fmt, release=release)
    node.run()
    before, inode = node.fingerprint(), node.state_file.stat().st_ino
    outcome = node.run()
    assert (outcome.reason, outcome.changed) == ("match", False)
    assert untouched(node, before)
    assert node.state_file.stat().st_ino == inode


def test_each_reason_of_a_failure_is_one_of_a_fixed_list() -> None:
    assert BLOCKED == ("kubelet_in_use", "kubelet_unproven", "busy", "changed_meanwhile", "unsafe_path", "write_failed")
