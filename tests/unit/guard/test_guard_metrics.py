# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's metrics: the text as a whole, and what is left out when."""

from __future__ import annotations

import re
from dataclasses import replace

from ansible_collections.kubenode.memory.plugins.module_utils._policy.evaluation import VERDICTS
from ansible_collections.kubenode.memory.plugins.module_utils._policy.guard_metrics import (
    GuardMetrics,
    Judged,
    metrics_text,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.starts import Ledger, Start

LEDGER = Ledger(
    last=Start("a", "boot", 21, 1_770_000_000, False),
    attempts=2,
    starts={"started": 3, "refused": 1},
    boots={"first_attempt": 2},
    rebaselines=4,
)
JUDGED = Judged("tolerable", True, 121634816, {0: -46137344, 1: 46137344}, {0: -8192, 1: 0}, "auto", "default")
METRICS = GuardMetrics(1_770_000_001, LEDGER, JUDGED)

SAMPLES = """\
kubenode_memory_drift_tolerance_bytes 121634816
kubenode_memory_drift_bytes{numa_node="0"} 46137344
kubenode_memory_drift_bytes{numa_node="1"} 46137344
kubenode_memory_cumulative_drift_bytes{numa_node="0"} 8192
kubenode_memory_cumulative_drift_bytes{numa_node="1"} 0
kubenode_memory_guard_verdict{verdict="match"} 0
kubenode_memory_guard_verdict{verdict="tolerable"} 1
kubenode_memory_guard_verdict{verdict="refuse"} 0
kubenode_memory_guard_verdict{verdict="unreadable"} 0
kubenode_memory_guard_verdict{verdict="absent"} 0
kubenode_memory_guard_verdict{verdict="not_applicable"} 0
kubenode_memory_guard_will_start 1
kubenode_memory_guard_info{tolerance="auto",source="default",mode="guard"} 1
kubenode_memory_guard_enabled 1
kubenode_memory_guard_last_run_timestamp_seconds 1770000001
kubenode_memory_guard_last_run_success 1
kubenode_memory_guard_rebaselines_total 4
kubenode_memory_guard_kubelet_starts_total{outcome="started"} 3
kubenode_memory_guard_kubelet_starts_total{outcome="refused"} 1
kubenode_memory_guard_kubelet_starts_total{outcome="failed"} 0
kubenode_memory_guard_kubelet_starts_total{outcome="interrupted"} 0
kubenode_memory_guard_boots_total{outcome="first_attempt"} 2
kubenode_memory_guard_boots_total{outcome="later_attempt"} 0
kubenode_memory_guard_boots_total{outcome="not_started"} 0
kubenode_memory_guard_boot_attempts 2
kubenode_memory_guard_start_pending 1
kubenode_memory_guard_last_start_timestamp_seconds 1770000000
"""


def samples(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def test_all_samples() -> None:
    assert samples(metrics_text(METRICS, VERDICTS)) == SAMPLES


def test_each_family_is_whole_and_stands_once() -> None:
    text = metrics_text(METRICS, VERDICTS)
    families = re.findall(r"^# HELP (\w+) \S.*\.\n# TYPE (\w+) (gauge|counter)\n((?:\1[ {].*\n)+)", text, re.M)
    assert "".join(f[3] for f in families) == SAMPLES
    names = [name for name, _again, _kind, _lines in families]
    assert len(set(names)) == len(names)
    assert all(name == again and name.endswith("_total") == (kind == "counter") for name, again, kind, _x in families)


def test_a_run_that_failed_shows_no_judgement() -> None:
    text = metrics_text(replace(METRICS, judged=None), VERDICTS)
    assert "kubenode_memory_guard_last_run_success 0\n" in text
    assert "verdict" not in samples(text)
    assert "drift" not in samples(text)


def test_switched_off() -> None:
    text = metrics_text(replace(METRICS, judged=None, enabled=False), VERDICTS)
    assert "kubenode_memory_guard_enabled 0\n" in text
    assert "last_run_success" not in text


def test_what_is_not_known_has_no_sample() -> None:
    judged = replace(JUDGED, will_start=None, bound=None, drift={}, cumulative={})
    text = samples(metrics_text(GuardMetrics(0, Ledger(), judged), VERDICTS))
    assert "will_start" not in text
    assert "drift" not in text
    assert "last_start" not in text


def test_a_tolerance_is_escaped() -> None:
    text = metrics_text(replace(METRICS, judged=replace(JUDGED, tolerance='a"b\\c')), VERDICTS)
    assert r'{tolerance="a\"b\\c",' in text
