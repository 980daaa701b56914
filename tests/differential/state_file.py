# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State files in the kubelet's three formats, written independently of the collection's own code (semantics 1, 2).

A document is the decoded JSON of a state: policyName, machineState, entries and podEntries. Mutations edit it, so an
absent key, null and an empty map are three different things here as they are for the kubelet.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

Json = t.Dict[str, t.Any]
Edit = t.Callable[[str], str]

FORMATS = ("V1", "V2", "V3")
_TABLE_FIELDS = (
    ("TotalMemSize", "total"),
    ("SystemReserved", "systemReserved"),
    ("Allocatable", "allocatable"),
    ("Reserved", "reserved"),
    ("Free", "free"),
)
_GO_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def fnv1a(data: bytes) -> int:
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def go_json(value: t.Any) -> str:
    """JSON as Go's encoder writes it; map keys have to be sorted already."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_GO_ESCAPES)


# --- the text that V1 and V2 hash ------------------------------------------------------------------------------------


def _map(items: t.Optional[t.Mapping[str, t.Any]], value: t.Callable[[t.Any], str], by_number: bool = False) -> str:
    if items is None:
        return "<nil>"
    keys = sorted(items, key=(lambda key: (int(key), key)) if by_number else None)
    return "map[{0}]".format(" ".join(f"{int(key) if by_number else key}:{value(items[key])}" for key in keys))


def _list(items: t.Optional[t.Sequence[t.Any]], value: t.Callable[[t.Any], str] = str) -> str:
    return "<nil>" if items is None else "[{0}]".format(" ".join(map(value, items)))


def _table(table: Json) -> str:
    return "<*>{{{0}}}".format(" ".join(f"{name}:(uint64){table.get(key) or 0}" for name, key in _TABLE_FIELDS))


def _node(node: Json) -> str:
    return "<*>{{NumberOfAssignments:(int){0} {1}{2} Cells:([]int){3}}}".format(
        node.get("numberOfAssignments") or 0,
        "MemoryMap:(map[v1.ResourceName]*state.MemoryTable)",
        _map(node.get("memoryMap"), _table),
        _list(node.get("cells")),
    )


def _block(block: Json) -> str:
    return "{{NUMAAffinity:([]int){0} Type:(v1.ResourceName){1} Size:(uint64){2}}}".format(
        _list(block.get("numaAffinity")), block.get("type") or "", block.get("size") or 0
    )


def _containers(containers: t.Optional[Json]) -> str:
    return _map(containers, lambda blocks: _list(blocks, _block))


def _pod_entry(entry: Json) -> str:
    return "{{MemoryBlocks:([]state.Block){0}}}".format(_list(entry.get("memoryBlocks"), _block))


def hashed_text(document: Json, file_format: str) -> str:
    parts = [
        "PolicyName:(string)" + (document.get("policyName") or ""),
        "MachineState:(state.NUMANodeMap)" + _map(document.get("machineState", {}), _node, by_number=True),
        "Entries:(state.ContainerMemoryAssignments)" + _map(document.get("entries", {}), _containers),
    ]
    if file_format == "V2":
        parts.append("PodEntries:(state.PodMemoryAssignments)" + _map(document.get("podEntries", {}), _pod_entry))
    return "(*state.MemoryManagerCheckpoint){" + " ".join(parts) + " Checksum:(checksum.Checksum)0}"


def checksum(document: Json, file_format: str) -> int:
    """The checksum of a document; 1, which is wrong, where a document is too odd to have one (a nil node or table)."""
    try:
        return fnv1a(hashed_text(document, file_format).encode("utf-8", "replace"))
    except (AttributeError, TypeError, ValueError):
        return 1


# --- files -----------------------------------------------------------------------------------------------------------


def _ordered(document: Json, keys: t.Sequence[str]) -> Json:
    """The keys of a file in their order. `entries` and `podEntries` are left out when empty."""
    kept = {key: document[key] for key in keys if key in document}
    return {key: value for key, value in kept.items() if key[-7:].lower() != "entries" or value != {}}


_STRUCT_ORDER = (
    "numberOfAssignments memoryMap cells total systemReserved allocatable reserved free numaAffinity type size".split()
)


def _struct_order(value: t.Any) -> t.Any:
    """Struct fields in their order, map keys sorted, as the kubelet writes them."""
    if isinstance(value, list):
        return [_struct_order(item) for item in value]
    if not isinstance(value, dict):
        return value
    rank = {name: index for index, name in enumerate(_STRUCT_ORDER)}
    known = bool(value) and all(key in rank for key in value)
    keys = sorted(value, key=rank.__getitem__) if known else sorted(value)
    return {key: _struct_order(value[key]) for key in keys}


@dataclass
class StateFile:
    """A state file before it is written: document, format, and what is done to its text.

    `top` is the document of the top level of V3 where it differs from that in `data`. `overrides` replace keys of the
    top level, None drops the key. `inner` edits the text of `data` before it is hashed, `outer` the whole text,
    `last` its bytes.
    """

    document: Json
    format: str = "V3"
    top: t.Optional[Json] = None
    overrides: t.Dict[str, t.Any] = field(default_factory=dict)
    inner: t.List[Edit] = field(default_factory=list)
    outer: t.List[Edit] = field(default_factory=list)
    last: t.List[t.Callable[[bytes], bytes]] = field(default_factory=list)

    def _top_level(self) -> Json:
        top = self.document if self.top is None else self.top
        legacy = "V2" if self.format == "V2" else "V1"
        keys = ["policyName", "machineState", "entries"] + (["podEntries"] if legacy == "V2" else [])
        return dict(_struct_order_of(top, keys), checksum=checksum(top, legacy))

    def _data(self) -> str:
        keys = ["policyName", "machineState", "entries", "podEntries"]
        return _edited(go_json(_struct_order_of(self.document, keys)), self.inner)

    def render(self) -> bytes:
        whole = self._top_level()
        if self.format == "V3":
            data = self._data()
            whole.update(data=data, dataChecksum=fnv1a(b"(string)" + data.encode("utf-8", "surrogatepass")))
        whole.update(self.overrides)
        kept = {key: value for key, value in whole.items() if not (key in self.overrides and value is None)}
        content = _edited(go_json(kept), self.outer).encode("utf-8", "surrogatepass")
        for edit in self.last:
            content = edit(content)
        return content


def _struct_order_of(document: Json, keys: t.Sequence[str]) -> Json:
    return {key: _struct_order(value) for key, value in _ordered(document, keys).items()}


def _edited(text: str, edits: t.Sequence[Edit]) -> str:
    for edit in edits:
        text = edit(text)
    return text


def read_document(text: str) -> Json:
    """The document of a file that the kubelet wrote."""
    whole: Json = json.loads(text)
    document: Json = json.loads(whole["data"]) if "data" in whole else whole
    return {key: value for key, value in document.items() if key != "checksum"}
