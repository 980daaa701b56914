# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the field said about the notifier, computed again."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._node.documents import parse_document
from ansible_collections.kubenode.memory.plugins.module_utils._policy import notifier
from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import (
    ConfigurationInputs,
    effective_configuration,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kubelet_start import V2, CgroupFacts
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import (
    GroupStatistics,
    ImplausibleCounters,
    MemoryCounters,
    assess,
    notification_threshold,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation import Threshold, parse_threshold

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
GIB = 1 << 30

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no ../shared/corpus")


def kylin() -> t.Dict[str, int]:
    text = (CORPUS / "logs/memory-available-script-kylin.txt").read_text()
    return {name: int(value) for name, value in re.findall(r"^memory\.(\w+) +(-?\d+)", text, re.M)}


def kylin_counters() -> MemoryCounters:
    seen = kylin()
    return MemoryCounters(seen["capacity_in_bytes"], seen["usage_in_bytes"], seen["total_inactive_file"])


def test_every_number_of_the_script() -> None:
    seen, counters = kylin(), kylin_counters()
    assert seen == {
        "capacity_in_bytes": counters.capacity,
        "usage_in_bytes": counters.usage,
        "total_inactive_file": counters.inactive_file,
        "working_set": counters.working_set,
        "available_in_bytes": counters.available,
        "available_in_kb": counters.available // 1024,
        "available_in_mb": int(counters.available / 1024 / 1024),
    }


def test_the_script_s_counters_are_refused() -> None:
    with pytest.raises(ImplausibleCounters, match="available memory would be -37414240256 bytes"):
        notification_threshold(Threshold(fraction=0.05), kylin_counters())


def test_the_kubelet_s_threshold_is_below_the_usage() -> None:
    # What is told of this node is "~39.6 GiB", without evictionHard: it is what 400Mi gives.
    counters = kylin_counters()
    registered = counters.capacity - 400 * 1024 * 1024 + counters.inactive_file
    assert round(registered / GIB, 1) == 39.6
    assert registered < counters.usage


def test_an_old_kubelet_s_failure_is_a_kernel_without_the_file() -> None:
    text = (CORPUS / "logs/notifier-cgroupv2-old-kubelet.log").read_text()
    hard = parse_threshold("memory.available", "100Mi", "evictionHard")
    assert hard is not None
    name = notifier.EvictionThreshold("memory.available", "100Mi", hard).description
    assert f'notifier="{name}" err="no such file or directory"' in text
    found = notifier.obstacle(CgroupFacts(V2, "/sys/fs/cgroup"))
    assert found is not None
    assert found.code == "cgroup_v2"


def test_the_names_are_those_of_the_messages() -> None:
    text = (CORPUS / "logs/notifier-message-templates.txt").read_text()
    assert '"Eviction manager: setting notifier to capacity" notifier="hard memory eviction threshold"' in text


def test_a_rendered_configuration_has_the_field_on_where_it_does_nothing() -> None:
    path = CORPUS / "kubelet-config/gke-rendered-kubelet-memcg.yaml"
    inputs = ConfigurationInputs(parse_document(path.name, path.read_bytes()))
    configuration = effective_configuration(inputs, Release(1, 34, 4)).configuration
    node = GroupStatistics("/", reason="not captured")
    found = assess(configuration, CgroupFacts(V2, "/sys/fs/cgroup"), node, node)
    assert (found.configured, found.active) == (True, False)
    assert [finding.code for finding in found.findings] == ["notifier_without_effect"]
    assert [one.origin.text for one in found.thresholds] == ["100Mi", "100Mi"]
