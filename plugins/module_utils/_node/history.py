# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""`history.jsonl` as it is read, and the text of it that `writer` writes (design, section 5)."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from .._policy.history import BootRecord, Range, Records
from .root import HostRoot, NodeError, NotFound

DIRECTORY = "/var/lib/kubenode-memory"
FILE_NAME = "history.jsonl"
HISTORY_FILE = DIRECTORY + "/" + FILE_NAME
UNKNOWN_BOOT = "unknown-boot"

_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True)
class HistoryReading:
    """The records, oldest first. `damaged` counts lines that are none; `problem` says why the file cannot be read."""

    records: Records = ()
    damaged: int = 0
    problem: t.Optional[str] = None


def read_history(root: HostRoot) -> HistoryReading:
    """Read the history; a node without one has no records. Nothing is raised: no judgement depends on it."""
    try:
        lines = root.read_text(HISTORY_FILE, _LIMIT, "replace").splitlines()
    except NotFound:
        return HistoryReading()
    except NodeError as error:
        return HistoryReading(problem=str(error))
    records = tuple(record for record in map(parse_line, lines) if record is not None)
    return HistoryReading(records, len(lines) - len(records))


def history_text(records: Records) -> str:
    """The file with these records."""
    return "".join(format_line(record) + "\n" for record in records)


def format_line(record: BootRecord) -> str:
    """One record as a line of JSON."""
    return json.dumps(present_record(record), separators=(",", ":"))


def present_record(record: BootRecord) -> t.Dict[str, t.Any]:
    """One record as plain values."""
    image = None if record.kernel_image is None else _range(record.kernel_image, record.kernel_image_nodes)
    nodes = record.crash_kernel_nodes + ((),) * (len(record.crash_kernels) - len(record.crash_kernel_nodes))
    return {
        "time": record.time,
        "boot_id": record.boot_id,
        "content_sha256": record.content_sha256,
        "replaces": record.replaces,
        "epoch": record.epoch,
        "verdict": record.verdict,
        "bound": record.bound,
        "totals": {str(node): size for node, size in sorted(record.totals.items())},
        "kernel_release": record.kernel_release,
        "kernel_image": image,
        "crash_kernels": [_range(*pair) for pair in zip(record.crash_kernels, nodes)],
    }


def _range(addresses: Range, nodes: t.Tuple[int, ...]) -> t.Dict[str, t.Any]:
    return {"start": addresses[0], "end": addresses[1], "numa_nodes": list(nodes)}


def parse_line(line: str) -> t.Optional[BootRecord]:
    """The record in a line; None if it is not one, whatever is wrong with it."""
    try:
        return _record(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _record(line: t.Mapping[str, t.Any]) -> BootRecord:
    image = line["kernel_image"]
    return BootRecord(
        boot_id=_text(line["boot_id"]),
        content_sha256=_text(line["content_sha256"]),
        totals={int(node): _number(size) for node, size in line["totals"].items()},
        kernel_release=None if line["kernel_release"] is None else _text(line["kernel_release"]),
        kernel_image=None if image is None else _addresses(image),
        crash_kernels=tuple(map(_addresses, line["crash_kernels"])),
        bound=_number(line["bound"]),
        verdict=_text(line["verdict"]),
        epoch=_number(line["epoch"]),
        time=_number(line["time"]),
        kernel_image_nodes=() if image is None else _nodes(image),
        crash_kernel_nodes=tuple(map(_nodes, line["crash_kernels"])),
        replaces=None if line["replaces"] is None else _text(line["replaces"]),
    )


def _text(value: t.Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: t.Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(value)
    return value


def _addresses(value: t.Any) -> Range:
    return _number(value["start"]), _number(value["end"])


def _nodes(value: t.Any) -> t.Tuple[int, ...]:
    return tuple(_number(node) for node in value["numa_nodes"])


def numa_nodes_of(root: HostRoot, addresses: Range, block_size: t.Optional[int]) -> t.Tuple[int, ...]:
    """The NUMA nodes that the first and the last memory block of a range belong to; empty where sysfs does not tell."""
    if not block_size:
        return ()
    blocks = {address // block_size for address in addresses}
    return tuple(sorted({node for block in sorted(blocks) for node in _nodes_of_block(root, block)}))


def _nodes_of_block(root: HostRoot, block: int) -> t.Iterator[int]:
    try:
        names = root.listdir(f"/sys/devices/system/memory/memory{block}")
    except NodeError:
        return
    for name in names:
        if name.startswith("node") and name[4:].isdigit():
            yield int(name[4:])
