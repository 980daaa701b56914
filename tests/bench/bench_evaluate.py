# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long one evaluation takes: 8 NUMA nodes, 500 pods, a V3 file whose memory has drifted.

    python tests/bench/bench_evaluate.py [--profile]

Prints milliseconds and the ratio to Python's own `json.loads` of the same file in the same run; nothing is asserted.
CPU time, not wall time: other work on the machine counts only as far as it slows the core down.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import statistics
import sys
import time
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import conftest  # noqa: E402, F401  # pylint: disable=unused-import

from ansible_collections.kubenode.memory.plugins.module_utils import _mapping  # noqa: E402
from ansible_collections.kubenode.memory.plugins.module_utils._policy import (  # noqa: E402
    checkpoint,
    machine_state,
    state as st,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (  # noqa: E402
    HugePagesInfo,
    MachineInfo,
    NumaNode,
)

NODES, PODS, ROUNDS = 8, 500, 60
GIB = 1 << 30
MIB = 1 << 20


def state_file() -> str:
    """Two containers a pod, every fifth pod over two nodes, every third container with huge pages too."""
    machine = MachineInfo(
        tuple(
            NumaNode(node, 128 * GIB, (HugePagesInfo(2048, 4096), HugePagesInfo(1 << 20, 16))) for node in range(NODES)
        )
    )
    entries = {f"6f1b2c3d-{pod:04x}-4e5f-8a9b-0c1d2e3f4a5b": dict(_containers(pod)) for pod in range(PODS)}
    defaults = machine_state.default_machine_state(machine, {node: {"memory": GIB} for node in range(NODES)})
    state = st.MemoryManagerState("Static", {}, entries)
    replayed = machine_state.replay(defaults, st.assignment_units(state, False))
    assert not replayed.shortfalls
    return checkpoint.encode(st.MemoryManagerState("Static", replayed.machine_state, entries), checkpoint.V3)


def _containers(pod: int) -> t.Iterator[t.Tuple[str, t.Tuple[st.Block, ...]]]:
    # The last two nodes are a group of their own: a node has one affinity only.
    nodes = (6, 7) if pod % 5 == 0 else (pod % 6,)
    for number, name in enumerate(("app", "sidecar")):
        pages = (st.Block(nodes, "hugepages-2Mi", 16 * MIB),) if (pod + number) % 3 == 0 else ()
        yield name, (st.Block(nodes, "memory", 256 * MIB), *pages)


def subject(text: str) -> t.Dict[str, t.Any]:
    pools = [{"page_size_kb": 2048, "num_pages": 4096}, {"page_size_kb": 1 << 20, "num_pages": 16}]
    nodes = [{"id": node, "memory": 128 * GIB - (node % 2) * 4096, "hugepages": pools} for node in range(NODES)]
    return {
        "machine": {"nodes": nodes},
        "policy": "Static",
        "reserved_memory": [{"numa_node": node, "limits": {"memory": "1Gi"}} for node in range(NODES)],
        "node_allocatable_reservation": {"memory": f"{NODES}Gi"},
        "file_text": text,
    }


def cpu_time(call: t.Callable[[], t.Any]) -> float:
    """CPU time of one call in milliseconds."""
    start = time.process_time_ns()
    call()
    return (time.process_time_ns() - start) / 1e6


def main() -> None:
    text = state_file()
    data = subject(text)

    def evaluate() -> t.Dict[str, t.Any]:
        return _mapping.evaluate_mapping(data, "1.37.2", "32Mi")

    assert evaluate()["verdict"] == "tolerable"
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.runcall(lambda: [evaluate() for _round in range(10)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    # In turns: what else runs on the machine slows both down, so that the ratio stays.
    times = [(cpu_time(evaluate), cpu_time(lambda: json.loads(text))) for _round in range(ROUNDS)]
    best = [min(column) for column in zip(*times)]
    median = statistics.median(evaluation / reference for evaluation, reference in times)
    print(f"evaluate: {NODES} NUMA nodes, {PODS} pods, V3 of {len(text) / 1024:.0f} KiB: {best[0]:.1f} ms at best")
    print(f"json.loads of the same file: {best[1]:.2f} ms at best; median ratio {median:.1f}")


if __name__ == "__main__":
    main()
