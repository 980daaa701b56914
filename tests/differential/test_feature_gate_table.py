# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The committed table of feature gates is the one that the kubelet's packages print."""

from __future__ import annotations

import re
import subprocess
import zlib

import pytest
from differential.generate_feature_gate_table import TABLE, gates_of, release_entry
from differential.kubelet_oracle import RELEASES
from tools.build_kubernetes import Release, build

from ansible_collections.kubenode.memory.plugins.module_utils._policy._feature_gate_table import GATES_BY_RELEASE


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_is_up_to_date(release: str) -> None:
    entry = release_entry(release, gates_of(release))
    assert entry in TABLE.read_text(encoding="utf-8"), "run python3 tests/differential/generate_feature_gate_table.py"


def test_the_table_has_the_releases_of_the_oracles_only() -> None:
    assert sorted("v{0}.{1}".format(*series) for series in GATES_BY_RELEASE) == [r.rsplit(".", 1)[0] for r in RELEASES]


def test_the_table_is_small_in_a_module_payload() -> None:
    assert len(zlib.compress(TABLE.read_bytes())) < 6 * 1024


@pytest.mark.parametrize("release", ["v1.34.4", "v1.37.2"])
def test_the_table_has_the_gates_that_the_kubelet_lists(release: str) -> None:
    """`kubelet --help` lists alpha and beta gates; where the default depends on the emulated version it lists both."""
    kubelet = build("kubelet", Release.parse(release))
    text = subprocess.run([str(kubelet), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    listed = set(re.findall(r"(\w+)=true\|false \((ALPHA|BETA) - default=", text))
    lines = map(str.split, GATES_BY_RELEASE[Release.parse(release)[:2]].splitlines())
    assert listed == {(name, stage) for name, stage, *_rest in lines if stage in ("ALPHA", "BETA")}
