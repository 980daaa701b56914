# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes for people."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.units import mebibytes


@pytest.mark.parametrize(
    ("size", "signed", "text"),
    [
        (0, True, "0 KiB"),
        (4096, False, "4 KiB"),
        (4096, True, "+4 KiB"),
        (-4097, True, "-4097 B"),
        (-43696128, False, "-41.7 MiB"),
        (43696128, True, "+41.7 MiB"),
        ((1 << 20) - 1024, False, "1023 KiB"),
        (1 << 20, False, "1.0 MiB"),
        (121634816, False, "116.0 MiB"),
    ],
)
def test_texts(size: int, signed: bool, text: str) -> None:
    assert mebibytes(size, signed) == text
