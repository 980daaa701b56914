# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as the memory manager is told of it (semantics 3.1, 3.2)."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.machine import (
    HugePagesInfo,
    hugepages_resource,
    is_hugepages,
)


@pytest.mark.parametrize(
    ("page_size", "name"),
    [
        (64, "hugepages-64Ki"),
        (2048, "hugepages-2Mi"),
        (32768, "hugepages-32Mi"),
        (524288, "hugepages-512Mi"),
        (1048576, "hugepages-1Gi"),
        (16777216, "hugepages-16Gi"),
        (1000, "hugepages-1000Ki"),
        (3145728, "hugepages-3Gi"),
    ],
)
def test_resource_names(page_size: int, name: str) -> None:
    assert hugepages_resource(page_size) == HugePagesInfo(page_size, 0).resource == name


def test_a_pool_in_bytes() -> None:
    assert HugePagesInfo(2048, 512).total == 1 << 30
    assert is_hugepages("hugepages-2Mi")
    assert not is_hugepages("memory")
