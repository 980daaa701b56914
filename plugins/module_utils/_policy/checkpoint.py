# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The state file `memory_manager_state`: formats V1, V2, V3, their checksums, and what each release can load.

Semantics 1 and 2. No format number is stored anywhere: a release tries what it knows, in its own order.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace

from . import gojson
from .gojson import Field, StructDecoder
from .plain import read_plain
from .release import Release
from .state import (
    Block,
    Blocks,
    ContainerMemoryAssignments,
    MachineState,
    MemoryManagerState,
    MemoryTable,
    NumaNodeState,
    PodMemoryAssignments,
)

FILE_NAME = "memory_manager_state"

V1 = "V1"
V2 = "V2"
V3 = "V3"

CORRUPT = "checkpoint is corrupted"
NIL_DEREFERENCE = "runtime error: invalid memory address or nil pointer dereference"

_INT64 = (-(1 << 63), (1 << 63) - 1)
_UINT64 = (0, (1 << 64) - 1)
_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619
_PLAIN_SEAM = re.compile(r',"checksum":(?:0|[1-9][0-9]{0,18}),"data":', re.ASCII)


class CheckpointError(Exception):
    """This release cannot load the file.

    `code` is a finding's: `state_not_json`, `state_corrupt`, `state_policy_mismatch` or `state_nil_table` (the kubelet
    crashes). `kubelet_error` is the kubelet's whole text; `cause` the part of it that differs. `where` is the place of
    a syntax error, which the kubelet does not tell.
    """

    def __init__(self, code: str, cause: str, where: str = "") -> None:
        super().__init__(cause)
        self.code = code
        self.cause = cause
        self.where = where

    def kubelet_error(self, path: str) -> str:
        """The text at start for a state file at `path`."""
        if self.cause == NIL_DEREFERENCE:
            return self.cause
        return (
            f"could not restore state from checkpoint: {self.cause}, please drain this node and delete the memory "
            f'manager checkpoint file "{path}" before restarting Kubelet'
        )


@dataclass(frozen=True)
class Loaded:
    """A state as a release loads it; `format` is that of the part which was accepted."""

    state: MemoryManagerState
    format: str


@dataclass(frozen=True)
class Document:
    """One reading of the file: the decoded struct, its checksums and the first type error."""

    state: MemoryManagerState
    checksum: int
    data: str
    data_checksum: int
    error: t.Optional[str]


# --- checksums -------------------------------------------------------------------------------------------------------


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bit."""
    result, prime = _FNV_OFFSET, _FNV_PRIME
    # Three bytes a round, one mask: the loop is a third of the time that a large file takes.
    whole = len(data) - len(data) % 3
    for first, second, third in zip(data[:whole:3], data[1:whole:3], data[2:whole:3]):
        result = (((result ^ first) * prime ^ second) * prime ^ third) * prime & 0xFFFFFFFF
    for byte in data[whole:]:
        result = (result ^ byte) * prime & 0xFFFFFFFF
    return result


def data_checksum(data: str) -> int:
    """`dataChecksum` of V3: over `(string)` and the text of `data` (semantics 2.2)."""
    return fnv1a_32(("(string)" + data).encode("utf-8", "surrogatepass"))


def state_checksum(state: MemoryManagerState, fmt: str = V1) -> int:
    """`checksum` of V1 and V2 and of the legacy half of V3 (semantics 2.1)."""
    return fnv1a_32(hashed_text(state, fmt).encode("utf-8", "surrogatepass"))


def hashed_text(state: MemoryManagerState, fmt: str = V1) -> str:
    """What go-spew prints for the checkpoint struct with checksum 0; only V2 has pod entries in it."""
    machine = _spew_map(sorted((state.machine_state or {}).items()), _spew_node, state.machine_state is None)
    # go-spew leaves out the next field's type after a map that ends in a nil pointer.
    type_of_entries = "" if machine.endswith(":<nil>]") else "(state.ContainerMemoryAssignments)"
    entries = _spew_map(sorted((state.entries or {}).items()), _spew_containers, state.entries is None)
    pod_entries = ""
    if fmt == V2:
        pods = _spew_map(sorted((state.pod_entries or {}).items()), _spew_pod_entry, state.pod_entries is None)
        pod_entries = " PodEntries:(state.PodMemoryAssignments)" + pods
    return (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){state.policy_name} "
        f"MachineState:(state.NUMANodeMap){machine} Entries:{type_of_entries}{entries}{pod_entries} "
        "Checksum:(checksum.Checksum)0}"
    )


def _spew_map(items: t.Sequence[t.Tuple[t.Any, t.Any]], spew: t.Callable[[t.Any], str], is_nil: bool) -> str:
    if is_nil:
        return "<nil>"
    return "map[" + " ".join(f"{key}:{spew(value)}" for key, value in items) + "]"


def _spew_ints(numbers: t.Optional[t.Tuple[int, ...]]) -> str:
    return "<nil>" if numbers is None else "[" + " ".join(map(str, numbers)) + "]"


def _spew_node(node: t.Optional[NumaNodeState]) -> str:
    if node is None:
        return "<nil>"
    tables = _spew_map(sorted((node.memory_map or {}).items()), _spew_table, node.memory_map is None)
    type_of_cells = "" if tables.endswith(":<nil>]") else "([]int)"
    return (
        f"<*>{{NumberOfAssignments:(int){node.number_of_assignments} "
        f"MemoryMap:(map[v1.ResourceName]*state.MemoryTable){tables} Cells:{type_of_cells}{_spew_ints(node.cells)}}}"
    )


def _spew_table(table: t.Optional[MemoryTable]) -> str:
    if table is None:
        return "<nil>"
    return (
        f"<*>{{TotalMemSize:(uint64){table.total} SystemReserved:(uint64){table.system_reserved} "
        f"Allocatable:(uint64){table.allocatable} Reserved:(uint64){table.reserved} Free:(uint64){table.free}}}"
    )


def _spew_containers(containers: t.Optional[t.Mapping[str, Blocks]]) -> str:
    return _spew_map(sorted((containers or {}).items()), _spew_blocks, containers is None)


def _spew_blocks(blocks: Blocks) -> str:
    if blocks is None:
        return "<nil>"
    return "[" + " ".join(map(_spew_block, blocks)) + "]"


def _spew_block(block: Block) -> str:
    affinity = _spew_ints(block.numa_affinity)
    return f"{{NUMAAffinity:([]int){affinity} Type:(v1.ResourceName){block.type} Size:(uint64){block.size}}}"


def _spew_pod_entry(blocks: Blocks) -> str:
    return f"{{MemoryBlocks:([]state.Block){_spew_blocks(blocks)}}}"


# --- writing ---------------------------------------------------------------------------------------------------------


def encode(state: MemoryManagerState, fmt: str, pod_level: bool = False) -> str:
    """The file's content as the kubelet would write it, checksums included.

    :param fmt: V1, V2 or V3
    :param pod_level: gate PodLevelResourceManagers; only with it V3 keeps pod entries
    """
    if fmt == V2:
        return "{" + _members(state, True) + f',"checksum":{state_checksum(state, V2)}}}'
    members = _members(state, False)
    legacy = f'{{{members},"checksum":{state_checksum(state, V1)}'
    if fmt == V1:
        return legacy + "}"
    data = "{" + (_members(state, True) if pod_level and state.pod_entries else members) + "}"
    return legacy + f',"data":{gojson.quote(data)},"dataChecksum":{data_checksum(data)}}}'


def _members(state: MemoryManagerState, pod_level: bool) -> str:
    members = [
        '"policyName":' + gojson.quote(state.policy_name),
        '"machineState":' + _json_map(state.machine_state, _json_node),
    ]
    if state.entries:
        members.append('"entries":' + _json_map(state.entries, lambda pod: _json_map(pod, _json_blocks)))
    if pod_level and state.pod_entries:
        members.append('"podEntries":' + _json_map(state.pod_entries, _json_pod_entry))
    return ",".join(members)


def _json_map(mapping: t.Optional[t.Mapping[t.Any, t.Any]], encode_value: t.Callable[[t.Any], str]) -> str:
    if mapping is None:
        return "null"
    items = sorted((str(key), value) for key, value in mapping.items())
    return "{" + ",".join(gojson.quote(key) + ":" + encode_value(value) for key, value in items) + "}"


def _json_ints(numbers: t.Optional[t.Tuple[int, ...]]) -> str:
    return "null" if numbers is None else "[" + ",".join(map(str, numbers)) + "]"


def _json_node(node: t.Optional[NumaNodeState]) -> str:
    if node is None:
        return "null"
    tables = _json_map(node.memory_map, _json_table)
    return (
        f'{{"numberOfAssignments":{node.number_of_assignments},"memoryMap":{tables},"cells":{_json_ints(node.cells)}}}'
    )


def _json_table(table: t.Optional[MemoryTable]) -> str:
    if table is None:
        return "null"
    return (
        f'{{"total":{table.total},"systemReserved":{table.system_reserved},"allocatable":{table.allocatable},'
        f'"reserved":{table.reserved},"free":{table.free}}}'
    )


def _json_blocks(blocks: Blocks) -> str:
    if blocks is None:
        return "null"
    return "[" + ",".join(map(_json_block, blocks)) + "]"


def _json_block(block: Block) -> str:
    return f'{{"numaAffinity":{_json_ints(block.numa_affinity)},"type":{gojson.quote(block.type)},"size":{block.size}}}'


def _json_pod_entry(blocks: Blocks) -> str:
    return '{"memoryBlocks":' + _json_blocks(blocks) + "}" if blocks else "{}"


# --- reading ---------------------------------------------------------------------------------------------------------


def _int(go_type: str, limits: t.Tuple[int, int]) -> gojson.FieldDecoder:
    return lambda decoder, value, present: decoder.integer(value, present, go_type, limits[0], limits[1])


def _string(go_type: str = "string") -> gojson.FieldDecoder:
    return lambda decoder, value, present: decoder.string(value, present, go_type)


_INT = _int("int", _INT64)
_SIZE = _int("uint64", _UINT64)
_CHECKSUM = _int("checksum.Checksum", _UINT64)


def _ints(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[t.Tuple[int, ...]]:
    return decoder.slice(value, "[]int", _INT, present)


def _table(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[MemoryTable]:
    if value is None:
        return None
    return MemoryTable(*decoder.struct(value, "state.MemoryTable", _TABLE_FIELDS, _NO_TABLE).values())


def _node(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[NumaNodeState]:
    if value is None:
        return None
    return NumaNodeState(*decoder.struct(value, "state.NUMANodeState", _NODE_FIELDS, _NO_NODE).values())


def _memory_map(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Any:
    return decoder.map(value, "map[v1.ResourceName]*state.MemoryTable", _table, present, str)


def _block(decoder: StructDecoder, value: t.Any, present: t.Optional[Block]) -> Block:
    old = _NO_BLOCK if present is None else dict(zip(_NO_BLOCK, (present.numa_affinity, present.type, present.size)))
    return Block(*decoder.struct(value, "state.Block", _BLOCK_FIELDS, old).values())


def _blocks(decoder: StructDecoder, value: t.Any, present: t.Any) -> Blocks:
    return decoder.slice(value, "[]state.Block", _block, present)


def _machine_state(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[MachineState]:
    return decoder.map(value, "state.NUMANodeMap", _node, present, gojson.int_key)


def _containers(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[t.Mapping[str, Blocks]]:
    return decoder.map(value, "map[string][]state.Block", _blocks, present, str)


def _entries(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[ContainerMemoryAssignments]:
    return decoder.map(value, "state.ContainerMemoryAssignments", _containers, present, str)


def _pod_entry(decoder: StructDecoder, value: t.Any, present: t.Any) -> Blocks:
    entry = decoder.struct(value, "state.PodEntry", _POD_ENTRY_FIELDS, {})
    return t.cast(Blocks, entry.get("memoryBlocks"))


def _pod_entries(decoder: StructDecoder, value: t.Any, present: t.Any) -> t.Optional[PodMemoryAssignments]:
    return decoder.map(value, "state.PodMemoryAssignments", _pod_entry, present, str)


def _fields(*fields: Field) -> t.Mapping[str, Field]:
    by_name = {field.name: field for field in fields}
    by_name.update({gojson.fold(field.name): field for field in fields})
    return by_name


_TABLE_FIELDS = _fields(
    *(Field(name, _SIZE) for name in ("total", "systemReserved", "allocatable", "reserved", "free"))
)
_NO_TABLE = {"total": 0, "systemReserved": 0, "allocatable": 0, "reserved": 0, "free": 0}
_NODE_FIELDS = _fields(Field("numberOfAssignments", _INT), Field("memoryMap", _memory_map), Field("cells", _ints))
_NO_NODE = {"numberOfAssignments": 0, "memoryMap": None, "cells": None}
_BLOCK_FIELDS = _fields(Field("numaAffinity", _ints), Field("type", _string("v1.ResourceName")), Field("size", _SIZE))
_NO_BLOCK: t.Mapping[str, t.Any] = {"numaAffinity": None, "type": "", "size": 0}
_POD_ENTRY_FIELDS = _fields(Field("memoryBlocks", _blocks))

_STATE = (Field("policyName", _string()), Field("machineState", _machine_state), Field("entries", _entries))
_PODS = Field("podEntries", _pod_entries)
_SUM = Field("checksum", _CHECKSUM)
_V1_FIELDS = _fields(*_STATE, _SUM)
_V2_FIELDS = _fields(*_STATE, _PODS, _SUM)
_V3_FIELDS = _fields(
    *(field._replace(embedded=("MemoryManagerCheckpointV1",)) for field in _STATE + (_SUM,)),
    Field("data", _string()),
    Field("dataChecksum", _CHECKSUM),
)
_DATA_FIELDS = _fields(*_STATE, _PODS)


def _decode(value: t.Any, go_type: str, fields: t.Mapping[str, Field]) -> Document:
    decoder = StructDecoder()
    start: t.Dict[str, t.Any] = {"machineState": {}, "entries": {}, "podEntries": {}}
    got = decoder.struct(value, go_type, fields, start)
    state = MemoryManagerState(got.get("policyName", ""), got["machineState"], got["entries"], got["podEntries"])
    return Document(state, got.get("checksum", 0), got.get("data", ""), got.get("dataChecksum", 0), decoder.error)


def load(content: bytes, release: Release, pod_level: bool, policy_name: str) -> Loaded:
    """Load a state file as this release does at its start (semantics 1.3, 1.4).

    :param pod_level: gate PodLevelResourceManagers
    :param policy_name: the configured policy, compared letter by letter
    :raises CheckpointError: if the release refuses the file, or crashes on it
    """
    loaded = read(content, release, pod_level)
    if loaded.state.policy_name != policy_name:
        raise CheckpointError(
            "state_policy_mismatch",
            f'[memorymanager] configured policy "{policy_name}" differs from state checkpoint policy '
            f'"{loaded.state.policy_name}"',
        )
    state = _cloned(loaded.state)
    return replace(loaded, state=state if pod_level else replace(state, pod_entries={}))


def read(content: bytes, release: Release, pod_level: bool) -> Loaded:
    """Decode and verify without the policy check.

    :raises CheckpointError: see `load`
    """
    if release.at_least(1, 37):
        return _read_plain_v3(gojson.go_text(content)) or _read_v3(content)
    value = _parse(content)
    if release.at_least(1, 36):
        return _read_v2_stale(value) if pod_level else Loaded(_read_v1(value, "MemoryManagerCheckpointV1", True), V1)
    return Loaded(_read_v1(value, "MemoryManagerCheckpoint", False), V1)


def _parse(content: bytes, prefix: str = "") -> t.Any:
    try:
        return gojson.parse_bytes(content)
    except gojson.GoJsonError as error:
        raise CheckpointError(
            "state_not_json", prefix + str(error), ("data, " if prefix else "") + error.where
        ) from None


def _read_plain_v3(text: str) -> t.Optional[Loaded]:
    """A V3 file as a kubelet writes it while nothing is recorded for pods: both halves are the same text.

    None for every other file, also for one that is refused.
    """
    seam = _PLAIN_SEAM.search(text)
    if seam is None:
        return None
    data = text[: seam.start()] + "}"
    quoted = gojson.quote(data)
    if not text.startswith(quoted, seam.end()):
        return None
    if text[seam.end() + len(quoted) :] != f',"dataChecksum":{data_checksum(data)}}}':
        return None
    state = read_plain(data)
    return None if state is None else Loaded(state, V3)


def _read_v3(content: bytes) -> Loaded:
    value = _parse(content)
    document = _decode(value, "state.MemoryManagerCheckpoint", _V3_FIELDS)
    if not document.data and not document.data_checksum:
        return _read_v2(value)
    prefix = "could not load v3 checkpoint: "
    if document.error is not None:
        message = prefix + "failed to deserialize memory manager checkpoint: " + document.error
        raise CheckpointError("state_not_json", message)
    data_prefix = prefix + "failed to deserialize memory manager checkpoint data: "
    data = _decode(
        _parse(document.data.encode("utf-8", "surrogatepass"), data_prefix),
        "state.MemoryManagerCheckpointData",
        _DATA_FIELDS,
    )
    if data.error is not None:
        raise CheckpointError("state_not_json", data_prefix + data.error)
    if data_checksum(document.data) != document.data_checksum:
        raise CheckpointError("state_corrupt", prefix + CORRUPT)
    return Loaded(data.state, V3)


def _read_v2(value: t.Any) -> Loaded:
    document = _decode(value, "state.MemoryManagerCheckpointV2", _V2_FIELDS)
    if document.error is None and state_checksum(document.state, V2) == document.checksum:
        return Loaded(document.state, V2)
    return Loaded(_read_v1(value, "MemoryManagerCheckpointV1", True), V1)


def _read_v2_stale(value: t.Any) -> Loaded:
    """1.36 with the gate on: pod entries, of which the V1 reading knows nothing, stay from the failed V2 reading."""
    document = _decode(value, "state.MemoryManagerCheckpointV2", _V2_FIELDS)
    if document.error is None and state_checksum(document.state, V2) == document.checksum:
        return Loaded(document.state, V2)
    state = _read_v1(value, "MemoryManagerCheckpointV1", True)
    return Loaded(replace(state, pod_entries=document.state.pod_entries), V1)


def _read_v1(value: t.Any, go_type: str, zero_is_valid: bool) -> MemoryManagerState:
    document = _decode(value, "state." + go_type, _V1_FIELDS)
    if document.error is not None:
        raise CheckpointError("state_not_json", document.error)
    if zero_is_valid and document.checksum == 0:
        return document.state
    if state_checksum(document.state) != document.checksum:
        raise CheckpointError("state_corrupt", CORRUPT)
    return document.state


def _cloned(state: MemoryManagerState) -> MemoryManagerState:
    """The kubelet's copy on load: nil maps and lists become empty, a nil table crashes it."""
    return MemoryManagerState(
        state.policy_name,
        {node: _cloned_node(content) for node, content in (state.machine_state or {}).items()},
        {
            pod: {name: blocks or () for name, blocks in (containers or {}).items()}
            for pod, containers in (state.entries or {}).items()
        },
        {pod: blocks or () for pod, blocks in (state.pod_entries or {}).items()},
    )


def _cloned_node(node: t.Optional[NumaNodeState]) -> t.Optional[NumaNodeState]:
    if node is None:
        return None
    if any(table is None for table in (node.memory_map or {}).values()):
        raise CheckpointError("state_nil_table", NIL_DEREFERENCE)
    return replace(node, cells=node.cells or ())
