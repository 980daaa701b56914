# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table: a node's files and flags, and what a real kubelet of a release makes of them.

A case without `error` starts its memory manager; else `error` is the text that the kubelet gives. Reservations are
in Mi: unless a case says otherwise kube-reserved 500 + system-reserved 300 + evictionHard 200 = 600 + 400 on two nodes.
"""

from __future__ import annotations

import dataclasses
import struct
import typing as t

from .harness import state
from .harness.node import CONFIG, Node
from .harness.state import Block
from .harness.topology import FOUR_NODES, GIB, MIB, TWO_NODES, NumaNode, Topology

V134 = "v1.34.4"
V137 = "v1.37.2"
RELEASES = (V134, V137)
BYTES_PER_MIB = 1 << 20
RESERVED = {0: 600 * BYTES_PER_MIB, 1: 400 * BYTES_PER_MIB}
DRIFT_GATE = "MemoryManagerDriftTolerance"


@dataclasses.dataclass(frozen=True)
class Case:
    """One row, true for the `releases`. `panics`: the kubelet ends with a Go panic.

    `recorded` is what the state file says after a start; without it a file that was there stays as it was.
    """

    name: str
    node: Node
    error: str | None = None
    recorded: state.State | None = None
    panics: bool = False
    releases: tuple[str, ...] = RELEASES


def limits(reserved: t.Mapping[int, t.Mapping[str, str]]) -> str:
    """reservedMemory as YAML."""
    rows = (f"- numaNode: {node}\n  limits: {_flow(pairs)}\n" for node, pairs in reserved.items())
    return "reservedMemory:\n" + "".join(rows)


def _flow(pairs: t.Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{key}: "{value}"' for key, value in pairs.items()) + "}"


def memory(**amounts: str) -> str:
    """reservedMemory with memory only: `memory(n0="600Mi", n1="400Mi")`."""
    return limits({int(name[1:]): {"memory": amount} for name, amount in amounts.items()})


BALANCED = memory(n0="600Mi", n1="400Mi")
KUBE = '{memory: "500Mi"}'
SYSTEM = '{memory: "300Mi"}'
EVICTION = 'evictionHard: {memory.available: "200Mi"}\n'


def static(
    reserved: str = BALANCED,
    *,
    kube: str = KUBE,
    system: str = SYSTEM,
    eviction: str = EVICTION,
    policy: str = "Static",
    more: str = "",
) -> str:
    """A configuration file; with nothing given it is in order."""
    head = f"memoryManagerPolicy: {policy}\nkubeReserved: {kube}\nsystemReserved: {system}\n"
    return head + eviction + reserved + more


def sum_of(total_mib: int) -> str:
    """reservedMemory of two nodes with this sum."""
    return memory(n0=f"{total_mib - 300}Mi", n1="300Mi")


def unequal(given: str, wanted: str, resource: str = "memory") -> str:
    return (
        f'the total amount "{given}" of type "{resource}" is not equal to the value "{wanted}" '
        "determined by Node Allocatable feature"
    )


def policy_differs(configured: str, recorded: str) -> str:
    return f'[memorymanager] configured policy "{configured}" differs from state checkpoint policy "{recorded}"'


def percentage(percent: float, capacity_kib: int) -> int:
    """Bytes that an eviction percentage means: the kubelet computes with float32, and then truncates."""
    single = struct.unpack("f", struct.pack("f", struct.unpack("f", struct.pack("f", percent))[0] / 100))[0]
    return int(float(capacity_kib * 1024) * single)


DEPENDS = "PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources]"
UNRECOGNIZED = "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
FROM_FLAGS = "failed to set feature gates from initial flags-based config: "
DIFFERENT = "[memorymanager] the expected machine state is different from the real one"
CORRUPT = "could not restore state from checkpoint: checkpoint is corrupted"
V3_CORRUPT = "could not restore state from checkpoint: could not load v3 checkpoint: checkpoint is corrupted"
MISSING_SUM = "[memorymanager] you should specify the system reserved memory"
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NOT_INT64 = "could not covert a variable of type Quantity to int64"

ENTRIES: state.Entries = {
    "8d5e7a3c-0000-4000-8000-000000000001": {
        "app": [Block((0,), 2 * GIB * 1024)],
        "sidecar": [Block((0,), 256 * BYTES_PER_MIB)],
    },
    "8d5e7a3c-0000-4000-8000-000000000002": {"app": [Block((1,), 3 * GIB * 1024)]},
}
GROUP: state.Entries = {"8d5e7a3c-0000-4000-8000-000000000003": {"db": [Block((0, 1), 40 * GIB * 1024)]}}
STAGED: state.Entries = {
    "8d5e7a3c-0000-4000-8000-000000000006": {
        "init": [Block((0,), 1 * GIB * 1024)],
        "app": [Block((0,), 3 * GIB * 1024)],
    }
}
# The same pod one write earlier: the init container has not given its memory to the next one yet.
HALF_STAGED: state.Entries = {
    "8d5e7a3c-0000-4000-8000-000000000006": {
        "init": [Block((0,), 4 * GIB * 1024)],
        "app": [Block((0,), 3 * GIB * 1024)],
    }
}
PLAIN = state.of_machine(TWO_NODES, RESERVED)
PINNED = state.of_machine(TWO_NODES, RESERVED, ENTRIES)
GROUPED = state.of_machine(TWO_NODES, RESERVED, GROUP)
EMPTY_STATIC = state.State("Static", {})
EMPTY_NONE = state.State("None", {})
IMAGE = 45272

CONFIG_STATIC = static()
FLAGS_STATIC = (
    "--memory-manager-policy=Static",
    "--kube-reserved=memory=500Mi",
    "--system-reserved=memory=300Mi",
    "--reserved-memory=0:memory=500Mi;1:memory=300Mi",
)

POLICY = [
    Case("nothing configured", Node(), recorded=EMPTY_NONE),
    Case("Static on a fresh node", Node(config=CONFIG_STATIC), recorded=PLAIN),
    Case("None with a file of None", Node(state=state.v1(EMPTY_NONE))),
    Case("a Static file under None", Node(state=state.v1(PINNED)), policy_differs("None", "Static")),
    Case(
        "a file of None under Static",
        Node(config=CONFIG_STATIC, state=state.v3(EMPTY_NONE)),
        policy_differs("Static", "None"),
    ),
    Case("policy static in lower case", Node(config=static(policy="static")), 'unknown policy: "static"'),
    Case("policy none in lower case", Node(config="memoryManagerPolicy: none\n"), 'unknown policy: "none"'),
    Case(
        "policy BestEffort",
        Node(config=static(policy="BestEffort")),
        'policy "BestEffort" is not available for platform "linux"',
    ),
    Case("an empty policy is the default", Node(config='memoryManagerPolicy: ""\n')),
    Case("None does not look at reservedMemory", Node(config=static(memory(n7="1Gi"), policy="None"))),
]

GATES = [
    Case(
        "unknown gate by flag",
        Node(flags=(f"--feature-gates={DRIFT_GATE}=true",)),
        f"{FROM_FLAGS}unrecognized feature gate: {DRIFT_GATE}",
    ),
    Case(
        "unknown gate in the file",
        Node(config=f"featureGates: {{{DRIFT_GATE}: true}}\n"),
        f"{UNRECOGNIZED}unrecognized feature gate: {DRIFT_GATE}",
        panics=True,
    ),
    Case(
        "unknown gate set to false in the file",
        Node(config=f"featureGates: {{{DRIFT_GATE}: false}}\n"),
        f"{UNRECOGNIZED}unrecognized feature gate: {DRIFT_GATE}",
        panics=True,
    ),
    Case(
        "unknown gate in a drop-in",
        Node(dropins={"90-drift.conf": f"featureGates: {{{DRIFT_GATE}: true}}\n"}),
        f"{UNRECOGNIZED}unrecognized feature gate: {DRIFT_GATE}",
        panics=True,
    ),
    Case(
        "gate MemoryManager where it is listed", Node(config="featureGates: {MemoryManager: true}\n"), releases=(V134,)
    ),
    Case(
        "gate MemoryManager where it is gone",
        Node(config="featureGates: {MemoryManager: true}\n"),
        f"{UNRECOGNIZED}unrecognized feature gate: MemoryManager",
        panics=True,
        releases=(V137,),
    ),
    Case(
        "gate MemoryManager by flag where it is gone",
        Node(flags=("--feature-gates=MemoryManager=true",)),
        f"{FROM_FLAGS}unrecognized feature gate: MemoryManager",
        releases=(V137,),
    ),
    Case(
        "locked gate set to false by flag",
        Node(flags=("--feature-gates=CPUManagerPolicyOptions=false",)),
        f"{FROM_FLAGS}cannot set feature gate CPUManagerPolicyOptions to false, feature is locked to true",
    ),
    Case(
        "locked gate set to false in the file",
        Node(config="featureGates: {CPUManagerPolicyOptions: false}\n"),
        f"{UNRECOGNIZED}cannot set feature gate CPUManagerPolicyOptions to false, feature is locked to true",
        panics=True,
    ),
    Case(
        "locked MemoryManager set to false in the file",
        Node(config="featureGates: {MemoryManager: false}\n"),
        f"{UNRECOGNIZED}cannot set feature gate MemoryManager to false, feature is locked to true",
        panics=True,
        releases=(V134,),
    ),
    Case("GA gate that --help hides, in the file", Node(config="featureGates: {CPUManagerPolicyOptions: true}\n")),
    Case("GA gate that --help hides, by flag", Node(flags=("--feature-gates=KubeletTracing=true",))),
    Case(
        "GA gate that is not locked yet",
        Node(config="featureGates: {TopologyManagerPolicyOptions: false}\n"),
        releases=(V134,),
    ),
    Case(
        "GA gate that is locked by now",
        Node(config="featureGates: {TopologyManagerPolicyOptions: false}\n"),
        f"{UNRECOGNIZED}cannot set feature gate TopologyManagerPolicyOptions to false, feature is locked to true",
        panics=True,
        releases=(V137,),
    ),
    Case("a group of gates", Node(config="featureGates: {AllAlpha: false}\n")),
    Case("a known beta gate", Node(config="featureGates: {PodLevelResourceManagers: true}\n"), releases=(V137,)),
    Case(
        "a gate of a later release",
        Node(config="featureGates: {PodLevelResourceManagers: true}\n"),
        f"{UNRECOGNIZED}unrecognized feature gate: PodLevelResourceManagers",
        panics=True,
        releases=(V134,),
    ),
    Case(
        "a gate without the one it depends on, in the file",
        Node(config="featureGates: {PodLevelResourceManagers: true, PodLevelResources: false}\n"),
        DEPENDS,
        panics=True,
        releases=(V137,),
    ),
    Case(
        "a gate without the one it depends on, by flag",
        Node(flags=("--feature-gates=PodLevelResourceManagers=true,PodLevelResources=false",)),
        DEPENDS,
        releases=(V137,),
    ),
    Case(
        "a flag does not mend the file's gates",
        Node(
            config="featureGates: {PodLevelResourceManagers: true, PodLevelResources: false}\n",
            flags=("--feature-gates=PodLevelResources=true",),
        ),
        DEPENDS,
        panics=True,
        releases=(V137,),
    ),
    Case(
        "a flag does not mend an unknown gate of the file",
        Node(config=f"featureGates: {{{DRIFT_GATE}: true}}\n", flags=("--feature-gates=AllAlpha=false",)),
        f"{UNRECOGNIZED}unrecognized feature gate: {DRIFT_GATE}",
        panics=True,
    ),
    Case(
        "a gate is switched off on which others depend that are on by default",
        Node(config="featureGates: {PodLevelResources: false}\n"),
        "PodLevelResourcesFixDefaulting is enabled, but depends on features that are disabled: [PodLevelResources]",
        panics=True,
        releases=(V137,),
    ),
    Case(
        "a gate is switched off on which none depends yet",
        Node(config="featureGates: {PodLevelResources: false}\n"),
        releases=(V134,),
    ),
    Case(
        "a gate that is no boolean",
        Node(config='featureGates: {PodLevelResources: "true"}\n'),
        "json: cannot unmarshal string into Go struct field KubeletConfiguration.featureGates of type bool",
    ),
    Case(
        "a gate by flag that is no boolean",
        Node(flags=("--feature-gates=PodLevelResources=maybe",)),
        "invalid value of PodLevelResources: maybe",
    ),
]

OPTION = "memoryManagerPolicyOptions: {memory-drift-tolerance: auto}\n"
FILES = [
    Case("option field in the main file", Node(config=static(more=OPTION))),
    Case("option field in a drop-in", Node(config=CONFIG_STATIC, dropins={"10.conf": OPTION})),
    Case("option field under None", Node(config=OPTION)),
    Case("unknown field", Node(config=static(more="memoryManagerPolicyOption: {}\n"))),
    Case(
        "duplicate field, the last one counts", Node(config=static(policy="None", more="memoryManagerPolicy: Static\n"))
    ),
    Case(
        "duplicate field, the last one is wrong",
        Node(config=static(more="memoryManagerPolicy: static\n")),
        'unknown policy: "static"',
    ),
    Case("field in another letter case", Node(config=static(more="memorymanagerpolicy: static\n"))),
    Case("empty file", Node(config="raw:"), f'kubelet config file "{CONFIG}" was empty'),
    Case("JSON file", Node(config='raw:{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1"}')),
    Case("no file at that path", Node(config=None, flags=("--config=/var/lib/kubelet/nowhere.yaml",)), "nowhere.yaml"),
    Case("no kind", Node(config="raw:memoryManagerPolicy: None\n"), "Object 'Kind' is missing"),
    Case(
        "unknown version",
        Node(config="raw:apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n"),
        'no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"',
    ),
    Case("no YAML", Node(config="memoryManagerPolicy: [\n"), "did not find expected node content"),
    Case(
        "policy is a number",
        Node(config="memoryManagerPolicy: 5\n"),
        "json: cannot unmarshal number into Go struct field",
    ),
    Case(
        "reservedMemory is a map",
        Node(config="reservedMemory: {}\n"),
        "json: cannot unmarshal object into Go struct field",
    ),
    Case(
        "numaNode is text",
        Node(config='reservedMemory:\n- {numaNode: "0", limits: {memory: 1Gi}}\n'),
        "json: cannot unmarshal string into Go struct field",
    ),
    Case(
        "a reservation that is a number",
        Node(config="kubeReserved: {memory: 1073741824}\n"),
        "json: cannot unmarshal number into Go struct field KubeletConfiguration.kubeReserved of type string",
    ),
    Case(
        "a limit that is a number",
        Node(config=static(f"reservedMemory:\n- numaNode: 0\n  limits: {{memory: {1000 << 20}}}\n")),
    ),
    Case("a limit with an unknown suffix", Node(config=static(memory(n0="1K"))), "unable to parse quantity's suffix"),
    Case("a limit that is no quantity", Node(config=static(memory(n0="1 Gi"))), QUANTITY),
]

TINY = Topology({0: NumaNode(GIB // 2), 1: NumaNode(32 * GIB)})
HUGEPAGES_LIMIT = limits({0: {"memory": "600Mi", "hugepages-2Mi": "4Mi"}, 1: {"memory": "400Mi"}})
LIMITS = [
    Case("sum too low", Node(config=static(sum_of(900))), unequal("900Mi", "1000Mi")),
    Case("sum too high", Node(config=static(sum_of(1001))), unequal("1001Mi", "1000Mi")),
    Case("one byte too much", Node(config=static(memory(n0=str((1000 << 20) + 1)))), unequal("1048576001", "1000Mi")),
    Case(
        "one node only", Node(config=static(memory(n1="1000Mi"))), recorded=state.of_machine(TWO_NODES, {1: 1000 << 20})
    ),
    Case("Gi and Mi", Node(config=static(memory(n0="1Gi"), system='{memory: "324Mi"}'))),
    Case("reservedMemory is absent", Node(config=static("")), unequal("0", "1000Mi")),
    Case("reservedMemory is empty", Node(config=static("reservedMemory: []\n")), unequal("0", "1000Mi")),
    Case(
        "nothing is reserved at all",
        Node(config=static("", kube="{}", system="{}", eviction="evictionHard: {}\n")),
        MISSING_SUM,
    ),
    Case(
        "a node that does not exist",
        Node(config=static(memory(n0="600Mi", n7="400Mi"))),
        "the reserved memory configuration references a NUMA node 7 that does not exist on this machine",
    ),
    Case(
        "a negative node",
        Node(config=static("reservedMemory:\n- {numaNode: -1, limits: {memory: 1000Mi}}\n")),
        "the reserved memory configuration references a NUMA node -1 that does not exist on this machine",
    ),
    Case("1.5Gi", Node(config=static(memory(n0="1.5Gi"), kube='{memory: "1036Mi"}')), NOT_INT64),
    Case(
        "1.5Gi with a drop-in directory", Node(config=static(memory(n0="1.5Gi"), kube='{memory: "1036Mi"}'), dropins={})
    ),
    Case(
        "1.5G",
        Node(config=static(memory(n0="1.5G"), kube='{memory: "1.5G"}', system="{}", eviction="evictionHard: {}\n")),
    ),
    Case(
        "1Pi",
        Node(config=static(memory(n0="1Pi"), kube='{memory: "1Pi"}', system="{}", eviction="evictionHard: {}\n")),
        NOT_INT64,
    ),
    Case("huge pages", Node(config=static(HUGEPAGES_LIMIT)), unequal("4Mi", "0", "hugepages-2Mi")),
    Case(
        "huge pages in kubeReserved",
        Node(config=static(kube='{memory: "500Mi", hugepages-2Mi: "4Mi"}')),
        'cannot reserve "hugepages-2Mi" resource',
    ),
    Case(
        "a CPU limit",
        Node(config=static(limits({0: {"memory": "1000Mi", "cpu": "1"}}))),
        'invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, '
        "only [memory hugepages-<HugePageSize>] is accepted",
    ),
    Case(
        "a limit of zero",
        Node(config=static(memory(n0="1000Mi", n1="0"))),
        'invalid configuration: reserved memory may not be zero for NUMA node 1 and resource "memory"',
    ),
    Case(
        "a duplicate limit",
        Node(config=static(memory(n0="600Mi") + "- numaNode: 0\n  limits: {memory: 400Mi}\n")),
        'invalid configuration: the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
    ),
    Case(
        "a CPU limit under None", Node(config=static(limits({0: {"cpu": "1"}}), policy="None")), 'the limit type "cpu"'
    ),
    Case(
        "a negative limit that makes the sum",
        Node(config=static(memory(n0="1200Mi", n1="-200Mi"))),
        recorded=state.of_machine(TWO_NODES, {0: 1200 << 20, 1: -200 << 20}),
    ),
    Case(
        "more than the node has",
        Node(topology=TINY, config=static(memory(n0="1000Mi"))),
        recorded=state.of_machine(TINY, {0: 1000 << 20}),
    ),
    Case(
        "a negative reservation",
        Node(config=static(kube='{memory: "-500Mi"}')),
        'resource quantity for "memory" cannot be negative: -500Mi',
    ),
    Case(
        "a reservation that is no quantity", Node(config=static(kube='{memory: "500Mib"}')), "failed to parse quantity"
    ),
    Case("kubeReserved only", Node(config=static(sum_of(700), system="{}"))),
    Case(
        "CPU reserved too",
        Node(config=static(kube='{cpu: "100m", memory: "500Mi", ephemeral-storage: "1Gi", pid: "100"}')),
    ),
]

FIVE_PERCENT = percentage(5, TWO_NODES.memory_capacity)
EVICTIONS = [
    Case("evictionHard absent: 100Mi by default", Node(config=static(sum_of(900), eviction=""))),
    Case("evictionHard absent and forgotten", Node(config=static(sum_of(800), eviction="")), unequal("800Mi", "900Mi")),
    Case("evictionHard {}", Node(config=static(sum_of(800), eviction="evictionHard: {}\n"))),
    Case("evictionHard null", Node(config=static(sum_of(900), eviction="evictionHard: null\n"))),
    Case(
        "evictionHard without memory.available",
        Node(config=static(sum_of(800), eviction="evictionHard: {nodefs.available: 5%}\n")),
    ),
    Case(
        "evictionHard in percent",
        Node(
            config=static(memory(n0=str(FIVE_PERCENT), n1="800Mi"), eviction="evictionHard: {memory.available: 5%}\n")
        ),
    ),
    Case(
        "evictionHard in percent, computed in double precision",
        Node(
            config=static(
                memory(n0=str(TWO_NODES.memory_capacity * 1024 * 5 // 100), n1="800Mi"),
                eviction="evictionHard: {memory.available: 5%}\n",
            )
        ),
        f'is not equal to the value "{FIVE_PERCENT + (800 << 20)}" determined by Node Allocatable feature',
    ),
    Case("evictionHard 0%", Node(config=static(sum_of(800), eviction="evictionHard: {memory.available: 0%}\n"))),
    Case("evictionHard 100%", Node(config=static(sum_of(800), eviction="evictionHard: {memory.available: 100%}\n"))),
    Case(
        "evictionHard above 100%",
        Node(config=static(eviction="evictionHard: {memory.available: 120%}\n")),
        "eviction percentage threshold memory.available must be <= 100%: 120%",
    ),
    Case(
        "evictionHard below 0%",
        Node(config=static(eviction="evictionHard: {memory.available: -5%}\n")),
        "eviction percentage threshold memory.available must be >= 0%: -5%",
    ),
    Case(
        "evictionHard negative",
        Node(config=static(eviction='evictionHard: {memory.available: "-200Mi"}\n')),
        "eviction threshold memory.available must be positive: -200Mi",
    ),
    Case(
        "evictionHard of zero bytes",
        Node(config=static(eviction='evictionHard: {memory.available: "0"}\n')),
        "eviction threshold memory.available must be positive: 0",
    ),
    Case(
        "an unknown signal",
        Node(config=static(eviction="evictionHard: {memory.free: 200Mi}\n")),
        "unsupported eviction signal memory.free",
    ),
    Case(
        "a threshold that is no quantity",
        Node(config=static(eviction="evictionHard: {memory.available: 200MiB}\n")),
        QUANTITY,
    ),
    Case(
        "mergeDefaultEvictionSettings",
        Node(
            config=static(
                sum_of(900), eviction="evictionHard: {nodefs.available: 5%}\nmergeDefaultEvictionSettings: true\n"
            )
        ),
    ),
    Case(
        "mergeDefaultEvictionSettings keeps what is given",
        Node(config=static(eviction=EVICTION + "mergeDefaultEvictionSettings: true\n")),
    ),
    Case(
        "evictionSoft does not count",
        Node(
            config=static(
                more='evictionSoft: {memory.available: "1Gi"}\nevictionSoftGracePeriod: {memory.available: 1m}\n'
            )
        ),
    ),
    Case(
        "eviction ignored by flag",
        Node(config=static(sum_of(800)), flags=("--experimental-allocatable-ignore-eviction=true",)),
    ),
]

DROPINS = [
    Case("no drop-in in the directory", Node(config=CONFIG_STATIC, dropins={})),
    Case(
        "no such directory",
        Node(config=CONFIG_STATIC, flags=("--config-dir=/var/lib/kubelet/nowhere",)),
        'failed to walk through kubelet dropin directory "/var/lib/kubelet/nowhere"',
    ),
    Case("evictionHard null", Node(config=static(sum_of(800)), dropins={"10.conf": "evictionHard: null\n"})),
    Case(
        "evictionHard null over the default",
        Node(config=static(sum_of(800), eviction=""), dropins={"10.conf": "evictionHard: null\n"}),
    ),
    Case(
        "memory.available null",
        Node(config=static(sum_of(800)), dropins={"10.conf": "evictionHard: {memory.available: null}\n"}),
    ),
    Case(
        "evictionHard merged into the defaults",
        Node(config=static(sum_of(900), eviction=""), dropins={"10.conf": "evictionHard: {nodefs.available: 5%}\n"}),
    ),
    Case(
        "evictionHard merged into what is there",
        Node(config=CONFIG_STATIC, dropins={"10.conf": "evictionHard: {nodefs.available: 5%}\n"}),
    ),
    Case(
        "a list is replaced",
        Node(config=CONFIG_STATIC, dropins={"10.conf": memory(n0="600Mi")}),
        unequal("600Mi", "1000Mi"),
    ),
    Case(
        "a list null", Node(config=CONFIG_STATIC, dropins={"10.conf": "reservedMemory: null\n"}), unequal("0", "1000Mi")
    ),
    Case("a map is merged", Node(config=CONFIG_STATIC, dropins={"10.conf": 'kubeReserved: {cpu: "100m"}\n'})),
    Case(
        "policy null is the default",
        Node(config=CONFIG_STATIC, dropins={"10.conf": "memoryManagerPolicy: null\n"}, state=state.v1(EMPTY_NONE)),
    ),
    Case(
        "the last file counts",
        Node(
            config=CONFIG_STATIC,
            dropins={"20.conf": "memoryManagerPolicy: static\n", "30.conf": "memoryManagerPolicy: Static\n"},
        ),
    ),
    Case(
        "files below directories count, in the order of names",
        Node(
            config=CONFIG_STATIC,
            dropins={"10.conf": "memoryManagerPolicy: None\n", "20/99.conf": "memoryManagerPolicy: static\n"},
        ),
        'unknown policy: "static"',
    ),
    Case(
        "other names do not count",
        Node(config=CONFIG_STATIC, dropins={"10.yaml": "memoryManagerPolicy: static\n", "README": "raw:no"}),
    ),
    Case(
        "a drop-in without apiVersion and kind",
        Node(dropins={"10.conf": "raw:memoryManagerPolicy: Static\n"}),
        "Object 'Kind' is missing in 'memoryManagerPolicy: Static\n'",
    ),
    Case(
        "a drop-in without apiVersion",
        Node(dropins={"10.conf": "raw:kind: KubeletConfiguration\n"}),
        "unknown apiVersion/kind: /, Kind=KubeletConfiguration",
    ),
    Case(
        "a drop-in of another version",
        Node(dropins={"10.conf": "raw:apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n"}),
        "unknown apiVersion/kind",
    ),
    Case("an empty drop-in", Node(dropins={"10.conf": "raw:"}), "was empty"),
    Case(
        "a drop-in with a comment only",
        Node(dropins={"10.conf": "raw:# nothing\n"}),
        "Object 'Kind' is missing in '# nothing\n'",
    ),
    Case("unknown field in a drop-in", Node(config=CONFIG_STATIC, dropins={"10.conf": "memoryManager: {}\n"})),
    Case(
        "wrong type in a drop-in",
        Node(config=CONFIG_STATIC, dropins={"10.conf": "memoryManagerPolicy: 5\n"}),
        "json: cannot unmarshal number into Go struct field",
    ),
    Case(
        "drop-ins without a main file: no default eviction",
        Node(config=None, dropins={"00.conf": static(sum_of(800), eviction="")}),
    ),
    Case(
        "drop-ins without a main file, default expected",
        Node(config=None, dropins={"00.conf": static(sum_of(900), eviction="")}),
        unequal("900Mi", "800Mi"),
    ),
]

K3S = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
K3S_DEFAULTS = """cgroupDriver: cgroupfs
evictionHard: {imagefs.available: 5%, nodefs.available: 5%}
evictionMinimumReclaim: {imagefs.available: 10%, nodefs.available: 10%}
"""
FLAGS = [
    Case("flags alone: no default eviction", Node(config=None, flags=FLAGS_STATIC)),
    Case(
        "a flag over the file's policy", Node(config=static(policy="None"), flags=("--memory-manager-policy=Static",))
    ),
    Case(
        "a flag of None over a Static file",
        Node(config=CONFIG_STATIC, flags=("--memory-manager-policy=None",), state=state.v1(PLAIN)),
        policy_differs("None", "Static"),
    ),
    Case(
        "a flag over a drop-in",
        Node(dropins={"10.conf": static(policy="static")}, flags=("--memory-manager-policy=Static",)),
    ),
    Case(
        "a map by flag replaces the file's",
        Node(config=static(sum_of(1100), kube='{memory: "1Gi"}'), flags=("--kube-reserved=memory=600Mi",)),
    ),
    Case("a map by flag drops the file's keys", Node(config=static(sum_of(500)), flags=("--kube-reserved=cpu=100m",))),
    Case("evictionHard by flag", Node(config=static(sum_of(850)), flags=("--eviction-hard=memory.available<50Mi",))),
    Case("evictionHard by flag, empty", Node(config=static(sum_of(800)), flags=("--eviction-hard=",))),
    Case(
        "reservedMemory by flag replaces the file's",
        Node(config=static(sum_of(700)), flags=("--reserved-memory=0:memory=600Mi;1:memory=400Mi",)),
    ),
    Case(
        "reservedMemory by repeated flags",
        Node(config=static(""), flags=("--reserved-memory=0:memory=600Mi", "--reserved-memory=1:memory=400Mi")),
    ),
    Case(
        "a flag without an equals sign", Node(config=static(policy="None"), flags=("--memory-manager-policy", "Static"))
    ),
    Case(
        "a reserved-memory flag without a type",
        Node(flags=("--reserved-memory=0",)),
        "the reserved memory has incorrect format",
    ),
    Case(
        "a reserved-memory flag with a CPU",
        Node(flags=("--reserved-memory=0:cpu=1",)),
        'memory type conversion error, unknown type: "cpu"',
    ),
    Case(
        "a reserved-memory flag of no node",
        Node(flags=("--reserved-memory=a:memory=1Gi",)),
        "failed to convert the NUMA node ID, exptected integer, got a",
        releases=(V134,),
    ),
    Case(
        "a reserved-memory flag of no node, spelt better",
        Node(flags=("--reserved-memory=a:memory=1Gi",)),
        "failed to convert the NUMA node ID, expected integer, got a",
        releases=(V137,),
    ),
    Case(
        "an unknown flag",
        Node(flags=("--memory-manager-policy-options=memory-drift-tolerance=auto",)),
        "unknown flag: --memory-manager-policy-options",
    ),
    Case(
        "another root directory",
        Node(config=static(policy="None"), state=state.v1(PINNED), root_dir="/var/lib/kubelet-data"),
        policy_differs("None", "Static"),
    ),
    Case(
        "as k3s does it",
        Node(
            config=None,
            config_dir=K3S,
            dropins={
                "00-k3s-defaults.conf": K3S_DEFAULTS,
                "10-memory.conf": static(sum_of(800), eviction=""),
            },
        ),
    ),
    Case(
        "as k3s does it, with kubelet arguments",
        Node(
            config=None,
            config_dir=K3S,
            dropins={"00-k3s-defaults.conf": K3S_DEFAULTS},
            flags=(*FLAGS_STATIC, "--eviction-hard=memory.available<100Mi"),
        ),
        unequal("800Mi", "900Mi"),
    ),
]


def recorded(text: str, machine: Topology = TWO_NODES, config: str = CONFIG_STATIC) -> Node:
    """A Static node with a state file, on a machine that may have changed since."""
    return Node(topology=machine, config=config, state=text)


def edited(text: str, old: str, new: str) -> str:
    assert old in text, f"{old} is not in the state file"
    return text.replace(old, new, 1)


V1_PINNED = state.v1(PINNED)
V1_GROUPED = state.v1(GROUPED)
V3_PINNED = state.v3(PINNED)
SMALLER = TWO_NODES.moved(n0=-8 * GIB)
STATE_FILES = [
    Case("V1", recorded(V1_PINNED)),
    Case("V3", recorded(V3_PINNED)),
    Case("V2 where pod level managers were never known", recorded(state.v2(PINNED)), CORRUPT, releases=(V134,)),
    Case("V2", recorded(state.v2(PINNED)), releases=(V137,)),
    Case("checksum 0", recorded(state.v1(PINNED, checksum=0)), CORRUPT, releases=(V134,)),
    Case("checksum 0 is accepted", recorded(state.v1(PINNED, checksum=0)), releases=(V137,)),
    Case("wrong checksum", recorded(state.v1(PINNED, checksum=1)), CORRUPT),
    Case("edited by hand", recorded(edited(V1_PINNED, '"numaAffinity":[0]', '"numaAffinity":[1]')), CORRUPT),
    Case("truncated", recorded(V1_PINNED[:-40]), "unexpected end of JSON input"),
    Case("V3 truncated", recorded(V3_PINNED[:-40]), "unexpected end of JSON input"),
    Case("empty", recorded(""), "unexpected end of JSON input"),
    Case("no JSON", recorded("hello"), "invalid character 'h' looking for beginning of value"),
    Case("text after the value", recorded(V1_PINNED + "x"), "invalid character 'x' after top-level value"),
    Case("with a newline at the end", recorded(V1_PINNED + "\n")),
    Case(
        "a number below zero",
        recorded(edited(V1_PINNED, '"reserved":0', '"reserved":-1')),
        "json: cannot unmarshal number -1 into Go struct field",
    ),
    Case(
        "V3, dataChecksum wrong",
        recorded(edited(V3_PINNED, '"dataChecksum":', '"dataChecksum":1')),
        V3_CORRUPT,
        releases=(V137,),
    ),
    Case(
        "V3, dataChecksum wrong, for a release without V3",
        recorded(edited(V3_PINNED, '"dataChecksum":', '"dataChecksum":1')),
        releases=(V134,),
    ),
    Case("V3, legacy checksum wrong", recorded(edited(V3_PINNED, '"checksum":', '"checksum":1')), releases=(V137,)),
    Case(
        "V3, legacy checksum wrong, for a release without V3",
        recorded(edited(V3_PINNED, '"checksum":', '"checksum":1')),
        CORRUPT,
        releases=(V134,),
    ),
    Case("V3, only data is right", recorded(state.v3(PLAIN, data=PINNED), config=CONFIG_STATIC)),
    Case("V3, only data is Static", recorded(state.v3(EMPTY_NONE, data=PINNED)), releases=(V137,)),
    Case(
        "V3, only data is Static, for a release without V3",
        recorded(state.v3(EMPTY_NONE, data=PINNED)),
        policy_differs("Static", "None"),
        releases=(V134,),
    ),
    Case("Static without a machine state", recorded(state.v1(EMPTY_STATIC)), recorded=PLAIN),
    Case(
        "assignments without a machine state",
        recorded(state.v1(dataclasses.replace(EMPTY_STATIC, entries=ENTRIES))),
        "[memorymanager] machine state can not be empty when it has memory assignments",
    ),
    Case(
        "a null table with checksum 0",
        recorded(
            state.v1(EMPTY_STATIC, 0).replace(
                "{}", '{"0":{"numberOfAssignments":0,"memoryMap":{"memory":null},"cells":[0]}}'
            )
        ),
        "runtime error: invalid memory address or nil pointer dereference",
        panics=True,
        releases=(V137,),
    ),
]

HUGE = TWO_NODES.changed({1: NumaNode(32 * GIB - 9 * MIB).with_pages(p2048=512)})
BARE = TWO_NODES.changed({2: NumaNode(0)})
SPARSE = Topology({i: NumaNode(4 * GIB - i * 7 * MIB) for i in (0, 2, 10, 11)})
FULL: state.Entries = {"8d5e7a3c-0000-4000-8000-000000000004": {"big": [Block((0,), 40 * GIB * 1024)]}}
MACHINES = [
    Case("the same machine", recorded(state.v1(PLAIN))),
    Case("the same machine, a group of nodes", recorded(V1_GROUPED)),
    Case("a page less", recorded(V1_PINNED, TWO_NODES.moved(n1=-4)), DIFFERENT),
    Case("a page more", recorded(V3_PINNED, TWO_NODES.moved(n1=4)), DIFFERENT),
    Case("the kernel image moved", recorded(V1_PINNED, TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)), DIFFERENT),
    Case("the kernel image moved, V3", recorded(V3_PINNED, TWO_NODES.moved(n0=IMAGE, n1=-IMAGE)), DIFFERENT),
    Case(
        "the kernel image moved, nothing assigned",
        recorded(state.v1(PLAIN), TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)),
        DIFFERENT,
    ),
    Case(
        "the kernel image moved, a group of nodes",
        recorded(V1_GROUPED, TWO_NODES.moved(n0=-IMAGE, n1=IMAGE)),
        DIFFERENT,
    ),
    Case("only /proc/meminfo changed", recorded(V1_PINNED, dataclasses.replace(TWO_NODES, memory_capacity=63 * GIB))),
    Case("a DIMM is gone", recorded(V1_PINNED, SMALLER), DIFFERENT),
    Case("a node is gone", recorded(state.v1(PLAIN), TWO_NODES.without(1), static(memory(n0="1000Mi"))), DIFFERENT),
    Case(
        "a node with assignments is gone",
        recorded(V1_PINNED, TWO_NODES.without(1), static(memory(n0="1000Mi"))),
        "the memory assignment uses the NUMA that does not exist",
    ),
    Case("a node more", recorded(V1_PINNED, TWO_NODES.changed({2: NumaNode(32 * GIB)})), DIFFERENT),
    Case(
        "a node with another id",
        recorded(
            state.v1(PLAIN),
            Topology({0: TWO_NODES.nodes[0], 2: TWO_NODES.nodes[1]}),
            static(memory(n0="600Mi", n2="400Mi")),
        ),
        DIFFERENT,
    ),
    Case("huge pages were allocated", recorded(V1_PINNED, HUGE), DIFFERENT),
    Case("huge pages, recorded", recorded(state.v1(state.of_machine(HUGE, RESERVED)), HUGE)),
    Case(
        "a huge page size is gone",
        recorded(V1_PINNED, TWO_NODES.changed({1: NumaNode(TWO_NODES.nodes[1].memory, {2048: 0})})),
        DIFFERENT,
    ),
    Case("another reservation", recorded(V1_PINNED, config=static(sum_of(1000))), DIFFERENT),
    Case(
        "another reservation, another sum",
        recorded(V1_PINNED, config=static(sum_of(1000), kube='{memory: "400Mi"}')),
        unequal("1000Mi", "900Mi"),
    ),
    Case("an assignment above the node's memory", recorded(state.v1(state.of_machine(TWO_NODES, RESERVED, FULL)))),
    Case(
        "an assignment of a resource that does not exist",
        recorded(state.v1(dataclasses.replace(PLAIN, entries={"p": {"c": [Block((0,), 1 << 20, "hugepages-32Mi")]}}))),
        "the memory assignment uses memory resource that does not exist",
    ),
    Case("assignments that nobody counted", recorded(state.v1(dataclasses.replace(PLAIN, entries=ENTRIES))), DIFFERENT),
    Case(
        "counted assignments that are not there", recorded(state.v1(dataclasses.replace(PINNED, entries={}))), DIFFERENT
    ),
    Case(
        "an init container that gave its memory on", recorded(state.v1(state.of_machine(TWO_NODES, RESERVED, STAGED)))
    ),
    Case(
        "a kubelet was killed before the init container gave its memory on",
        recorded(state.v1(dataclasses.replace(state.of_machine(TWO_NODES, RESERVED, STAGED), entries=HALF_STAGED))),
        DIFFERENT,
    ),
    Case(
        "a kubelet was killed before it wrote the entry",
        recorded(state.v1(dataclasses.replace(GROUPED, entries={}))),
        DIFFERENT,
    ),
    Case(
        "node ids with gaps",
        recorded(state.v1(state.of_machine(SPARSE, {10: 1000 << 20})), SPARSE, static(memory(n10="1000Mi"))),
    ),
    Case(
        "four nodes", Node(topology=FOUR_NODES, config=CONFIG_STATIC), recorded=state.of_machine(FOUR_NODES, RESERVED)
    ),
    Case("a node without memory", Node(topology=BARE, config=CONFIG_STATIC), recorded=state.of_machine(BARE, RESERVED)),
]

TWO_FAULTS = [
    Case("sum and state file", recorded("hello", config=static(sum_of(900))), unequal("900Mi", "1000Mi")),
    Case(
        "node and sum",
        Node(config=static(memory(n0="600Mi", n7="1Mi"))),
        "the reserved memory configuration references a NUMA node 7 that does not exist on this machine",
    ),
    Case("policy and node", Node(config=static(memory(n7="1Gi"), policy="static")), 'unknown policy: "static"'),
    Case(
        "limit and policy",
        Node(config=static(limits({0: {"cpu": "1"}}), policy="static")),
        'the limit type "cpu" for NUMA node 0 is not supported',
    ),
    Case(
        "gate by flag and file",
        Node(config="raw:", flags=(f"--feature-gates={DRIFT_GATE}=true",)),
        f"{FROM_FLAGS}unrecognized feature gate: {DRIFT_GATE}",
    ),
    Case(
        "gate in the file and drop-in",
        Node(config=f"featureGates: {{{DRIFT_GATE}: true}}\n", dropins={"10.conf": "raw:"}),
        f"{UNRECOGNIZED}unrecognized feature gate: {DRIFT_GATE}",
        panics=True,
    ),
    Case(
        "reservation and sum",
        Node(config=static(sum_of(900), kube='{memory: "500Mib"}')),
        "failed to parse quantity",
    ),
    Case("policy of the file and its checksum", recorded(state.v1(EMPTY_NONE, checksum=1)), CORRUPT),
]

SECTIONS: dict[str, list[Case]] = {
    "policy": POLICY,
    "gates": GATES,
    "files": FILES,
    "limits": LIMITS,
    "eviction": EVICTIONS,
    "drop-ins": DROPINS,
    "flags": FLAGS,
    "state": STATE_FILES,
    "machine": MACHINES,
    "two faults": TWO_FAULTS,
}


def rows() -> t.Iterator[tuple[str, Case, str]]:
    """Every case with each of its releases: a name for the test, the case, the release."""
    for section, cases in SECTIONS.items():
        for case in cases:
            for release in case.releases:
                yield f"{release}, {section}: {case.name}", case, release
