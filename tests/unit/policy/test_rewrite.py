# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose assignments a file has, whatever else is wrong with it. The bytes are proven in tests/rebaseline."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.rewrite import assigned_containers

CONTAINERS: t.Dict[str, t.Any] = {"pod-a": {"app": [], "side": []}}
FOUND = frozenset([("pod-a", "app"), ("pod-a", "side")])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps({"entries": CONTAINERS, "checksum": 1}), FOUND),
        (json.dumps({"ENTRIES": CONTAINERS}), FOUND),
        (json.dumps({"data": json.dumps({"entries": CONTAINERS})}), FOUND),
        (
            json.dumps({"entries": {"pod-a": {"app": 1}}, "data": json.dumps({"entries": {"pod-a": {"side": 1}}})}),
            FOUND,
        ),
        ('{"entries":{"pod-a":{"app":[]}},"entries":{"pod-a":{"side":[]}}}', FOUND),
        (json.dumps({"podEntries": {"pod-b": {}}}), frozenset([("pod-b", "")])),
        ('{"entries":null,"data":"","podEntries":[1]}', frozenset()),
        ("[]", frozenset()),
        ("", None),
        ("{", None),
        (json.dumps({"data": "{"}), None),
    ],
)
def test_assigned_containers(text: str, found: t.Optional[t.FrozenSet[t.Tuple[str, str]]]) -> None:
    assert assigned_containers(text.encode()) == found


@given(st.binary())
def test_any_bytes(content: bytes) -> None:
    assert assigned_containers(content) in (None, frozenset())
