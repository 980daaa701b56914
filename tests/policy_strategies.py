# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hypothesis strategies of the policy core: states, JSON texts that are nearly right."""

from __future__ import annotations

import json
import typing as t

from hypothesis import strategies as st

from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import (
    Block,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
)

SIZES = st.one_of(st.integers(0, 1 << 40), st.sampled_from([0, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]))
NODE_IDS = st.integers(0, 12)
NAMES = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["c", '<&>"\\', "\u2028", "map[a:<nil>]"])
RESOURCES = st.sampled_from(["memory", "hugepages-2Mi", "hugepages-1Gi"])


def blocks() -> st.SearchStrategy[t.Tuple[Block, ...]]:
    affinities = st.lists(NODE_IDS, max_size=3, unique=True).map(tuple)
    return st.lists(st.builds(Block, affinities, RESOURCES, SIZES), max_size=3).map(tuple)


def nodes() -> st.SearchStrategy[NumaNodeState]:
    tables = st.dictionaries(RESOURCES, st.builds(MemoryTable, SIZES, SIZES, SIZES, SIZES, SIZES), max_size=2)
    return st.builds(NumaNodeState, st.integers(0, 9), tables, st.lists(NODE_IDS, max_size=3).map(tuple))


def states() -> st.SearchStrategy[MemoryManagerState]:
    """Any state of the policy Static that a kubelet could hold in memory, without nil."""
    return st.builds(
        MemoryManagerState,
        st.just("Static"),
        st.dictionaries(NODE_IDS, nodes(), max_size=3),
        st.dictionaries(NAMES, st.dictionaries(NAMES, blocks(), max_size=2), max_size=2),
        st.dictionaries(NAMES, blocks(), max_size=2),
    )


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 1 << 65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def json_like(draw: st.DrawFn, example: str) -> str:
    """The `data` of an example file, or the file itself, with one value replaced, one key renamed or bytes cut out."""
    text = draw(st.sampled_from([example, str(json.loads(example)["data"])]))
    document = json.loads(text)
    parent, key = draw(st.sampled_from(list(_places(document))))
    kind = draw(st.sampled_from(["value", "key", "twice", "cut", "nothing"]))
    if kind == "cut":
        start = draw(st.integers(0, len(text)))
        return text[:start] + text[start + draw(st.integers(0, 4)) :]
    if kind == "value":
        parent[key] = draw(JSON_VALUES)
    elif kind == "key" and isinstance(key, str):
        parent[draw(st.sampled_from([key.upper(), "+" + key, "0" + key, key + " ", "x"]))] = parent.pop(key)
    text = json.dumps(document, separators=(",", ":"))
    return text.replace("{", '{"policyName":"None",', 1) if kind == "twice" else text


def _places(document: t.Any) -> t.Iterator[t.Tuple[t.Any, t.Any]]:
    """(container, key or index) of every value below the root."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, (dict, list)):
            yield from _places(value)
