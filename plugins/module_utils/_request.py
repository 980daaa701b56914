# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What is asked of a node, and the error for what cannot be asked."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ._node.overrides import KubeletOverrides


class InputError(ValueError):
    """An argument that cannot be used; the message names it, its value and the next step."""


@dataclass(frozen=True)
class Request:
    """What is asked of a node. Empty values mean: find out.

    `candidate_config` is the text of a KubeletConfiguration that would be merged last ("what if").
    """

    host_root: str = "/"
    tolerance: t.Optional[str] = None
    state_file: t.Optional[str] = None
    overrides: KubeletOverrides = field(default_factory=KubeletOverrides)
    candidate_config: t.Optional[str] = None
