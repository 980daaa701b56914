# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state file: checksums, byte-exact writing, and what each release loads (semantics 1 and 2)."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, strategies as st
from policy_strategies import json_like, states
from vectors import Row, each, rows

from ansible_collections.kubenode.memory.plugins.module_utils._policy import checkpoint
from ansible_collections.kubenode.memory.plugins.module_utils._policy.checkpoint import (
    NIL_DEREFERENCE,
    V1,
    V2,
    V3,
    CheckpointError,
    Loaded,
    data_checksum,
    encode,
    hashed_text,
    load,
    read,
    state_checksum,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.plain import read_plain
from ansible_collections.kubenode.memory.plugins.module_utils._policy.release import Release, parse_release
from ansible_collections.kubenode.memory.plugins.module_utils._policy.state import Block, MemoryManagerState

VECTORS = rows("checkpoint.jsonl")
NEWEST = Release(1, 37, 2)
READERS = ("1.34.4", "1.36.0 gate off", "1.36.0 gate on", "1.37.2 gate off", "1.37.2 gate on")
FIRST_V3 = (
    '{"policyName":"None","machineState":{},"checksum":4236770233,"data":"{\\"policyName\\":\\"None\\",'
    '\\"machineState\\":{}}","dataChecksum":3093843326}'
)
UNWRITABLE = ("nil_entries", "nil_pod", "nil_machine")
EXAMPLE = next(row["file_text"] for row in VECTORS if row["name"] == "edge_v3_ok")


def content(row: Row) -> bytes:
    return bytes.fromhex(row["file_hex"]) if row.get("file_hex") else bytes(row["file_text"].encode())


def answer(data: bytes, reader: str, policy: str) -> t.Tuple[str, t.Optional[Loaded]]:
    """`ok` or the kubelet's text, and what was loaded."""
    try:
        loaded = load(data, parse_release(reader.split()[0]), reader.endswith("gate on"), policy)
    except CheckpointError as error:
        return error.kubelet_error("STATEDIR/memory_manager_state"), None
    return "ok", loaded


def expected(text: str) -> str:
    return NIL_DEREFERENCE if text.startswith("PANIC") else text


def as_json(state: MemoryManagerState) -> t.Dict[str, t.Any]:
    """machineState, entries and podEntries; the last two are left out of a file where they are empty."""
    document = json.loads(encode(state, V2))
    return {key: document.get(key, {}) for key in ("machineState", "entries", "podEntries")}


# --- the vectors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gate", "reader"), [("load_gate_off", "1.37.2 gate off"), ("load_gate_on", "1.37.2 gate on")])
@each("checkpoint.jsonl")
def test_verdict_and_state_of_the_newest_release(row: Row, gate: str, reader: str) -> None:
    verdict, loaded = answer(content(row), reader, row["configured_policy"])
    assert verdict == expected(row[gate].get("error", "ok"))
    if loaded is not None:
        assert as_json(loaded.state) == {key: row[gate][key] for key in ("machineState", "entries", "podEntries")}


@pytest.mark.parametrize("reader", READERS)
def test_verdict_of_every_release(reader: str) -> None:
    told = [row for row in VECTORS if reader in row.get("load_by_release", {})]
    assert len(told) > 200
    for row in told:
        verdict, _rest = answer(content(row), reader, row["configured_policy"])
        assert verdict == expected(row["load_by_release"][reader]), row["name"]


# The three rows that are left out were made with nil maps, which no file can show: they are written like empty ones.
HASHED = [row for row in VECTORS if row.get("hashed_text") and not row["name"].startswith(UNWRITABLE)]
# The kubelet itself cannot read four of the files that it wrote (semantics 2.1, last but one point).
WRITTEN = [row for row in VECTORS if row["kind"] == "generated" and row["load_gate_on"]["ok"]]


@pytest.mark.parametrize("row", HASHED, ids=lambda row: row["name"])
def test_hashed_text_and_checksums(row: Row) -> None:
    # The general decoder, without its verdict: also of files whose own checksum is wrong.
    fmt = V2 if row["format"] == V2 else V1
    fields = checkpoint._V2_FIELDS if fmt == V2 else checkpoint._V1_FIELDS
    document = checkpoint._decode(checkpoint._parse(content(row)), "state.MemoryManagerCheckpoint", fields)
    assert hashed_text(document.state, fmt) == row["hashed_text"]
    assert state_checksum(document.state, fmt) == row["checksum"]
    if row.get("data_checksum") is not None:
        assert data_checksum(json.loads(row["file_text"])["data"]) == row["data_checksum"]


@pytest.mark.parametrize("row", WRITTEN, ids=lambda row: row["name"])
def test_written_byte_for_byte(row: Row) -> None:
    assert encode(read(content(row), NEWEST, True).state, row["format"], True) == row["file_text"]


# --- statements of the semantics -------------------------------------------------------------------------------------


def test_worked_example() -> None:
    loaded = load(EXAMPLE.encode(), NEWEST, False, "Static")
    assert (loaded.format, state_checksum(loaded.state)) == (V3, 3400182341)
    assert read_plain(json.loads(EXAMPLE)["data"]) == loaded.state
    assert data_checksum(json.loads(EXAMPLE)["data"]) == 1762587994


@pytest.mark.parametrize(
    ("state", "fmt", "text"),
    [
        (MemoryManagerState("None"), V1, '{"policyName":"None","machineState":{},"checksum":4236770233}'),
        (MemoryManagerState("Static"), V1, '{"policyName":"Static","machineState":{},"checksum":3940083781}'),
        (MemoryManagerState("None"), V3, FIRST_V3),
    ],
)
def test_first_file_of_a_fresh_node(state: MemoryManagerState, fmt: str, text: str) -> None:
    assert encode(state, fmt) == text


def test_without_the_gate_no_entries_of_pods_are_written() -> None:
    state = MemoryManagerState("Static", pod_entries={"pod1": (Block((0,), "memory", 1),)})
    assert encode(state, V3) == encode(MemoryManagerState("Static"), V3)
    assert "podEntries" in encode(state, V3, pod_level=True)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "state_not_json"),
        (b"\x00" * 4096, "state_not_json"),
        (b'{"policyName":"Static","machineState":{},"checksum":1}', "state_corrupt"),
        (b'{"policyName":"None","machineState":{},"checksum":4236770233}', "state_policy_mismatch"),
        (
            b'{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":null}}}}',
            "state_nil_table",
        ),
    ],
)
def test_code_of_a_refusal(data: bytes, code: str) -> None:
    with pytest.raises(CheckpointError) as error:
        load(data, NEWEST, False, "Static")
    assert error.value.code == code


def test_a_type_error_in_the_data_of_v3() -> None:
    data = '{"policyName":1,"machineState":{}}'
    text = json.dumps({"policyName": "Static", "data": data, "dataChecksum": data_checksum(data)})
    with pytest.raises(CheckpointError) as error:
        load(text.encode(), NEWEST, False, "Static")
    assert error.value.cause == (
        "could not load v3 checkpoint: failed to deserialize memory manager checkpoint data: json: cannot unmarshal "
        "number into Go struct field MemoryManagerCheckpointData.policyName of type string"
    )


@pytest.mark.parametrize(("text", "where"), [('{"a":', "line 1"), ('{"data":"{","dataChecksum":1}', "data, line 1")])
def test_where_a_syntax_error_is(text: str, where: str) -> None:
    with pytest.raises(CheckpointError) as error:
        load(text.encode(), NEWEST, False, "Static")
    assert error.value.where.startswith(where)


def test_the_short_cut_is_taken_for_a_plain_file() -> None:
    assert checkpoint._read_plain_v3(EXAMPLE) == checkpoint._read_v3(EXAMPLE.encode())


@pytest.mark.parametrize("tail", ['"x","dataChecksum":', "1.5", "-1", ""])
def test_a_v3_file_with_an_odd_end_is_judged_by_the_general_decoder(tail: str) -> None:
    """The short cut for plain files must not overlook what stands between the two halves' checksums."""
    number = str(data_checksum(json.loads(EXAMPLE)["data"]))
    odd = EXAMPLE.replace('"dataChecksum":' + number, '"dataChecksum":' + tail + (number if tail.endswith(":") else ""))
    assert odd != EXAMPLE
    verdict, _rest = answer(odd.encode(), "1.37.2 gate off", "Static")
    assert verdict.startswith("could not restore state from checkpoint: ")


# --- properties ------------------------------------------------------------------------------------------------------


def loads(data: bytes, release: Release, pod_level: bool) -> t.Optional[MemoryManagerState]:
    """What is accepted, if anything; any exception but CheckpointError fails the test."""
    try:
        return load(data, release, pod_level, "Static").state
    except CheckpointError:
        return None


RELEASES = st.sampled_from([Release(1, minor) for minor in (21, 31, 34, 36, 37)])


@given(states(), st.sampled_from([V1, V2, V3]), st.booleans())
def test_what_is_written_is_what_is_read(state: MemoryManagerState, fmt: str, pod_level: bool) -> None:
    kept = (
        state if pod_level and fmt != V1 else MemoryManagerState(state.policy_name, state.machine_state, state.entries)
    )
    if fmt == V2 and any(not blocks for blocks in (state.pod_entries or {}).values()):
        return  # such a file can never be verified (semantics 2.1)
    data = encode(state, fmt, pod_level=True).encode()
    assert loads(data, NEWEST, pod_level) == kept
    assert encode(read(data, NEWEST, True).state, fmt, pod_level=True).encode() == data


@given(states())
def test_the_short_cut_reads_what_the_general_decoder_reads(state: MemoryManagerState) -> None:
    text = encode(state, V3, pod_level=True)
    data = json.loads(text)["data"]
    document = checkpoint._decode(checkpoint._parse(data.encode()), "", checkpoint._DATA_FIELDS)
    assert read_plain(data) in (None, document.state)
    assert checkpoint._read_v3(text.encode()) == read(text.encode(), NEWEST, True)


@given(json_like(EXAMPLE))
def test_on_a_text_that_is_nearly_plain_too(text: str) -> None:
    plain = read_plain(text)
    if plain is not None:
        document = checkpoint._decode(checkpoint._parse(text.encode()), "", checkpoint._DATA_FIELDS)
        assert (document.error, document.state) == (None, plain)


@given(st.binary(max_size=200) | json_like(EXAMPLE).map(lambda text: text.encode("utf-8", "replace")), RELEASES)
def test_any_bytes_are_loaded_or_refused(data: bytes, release: Release) -> None:
    loads(data, release, False)
    loads(data, release, True)


@given(st.integers(0, len(EXAMPLE) - 1), st.integers(1, 255))
def test_no_flipped_byte_is_another_state(at: int, mask: int) -> None:
    """Only a key of the legacy half can change unnoticed, and 1.37 does not read that half."""
    data = bytearray(EXAMPLE.encode())
    data[at] ^= mask
    assert loads(bytes(data), NEWEST, False) in (None, loads(EXAMPLE.encode(), NEWEST, False))


@given(states(), st.data())
def test_no_flipped_byte_of_a_v1_file_is_another_state(state: MemoryManagerState, draw: st.DataObject) -> None:
    data = bytearray(encode(state, V1).encode())
    data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    accepted = loads(bytes(data), Release(1, 34), False)
    assert accepted in (None, MemoryManagerState(state.policy_name, state.machine_state, state.entries))
