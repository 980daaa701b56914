# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rules a version means."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release, parse_release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("Kubernetes v1.37.2\n", Release(1, 37, 2)),
        ("v1.36.3+rke2r1", Release(1, 36, 3)),
        ("v1.34.4-eks-1234abc", Release(1, 34, 4)),
        ("v1.38.0-beta.0", Release(1, 38, 0)),
        ("1.34", Release(1, 34)),
    ],
)
def test_versions(text: str, release: Release) -> None:
    assert parse_release(text) == release


@pytest.mark.parametrize("text", ["", "v1", "37", "1.x", "v1.37.2 extra", "1.\u0663\u0667", "Kubernetes", "v99999.1"])
def test_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes version"):
        parse_release(text)


@pytest.mark.parametrize(
    ("minor", "proof"),
    [(20, "unknown"), (21, "source"), (33, "source"), (34, "proven"), (37, "proven"), (38, "unknown")],
)
def test_how_well_the_rules_are_proven(minor: int, proof: str) -> None:
    assert Release(1, minor).proof == proof


def test_order() -> None:
    assert Release(1, 9) < Release(1, 10, 1) < Release(1, 10, 2)
    assert Release(1, 37).at_least(1, 36)
    assert not Release(1, 35, 9).at_least(1, 36)
