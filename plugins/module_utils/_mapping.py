# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Judges data from any source: a mapping with the keys of the vectors in, plain dicts and lists out.

What filter `memmgr_evaluate` calls; errors name the key.
"""

from __future__ import annotations

import base64
import binascii
import typing as t

from ._policy.configuration import MemoryReservation
from ._policy.evaluation import evaluate
from ._policy.machine import HugePagesInfo, MachineInfo, NumaNode
from ._policy.quantity import parse_quantity
from ._policy.release import parse_release
from ._policy.reservation import ResourceList
from ._policy.subject import StateFile, Subject
from ._preflight import parse_argument
from ._present_report import present, present_machine_state
from ._request import InputError


def evaluate_mapping(
    data: t.Mapping[str, t.Any], kubelet_version: str = "", tolerance: str = "auto"
) -> t.Dict[str, t.Any]:
    """Judge a mapping with the keys of the vectors (filter `memmgr_evaluate`).

    :returns: what the module `memmgr_validate` returns of it, plus `machine_state_after`
    :raises InputError: if a key is missing or has another type than documented
    """
    subject = subject_from_mapping(data, kubelet_version)
    setting = parse_argument(tolerance)
    evaluation = evaluate(subject, setting)
    result = present(evaluation, subject, {})
    result["tolerance"] = {"value": setting.text, "source": "argument"}
    after = evaluation.machine_state_after
    result["machine_state_after"] = None if after is None else present_machine_state(after)
    return result


def subject_from_mapping(data: t.Mapping[str, t.Any], kubelet_version: str) -> Subject:
    """The subject of a mapping. Raises as `evaluate_mapping`."""
    if not isinstance(data, dict):
        raise InputError(f"memmgr_evaluate takes a mapping, not {type(data).__name__}")
    reader = _Reader(data)
    # What is forgotten or misspelt must not look like policy None, or like a node without a state file.
    reader.require("machine", "policy")
    gate = reader.get("pod_level_resource_managers_gate", bool, False)
    release = None
    if kubelet_version:
        try:
            release = parse_release(str(kubelet_version))
        except ValueError as error:
            raise InputError(f"kubelet_version: {error}") from None
    return Subject(
        machine=_machine_from(reader),
        state_file=StateFile("memory_manager_state", _content_from(reader)),
        policy=reader.get("policy", str, "None"),
        release=release,
        reserved_memory=_reserved_from(reader),
        reservation=_reservation_from(reader),
        feature_gates={"PodLevelResourceManagers": True} if gate else {},
        iomem=reader.get("iomem_text", str, None),
        iomem_reason="iomem_text is not given",
        memory_block_size=reader.natural("memory_block_size_bytes") if data.get("memory_block_size_bytes") else None,
    )


class _Reader:
    """Typed access to a mapping from outside; errors name the key."""

    def __init__(self, data: t.Mapping[str, t.Any], where: str = "") -> None:
        self._data = data
        self._where = where

    def has(self, key: str) -> bool:
        return key in self._data

    def get(self, key: str, kind: t.Type[t.Any], default: t.Any) -> t.Any:
        value = self._data.get(key)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, value, kind.__name__)
        return value

    def require(self, *keys: str) -> None:
        for key in keys:
            if self._data.get(key) is None:
                raise InputError(f"{self._where}{key} is missing")

    def natural(self, key: str) -> int:
        value = self.get(key, int, None)
        if value is None or not 0 <= value < 1 << 64:
            raise self.error(key, value, "a whole number from 0 to 2^64 - 1")
        return int(value)

    def int32(self, key: str) -> int:
        value = self.get(key, int, None)
        if value is None or not -(1 << 31) <= value < 1 << 31:
            raise self.error(key, value, "a whole number of 32 bit")
        return int(value)

    def each(self, key: str) -> t.Iterator[_Reader]:
        for index, item in enumerate(self.get(key, list, [])):
            if not isinstance(item, dict):
                raise self.error(f"{key}[{index}]", item, "a mapping")
            yield _Reader(item, f"{self._where}{key}[{index}].")

    def error(self, key: str, value: t.Any, wanted: str) -> InputError:
        return InputError(f"{self._where}{key} is {_short(value)!r}, it has to be {wanted}")


def _short(value: t.Any) -> t.Any:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return value if len(text) <= 60 else text[:57] + "..."


def _machine_from(reader: _Reader) -> MachineInfo:
    machine = _Reader(reader.get("machine", dict, {}), "machine.")
    nodes = tuple(
        NumaNode(
            node.natural("id"),
            node.natural("memory"),
            tuple(
                HugePagesInfo(pool.natural("page_size_kb"), pool.natural("num_pages"))
                for pool in node.each("hugepages")
            ),
        )
        for node in machine.each("nodes")
    )
    ids = [node.id for node in nodes]
    if len(set(ids)) < len(ids):
        raise reader.error("machine.nodes", ids, "a list in which each id stands once")
    return MachineInfo(nodes)


def _reserved_from(reader: _Reader) -> t.Tuple[MemoryReservation, ...]:
    entries = []
    for entry in reader.each("reserved_memory"):
        limits = entry.get("limits", dict, {})
        for resource, text in limits.items():
            _quantity("reserved_memory limits " + str(resource), text)
        entries.append(MemoryReservation(entry.int32("numa_node"), {str(k): str(v) for k, v in limits.items()}))
    return tuple(entries)


def _reservation_from(reader: _Reader) -> ResourceList:
    values = reader.get("node_allocatable_reservation", dict, {})
    return {str(name): _quantity("node_allocatable_reservation " + str(name), text) for name, text in values.items()}


def _quantity(where: str, text: t.Any) -> t.Any:
    try:
        return parse_quantity(str(text))
    except ValueError as error:
        raise InputError(f"{where} is {_short(text)!r}: {error}") from None


def _content_from(reader: _Reader) -> t.Optional[bytes]:
    if not reader.has("file_text") and not reader.has("file_base64"):
        raise InputError("file_text (or file_base64) is missing; null says that there is no state file")
    encoded = reader.get("file_base64", str, None)
    if encoded is None:
        text = reader.get("file_text", str, None)
        return None if text is None else bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"file_base64 is not base64: {error}") from None
