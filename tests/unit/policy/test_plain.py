# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The short cut for plain states: everything odd is left to the general decoder (test_checkpoint compares the two)."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._policy import checkpoint
from ansible_collections.kubenode.memory.plugins.module_utils._policy.plain import read_plain

TEXT = (
    '{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":2048,'
    '"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}},"cells":[0]}},"entries":{"pod":{"c1":['
    '{"numaAffinity":[0],"type":"memory","size":512}]}},"podEntries":{"pod":{"memoryBlocks":[]}}}'
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (":", " : "),
        ('"pod":', '"p\u00f6d \\u00e4":'),
        ('"0":{', '"+00":{'),
        ('"total":2048', '"total":18446744073709551615'),
        ('"numberOfAssignments":1', '"numberOfAssignments":9223372036854775807'),
        (',"podEntries":{"pod":{"memoryBlocks":[]}}', ""),
    ],
)
def test_plain_texts(old: str, new: str) -> None:
    text = TEXT.replace(old, new) if old else TEXT
    document = checkpoint._decode(checkpoint._parse(text.encode()), "", checkpoint._DATA_FIELDS)
    assert document.error is None
    assert read_plain(text) == document.state


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"policyName":', '{"policyName":"None","policyName":'),
        ('{"policyName":', '{"other":1,"policyName":'),
        ("policyName", "POLICYNAME"),
        ('"policyName":"Static",', ""),
        ('"Static"', "null"),
        ('"Static"', "5"),
        ('"0":{', '" 0":{'),
        ('"0":{', '"0":null,"1":{'),
        ('"numberOfAssignments":1', '"numberOfAssignments":9223372036854775808'),
        ('"numberOfAssignments":1', '"numberOfAssignments":true'),
        ('"numberOfAssignments":1', '"numberOfAssignments":1,"other":1'),
        ('"total":2048', '"total":18446744073709551616'),
        ('"total":2048', '"total":2048.0'),
        ('"total":2048', '"total":-0'),
        ('"total":2048', '"total":"2048"'),
        ('"total":2048', '"total":false'),
        ('"total":2048', '"total":[2048]'),
        ('"total":2048', '"total":NaN'),
        ('"total":2048', '"TOTAL":2048'),
        ('"total":2048', '"total":2048,"other":1'),
        ('"total":2048,', ""),
        ('"cells":[0]', '"cells":null'),
        ('"cells":[0]', '"cells":[[0]]'),
        ('"cells":[0]', '"cells":"0"'),
        ('"cells":[0]', '"cells":[true]'),
        ('"numaAffinity":[0]', '"numaAffinity":{}'),
        ('"type":"memory"', '"type":"memory","other":1'),
        ('"type":"memory"', '"type":null'),
        ('"c1":[', '"c\\ud800":['),
        ('"entries":{', '"entries":null,"x":{'),
        ('"memoryBlocks":[]', ""),
        ('"memoryBlocks":[]', '"memoryBlocks":{}'),
        ("}}}", "}}"),
        ("}}}", "}}}x"),
        ('{"memory":{', "[{"),
        (TEXT, "null"),
        (TEXT, "[]"),
        (TEXT, "[" * 100000),
        (TEXT, '"' + "1" * 5000 + '"'),
        ('"total":2048', '"total":' + "1" * 5000),
    ],
)
def test_other_texts(old: str, new: str) -> None:
    assert old in TEXT
    assert read_plain(TEXT.replace(old, new)) is None
