# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of the sample fleet: which boots they are made of, how their kubelets are set up, what is expected."""

from __future__ import annotations

import hashlib
import json
import typing as t
import uuid
from dataclasses import dataclass, field

import yaml

from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import V1, V2, V3
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import Block

MIB = 1024 * 1024

KUBEADM, DROP_IN, K3S, JSON, NO_KUBELET = "kubeadm", "drop_in", "k3s", "json", "none"

Files = t.Dict[str, str]
Settings = t.Dict[str, t.Any]


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their key, as in Kubernetes' own examples."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def dump_yaml(value: t.Any, note: str = "") -> str:
    head = f"---\n{note}\n" if note else "---\n"
    return head + str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=150, allow_unicode=True))


@dataclass(frozen=True)
class Pod:
    """A pod with one container; `mebibytes` of memory on the NUMA nodes of `affinity`."""

    name: str
    affinity: t.Tuple[int, ...]
    mebibytes: int
    container: str = "app"
    hugepages: t.Tuple[str, int] = ("", 0)
    sidecar_mebibytes: int = 0

    def uid(self, node: str) -> str:
        digest = hashlib.sha256(f"{node}/{self.name}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    @property
    def blocks(self) -> t.Tuple[Block, ...]:
        memory = (Block(self.affinity, "memory", self.mebibytes * MIB),)
        resource, mebibytes = self.hugepages
        return memory + ((Block(self.affinity, resource, mebibytes * MIB),) if resource else ())


@dataclass(frozen=True)
class SampleNode:
    """`recorded` and `now` are captured boots (tarball/scenario/boot); without `recorded` there is no state file."""

    name: str
    story: str
    now: str
    recorded: str
    verdict: str
    will_start: t.Optional[bool]
    code: str = ""
    version: str = "1.36.2"
    form: str = KUBEADM
    state_format: str = V1
    reserved: t.Mapping[int, str] = field(default_factory=lambda: {0: "250Mi", 1: "150Mi"})
    pods: t.Tuple[Pod, ...] = ()
    settings: Settings = field(default_factory=dict)
    dropped_in: Settings = field(default_factory=dict)
    policy: str = "Static"
    recorded_policy: str = "Static"
    pod_level: bool = False
    iomem_hidden: bool = False
    flipped: t.Tuple[str, str] = ("", "")

    @property
    def group(self) -> str:
        return self.name.split("-")[0]

    @property
    def entries(self) -> t.Dict[str, t.Dict[str, t.Tuple[Block, ...]]]:
        """Container blocks by pod UID. A pod with a sidecar has pod-level resources: its containers share them."""
        found = {}
        for pod in self.pods:
            containers = {pod.container: pod.blocks}
            if pod.sidecar_mebibytes:
                containers["sidecar"] = (Block(pod.affinity, "memory", pod.sidecar_mebibytes * MIB),)
            found[pod.uid(self.name)] = containers
        return found

    @property
    def pod_entries(self) -> t.Dict[str, t.Tuple[Block, ...]]:
        shared = (pod for pod in self.pods if pod.sidecar_mebibytes)
        return {
            pod.uid(self.name): (Block(pod.affinity, "memory", (pod.mebibytes + pod.sidecar_mebibytes) * MIB),)
            for pod in shared
        }

    def damage(self, content: bytes) -> bytes:
        old, new = self.flipped
        return content.replace(old.encode(), new.encode(), 1) if old else content

    def host_variables(self) -> Settings:
        found: Settings = {"sample_story": self.story, "sample_verdict": self.verdict}
        found["sample_will_start"] = self.will_start
        found["sample_code"] = self.code
        if self.form in (K3S, JSON):
            found["memmgr_validate_kubelet_version"] = f"v{self.version}"
        return found

    # --- files of the kubelet ---

    def kubelet_files(self) -> Files:
        files = {KUBEADM: _kubeadm, DROP_IN: _drop_in, K3S: _k3s, JSON: _json, NO_KUBELET: _nothing}[self.form](self)
        for pod in self.pods:
            files[f"var/lib/kubelet/pods/{pod.uid(self.name)}/etc-hosts"] = _etc_hosts(pod)
        return files

    def memory_manager(self) -> Settings:
        if self.policy != "Static":
            return {}
        entries = [{"numaNode": node, "limits": {"memory": size}} for node, size in self.reserved.items()]
        return {"memoryManagerPolicy": self.policy, "reservedMemory": entries}

    def configuration(self) -> Settings:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupDriver": "systemd",
            "clusterDNS": ["10.96.0.10"],
            "clusterDomain": "cluster.local",
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "single-numa-node",
            "kubeReserved": {"cpu": "500m", "memory": "200Mi"},
            "systemReserved": {"cpu": "500m", "memory": "100Mi"},
            "rotateCertificates": True,
            "staticPodPath": "/etc/kubernetes/manifests",
        }


def _etc_hosts(pod: Pod) -> str:
    lines = ("127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", f"10.244.3.17\t{pod.name}")
    return "\n".join(("# Kubernetes-managed hosts file.", *lines)) + "\n"


def _nothing(_node: SampleNode) -> Files:
    return {}


def _unit(command: str) -> str:
    return (
        "[Unit]\nDescription=kubelet: The Kubernetes Node Agent\nWants=network-online.target\n"
        f"After=network-online.target\n\n[Service]\nExecStart={command}\nRestart=always\nRestartSec=10\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


_KUBECONFIG = "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
_KUBEADM_DROP_IN = f"""\
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS={_KUBECONFIG}"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

_DPKG_STATUS = """\
Package: kubelet
Status: hold ok installed
Priority: optional
Section: admin
Maintainer: Kubernetes Authors <dev@kubernetes.io>
Architecture: {architecture}
Version: {version}-1.1
Description: Node agent for Kubernetes clusters
"""


def _kubeadm(node: SampleNode) -> Files:
    architecture = "arm64" if node.name.startswith("arm") else "amd64"
    configuration = {**node.configuration(), **node.memory_manager(), **node.settings}
    return {
        "usr/lib/systemd/system/kubelet.service": _unit("/usr/bin/kubelet"),
        "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": _KUBEADM_DROP_IN,
        "var/lib/kubelet/config.yaml": dump_yaml(configuration),
        "var/lib/kubelet/kubeadm-flags.env": f'KUBELET_KUBEADM_ARGS="--hostname-override={node.name}"\n',
        "var/lib/dpkg/status": _DPKG_STATUS.format(architecture=architecture, version=node.version),
    }


def _drop_in(node: SampleNode) -> Files:
    """kubeadm's files, with the memory manager's settings in the kubelet's own drop-in directory."""
    files = _kubeadm(node)
    configuration = {**node.configuration(), **node.settings}
    files["var/lib/kubelet/config.yaml"] = dump_yaml(configuration)
    files["etc/default/kubelet"] = "KUBELET_EXTRA_ARGS=--config-dir=/etc/kubernetes/kubelet.conf.d\n"
    files["etc/kubernetes/kubelet.conf.d/20-memory-manager.conf"] = _conf(node.memory_manager())
    if node.dropped_in:
        files["etc/kubernetes/kubelet.conf.d/90-eviction.conf"] = _conf(node.dropped_in)
    return files


def _conf(settings: Settings) -> str:
    return dump_yaml({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **settings})


def _k3s(node: SampleNode) -> Files:
    """k3s writes the defaults itself; its kubelet has no threshold for memory unless one is given."""
    directory = "var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
    defaults = {"evictionHard": {"imagefs.available": "5%", "nodefs.available": "5%"}, "clusterDomain": "cluster.local"}
    reserved = {key: value for key, value in node.configuration().items() if key.endswith("Reserved")}
    own = {**node.memory_manager(), **reserved, "evictionHard": {"memory.available": "100Mi"}, **node.settings}
    return {
        "etc/systemd/system/k3s.service": _unit("/usr/local/bin/k3s server"),
        "etc/rancher/k3s/config.yaml": dump_yaml({"write-kubeconfig-mode": "0600", "kubelet-arg": ["v=2"]}),
        f"{directory}/00-k3s-defaults.conf": _conf(defaults),
        f"{directory}/50-memory-manager.conf": _conf(own),
    }


def _json(node: SampleNode) -> Files:
    configuration = {**node.configuration(), **node.memory_manager(), **node.settings}
    return {
        "etc/systemd/system/kubelet.service": _unit(
            "/opt/bin/kubelet --config=/etc/kubernetes/kubelet.json --kubeconfig=/etc/kubernetes/kubelet.conf"
        ),
        "etc/kubernetes/kubelet.json": json.dumps(configuration, indent=2) + "\n",
    }


_FOUR = {0: "100Mi", 1: "100Mi", 2: "100Mi", 3: "100Mi"}
_TWO_PODS = (Pod("upf-0", (0,), 768, "upf"), Pod("du-low-phy-0", (1,), 1024, "l1"))
_GATE = {"featureGates": {"MemoryManagerDriftTolerance": True}}

NODES: t.Tuple[SampleNode, ...] = (
    SampleNode(
        "ran-muc-01",
        "KASLR put the image where it was; nothing changed",
        "captures/k61-2n/boot-01",
        "captures/k61-2n/boot-00",
        "match",
        True,
        version="1.34.4",
        pods=_TWO_PODS,
    ),
    SampleNode(
        "ran-muc-02",
        "The kernel freed two pages more: 8 KiB, and the kubelet stops",
        "captures/k61-2n/boot-02",
        "captures/k61-2n/boot-00",
        "tolerable",
        False,
        "memory_drift",
        version="1.35.3",
        pods=_TWO_PODS,
    ),
    SampleNode(
        "ran-muc-03",
        "A DIMM of 512 MiB is gone from NUMA node 1",
        "captures/k61-2n-dimmloss/boot-02",
        "captures/k61-2n/boot-00",
        "refuse",
        False,
        "memory_changed",
        version="1.34.4",
        pods=_TWO_PODS,
    ),
    SampleNode(
        "ran-muc-04",
        "Somebody switched kdump on: crashkernel=256M",
        "captures/k61-2n-crashkernel/boot-00",
        "captures/k61-2n/boot-00",
        "refuse",
        False,
        "memory_changed",
        version="1.34.4",
        pods=_TWO_PODS[:1],
    ),
    SampleNode(
        "ran-muc-05",
        "Switched from None to Static without removing the file that None had written",
        "captures/k61-2n/boot-03",
        "captures/k61-2n/boot-02",
        "unreadable",
        False,
        "state_policy_mismatch",
        version="1.35.3",
        recorded_policy="None",
    ),
    SampleNode(
        "ran-ham-01",
        "k3s server: the kernel image moved from node 0 to node 1",
        "captures/k612-2n/boot-01",
        "captures/k612-2n/boot-00",
        "tolerable",
        False,
        "memory_drift",
        version="1.36.2+k3s1",
        form=K3S,
        pods=(Pod("cu-cp-0", (0,), 512, "cu"), Pod("cu-up-0", (1,), 1024, "cu")),
    ),
    SampleNode(
        "ran-ham-02",
        "k3s server installed today: no state file yet",
        "captures/k612-2n/boot-02",
        "",
        "absent",
        True,
        version="1.36.2+k3s1",
        form=K3S,
    ),
    SampleNode(
        "ran-ham-03",
        "The crash kernel (512 MiB) moved to the other node: benign, but far beyond the KEP's bound",
        "captures-arm64/x86-crashmove/k61/boot-01",
        "captures-arm64/x86-crashmove/k61/boot-00",
        "refuse",
        False,
        "memory_changed",
        version="1.37.2+k3s1",
        form=K3S,
        state_format=V3,
        reserved={0: "300Mi", 1: "100Mi"},
    ),
    SampleNode(
        "hpc-r12-n01",
        "Four NUMA nodes: the image moved; the next boot could leave the solver without room",
        "captures/k61-4n/boot-05",
        "captures/k61-4n/boot-00",
        "tolerable",
        False,
        "memory_drift",
        version="1.37.2",
        state_format=V3,
        reserved=_FOUR,
        pods=(Pod("solver-0", (1,), 800, "solver"), Pod("solver-1", (3,), 512, "solver")),
    ),
    SampleNode(
        "hpc-r12-n02",
        "A pod spans nodes 2 and 3, between which the image moved",
        "captures/k61-4n/boot-03",
        "captures/k61-4n/boot-00",
        "tolerable",
        False,
        "memory_drift",
        version="1.37.2",
        state_format=V3,
        reserved=_FOUR,
        pods=(Pod("mesh-large-0", (2, 3), 1200, "mesh"), Pod("solver-2", (0,), 256, "solver")),
    ),
    SampleNode(
        "hpc-r12-n03",
        "Drift within the bound, but the pod on node 2 had used all but 11 MiB of it",
        "captures/k61-4n/boot-03",
        "captures/k61-4n/boot-00",
        "refuse",
        False,
        "assignment_does_not_fit",
        version="1.37.2",
        state_format=V3,
        reserved=_FOUR,
        pods=(Pod("mesh-small-0", (2,), 832, "mesh"),),
    ),
    SampleNode(
        "hpc-r12-n04",
        "Audited inside a container without CAP_SYS_ADMIN: /proc/iomem shows zeros, so there is no bound",
        "captures/k61-4n/boot-02",
        "captures/k61-4n/boot-00",
        "refuse",
        False,
        "memory_changed",
        reserved=_FOUR,
        iomem_hidden=True,
        pods=(Pod("solver-3", (0,), 256, "solver"),),
    ),
    SampleNode(
        "hpc-r12-n05",
        "Booted with numa=off: one NUMA node where two are recorded",
        "captures/k61-2n-numaoff/boot-00",
        "captures/k61-2n/boot-00",
        "refuse",
        False,
        "reserved_memory_unknown_node",
        pods=(Pod("solver-4", (1,), 512, "solver"),),
    ),
    SampleNode(
        "hpc-r12-n06",
        "Pod-level resources (V2 file) on a machine with a node without memory; the image moved",
        "captures/k61-3n-memoryless/boot-01",
        "captures/k61-3n-memoryless/boot-00",
        "tolerable",
        False,
        "memory_drift",
        state_format=V2,
        pod_level=True,
        settings={"featureGates": {"PodLevelResourceManagers": True}},
        pods=(Pod("train-0", (0,), 512, "train", sidecar_mebibytes=64),),
    ),
    SampleNode(
        "gpu-fra-01",
        "Huge pages were spread over both nodes, now they are asked for per node",
        "captures/k61-2n-hp2m-pernode/boot-01",
        "captures/k61-2n-hp2m/boot-01",
        "refuse",
        False,
        "hugepages_changed",
        form=DROP_IN,
        pods=(Pod("dpdk-0", (0,), 256, "dpdk", ("hugepages-2Mi", 64)),),
    ),
    SampleNode(
        "gpu-fra-02",
        "1 GiB huge pages, configuration in JSON; nothing changed",
        "captures/k61-2n-hp1g/boot-01",
        "captures/k61-2n-hp1g/boot-00",
        "match",
        True,
        version="1.37.2",
        form=JSON,
        state_format=V3,
        pods=(Pod("inference-0", (0,), 1024, "server", ("hugepages-1Gi", 1024)),),
    ),
    SampleNode(
        "gpu-fra-03",
        "Somebody edited the file and left the checksum as it was",
        "captures/k61cloud-2n/boot-01",
        "captures/k61cloud-2n/boot-00",
        "unreadable",
        False,
        "state_corrupt",
        version="1.35.3",
        form=JSON,
        pods=(Pod("inference-1", (1,), 512, "server"),),
        flipped=('"size":536870912', '"size":536870000'),
    ),
    SampleNode(
        "gpu-fra-04",
        "A later drop-in raised evictionHard, and reservedMemory no longer adds up",
        "captures/k61cloud-2n/boot-00",
        "captures/k61cloud-2n/boot-00",
        "refuse",
        False,
        "reserved_memory_sum",
        form=DROP_IN,
        dropped_in={"evictionHard": {"memory.available": "500Mi"}},
        pods=(Pod("inference-2", (1,), 512, "server"),),
    ),
    SampleNode(
        "gpu-fra-05",
        "The gate of KEP-6232 was rolled out before the kubelet that knows it",
        "captures/k61cloud-2n/boot-02",
        "captures/k61cloud-2n/boot-00",
        "refuse",
        False,
        "gate_unknown",
        version="1.37.2",
        state_format=V3,
        settings={**_GATE, "memoryManagerPolicyOptions": {"memory-drift-tolerance": "auto"}},
        pods=(Pod("inference-3", (0,), 512, "server"),),
    ),
    SampleNode(
        "gpu-fra-06",
        "Upgraded to 1.36 with the old gate MemoryManager still in the configuration",
        "captures/k61-2n/boot-04",
        "captures/k61-2n/boot-00",
        "refuse",
        False,
        "gate_removed",
        settings={"featureGates": {"MemoryManager": True}},
        pods=(Pod("inference-4", (0,), 512, "server"),),
    ),
    SampleNode(
        "arm-osl-01",
        "arm64: no Kernel bss row in /proc/iomem, the image moved",
        "captures-arm64/k61-acpi/boot-01",
        "captures-arm64/k61-acpi/boot-00",
        "tolerable",
        False,
        "memory_drift",
        version="1.37.2",
        state_format=V3,
        pods=(Pod("edge-cache-0", (0,), 512, "cache"),),
    ),
    SampleNode(
        "arm-osl-02",
        "arm64: upgraded from kernel 6.1 to 6.12, and the image moved: 34 MiB",
        "captures-arm64/k612-acpi/boot-01",
        "captures-arm64/k61-acpi/boot-00",
        "tolerable",
        False,
        "memory_drift",
        pods=(Pod("edge-cache-1", (1,), 512, "cache"),),
    ),
    SampleNode(
        "cp-ber-01",
        "Control plane with policy None: nothing is compared",
        "captures/k61-1n/boot-01",
        "captures/k61-1n/boot-00",
        "not_applicable",
        True,
        "policy_none",
        policy="None",
        recorded_policy="None",
    ),
    SampleNode(
        "store-ber-01",
        "A storage server without a kubelet",
        "captures/k61-1n/boot-02",
        "",
        "not_applicable",
        None,
        "no_kubelet",
        form=NO_KUBELET,
    ),
)
