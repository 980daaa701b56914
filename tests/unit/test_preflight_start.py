# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops every start of a kubelet, whatever its memory manager would say."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.configuration import KubeletConfiguration
from ansible_collections.kubenode.memory.plugins.module_utils._policy.kubelet_start import CgroupFacts, start_findings


@pytest.mark.parametrize(
    ("fail_cgroup_v1", "mode", "refused"),
    [(True, "v1", True), (True, "hybrid", True), (True, "v2", False), (False, "v1", False), (None, "v1", False)],
)
def test_a_kubelet_that_refuses_cgroup_v1(fail_cgroup_v1, mode, refused):
    found = start_findings(KubeletConfiguration(fail_cgroup_v1=fail_cgroup_v1), CgroupFacts(mode))
    assert [one.code for one in found] == (["cgroup_v1_refused"] if refused else [])
    assert all(one.stops_start for one in found)


def test_a_soft_threshold_without_a_grace_period():
    soft = KubeletConfiguration(eviction_soft={"memory.available": "1Gi"})
    (found,) = start_findings(soft, CgroupFacts("v2"))
    assert found.stops_start
    assert found.kubelet_error == ("grace period must be specified for the soft eviction threshold memory.available")


def test_a_bad_hard_threshold_is_told_by_the_reservation_alone():
    assert start_findings(KubeletConfiguration(eviction_hard={"memory.available": "-1Mi"}), CgroupFacts("v2")) == ()
