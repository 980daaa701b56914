# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The field captures in ../shared/corpus, which are no part of the repository."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no field captures in ../shared/corpus")


def captures(folder: str) -> t.List[Path]:
    """Every capture of a folder, without its `.meta.yaml`."""
    found = sorted((CORPUS / folder).glob("*")) if CORPUS.is_dir() else []
    return [path for path in found if not path.name.endswith(".meta.yaml")]


def each(folder: str) -> pytest.MarkDecorator:
    """Parametrise a test's argument `capture`."""
    return pytest.mark.parametrize("capture", captures(folder), ids=lambda path: path.name)


def meta(capture: Path) -> t.Dict[str, t.Any]:
    """What is known of a capture: the file beside it, or inside it if it is a tree."""
    path = capture / ".meta.yaml" if capture.is_dir() else capture.with_name(capture.name + ".meta.yaml")
    return t.cast(t.Dict[str, t.Any], yaml.safe_load(path.read_text()))
