# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random machines with a kubelet configuration that fits them, and random lives of their pods.

The keys are those of the oracle's requests (oracle/README.md). Sizes are bytes.
"""

from __future__ import annotations

import random
import typing as t

Json = t.Dict[str, t.Any]

PAGE = 4096
MIB = 1 << 20
GIB = 1 << 30
HUGEPAGE_SIZES_KB = (64, 1000, 2048, 32768, 524288, 1048576, 16777216)
NODE_SIZES = (0, 4 * GIB, 8 * GIB, 32 * GIB, 64 * GIB, 192 * GIB, 512 * GIB)
NODE_COUNTS = (1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8)
TOPOLOGY_POLICIES = ("none", "best-effort", "best-effort", "restricted", "single-numa-node")


# --- machine ---------------------------------------------------------------------------------------------------------


def _ids(rng: random.Random, count: int) -> t.List[int]:
    """Mostly 0 to n-1; at times with gaps, and beyond 9, where the order of text and number differ."""
    if rng.random() < 0.8:
        return list(range(count))
    return sorted(rng.sample(range(16), count))


def _hugepages(rng: random.Random, sizes: t.Sequence[int], memory: int) -> t.List[Json]:
    """Pages of each size, none of them taking more than an eighth of the node."""
    most = [max(memory // 8 // (size * 1024), 0) for size in sizes]
    counts = [rng.choice((0, 1, limit, rng.randint(0, limit))) if limit else 0 for limit in most]
    return [{"page_size_kb": size, "num_pages": count} for size, count in zip(sizes, counts)]


def random_machine(rng: random.Random) -> Json:
    """1 to 8 NUMA nodes of like size, as real ones: each a few pages off, at times one without memory."""
    ids = _ids(rng, rng.choice(NODE_COUNTS))
    usual = rng.choice(NODE_SIZES[1:])
    sizes = rng.sample(HUGEPAGE_SIZES_KB, rng.choice((0, 1, 1, 2, 3)))
    nodes = []
    for node_id in ids:
        memory = rng.choice(NODE_SIZES) if rng.random() < 0.1 else usual
        memory -= rng.randrange(20000) * PAGE if memory else 0
        nodes.append({"id": node_id, "memory": memory, "hugepages": _hugepages(rng, sizes, memory)})
    if not any(node["memory"] for node in nodes):
        nodes[0]["memory"] = usual
    return {"nodes": nodes}


# --- configuration ---------------------------------------------------------------------------------------------------


def quantity(rng: random.Random, size: int) -> str:
    """A text of the size that the kubelet converts to an integer."""
    if size % MIB == 0 and rng.random() < 0.5:
        return f"{size // MIB}Mi"
    if size % 1024 == 0 and rng.random() < 0.5:
        return f"{size // 1024}Ki"
    return str(size)


def random_node(rng: random.Random, gate: bool) -> Json:
    """A machine whose Static policy accepts its configuration."""
    machine = random_machine(rng)
    able = [node["id"] for node in machine["nodes"] if node["memory"] >= 4 * GIB - 20000 * PAGE]
    chosen = rng.sample(able, rng.randint(1, len(able)))
    shares = {node_id: rng.randrange(1, 1024) * rng.choice((1, 1024, MIB)) for node_id in chosen}
    return {
        "policy": "Static",
        "pod_level_resource_managers_gate": gate,
        "machine": machine,
        "reserved_memory": [
            {"numa_node": node_id, "limits": {"memory": quantity(rng, share)}} for node_id, share in shares.items()
        ],
        "node_allocatable_reservation": {"memory": quantity(rng, sum(shares.values()))},
    }


# --- pods ------------------------------------------------------------------------------------------------------------


def container_count(rng: random.Random) -> int:
    """Containers that are started on a node; those recorded in the end have a median of 10."""
    return max(0, round(rng.lognormvariate(2.75, 0.7)))


class PodMaker:
    """Makes pods whose memory suits a machine of `node`, for about `containers` containers in all."""

    def __init__(self, rng: random.Random, node: Json, containers: int) -> None:
        self._rng = rng
        self._gate = node["pod_level_resource_managers_gate"]
        nodes = node["machine"]["nodes"]
        self._hugepages = {
            size["page_size_kb"] for one in nodes for size in one["hugepages"] if size["num_pages"] > containers
        }
        self._largest = max(one["memory"] for one in nodes)
        self._usual = max(sum(one["memory"] for one in nodes) // (2 * containers + 2), MIB)
        # A few of them fill several nodes; more, and a node of 200 containers would be full before it has them.
        self._share_of_large = min(0.12, 2 / max(containers, 1))
        self._made = 0

    def _memory(self) -> int:
        if self._rng.random() < self._share_of_large:
            return self._rng.randrange(self._largest // 2, self._largest * 3)
        return max(self._rng.randrange(self._usual) // PAGE * PAGE, PAGE)

    def _requests(self) -> Json:
        requests = {"memory": str(self._memory())}
        for size in sorted(self._hugepages):
            if self._rng.random() < 0.3:
                requests[hugepage_resource(size)] = str(size * 1024 * self._rng.choice((1, 1, 2)))
        return requests

    def _container(self, name: str, sidecar: bool = False) -> Json:
        return {"name": name, "requests": self._requests(), "sidecar": sidecar}

    def pod(self) -> Json:
        rng, self._made = self._rng, self._made + 1
        inits = rng.choice((0, 0, 0, 1, 2, 3))
        pod: Json = {
            "uid": f"pod-{self._made}",
            "init": [self._container(f"i{index}", rng.random() < 0.3) for index in range(inits)],
            "containers": [self._container(f"c{index}") for index in range(rng.choice((1, 1, 2, 3)))],
        }
        pod["started"] = rng.randint(0, inits + len(pod["containers"]))
        if self._gate and rng.random() < 0.5:
            self._make_pod_level(pod)
        return pod

    def _make_pod_level(self, pod: Json) -> None:
        """A budget above the sum of its containers, of which some have no requests of their own."""
        everyone = pod["init"] + pod["containers"]
        budget = sum(int(container["requests"]["memory"]) for container in everyone)
        pod["pod_level"] = {"memory": str(budget + self._rng.randrange(1, 512) * MIB)}
        for container in everyone:
            hugepages = [name for name in container["requests"] if name != "memory"]
            for name in hugepages:
                del container["requests"][name]
            if self._rng.random() < 0.4:
                container["requests"] = {}


def is_init(container: str) -> bool:
    """Whether a PodMaker's container of that name is an init container."""
    return container.startswith("i")


def hugepage_resource(page_size_kb: int) -> str:
    """The resource name: the size with the largest binary suffix that divides it (semantics 3.2)."""
    for factor, suffix in ((1 << 20, "Gi"), (1 << 10, "Mi")):
        if page_size_kb % factor == 0:
            return f"hugepages-{page_size_kb // factor}{suffix}"
    return f"hugepages-{page_size_kb}Ki"


def random_operations(rng: random.Random, node: Json, containers: int) -> t.List[Json]:
    """A node's life with about so many containers at its end; some pods go, some are forgotten, kubelets restart."""
    maker = PodMaker(rng, node, containers)
    operations: t.List[Json] = []
    alive: t.List[str] = []
    left = containers
    while left > 0:
        pod = maker.pod()
        operations.append({"add_pod": pod})
        alive.append(pod["uid"])
        left -= len(pod["init"]) + len(pod["containers"])
        if rng.random() < 0.12:
            gone = alive.pop(rng.randrange(len(alive)))
            operations.append({rng.choice(("remove_pod", "remove_pod", "forget_pod")): gone})
            left += 1
        if rng.random() < 0.03:
            operations.append({"restart": True})
    return operations


def random_history(rng: random.Random, node: Json, containers: int) -> Json:
    """A request for the file that a kubelet with this configuration leaves after a random life."""
    return dict(
        node,
        type="history",
        topology_policy=rng.choice(TOPOLOGY_POLICIES),
        topology_scope=rng.choice(("container", "pod")),
        operations=random_operations(rng, node, containers),
    )
