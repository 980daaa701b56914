# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubelet configuration from the field, in the form in which each distribution or document writes it.

The captures' `sum_check` says whether reservedMemory adds up to what the capture itself reserves. Where the rest is on
no page, the test adds what the line names.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from node_tree import temporary_tree

from ansible_collections.kubenode.memory.plugins.module_utils._node.documents import parse_document
from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletFacts, find_kubelet
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot
from ansible_collections.kubenode.memory.plugins.module_utils._node.systemd_syntax import (
    parse_environment_file,
    split_relaxed,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import (
    API_VERSION,
    KIND,
    ConfigurationInputs,
    Document,
    EffectiveConfiguration,
    KubeletConfiguration,
    effective_configuration,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.quantity import parse_quantity
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "kubelet-config"
MIB = 1 << 20
K137 = Release(1, 37, 2)

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the captures in ../shared/corpus are not here")


def capture(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


def parsed(name: str) -> Document:
    return parse_document(name, capture(name))


def fragment(value: t.Any, **more: t.Any) -> EffectiveConfiguration:
    """A fragment as the kubelet would see it in a file with a header."""
    main = Document("capture", {"apiVersion": API_VERSION, "kind": KIND, **value, **more})
    return effective_configuration(ConfigurationInputs(main), K137)


def by_flags(words: t.Sequence[str], with_file: bool = True) -> EffectiveConfiguration:
    main = Document("config.yaml", {"apiVersion": API_VERSION, "kind": KIND}) if with_file else None
    return effective_configuration(ConfigurationInputs(main, None, tuple(words)), K137)


def mib(quantities: t.Iterable[str]) -> float:
    return sum(parse_quantity(text).ceil() for text in quantities) / MIB


def sums(configuration: KubeletConfiguration) -> t.Tuple[float, float]:
    """reservedMemory's memory, and systemReserved + kubeReserved + evictionHard, in MiB."""
    reserved = [entry.limits["memory"] for entry in configuration.reserved_memory if "memory" in entry.limits]
    parts = [
        configuration.system_reserved.get("memory", "0"),
        configuration.kube_reserved.get("memory", "0"),
        (configuration.eviction_hard or {}).get("memory.available", "0"),
    ]
    return mib(reserved), mib(parts)


def judged(result: EffectiveConfiguration) -> t.Tuple[float, float]:
    assert [finding for finding in result.findings if finding.stops_start] == []
    return sums(result.configuration)


@pytest.mark.parametrize(
    ("name", "path", "more", "expected"),
    [
        ("alauda-two-nodes.yaml", "", {}, (4096, 100)),
        ("blog-two-socket-second.yaml", "", {"kubeReserved": {"memory": "16Gi"}}, (17608, 17608)),
        ("k8s-109996-posted.yaml", "", {}, (6144, 4196)),
        ("k8s-109996-posted.yaml", "", {"evictionHard": {"memory.available": "2Gi"}}, (6144, 6144)),
        ("kubeovn-append-to-config.yaml", "", {}, (4196, 4196)),
        ("microshift-kubelet-passthrough.yaml", "kubelet", {"systemReserved": {"memory": "500Mi"}}, (1100, 1100)),
        ("nccl-guide-flow-map.yaml", "", {}, (8192, 100)),
        ("ocp-numaresources-heredoc.yaml", "spec.kubeletConfig", {}, (1124, 1124)),
        ("ocp-performanceprofile-render-arm.yaml", "spec.kubeletConfig", {}, (1100, 1100)),
        ("ocp-performanceprofile-render-no-ref.yaml", "spec.kubeletConfig", {}, (1100, 1100)),
        ("talos-memory-qos.yaml", "machine.kubelet.extraConfig", {"systemReserved": {"memory": "512Mi"}}, (1024, 612)),
        ("talos-patch-commented-reservations.yaml", "machine.kubelet.extraConfig", {}, (4096, 100)),
        (
            "talos-patch-flow-limits.yaml",
            "machine.kubelet.extraConfig",
            {"systemReserved": {"memory": "512Mi"}, "evictionHard": {"memory.available": "100Mi"}},
            (4096, 612),
        ),
        ("telco-gateway-mismatch-500Mi.yaml", "", {}, (8192, 8692)),
        ("telco-hugepages-mismatch.yaml", "", {}, (2048, 6644)),
        ("zh-quoted-one-node.yaml", "", {}, (1024, 2148)),
        ("gke-rendered-kubelet-memcg.yaml", "", {}, (0, 1119)),
    ],
)
def test_documents(name: str, path: str, more: t.Mapping[str, t.Any], expected: t.Tuple[float, float]) -> None:
    value = parsed(name).value
    for key in filter(None, path.split(".")):
        value = value[key]
    assert judged(fragment(value, **more)) == expected


def test_hugepages_in_the_telco_capture() -> None:
    configuration = fragment(parsed("telco-hugepages-mismatch.yaml").value).configuration
    assert mib(entry.limits["hugepages-1Gi"] for entry in configuration.reserved_memory) == 4096


def test_gke_has_no_api_version() -> None:
    result = effective_configuration(ConfigurationInputs(parsed("gke-rendered-kubelet-memcg.yaml")), K137)
    assert result.configuration.kernel_memcg_notification is True
    assert [finding.kubelet_error for finding in result.findings] == [
        "failed to decode: Object 'apiVersion' is missing"
    ]


def test_ga_gate_is_kept_for_the_table_of_gates() -> None:
    configuration = fragment(parsed("telco-gateway-mismatch-500Mi.yaml").value).configuration
    assert configuration.feature_gates == {"MemoryManager": True}


def test_callout_numbers_are_no_yaml() -> None:
    document = parsed("okd-docs-kubeletconfig-with-callouts.txt")
    assert document.value is None
    assert document.problem is not None
    assert document.problem.startswith("yaml: line ")
    text = capture("okd-docs-kubeletconfig-with-callouts.txt").decode()
    for number in "123":
        text = text.replace(f" ({number})", "")
    value = parse_document("okd", text.encode()).value["spec"]["kubeletConfig"]
    assert judged(fragment(value)) == (1124, 612)
    assert judged(fragment(value, kubeReserved={"memory": "512Mi"})) == (1124, 1124)


def test_appending_twice_is_a_duplicate_key() -> None:
    twice = parse_document("config.yaml", capture("kubeovn-append-to-config.yaml") * 2)
    assert judged(fragment(twice.value)) == (4196, 4196)
    assert "memoryManagerPolicy" in twice.duplicate_keys[0]


def test_ansible_folded_arguments() -> None:
    text = parsed("ansible-folded-extra-args.yaml").value["kubelet_extra_args"]
    result = by_flags(split_relaxed(text))
    assert judged(result) == (1100, 1100)
    assert result.configuration.memory_manager_policy == "Static"


def test_environment_file() -> None:
    words = split_relaxed(parse_environment_file(capture("gdc-kubelet-extra-args.txt").decode())["KUBELET_EXTRA_ARGS"])
    result = by_flags([*words, "--kube-reserved=memory=3470Mi"])
    assert judged(result) == (3570, 3570)


def test_flags_in_a_shell_variable() -> None:
    text = capture("local-up-cluster-flags.txt").decode().replace("export ", "")
    words = split_relaxed(parse_environment_file(text)["KUBELET_FLAGS"])
    assert judged(by_flags(words)) == (1636, 1636)
    assert judged(by_flags(words, with_file=False)) == (1636, 1536)


def rancher(flavour: str, text: str) -> KubeletFacts:
    service = {"k3s": "k3s", "rke2": "rke2-agent"}[flavour]
    with temporary_tree() as tree:
        tree.write(f"/etc/systemd/system/{service}.service", f"[Service]\nExecStart=/usr/local/bin/{flavour} agent\n")
        tree.write(f"/etc/rancher/{flavour}/config.yaml", text)
        return find_kubelet(HostRoot(str(tree.base)))


def test_k3s_items_with_leading_dashes() -> None:
    facts = rancher("k3s", capture("k3s-config-leading-dashes.yaml").decode())
    result = by_flags(facts.argv, with_file=False)
    assert result.configuration.memory_manager_policy == "Static"
    assert judged(result) == (0, 200)


def test_k3s_comments_are_comments() -> None:
    text = capture("k3s-eight-nodes-commented-out.yaml").decode()
    result = by_flags(rancher("k3s", text).argv, with_file=False)
    assert result.configuration.memory_manager_policy == "None"
    assert judged(result) == (0, 0)
    active = by_flags(rancher("k3s", text.replace("  #- ", "- ")).argv, with_file=False)
    assert judged(active) == (8192, 8192)


def test_rke2_without_a_memory_threshold() -> None:
    result = by_flags(rancher("rke2", capture("rke2-two-reserved-memory-lines.yaml").decode()).argv, with_file=False)
    assert judged(result) == (4096, 4096)
    assert "memory.available" not in (result.configuration.eviction_hard or {})


def test_rke2_list_of_terraform() -> None:
    # HCL; within the brackets it is a YAML flow sequence.
    text = capture("rke2-terraform-list.tf").decode().replace("kubelet-arg =", "kubelet-arg:")
    result = by_flags(rancher("rke2", text).argv, with_file=False)
    assert judged(result) == (2048, 2048)
    assert result.configuration.feature_gates == {"MemoryManager": True}


@pytest.mark.parametrize(
    ("name", "kube_reserved", "expected"),
    [("bottlerocket-karpenter-727.toml", "627Mi", (727, 727)), ("bottlerocket-userdata.toml", "893Mi", (993, 993))],
)
def test_bottlerocket_settings_as_it_renders_them(
    name: str, kube_reserved: str, expected: t.Tuple[float, float]
) -> None:
    # The kubelet never sees TOML: Bottlerocket renders the tables into reservedMemory, which is what a node has.
    lines = [line.partition("#")[0] for line in capture(name).decode().splitlines()]
    pairs = [line.replace('"', "").split(" = ") for line in lines if " = " in line]
    limits = {key: text.strip() for key, text in pairs if key == "memory" or key.startswith("hugepages-")}
    value = {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": limits}]}
    result = fragment(value, kubeReserved={"memory": kube_reserved})
    assert judged(result) == expected
    assert ("hugepages-2Mi" in result.configuration.reserved_memory[0].limits) == (name == "bottlerocket-userdata.toml")


def test_every_capture_is_used() -> None:
    names = {path.name for path in CORPUS.iterdir() if not path.name.endswith(".meta.yaml")}
    source = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in names if name not in source} == set()
    metas = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in CORPUS.glob("*.meta.yaml")]
    assert all(meta["kind"] == "kubelet-config" for meta in metas)
