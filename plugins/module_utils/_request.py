# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What is asked of a node, and the error for what cannot be asked."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ._node.kubelet import KubeletOverrides
from ._policy.tolerance import ToleranceError, ToleranceSetting, parse_tolerance


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


def parse_argument(text: t.Any) -> ToleranceSetting:
    """The argument `tolerance`.

    :raises InputError: with the kubelet's words for a bad value
    """
    if not isinstance(text, str):
        raise InputError(f"tolerance is {text!r}, it has to be text; off stands in quotes in YAML")
    try:
        return parse_tolerance(text)
    except ToleranceError as error:
        raise InputError(f"tolerance is {text!r}: {error}. It takes auto, off or a quantity such as 128Mi.") from None
