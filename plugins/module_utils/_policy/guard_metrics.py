# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The guard's metrics in the text format of Prometheus, for node_exporter's textfile collector.

Drift and tolerance mean what the gauges `kubelet_memory_manager_*` of KEP-6232 mean (semantics 5.7).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .starts import BOOT_OUTCOMES, START_OUTCOMES, Ledger

GAUGE = "gauge"
COUNTER = "counter"
GUARD = "guard"
OBSERVE = "observe"

Sample = t.Tuple[t.Mapping[str, str], int]
"""Labels and value."""


@dataclass(frozen=True)
class Judged:
    """What the last run found; sizes are bytes, by NUMA node (negative: memory is missing).

    `tolerance` and `source` are the setting in force and where it comes from; `mode` is `observe` where the kubelet
    tolerates drift itself. `bound` is None where no memory manager compares anything.
    """

    verdict: str
    will_start: t.Optional[bool]
    bound: t.Optional[int]
    drift: t.Mapping[int, int]
    cumulative: t.Mapping[int, int]
    tolerance: str
    source: str
    mode: str = GUARD


@dataclass(frozen=True)
class GuardMetrics:
    """`judged` is None where the last run failed, or was switched off. `time` is seconds since the epoch."""

    time: int
    ledger: Ledger
    judged: t.Optional[Judged] = None
    enabled: bool = True


def metrics_text(metrics: GuardMetrics, verdicts: t.Sequence[str]) -> str:
    """The file. `verdicts` are all that there are: each is a series, so that none goes missing."""
    judged = () if metrics.judged is None else _judged_families(metrics.judged, verdicts)
    return "".join((*judged, *_run_families(metrics), *_start_families(metrics.ledger)))


def _family(name: str, kind: str, text: str, samples: t.Iterable[Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {value}\n" for labels, value in samples]
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{''.join(lines)}" if lines else ""


def _labels(labels: t.Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _by_node(sizes: t.Mapping[int, int]) -> t.Iterator[Sample]:
    return (({"numa_node": str(node)}, abs(size)) for node, size in sorted(sizes.items()))


def _single(value: t.Optional[int]) -> t.Tuple[Sample, ...]:
    return () if value is None else (({}, int(value)),)


def _judged_families(judged: Judged, verdicts: t.Sequence[str]) -> t.Iterator[str]:
    yield _family(
        "kubenode_memory_drift_tolerance_bytes",
        GAUGE,
        "How far the memory of a NUMA node may be from what the kubelet recorded; 0 is the exact comparison.",
        _single(judged.bound),
    )
    yield _family(
        "kubenode_memory_drift_bytes",
        GAUGE,
        "How far the memory of a NUMA node was from what the kubelet had recorded, at the last start of its unit.",
        _by_node(judged.drift),
    )
    yield _family(
        "kubenode_memory_cumulative_drift_bytes",
        GAUGE,
        "How far the memory of a NUMA node is from the first baseline, over all drifts that were tolerated since.",
        _by_node(judged.cumulative),
    )
    yield _family(
        "kubenode_memory_guard_verdict",
        GAUGE,
        "The verdict of the last run: 1 for the one that was given, 0 for the others.",
        (({"verdict": verdict}, int(verdict == judged.verdict)) for verdict in verdicts),
    )
    yield _family(
        "kubenode_memory_guard_will_start",
        GAUGE,
        "Whether the kubelet's memory manager starts with the state file as the last run left it.",
        _single(judged.will_start),
    )
    yield _family(
        "kubenode_memory_guard_info",
        GAUGE,
        "The tolerance in force, where it comes from, and whether the guard re-baselines or only observes.",
        [({"tolerance": judged.tolerance, "source": judged.source, "mode": judged.mode}, 1)],
    )


def _run_families(metrics: GuardMetrics) -> t.Iterator[str]:
    yield _family(
        "kubenode_memory_guard_enabled",
        GAUGE,
        "Whether the guard works; 0 where it is switched off on this node.",
        _single(metrics.enabled),
    )
    yield _family(
        "kubenode_memory_guard_last_run_timestamp_seconds",
        GAUGE,
        "When the guard last ran before a start of the kubelet's unit.",
        _single(metrics.time),
    )
    yield _family(
        "kubenode_memory_guard_last_run_success",
        GAUGE,
        "Whether the last run could judge the node.",
        _single(metrics.judged is not None if metrics.enabled else None),
    )
    yield _family(
        "kubenode_memory_guard_rebaselines_total",
        COUNTER,
        "State files that the guard has re-baselined.",
        _single(metrics.ledger.rebaselines),
    )


def _start_families(ledger: Ledger) -> t.Iterator[str]:
    yield _family(
        "kubenode_memory_guard_kubelet_starts_total",
        COUNTER,
        "Starts of the kubelet's unit by outcome, counted when it is known.",
        _counts(ledger.starts, START_OUTCOMES),
    )
    yield _family(
        "kubenode_memory_guard_boots_total",
        COUNTER,
        "Boots by the attempt at which the memory manager started, counted when it is known.",
        _counts(ledger.boots, BOOT_OUTCOMES),
    )
    yield _family(
        "kubenode_memory_guard_boot_attempts",
        GAUGE,
        "Starts of the kubelet's unit in this boot, up to the one with which the memory manager started.",
        _single(ledger.attempts),
    )
    yield _family(
        "kubenode_memory_guard_start_pending",
        GAUGE,
        "Whether the last start of the kubelet's unit has not ended yet.",
        _single(ledger.pending),
    )
    yield _family(
        "kubenode_memory_guard_last_start_timestamp_seconds",
        GAUGE,
        "When the kubelet's unit was last started.",
        _single(None if ledger.last is None else ledger.last.time),
    )


def _counts(counts: t.Mapping[str, int], outcomes: t.Sequence[str]) -> t.Iterator[Sample]:
    return (({"outcome": outcome}, counts.get(outcome, 0)) for outcome in outcomes)
