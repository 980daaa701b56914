# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sample fleet on disk is what its generator makes of the captured boots, byte for byte."""

from __future__ import annotations

import pytest
from tools import sample_fleet

pytestmark = pytest.mark.skipif(not sample_fleet.CAPTURES.is_dir(), reason="no captured boots in ../shared/captures")


def test_fleet_is_current() -> None:
    assert sample_fleet.differing(sample_fleet.make_fleet(sample_fleet.CAPTURES), sample_fleet.read_fleet()) == []
