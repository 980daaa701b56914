# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Oracles of the tests in this directory; each is built once, outside the repository."""

from __future__ import annotations

import typing as t

import pytest
from differential.kubelet_oracle import Oracle, build_oracle


@pytest.fixture(scope="session")
def oracle() -> t.Iterator[Oracle]:
    """The oracle of the release that the recorded vectors are of."""
    with Oracle(build_oracle("v1.37.2")) as process:
        yield process
