# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet's own packages answered (tests/fixtures/vectors), as parametrised rows."""

from __future__ import annotations

import json
import lzma
import typing as t
from pathlib import Path

import pytest

Row = t.Dict[str, t.Any]
VECTORS = Path(__file__).resolve().parent / "fixtures" / "vectors"


def rows(name: str) -> t.List[Row]:
    """The rows of `checkpoint.jsonl`, `quantity.json` and so on."""
    text = lzma.decompress((VECTORS / (name + ".xz")).read_bytes()).decode()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return t.cast(t.List[Row], json.loads(text))


def each(name: str, label: str = "name") -> pytest.MarkDecorator:
    """Parametrise a test's argument `row` with all rows of a file."""
    found = rows(name)
    return pytest.mark.parametrize("row", found, ids=[str(row[label]) or "empty" for row in found])
