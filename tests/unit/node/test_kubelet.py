# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kubelet a node runs: layouts, command lines, versions, and that nothing of another root is executed."""

from __future__ import annotations

import contextlib
import stat
import typing as t
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from node_tree import NodeTree, ordinary_user, temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node import kubelet_binary
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import (
    KubeletFacts,
    KubeletOverrides,
    find_kubelet,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet_binary import ask_binary, parse_gates
from ansible_collections.kubenode.memory.plugins.module_utils._node.presence import may_have_kubelet
from ansible_collections.kubenode.memory.plugins.module_utils._node.rancher import kubelet_arguments
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import (
    HostRoot,
    NodeError,
    PermissionMissing,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release

Files = t.Mapping[str, str]
NO_OVERRIDES = KubeletOverrides()

KUBEADM: Files = {
    "/usr/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n",
    "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": """
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
""",
    "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1 --max-pods=10"\n',
    "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--root-dir=/data/kubelet --feature-gates=A=true\n",
    "/var/lib/dpkg/status": (
        "Package: kubelets\nVersion: 9\n\nPackage: kubelet\nStatus: hold ok installed\nDescription: x\n y\n"
        "Version: 1.34.1-1.1\n\nPackage: z\n"
    ),
}


def process(tree: NodeTree, pid: int, name: str, *argv: str, namespace: str = "mnt:[1]") -> None:
    fields = " ".join(["0"] * 30)
    tree.write(f"/proc/{pid}/stat", f"{pid} ({name}) S {fields}\n")
    tree.write(f"/proc/{pid}/cmdline", "".join(word + "\0" for word in argv))
    tree.link(f"/proc/{pid}/ns/mnt", namespace)


def find(
    files: Files,
    *processes: t.Tuple[t.Any, ...],
    overrides: KubeletOverrides = NO_OVERRIDES,
    links: t.Optional[t.Mapping[str, str]] = None,
) -> KubeletFacts:
    with temporary_tree() as tree:
        for path, text in files.items():
            tree.write(path, text)
        for path, target in (links or {}).items():
            tree.link(path, target)
        process(tree, 1, "systemd", "/sbin/init")
        for entry in processes:
            process(tree, *entry)
        root = HostRoot(str(tree.base))
        facts = find_kubelet(root, overrides)
        assert may_have_kubelet(root) or not facts.found
        return facts


def codes(facts: KubeletFacts) -> t.List[str]:
    return [finding.code for finding in facts.findings]


def test_no_kubelet() -> None:
    facts = find({}, overrides=KubeletOverrides(config="/c", version="1.35"))
    assert not facts.found
    assert (facts.config_path, facts.version, facts.root_dir) == ("/c", Release(1, 35), "/var/lib/kubelet")


def test_kubeadm() -> None:
    facts = find(KUBEADM)
    assert (facts.layout, facts.unit, facts.binary) == ("kubeadm", "kubelet.service", "/usr/bin/kubelet")
    assert facts.argv == (
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "--node-ip=192.0.2.1",
        "--max-pods=10",
        "--root-dir=/data/kubelet",
        "--feature-gates=A=true",
    )
    assert facts.config_path == "/var/lib/kubelet/config.yaml"
    assert facts.config_dir is None
    assert facts.state_file == "/data/kubelet/memory_manager_state"
    assert (facts.version, facts.sources["version"]) == (Release(1, 34, 1), "/var/lib/dpkg/status")
    assert facts.sources["root_dir"] == "flag --root-dir, unit /usr/lib/systemd/system/kubelet.service"
    assert facts.known_gates is None
    assert facts.findings == ()


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"/proc/sys/kernel/hostname": "Worker-1\n"}, "worker-1"),
        ({"/etc/hostname": "worker-2\n"}, "worker-2"),
        (
            {
                "/proc/sys/kernel/hostname": "a\n",
                "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--hostname-override=Rack1.N7",
            },
            "rack1.n7",
        ),
        ({}, None),
    ],
)
def test_node_name_is_the_kubelet_s(files: Files, name: t.Optional[str]) -> None:
    assert find({**KUBEADM, **files}).node_name == name


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        ({"/etc/os-release": 'ID="rhcos"\n'}, "openshift"),
        ({"/etc/os-release": "ID=bottlerocket\n"}, "bottlerocket"),
        ({"/etc/eks/bootstrap.sh": ""}, "eks"),
        ({}, "plain"),
    ],
)
def test_layouts_of_kubelet_service(files: Files, layout: str) -> None:
    unit = "[Service]\nExecStart=/usr/local/bin/wrapper /usr/bin/kubelet --config=/c\n"
    facts = find({"/etc/systemd/system/kubelet.service": unit, **files})
    assert (facts.layout, facts.binary, facts.argv) == (layout, "/usr/bin/kubelet", ("--config=/c",))


def test_overrides_win() -> None:
    overrides = KubeletOverrides("/c", "/d", "/r", "v1.36.3+x", ("MemoryQoS",))
    facts = find(KUBEADM, overrides=overrides)
    assert (facts.config_path, facts.config_dir, facts.root_dir) == ("/c", "/d", "/r")
    assert (facts.version, facts.known_gates) == (Release(1, 36, 3), frozenset({"MemoryQoS"}))
    assert {facts.sources[name] for name in ("config_path", "version", "known_gates")} == {"argument"}
    with pytest.raises(NodeError, match="kubelet_version"):
        find(KUBEADM, overrides=KubeletOverrides(version="latest"))


def test_running_kubelet_with_another_command_line() -> None:
    disk = find(KUBEADM).argv
    same = find(KUBEADM, (77, "kubelet", "/usr/bin/kubelet", *disk))
    assert (same.running_pid, same.running_argv, same.changed_flags) == (77, disk, ())
    other = find(KUBEADM, (77, "kubelet", "/usr/bin/kubelet", *disk[:-1], "--feature-gates=A=false"))
    assert other.argv == disk
    assert other.changed_flags == ("feature-gates",)


def test_masked_unit_and_broken_unit() -> None:
    path = "/etc/systemd/system/kubelet.service"
    assert codes(find(KUBEADM, links={path: "/dev/null"})) == ["unit_masked"]
    broken = find({path: "[Service]\nExecStart=/usr/bin/kubelet\nExecStart=/usr/bin/kubelet\n"})
    assert codes(broken) == ["unit_invalid"]
    assert broken.findings[0].stops_start


def test_script_in_the_unit() -> None:
    files = {"/etc/systemd/system/kubelet.service": "[Service]\nExecStart=/opt/start.sh\n"}
    assert codes(find(files)) == ["command_line_unclear"]
    facts = find(files, (5, "kubelet", "/opt/kubelet", "--config=/c"))
    assert (facts.argv, facts.sources["argv"], facts.findings) == (("--config=/c",), "process 5", ())


def test_process_only() -> None:
    facts = find({}, (9, "kubelet", "/opt/kubelet", "--root-dir=/k"))
    assert (facts.layout, facts.root_dir, facts.sources["argv"]) == ("process", "/k", "process 9")
    talos = find({"/etc/os-release": "ID=talos\n"}, (9, "kubelet", "/usr/local/bin/kubelet", "--config=/c"))
    assert talos.layout == "talos"


def test_kubelet_in_somebody_elses_container_is_not_the_nodes() -> None:
    entry = (9, "kubelet", "/usr/bin/kubelet", "--config=/c")
    with temporary_tree() as tree:
        process(tree, 1, "systemd", "/sbin/init")
        process(tree, *entry, namespace="mnt:[2]")
        root = HostRoot(str(tree.base))
        assert not find_kubelet(root).found
        tree.write("/var/lib/kubelet/memory_manager_state", "")
        facts = find_kubelet(root)
    assert (facts.layout, facts.binary) == ("process", None)


K3S: Files = {
    "/etc/systemd/system/k3s.service": (
        "[Service]\nType=notify\nExecStart=/usr/local/bin/k3s \\\n    server \\\n"
        "    '--kubelet-arg=v=2' --kubelet-arg system-reserved=memory=1Gi\n"
    ),
    "/etc/rancher/k3s/config.yaml": (
        "kubelet-arg:\n- memory-manager-policy=Static\n- --kube-reserved=memory=1Gi\n  #- reserved-memory=0:memory=9\n"
    ),
    "/etc/rancher/k3s/config.yaml.d/20-more.yaml": "kubelet-arg+:\n- reserved-memory=0:memory=1Gi\n",
    "/etc/rancher/k3s/config.yaml.d/30-last.yaml": "kubelet-arg+:\n- reserved-memory=1:memory=1Gi\n",
}


def test_k3s_before_drop_ins_has_no_memory_threshold() -> None:
    facts = find(K3S)
    assert (facts.layout, facts.unit, facts.config_dir) == ("k3s", "k3s.service", None)
    assert facts.argv == (
        "--eviction-hard=imagefs.available<5%,nodefs.available<5%",
        "--kube-reserved=memory=1Gi",
        "--memory-manager-policy=Static",
        "--reserved-memory=0:memory=1Gi",
        "--reserved-memory=1:memory=1Gi",
        "--system-reserved=memory=1Gi",
        "--v=2",
    )
    assert "/etc/rancher/k3s/config.yaml.d/20-more.yaml" in facts.sources["argv"]


def test_k3s_with_drop_ins() -> None:
    files = {**K3S, "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf": "a: 1\n"}
    facts = find(files)
    assert facts.config_dir == "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
    assert not any(word.startswith("--eviction-hard") for word in facts.argv)


def test_k3s_data_dir_and_replaced_list() -> None:
    facts = find(
        {
            **K3S,
            "/etc/rancher/k3s/config.yaml.d/40.yaml": "data-dir: /data/k3s\nkubelet-arg: max-pods=5\n",
            "/data/k3s/agent/etc/kubelet.conf.d/x": "",
        }
    )
    assert facts.config_dir == "/data/k3s/agent/etc/kubelet.conf.d"
    assert "--max-pods=5" in facts.argv
    assert not any("reserved-memory" in word for word in facts.argv)


def test_broken_k3s_configuration() -> None:
    facts = find({**K3S, "/etc/rancher/k3s/config.yaml": "a: [\n"})
    assert codes(facts) == ["config_unreadable"]
    assert facts.findings[0].path == "/etc/rancher/k3s/config.yaml"


def test_rke2_version_and_child_process() -> None:
    files = {
        "/usr/lib/systemd/system/rke2-agent.service": "[Service]\nExecStart=/usr/local/bin/rke2 agent\n",
        "/etc/rancher/rke2/config.yaml": "kubelet-arg:\n- reserved-memory=0:memory=2Gi\n",
        "/var/lib/rancher/rke2/data/v1.34.2-rke2r1-abc/bin/kubelet": "",
    }
    links = {"/var/lib/rancher/rke2/bin": "/var/lib/rancher/rke2/data/v1.34.2-rke2r1-abc/bin"}
    child = (8, "kubelet", "/x/kubelet", "--reserved-memory=0:memory=3Gi", "--node-labels=", "--kubeconfig=/k")
    facts = find(files, child, links=links)
    assert (facts.layout, facts.version, facts.running_pid) == ("rke2", Release(1, 34, 2), 8)
    assert facts.changed_flags == ("eviction-hard", "reserved-memory")


def test_the_running_one_of_two_is_taken() -> None:
    both = {**KUBEADM, **K3S}
    assert find(both).layout == "kubeadm"
    assert find(both, (4, "k3s-server", "/usr/local/bin/k3s server")).layout == "k3s"


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (["a=1", "a=2"], ["--a=1", "--a=2"]),
        (["e+=2"], ["--e=1", "--e=2"]),
        (["e-=0"], ["--e=0", "--e=1"]),
        (["e=5"], ["--e=5"]),
        (["flag"], ["--e=1", "--flag=true"]),
    ],
)
def test_kubelet_arguments_of_k3s(extra: t.List[str], expected: t.List[str]) -> None:
    found = kubelet_arguments({"e": "1"}, extra)
    assert [word for word in found if word != "--e=1" or word in expected] == expected


def test_microk8s() -> None:
    facts = find(
        {
            "/etc/systemd/system/snap.microk8s.daemon-kubelite.service": "[Service]\nExecStart=/usr/bin/snap run x\n",
            "/var/snap/microk8s/current/args/kubelet": (
                "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n# --memory-manager-policy=Static\n"
                '--eviction-hard="memory.available<100Mi"\n'
            ),
            "/snap/microk8s/current/meta/snap.yaml": "name: microk8s\nversion: v1.32.3\n",
        }
    )
    assert facts.layout == "microk8s"
    assert facts.root_dir == "/var/snap/microk8s/common/var/lib/kubelet"
    assert facts.argv[1] == "--eviction-hard=memory.available<100Mi"
    assert facts.version == Release(1, 32, 3)


@pytest.mark.parametrize(
    ("version", "environment", "expected"),
    [
        ("1.27", "", ["flag_invalid"]),
        ("1.29", "", ["flag_invalid"]),
        ("1.29", "Environment=KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n", ["config_dir_alpha"]),
        ("1.30", "", []),
    ],
)
def test_config_dir_of_old_releases(version: str, environment: str, expected: t.List[str]) -> None:
    unit = f"[Service]\n{environment}ExecStart=/usr/bin/kubelet --config-dir=/d\n"
    facts = find({"/etc/systemd/system/kubelet.service": unit}, overrides=KubeletOverrides(version=version))
    assert codes(facts) == expected


HELP = """
      --feature-gates mapStringBool     A set of key=value pairs. Options are:
                APIResponseCompression=true|false (BETA - default=true)
                kube:MemoryQoS=true|false (ALPHA - default=false)
      --other   Zeta=1
"""


def test_gates_in_the_help() -> None:
    assert parse_gates(HELP) == {"APIResponseCompression", "MemoryQoS"}


def binary(path: Path, marker: Path) -> str:
    script = (
        f"#!/bin/sh\necho run >> {marker}\ncase $1 in --version) echo Kubernetes v1.36.3;; *) cat <<X\n{HELP}X\nesac\n"
    )
    path.write_text(script, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_binary_is_asked_once(tmp_path: Path) -> None:
    marker, cache = tmp_path / "marker", str(tmp_path / "cache.json")
    program = binary(tmp_path / "kubelet", marker)
    first = ask_binary(HostRoot(), program, cache)
    assert first == ask_binary(HostRoot(), program, cache)
    assert first is not None
    assert first.version == Release(1, 36, 3)
    assert first.gates == {"APIResponseCompression", "MemoryQoS"}
    assert marker.read_text(encoding="utf-8").count("run") == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"a": 1}', b"[" * 100000])
def test_damaged_cache_is_ignored(tmp_path: Path, content: bytes) -> None:
    cache = tmp_path / "cache.json"
    cache.write_bytes(content)
    answer = ask_binary(HostRoot(), binary(tmp_path / "kubelet", tmp_path / "marker"), str(cache))
    assert answer is not None
    assert answer.version == Release(1, 36, 3)


def test_binary_that_hangs_or_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_binary, "TIMEOUT", 0.2)
    for index, body in enumerate(("exec sleep 60", "echo no", "exit 3")):
        program = tmp_path / str(index)
        program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
        assert ask_binary(HostRoot(), str(program)) is None
    assert ask_binary(HostRoot(), str(tmp_path / "none")) is None


def test_nothing_below_another_root_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with temporary_tree() as tree:
        program = tree.write("/usr/bin/kubelet", "")
        binary(program, marker)
        tree.write("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n")
        facts = find_kubelet(HostRoot(str(tree.base)))
    assert facts.binary == "/usr/bin/kubelet"
    assert (facts.version, facts.known_gates) == (None, None)
    assert not marker.exists()


def test_unreadable_unit_names_the_path() -> None:
    with temporary_tree() as tree:
        tree.write("/etc/systemd/system/kubelet.service", "[Service]\n").chmod(0)
        with ordinary_user(), pytest.raises(PermissionMissing, match=r"kubelet\.service"):
            find_kubelet(HostRoot(str(tree.base)))


@given(st.binary(max_size=120), st.sampled_from(sorted({*KUBEADM, *K3S, "/var/snap/microk8s/current/args/kubelet"})))
def test_random_bytes_in_any_file(data: bytes, path: str) -> None:
    files: t.Dict[str, t.Union[str, bytes]] = {**KUBEADM, **K3S, path: data}
    with temporary_tree() as tree:
        for name, text in files.items():
            tree.write(name, text)
        with contextlib.suppress(NodeError):
            assert isinstance(find_kubelet(HostRoot(str(tree.base))), KubeletFacts)
