# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can happen to a node between two starts of its kubelet, and to its state file.

A mutation changes a start in place. Every mutation is a stratum: the driver draws from the list in turn.
"""

from __future__ import annotations

import base64
import random
import typing as t
from dataclasses import dataclass

from differential.json_oddities import ODD_BYTES, ODDITIES
from differential.machines import GIB, HUGEPAGE_SIZES_KB, MIB, PAGE
from differential.state_file import FORMATS, StateFile

Json = t.Dict[str, t.Any]


@dataclass
class Start:
    """One start: the node as it is now, and the file that it finds."""

    node: Json
    file: t.Optional[StateFile]

    def request(self) -> Json:
        content = None if self.file is None else self.file.render()
        if content is None:
            return dict(self.node, file_text=None)
        try:
            return dict(self.node, file_text=content.decode("utf-8"))
        except UnicodeDecodeError:
            return dict(self.node, file_base64=base64.b64encode(content).decode())


Mutation = t.Callable[[Start, random.Random], None]


def _nodes(start: Start) -> t.List[Json]:
    return t.cast(t.List[Json], start.node["machine"]["nodes"])


# --- the machine -----------------------------------------------------------------------------------------------------


def memory_pages(start: Start, rng: random.Random) -> None:
    node = rng.choice(_nodes(start))
    node["memory"] = max(0, node["memory"] + rng.choice((-1, 1)) * rng.randrange(1, 600) * PAGE)


def memory_image(start: Start, rng: random.Random) -> None:
    """The kernel image moves to another node."""
    image = rng.randrange(20 * MIB, 60 * MIB, PAGE)
    nodes = rng.sample(_nodes(start), min(2, len(_nodes(start))))
    for node, sign in zip(nodes, (-1, 1)):
        node["memory"] = max(0, node["memory"] + sign * image)


def memory_dimm(start: Start, rng: random.Random) -> None:
    node = rng.choice(_nodes(start))
    change = rng.choice((128 * MIB, GIB, 16 * GIB, node["memory"] // 2, node["memory"]))
    node["memory"] = max(0, node["memory"] + rng.choice((-1, 1)) * change)


def hugepages_count(start: Start, rng: random.Random) -> None:
    pools = [pool for node in _nodes(start) for pool in node["hugepages"]]
    if pools:
        pool = rng.choice(pools)
        pool["num_pages"] = max(0, pool["num_pages"] + rng.choice((-1, 1, 3, -pool["num_pages"])))


def hugepages_size_gone(start: Start, rng: random.Random) -> None:
    """A size disappears, from one node or from all."""
    sizes = sorted({pool["page_size_kb"] for node in _nodes(start) for pool in node["hugepages"]})
    if not sizes:
        return
    gone = rng.choice(sizes)
    for node in rng.choice((_nodes(start), [rng.choice(_nodes(start))])):
        node["hugepages"] = [pool for pool in node["hugepages"] if pool["page_size_kb"] != gone]


def hugepages_size_new(start: Start, rng: random.Random) -> None:
    size = rng.choice(HUGEPAGE_SIZES_KB)
    for node in rng.choice((_nodes(start), [rng.choice(_nodes(start))])):
        node["hugepages"].append({"page_size_kb": size, "num_pages": rng.choice((0, 1))})


def node_gone(start: Start, rng: random.Random) -> None:
    reserved = {entry["numa_node"] for entry in start.node["reserved_memory"]}
    able = [node for node in _nodes(start) if node["id"] not in reserved or rng.random() < 0.1]
    if able and len(_nodes(start)) > 1:
        _nodes(start).remove(rng.choice(able))


def nodes_gone(start: Start, _rng: random.Random) -> None:
    """cAdvisor failed to discover the topology, and the kubelet goes on without one."""
    start.node["machine"]["nodes"] = []


def node_new(start: Start, rng: random.Random) -> None:
    new_id = max((node["id"] for node in _nodes(start)), default=-1) + 1
    _nodes(start).append({"id": new_id, "memory": rng.choice((0, GIB)), "hugepages": []})


def node_renumbered(start: Start, rng: random.Random) -> None:
    """A node comes back under another number, and so does its reservation."""
    node = rng.choice(_nodes(start))
    old, node["id"] = node["id"], max(one["id"] for one in _nodes(start)) + 1
    for entry in start.node["reserved_memory"]:
        if entry["numa_node"] == old:
            entry["numa_node"] = node["id"]


# --- the reservation -------------------------------------------------------------------------------------------------


def _pick_reservation(start: Start, rng: random.Random) -> Json:
    return t.cast(Json, rng.choice(start.node["reserved_memory"] or [{"numa_node": 0, "limits": {"memory": "0"}}]))


def _reserve(start: Start, limits: t.Mapping[int, t.Mapping[str, str]], total: t.Mapping[str, str]) -> None:
    start.node["reserved_memory"] = [{"numa_node": key, "limits": dict(value)} for key, value in limits.items()]
    start.node["node_allocatable_reservation"] = dict(total)


def reservation_changed(start: Start, rng: random.Random) -> None:
    """Another reservation, consistent in itself."""
    chosen = rng.sample([node["id"] for node in _nodes(start)], rng.randint(1, len(_nodes(start))))
    shares = {node_id: rng.randrange(1, 4096) * MIB for node_id in chosen}
    _reserve(start, {key: {"memory": str(size)} for key, size in shares.items()}, {"memory": str(sum(shares.values()))})


def reservation_moved(start: Start, rng: random.Random) -> None:
    """The same total on other nodes."""
    others = [node["id"] for node in _nodes(start)]
    for entry in start.node["reserved_memory"]:
        entry["numa_node"] = rng.choice(others)


def reservation_sum(start: Start, rng: random.Random) -> None:
    sizes = ("0", "1", "1Gi", "2415919105")
    start.node["node_allocatable_reservation"] = {
        "memory": rng.choice(sizes),
        **({"hugepages-2Mi": "0"} if rng.random() < 0.3 else {}),
    }


def reservation_unknown_node(start: Start, rng: random.Random) -> None:
    _pick_reservation(start, rng)["numa_node"] = rng.choice((99, -1))


def reservation_missing(start: Start, rng: random.Random) -> None:
    total: t.Dict[str, str] = rng.choice(({}, {"memory": "0"}))
    node_id = _nodes(start)[0]["id"] if _nodes(start) else 0
    _reserve(start, rng.choice(({}, {node_id: {}}, {node_id: {"memory": "0"}})), total)


def reservation_not_int64(start: Start, rng: random.Random) -> None:
    """Texts of which some are held in a form that the kubelet does not convert to an integer."""
    text, total = rng.choice(
        (
            ("1.5Gi", "1536Mi"),
            ("1536Mi", "1.5Gi"),
            ("1000m", "1"),
            ("0.5Gi", "512Mi"),
            ("100Ti", "100Ti"),
            ("10Ti", "10Ti"),
            ("1.5G", "1500M"),
            ("1e9", "1G"),
            ("1Pi", "1Pi"),
        )
    )
    _reserve(start, {rng.choice(_nodes(start))["id"]: {"memory": text}}, {"memory": total})


def reservation_hugepages(start: Start, rng: random.Random) -> None:
    name = rng.choice(("hugepages-2Mi", "hugepages-1Gi"))
    entry = _pick_reservation(start, rng)
    entry["limits"][name] = rng.choice(("0", "2Mi", "1Gi"))
    if rng.random() < 0.5:
        start.node["node_allocatable_reservation"][name] = entry["limits"][name]


def reservation_twice(start: Start, rng: random.Random) -> None:
    """Two entries for one node: the sum has both, the later one counts."""
    entry = _pick_reservation(start, rng)
    start.node["reserved_memory"].append({"numa_node": entry["numa_node"], "limits": {"memory": "1Gi"}})
    if rng.random() < 0.7:
        entry["limits"]["memory"] = "1Gi"
        total = sum(_bytes(one["limits"].get("memory", "0")) for one in start.node["reserved_memory"])
        start.node["node_allocatable_reservation"] = {"memory": str(total)}


def _bytes(text: str) -> int:
    """The size of a text that `machines.quantity` wrote."""
    for suffix, factor in (("Gi", GIB), ("Mi", MIB), ("Ki", 1024)):
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    return int(text)


def reservation_above_node(start: Start, rng: random.Random) -> None:
    """More than a node has: the kubelet's arithmetic wraps, and the file of such a node is right."""
    node = rng.choice(_nodes(start))
    size = str(node["memory"] + rng.choice((1, GIB)))
    _reserve(start, {node["id"]: {"memory": size}}, {"memory": size})
    if rng.random() < 0.5:
        no_file(start, rng)


# --- policy and format -----------------------------------------------------------------------------------------------


def policy_configured(start: Start, rng: random.Random) -> None:
    start.node["policy"] = rng.choice(("None", "None", "static", "BestEffort", "", "none"))


def policy_recorded(start: Start, rng: random.Random) -> None:
    if start.file:
        start.file.document["policyName"] = rng.choice(("None", "static", "", "BestEffort"))
        if rng.random() < 0.3:
            start.node["policy"] = "None"


def policy_none_both(start: Start, rng: random.Random) -> None:
    """A node that never had the Static policy, with any reservation at all."""
    start.node["policy"] = "None"
    if rng.random() < 0.5:
        reservation_sum(start, rng)
    if start.file:
        start.file.document = {"policyName": "None", "machineState": {}}


def no_file(start: Start, _rng: random.Random) -> None:
    start.file = None


def other_format(start: Start, rng: random.Random) -> None:
    if start.file:
        start.file.format = rng.choice(FORMATS)


# --- the document ----------------------------------------------------------------------------------------------------


def _states(start: Start) -> t.List[Json]:
    return list(start.file.document["machineState"].values()) if start.file else []


def _pick_state(start: Start, rng: random.Random) -> Json:
    return rng.choice(_states(start) or [{}])


def _pick_table(start: Start, rng: random.Random) -> Json:
    tables = [table for state in _states(start) for table in state.get("memoryMap", {}).values()]
    return t.cast(Json, rng.choice(tables or [{}]))


def _lists_of_blocks(start: Start) -> t.List[t.List[Json]]:
    if not start.file:
        return []
    pods = start.file.document.get("entries") or {}
    return [blocks for containers in pods.values() for blocks in containers.values()]


def _pick_block(start: Start, rng: random.Random) -> Json:
    blocks = [block for blocks in _lists_of_blocks(start) for block in blocks]
    return rng.choice(blocks or [{}])


def counter(field: str) -> Mutation:
    def mutate(start: Start, rng: random.Random) -> None:
        table = _pick_table(start, rng)
        if table:
            change = rng.choice((1, -1, PAGE, -PAGE, GIB))
            table[field] = (table[field] + change) % (1 << 64)

    return mutate


def counters_within_group(start: Start, rng: random.Random) -> None:
    """Memory goes over from one node to another: only within a group the kubelet does not mind."""
    able = [state for state in _states(start) if "memory" in state["memoryMap"]]
    grouped = [state for state in able if len(state["cells"]) > 1]
    states = grouped if len(grouped) > 1 else able
    if len(states) > 1:
        one, other = (state["memoryMap"]["memory"] for state in rng.sample(states, 2))
        size = min(one["free"], other["reserved"], rng.randrange(1, GIB))
        for table, sign in ((one, -1), (other, 1)):
            table["free"] += sign * size
            table["reserved"] -= sign * size


def assignment_count(start: Start, rng: random.Random) -> None:
    state = _pick_state(start, rng)
    if state:
        state["numberOfAssignments"] += rng.choice((-1, 1, 5))


def cells(start: Start, rng: random.Random) -> None:
    state = _pick_state(start, rng)
    if state:
        own = state["cells"]
        everyone = [node["id"] for node in _nodes(start)]
        state["cells"] = rng.choice(
            ([], own[::-1], own + own[:1], [99], everyone, own[:1], sorted(rng.sample(everyone, 1)), None)
        )


def resource_gone_from_file(start: Start, rng: random.Random) -> None:
    state = _pick_state(start, rng)
    if state and state["memoryMap"]:
        del state["memoryMap"][rng.choice(sorted(state["memoryMap"]))]


def resource_renamed_in_file(start: Start, rng: random.Random) -> None:
    state = _pick_state(start, rng)
    if state and state["memoryMap"]:
        table = state["memoryMap"].pop(rng.choice(sorted(state["memoryMap"])))
        state["memoryMap"][rng.choice(("hugepages-2Mi", "hugepages-1Gi", "Memory", ""))] = table


def node_gone_from_file(start: Start, rng: random.Random) -> None:
    if start.file and start.file.document["machineState"]:
        machine_state = start.file.document["machineState"]
        del machine_state[rng.choice(sorted(machine_state))]


def node_renumbered_in_file(start: Start, rng: random.Random) -> None:
    if start.file and start.file.document["machineState"]:
        machine_state = start.file.document["machineState"]
        state = machine_state.pop(rng.choice(sorted(machine_state)))
        machine_state[rng.choice(("0", "1", "31", "-1"))] = state


def machine_state_empty(start: Start, rng: random.Random) -> None:
    if start.file:
        start.file.document["machineState"] = {}
        if rng.random() < 0.5:
            start.file.document.pop("entries", None)


def nulls(start: Start, rng: random.Random) -> None:
    """A nil where the kubelet never writes one."""
    if not start.file:
        return
    document = start.file.document
    spot = rng.randrange(6)
    machine_state = document["machineState"]
    if spot == 0 and machine_state:
        machine_state[rng.choice(sorted(machine_state))] = None
    elif spot == 1 and _pick_state(start, rng):
        memory_map = _pick_state(start, rng)["memoryMap"]
        memory_map[rng.choice(sorted(memory_map))] = None
    elif spot == 2:
        _pick_state(start, rng)["memoryMap"] = None
    else:
        document[rng.choice(("entries", "podEntries", "machineState", "policyName"))] = None


def names(start: Start, rng: random.Random) -> None:
    """Pod and container names that try the encoders: the state stays valid."""
    if not start.file or not start.file.document.get("entries"):
        return
    entries = start.file.document["entries"]
    odd = rng.choice(('a"b', "<x>&", "ü", "map[0:<nil>]", "a b", "\u2028", "\x7f", "\t", "\\", "𝄞", "", "0"))
    uid = rng.choice(sorted(entries))
    if rng.random() < 0.5 and uid not in start.file.document.get("podEntries", {}):
        entries[odd] = entries.pop(uid)
    else:
        containers = entries[uid]
        containers[odd] = containers.pop(rng.choice(sorted(containers)))


# --- assignments -----------------------------------------------------------------------------------------------------


def container_gone(start: Start, rng: random.Random) -> None:
    if start.file and start.file.document.get("entries"):
        entries = start.file.document["entries"]
        uid = rng.choice(sorted(entries))
        if entries[uid] and rng.random() < 0.7:
            del entries[uid][rng.choice(sorted(entries[uid]))]
        else:
            del entries[uid]


def block_affinity(start: Start, rng: random.Random) -> None:
    block = _pick_block(start, rng)
    if block:
        everyone = [node["id"] for node in _nodes(start)]
        own = block["numaAffinity"]
        block["numaAffinity"] = rng.choice(
            ([], own[::-1], own + own[:1], [99], everyone, [rng.choice(everyone)], [*own, 99], None, [-1])
        )


def block_size(start: Start, rng: random.Random) -> None:
    block = _pick_block(start, rng)
    if block:
        block["size"] = rng.choice((0, 1, block["size"] + PAGE, max(0, block["size"] - PAGE), (1 << 64) - 1, 1 << 45))


def block_type(start: Start, rng: random.Random) -> None:
    block = _pick_block(start, rng)
    if block:
        block["type"] = rng.choice(("memory", "hugepages-2Mi", "hugepages-1Gi", "cpu", ""))


def block_new(start: Start, rng: random.Random) -> None:
    lists = _lists_of_blocks(start)
    if lists:
        affinity = rng.sample([node["id"] for node in _nodes(start)], rng.choice((0, 1, 1, min(2, len(_nodes(start))))))
        size = rng.choice((0, 0, PAGE))
        rng.choice(lists).append({"numaAffinity": affinity, "type": "memory", "size": size})


def blocks_shuffled(start: Start, rng: random.Random) -> None:
    """The order of the blocks in a container means nothing."""
    for blocks in _lists_of_blocks(start):
        rng.shuffle(blocks)


def assignment_added_right(start: Start, rng: random.Random) -> None:
    """A block more, and the counters of its node with it: a valid file."""
    lists = _lists_of_blocks(start)
    state = [(int(key), one) for key, one in start.file.document["machineState"].items()] if start.file else []
    able = [(key, one) for key, one in state if one["cells"] == [key] and "memory" in one["memoryMap"]]
    if lists and able:
        key, one = rng.choice(able)
        table = one["memoryMap"]["memory"]
        size = min(table["free"], rng.choice((0, PAGE, GIB, 1 << 50)))
        rng.choice(lists).append({"numaAffinity": [key], "type": "memory", "size": size})
        one["numberOfAssignments"] += 1
        table["free"] -= size
        table["reserved"] += size


def order_matters(start: Start, rng: random.Random) -> None:
    """Blocks of one node with different affinities: the last one that Go's map gives decides."""
    states = start.file.document["machineState"] if start.file else {}
    if not start.file or len(states) < 2:
        return
    # Few other blocks on them, else theirs is hardly ever the last one.
    first, second = sorted(states, key=lambda key: (states[key]["numberOfAssignments"], rng.random()))[:2]
    both = sorted((int(first), int(second)))
    entries = start.file.document.setdefault("entries", {})
    for uid, affinity in (("order-a", [int(first)]), ("order-b", both)):
        entries[uid] = {"c": [{"numaAffinity": affinity, "type": "memory", "size": rng.choice((0, 0, 0, PAGE))}]}
    for node_id, count in ((first, 2), (second, 1)):
        states[node_id]["numberOfAssignments"] += count
        states[node_id]["cells"] = both
    if rng.random() < 0.4:
        states[first]["cells"] = [int(first)]


# --- pod level -------------------------------------------------------------------------------------------------------


def gate_toggled(start: Start, _rng: random.Random) -> None:
    """The driver lets this through only where the release has the gate."""
    start.node["pod_level_resource_managers_gate"] = not start.node["pod_level_resource_managers_gate"]


def pod_entries(start: Start, rng: random.Random) -> None:
    """Records of whole pods: for one without containers, for one with, without blocks, wrong ones."""
    if not start.file:
        return
    entries = start.file.document.get("entries") or {}
    uid = rng.choice([*sorted(entries), "orphan"])
    blocks: t.List[Json] = [block for found in entries.get(uid, {}).values() for block in found]
    block = {"numaAffinity": [_nodes(start)[0]["id"] if _nodes(start) else 0], "type": "memory", "size": GIB}
    chosen: Json = rng.choice(({"memoryBlocks": blocks}, {}, {"memoryBlocks": []}, {"memoryBlocks": [block]}))
    start.file.document.setdefault("podEntries", {})
    start.file.document["podEntries"] = {**(start.file.document["podEntries"] or {}), uid: chosen}


# --- text ------------------------------------------------------------------------------------------------------------


def checksum(start: Start, rng: random.Random) -> None:
    if start.file:
        key = rng.choice(("checksum", "dataChecksum") if start.file.format == "V3" else ("checksum",))
        start.file.overrides[key] = rng.choice((0, None, 1, -1, 1 << 32, 1 << 64, "1", 4142013182))


def checksum_zero(start: Start, _rng: random.Random) -> None:
    """A file without a checksum, which 1.36 and later load if it is V1."""
    if start.file:
        start.file.overrides["checksum"] = 0


def data(start: Start, rng: random.Random) -> None:
    """Half a V3 file."""
    if start.file:
        start.file.format = "V3"
        start.file.overrides["data"] = rng.choice(("", "{}", "null", "[]", "x", None, 1, '{"policyName":"Static"}'))
        if rng.random() < 0.5:
            start.file.overrides["dataChecksum"] = rng.choice((0, None))


def halves_differ(start: Start, rng: random.Random) -> None:
    """The two halves of V3 say different things, each with its right checksum."""
    if start.file:
        start.file.format = "V3"
        start.file.top = {"policyName": rng.choice(("Static", "None")), "machineState": {}}


def odd_inside(start: Start, rng: random.Random) -> None:
    """Odd JSON that is hashed as it stands, so that nothing but the JSON decides."""
    if start.file:
        start.file.format = "V3"
        oddity = rng.choice(ODDITIES)
        seed = rng.random()
        start.file.inner.append(lambda text: oddity(text, random.Random(seed)))


def odd_outside(start: Start, rng: random.Random) -> None:
    if start.file:
        oddity = rng.choice(ODDITIES)
        seed = rng.random()
        start.file.outer.append(lambda text: oddity(text, random.Random(seed)))


def odd_without_checksum(start: Start, rng: random.Random) -> None:
    """Odd JSON in a V1 file whose checksum is not verified by 1.36 and later."""
    if start.file:
        start.file.format = "V1"
        start.file.overrides["checksum"] = 0
        odd_outside(start, rng)


def odd_bytes(start: Start, rng: random.Random) -> None:
    if start.file:
        edit = rng.choice(ODD_BYTES)
        seed = rng.random()
        start.file.last.append(lambda content: edit(content, random.Random(seed)))


# --- strata ----------------------------------------------------------------------------------------------------------


def nothing(_start: Start, _rng: random.Random) -> None:
    """A start like the last one."""


MUTATIONS: t.Mapping[str, Mutation] = {
    "nothing": nothing,
    **{
        one.__name__: one
        for one in (
            memory_pages,
            memory_image,
            memory_dimm,
            hugepages_count,
            hugepages_size_gone,
            hugepages_size_new,
            node_gone,
            nodes_gone,
            node_new,
            node_renumbered,
            reservation_changed,
            reservation_moved,
            reservation_sum,
            reservation_unknown_node,
            reservation_missing,
            reservation_not_int64,
            reservation_hugepages,
            reservation_twice,
            reservation_above_node,
            policy_configured,
            policy_recorded,
            policy_none_both,
            no_file,
            other_format,
            counters_within_group,
            assignment_count,
            cells,
            resource_gone_from_file,
            resource_renamed_in_file,
            node_gone_from_file,
            node_renumbered_in_file,
            machine_state_empty,
            nulls,
            names,
            container_gone,
            block_affinity,
            block_size,
            block_type,
            block_new,
            blocks_shuffled,
            assignment_added_right,
            order_matters,
            gate_toggled,
            pod_entries,
            checksum,
            checksum_zero,
            data,
            halves_differ,
            odd_inside,
            odd_outside,
            odd_without_checksum,
            odd_bytes,
        )
    },
    **{"counter_" + field: counter(field) for field in ("total", "systemReserved", "allocatable", "reserved", "free")},
}


LAST_ONLY = frozenset(("nulls", "cells", "block_affinity", "nodes_gone", "reservation_not_int64"))
"""Mutations that leave something that others would stumble over."""
