# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate starts, ask the real kubelet's memory manager and ours, and fail on any disagreement.

    python3 tests/differential/compare.py

DIFFERENTIAL_STARTS is the number of starts per release (default 20000), DIFFERENTIAL_SEED the seed (default: a new
one, printed), DIFFERENTIAL_RELEASES a list of releases, DIFFERENTIAL_FAILURES a file for all disagreements. A run is
reproduced by its seed and number of starts.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
import typing as t
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import conftest  # noqa: F401  # pylint: disable=unused-import

from differential.judges import disagreement, judge, outcome_kind, text_length, verdicts
from differential.kubelet_oracle import RELEASES, Oracle, build_oracle
from differential.machines import container_count, is_init, random_history, random_node
from differential.mutations import LAST_ONLY, MUTATIONS, Start
from differential.state_file import FORMATS, StateFile, read_document

Json = t.Dict[str, t.Any]

PROCESSES = 2
STARTS_PER_HISTORY = 25
LARGE_NODES_STARTS = 900
LARGE_NODE_CONTAINERS = 330  # started; those recorded in the end are mostly 200 and more
REPEAT = 2
# Of a hundred blocks on a node each is the last one once in a hundred starts, so that its verdict may long be unseen.
REPEAT_IN_DOUBT = (150, 3000)
GATE_RELEASES = ("v1.36.3", "v1.37.2")
OWN_FORMAT = {"v1.34.4": "V1", "v1.35.4": "V1", "v1.36.3": "V1", "v1.37.2": "V3"}


@dataclass(frozen=True)
class Chunk:
    """The starts of one node, reproducible on their own."""

    seed: str
    release: str
    number: int
    starts: int
    large: bool

    @property
    def gate(self) -> bool:
        return self.release in GATE_RELEASES and self.number % 2 == 1

    def random(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.release}/{self.number}/{self.large}")


@dataclass
class Tally:
    """What came out of some chunks."""

    kinds: t.Counter[t.Tuple[str, str]] = field(default_factory=Counter)
    shapes: t.Counter[t.Tuple[str, str]] = field(default_factory=Counter)
    containers: t.List[int] = field(default_factory=list)
    failures: t.List[Json] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.kinds.update(other.kinds)
        self.shapes.update(other.shapes)
        self.containers += other.containers
        self.failures += other.failures


# --- one chunk -------------------------------------------------------------------------------------------------------

_oracles: t.Dict[str, Oracle] = {}


def oracle_of(release: str) -> Oracle:
    """This process's oracle of a release."""
    if release not in _oracles:
        _oracles[release] = Oracle(build_oracle(release))
    return _oracles[release]


def file_format(rng: random.Random, release: str, gate: bool) -> str:
    """Mostly the one that the release itself writes."""
    if rng.random() < 0.25:
        return rng.choice(FORMATS)
    return "V2" if gate and release == "v1.36.3" else OWN_FORMAT[release]


def make_start(chunk: Chunk, rng: random.Random, node: Json, document: Json, names: t.Sequence[str]) -> Start:
    chosen = file_format(rng, chunk.release, chunk.gate)
    start = Start(json.loads(json.dumps(node)), StateFile(json.loads(json.dumps(document)), chosen))
    for name in names:
        MUTATIONS[name](start, rng)
    if chunk.release not in GATE_RELEASES:
        start.node["pod_level_resource_managers_gate"] = False
    return start


def mutation_names(chunk: Chunk, rng: random.Random) -> t.Iterator[t.List[str]]:
    """Each mutation in turn; one start in six has a second one, before it."""
    every = list(MUTATIONS)
    whole = [name for name in every if name not in LAST_ONLY]
    for index in range(chunk.starts):
        name = every[(chunk.number * chunk.starts + index) % len(every)]
        yield ([rng.choice(whole)] if rng.random() < 1 / 6 else []) + [name]


def shapes(chunk: Chunk, node: Json, document: Json) -> t.Iterator[str]:
    """What is to be found among the nodes, by name: what a node is and what its kubelet has recorded."""
    nodes, containers = node["machine"]["nodes"], list(document.get("entries", {}).values())
    blocks = [block for pod in containers for found in pod.values() for block in found]
    yield f"{len(nodes)} NUMA nodes"
    yield "gate on" if chunk.gate else "gate off"
    if len({pool["page_size_kb"] for one in nodes for pool in one["hugepages"]}) > 1:
        yield "huge pages of several sizes"
    if len({block["type"] for block in blocks}) > 2:
        yield "huge pages of several sizes in use"
    if any(is_init(name) for pod in containers for name in pod):
        yield "init containers"
    if any(len(block["numaAffinity"]) > 1 for block in blocks):
        yield "groups of several NUMA nodes"
    if sum(map(len, containers)) >= 200:
        yield "200 containers"


def run_chunk(chunk: Chunk) -> Tally:
    rng, oracle = chunk.random(), oracle_of(chunk.release)
    node = random_node(rng, chunk.gate)
    containers = LARGE_NODE_CONTAINERS if chunk.large else container_count(rng)
    history = oracle.ask([random_history(rng, node, containers)])[0]
    document = read_document(history["file_after"]["file_text"])
    recorded = sum(map(len, document.get("entries", {}).values()))
    plan = list(mutation_names(chunk, rng))
    requests = [make_start(chunk, rng, node, document, names).request() for names in plan]
    answers = oracle.ask([dict(request, repeat=REPEAT, logs=True) for request in requests])
    tally = Tally(containers=[recorded] * len(requests))
    tally.shapes.update({(chunk.release, shape): len(requests) for shape in shapes(chunk, node, document)})
    for names, request, answer in zip(plan, requests, answers):
        settle(chunk, names, request, answer, tally)
    return tally


def settle(chunk: Chunk, names: t.Sequence[str], request: Json, answer: Json, tally: Tally) -> None:
    """Compare one start; where map order may be the reason for a difference, the kubelet is asked more often."""
    ours = judge(request, chunk.release)
    reason = disagreement(request, answer, ours)
    if reason or ours.will_start is None or len(verdicts(answer)) > 1:
        for repeat in REPEAT_IN_DOUBT:
            answer = oracle_of(chunk.release).ask([dict(request, repeat=repeat, logs=True)])[0]
            reason = disagreement(request, answer, ours)
            if not reason:
                break
    tally.kinds[chunk.release, outcome_kind(request, answer)] += 1
    if reason:
        tally.failures.append(
            {
                "reason": reason,
                "release": chunk.release,
                "mutations": list(names),
                "chunk": chunk.number,
                "request": request,
                "kubelet": {**answer, "file_after": None, "logs": answer["logs"][:8]},
                "ours": {**ours.__dict__, "codes": sorted(ours.codes)},
            }
        )


# --- the whole -------------------------------------------------------------------------------------------------------


def chunks(seed: str, releases: t.Sequence[str], starts: int) -> t.List[Chunk]:
    """All chunks, those of the large nodes first because they take longest."""
    large = min(LARGE_NODES_STARTS, starts // 10)
    found = []
    for release, (is_large, count) in itertools.product(releases, ((True, large), (False, starts - large))):
        for number, first in enumerate(range(0, count, STARTS_PER_HISTORY)):
            found.append(Chunk(seed, release, number, min(STARTS_PER_HISTORY, count - first), is_large))
    return sorted(found, key=lambda chunk: not chunk.large)


def run(seed: str, releases: t.Sequence[str], starts: int) -> Tally:
    whole = Tally()
    with multiprocessing.Pool(PROCESSES) as pool:
        for tally in pool.imap_unordered(run_chunk, chunks(seed, releases, starts)):
            whole.add(tally)
    return whole


# How often each kind has to occur among 20000 starts of a release, so that no kind is proven by luck.
MINIMUM_OF_20000: t.Mapping[str, int] = {
    "match": 3000,
    "absent": 200,
    "not_applicable": 200,
    "order-dependent": 20,
    "panic": 10,
    "policy unknown": 60,
    "policy unavailable": 15,
    "reserved node unknown": 300,
    "reservation sum": 300,
    "reservation not an integer": 80,
    "reservation missing": 150,
    "recorded policy differs": 200,
    "corrupt V1 or V2": 60,
    "no JSON": 150,
    "empty with assignments": 80,
    "assignment on unknown node": 150,
    "assignment of unknown resource": 100,
    "state differs: number of nodes": 400,
    "state differs: node id": 150,
    "state differs: assignment count": 600,
    "state differs: cells": 120,
    "state differs: number of resources": 300,
    "state differs: resource": 100,
    "state differs: total": 500,
    "state differs: system reserved": 500,
    "state differs: allocatable": 100,
    "state differs: free": 300,
    "state differs: reserved": 150,
}
MINIMUM_OF_20000_V3: t.Mapping[str, int] = {
    "corrupt V1 or V2": 15,
    "corrupt V3": 80,
    "V3 is no JSON": 80,
    "data is no JSON": 100,
}


# The same for what the nodes have to be like; each node count is one of about eighty lives in a run of 2000.
SHAPES_OF_20000: t.Mapping[str, int] = {
    **{f"{count} NUMA nodes": 200 for count in range(1, 9)},
    "gate off": 9000,
    "huge pages of several sizes": 3000,
    "huge pages of several sizes in use": 300,
    "init containers": 4000,
    "groups of several NUMA nodes": 800,
    "200 containers": 500,
}
MEDIAN_CONTAINERS = (8, 12)


def minimums(release: str, starts: int) -> t.Dict[str, int]:
    """The least number of each kind in a run of that many starts of a release; a short one may have bad luck."""
    wanted = {**MINIMUM_OF_20000, **(MINIMUM_OF_20000_V3 if OWN_FORMAT[release] == "V3" else {})}
    share = {kind: count * starts / 20000 for kind, count in wanted.items()}
    luck = 0 if starts >= 20000 else 2
    return {kind: max(0, int(count - luck * count**0.5)) for kind, count in share.items()}


def print_tally(tally: Tally, releases: t.Sequence[str]) -> None:
    for title, counted in (("outcome", tally.kinds), ("nodes", tally.shapes)):
        print(f"{title:45}" + "".join(f"{release:>10}" for release in releases))
        for name in sorted({name for _release, name in counted}):
            print(f"{name[:44]:45}" + "".join(f"{counted[release, name]:>10}" for release in releases))
    print(f"containers recorded: median {statistics.median(tally.containers):.0f}")


def missing(tally: Tally, releases: t.Sequence[str], starts: int) -> t.Iterator[str]:
    """What a run has too little of to prove anything, and what has no name yet."""
    for release in releases:
        for kind, least in minimums(release, starts).items():
            if tally.kinds[release, kind] < least:
                yield f"{release}: {kind} occurs {tally.kinds[release, kind]} times, wanted are {least}"
        for shape, of_20000 in SHAPES_OF_20000.items():
            if tally.shapes[release, shape] < of_20000 * starts // 20000:
                yield f"{release}: {shape}: {tally.shapes[release, shape]} starts of {of_20000 * starts // 20000}"
    low, high = MEDIAN_CONTAINERS
    if not low <= statistics.median(tally.containers) <= high:
        yield f"the median of recorded containers is not {low} to {high}"
    yield from (f"{release}: {kind}" for release, kind in sorted(tally.kinds) if "unnamed" in kind)


def print_failures(failures: t.Sequence[Json]) -> None:
    for reason, count in Counter(failure["reason"] for failure in failures).most_common(20):
        print(f"{count:6} {reason[:200]}")
    smallest = min(failures, key=lambda failure: text_length(failure["request"]))
    print(f"the smallest of {len(failures)} disagreements:\n{json.dumps(smallest)}")


def write_failures(failures: t.Sequence[Json]) -> None:
    """All disagreements, the smallest first, one a line, in the file that DIFFERENTIAL_FAILURES names."""
    path = os.environ.get("DIFFERENTIAL_FAILURES")
    if path:
        ordered = sorted(failures, key=lambda failure: text_length(failure["request"]))
        Path(path).write_text("".join(json.dumps(failure) + "\n" for failure in ordered), encoding="utf-8")


def main() -> int:
    starts = int(os.environ.get("DIFFERENTIAL_STARTS", "20000"))
    seed = os.environ.get("DIFFERENTIAL_SEED") or str(random.SystemRandom().randrange(1 << 32))
    releases = os.environ.get("DIFFERENTIAL_RELEASES", " ".join(RELEASES)).split()
    print(f"DIFFERENTIAL_SEED={seed} DIFFERENTIAL_STARTS={starts}", flush=True)
    for release in releases:
        build_oracle(release)
    began = time.monotonic()
    tally = run(seed, releases, starts)
    print_tally(tally, releases)
    print(f"{sum(tally.kinds.values())} starts in {time.monotonic() - began:.0f} s")
    if tally.failures:
        print_failures(tally.failures)
        write_failures(tally.failures)
    too_few = list(missing(tally, releases, starts))
    print("\n".join(too_few))
    return 1 if tally.failures or too_few else 0


if __name__ == "__main__":
    sys.exit(main())
