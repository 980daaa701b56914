# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forty boots that each lose a little: each drift is tolerable, and the sum is shown from where it passes the bound."""

from __future__ import annotations

import re
from pathlib import Path

from rebaseline.node import BOUND, MIB, RECORDED, DriftedNode

from ansible_collections.kubenode.memory.plugins.module_utils._guard_hooks import run
from ansible_collections.kubenode.memory.plugins.module_utils._guard_options import Clock, Options

BOOTS = 40
LOSS = 8 * MIB
TEXTFILES = "/var/lib/textfiles"
CUMULATIVE = re.compile(r'^kubenode_memory_cumulative_drift_bytes\{numa_node="0"\} (\d+)$', re.M)


def boot(node: DriftedNode, number: int) -> tuple[str, list[str], int]:
    """(code, findings, the metric in bytes) of the first start after a boot that has lost once more."""
    node.boot(f"{number:08x}-0000-4000-8000-000000000000")
    node.drift((-LOSS * number, 0))
    clock = Clock(lambda: 1_770_000_000 + 86400 * number, lambda: 20)
    options = Options("run", str(node.base), unit="kubelet.service", textfile_directory=TEXTFILES)
    data = run(options, {"INVOCATION_ID": str(number)}, clock).data
    metrics = (node.base / TEXTFILES[1:] / "kubenode_memory.prom").read_text()
    return data["code"], data["findings"], int(CUMULATIVE.findall(metrics)[0])


def test_each_loss_is_tolerable_and_the_sum_is_shown(tmp_path: Path) -> None:
    node = DriftedNode(tmp_path, drift=(0, 0))
    node.write("/var/lib/dpkg/status", "Package: kubelet\nVersion: 1.36.3-1.1\n\n")
    (tmp_path / TEXTFILES[1:]).mkdir(parents=True)
    boots = [boot(node, number) for number in range(1, BOOTS + 1)]
    assert [code for code, _findings, _metric in boots] == ["rebaselined"] * BOOTS
    assert [metric for _code, _findings, metric in boots] == [LOSS * number for number in range(1, BOOTS + 1)]
    shown = [number for number, (_code, findings, _metric) in enumerate(boots, 1) if "cumulative_drift" in findings]
    assert shown == list(range(BOUND // LOSS + 1, BOOTS + 1))
    first = node.history[0]["totals"]["0"]
    assert first - node.history[-1]["totals"]["0"] == BOOTS * LOSS
    assert first == RECORDED[0]
