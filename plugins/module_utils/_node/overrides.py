# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What the user knows of a node's kubelet."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

TIMEOUT = 20
"""Seconds for each question to the kubelet's binary."""


@dataclass(frozen=True)
class KubeletOverrides:
    """What the user knows better than we can find out; None and "" mean: find out.

    `unit` is preferred where several could start a kubelet. `timeout` is seconds for each question to the binary.
    """

    config: t.Optional[str] = None
    config_dir: t.Optional[str] = None
    root_dir: t.Optional[str] = None
    version: t.Optional[str] = None
    known_feature_gates: t.Optional[t.Tuple[str, ...]] = None
    cache_file: t.Optional[str] = None
    timeout: float = TIMEOUT
    unit: str = ""


NO_OVERRIDES = KubeletOverrides()
