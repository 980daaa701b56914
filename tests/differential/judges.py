# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two judges of a start, ours and the kubelet, and what counts as agreement between them."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.kubenode.memory.plugins.module_utils._mapping import evaluate_mapping

Json = t.Dict[str, t.Any]

STATES_DIFFER = "the expected machine state is different from the real one"
VERDICTS = frozenset(("match", "refuse", "unreadable", "absent", "not_applicable"))
STATE_PATH = '"STATEDIR/memory_manager_state"'


# --- ours ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judgement:
    """What the collection says of a start. `errors` are the kubelet's texts that it foresees, the likeliest first."""

    verdict: str
    will_start: t.Optional[bool]
    errors: t.Tuple[str, ...]
    codes: t.FrozenSet[str]
    machine_state_after: t.Optional[Json]


def judge(request: Json, release: str) -> Judgement:
    """The only place that knows the collection's interface. An exception is a wrong judgement like any other."""
    try:
        found = evaluate_mapping(request, release, "off")
    except Exception as error:
        return Judgement(f"{type(error).__name__}: {error}", None, (), frozenset(), None)
    return Judgement(
        found["verdict"],
        found["will_start"],
        tuple(text.replace('"memory_manager_state"', STATE_PATH) for text in found["kubelet_errors"]),
        frozenset(finding["code"] for finding in found["findings"]),
        found["machine_state_after"],
    )


# --- the kubelet -----------------------------------------------------------------------------------------------------

_ERROR_KINDS: t.Sequence[t.Tuple[str, str]] = (
    ("unknown policy", "policy unknown"),
    ("is not available for platform", "policy unavailable"),
    ("references a NUMA node", "reserved node unknown"),
    ("is not equal to the value", "reservation sum"),
    ("could not covert a variable", "reservation not an integer"),
    ("you should specify the system reserved memory", "reservation missing"),
    ("differs from state checkpoint policy", "recorded policy differs"),
    ("could not load v3 checkpoint: checkpoint is corrupted", "corrupt V3"),
    ("checkpoint is corrupted", "corrupt V1 or V2"),
    ("could not load v3 checkpoint: failed to deserialize memory manager checkpoint data", "data is no JSON"),
    ("could not load v3 checkpoint", "V3 is no JSON"),
    ("could not restore state from checkpoint", "no JSON"),
    ("machine state can not be empty", "empty with assignments"),
    ("uses the NUMA that does not exist", "assignment on unknown node"),
    ("uses memory resource that does not exist", "assignment of unknown resource"),
)

# Messages of the comparison (semantics 4.2): kind, and the codes of ours that say the same.
_LOG_KINDS: t.Sequence[t.Tuple[str, str, t.FrozenSet[str]]] = (
    ("Node states were different", "number of nodes", frozenset(("numa_nodes_changed",))),
    ("Node state didn't have node ID", "node id", frozenset(("numa_nodes_changed",))),
    ("Node state had a different number of memory assignments", "assignment count", frozenset(("assignments_differ",))),
    ("Node states had different groups", "cells", frozenset(("groups_differ",))),
    (
        "Node state had memory maps of different lengths",
        "number of resources",
        frozenset(("hugepages_changed", "resources_changed")),
    ),
    ("Memory state didn't have resource", "resource", frozenset(("hugepages_changed", "resources_changed"))),
    ('"field"="TotalMemSize"', "total", frozenset(("memory_changed", "hugepages_changed"))),
    ('"field"="SystemReserved"', "system reserved", frozenset(("reservation_changed",))),
    ('"field"="Allocatable"', "allocatable", frozenset(("memory_changed", "hugepages_changed"))),
    ('"field"="free"', "free", frozenset(("group_free",))),
    ('"field"="reserved"', "reserved", frozenset(("group_reserved",))),
)


# Other words of ours for what the kubelet's comparison met. A difference in free or reserved memory that another one
# explains is not reported beside it; cells depend on the order in which blocks are replayed.
_CAUSES = frozenset(
    "memory_changed hugepages_changed numa_nodes_changed resources_changed reservation_changed groups_differ "
    "assignments_differ group_asymmetric assignment_does_not_fit".split()
)
_SYNONYMS: t.Mapping[str, t.FrozenSet[str]] = {
    "free": _CAUSES | {"group_reserved"},
    "reserved": _CAUSES,
    "cells": frozenset(("group_free", "group_reserved")),
}


def error_kind(answer: Json) -> str:
    """A name for the reason with which a start failed."""
    if answer["stage"] == "panic":
        return "panic"
    text = answer["error"]
    if STATES_DIFFER in text:
        return "state differs: " + _log_kind(answer)[0]
    return next((kind for pattern, kind in _ERROR_KINDS if pattern in text), "unnamed: " + text)


def _log_kind(answer: Json) -> t.Tuple[str, t.FrozenSet[str]]:
    """What the kubelet's comparison met first, by its last message."""
    for line in reversed(answer.get("logs", ())):
        for pattern, kind, codes in _LOG_KINDS:
            if pattern in line:
                return kind, codes
    return "unnamed", frozenset()


def good_kind(request: Json) -> str:
    """The verdict that is due to a start without an error (DESIGN 4)."""
    if request["policy"] == "None":
        return "not_applicable"
    if request.get("file_text") is None and "file_base64" not in request:
        return "absent"
    return "match"


def verdicts(answer: Json) -> t.List[Json]:
    """All verdicts that the kubelet gave in the repetitions."""
    return t.cast(t.List[Json], answer.get("all_verdicts_seen") or [answer])


def outcome_kind(request: Json, answer: Json) -> str:
    """A name for how the start went; several, if that depends on the order of Go's maps."""
    seen = verdicts(answer)
    if len({verdict["ok"] for verdict in seen}) > 1:
        return "order-dependent"
    return good_kind(request) if answer["ok"] else error_kind(answer)


# --- agreement -------------------------------------------------------------------------------------------------------


def disagreement(request: Json, answer: Json, ours: Judgement) -> t.Optional[str]:
    """What we said that the kubelet did not do, or the other way round; None if the two agree."""
    if ours.verdict not in VERDICTS:
        return ours.verdict
    seen = verdicts(answer)
    starts = {verdict["ok"] for verdict in seen}
    if len(starts) > 1:
        expected = ours.will_start is None and "ambiguous" in ours.codes and ours.verdict == "refuse"
        return None if expected else "the kubelet's verdict depends on its map order, ours is not ambiguous"
    if ours.will_start is None:
        return _unseen_order(answer, ours)
    if ours.will_start is not answer["ok"]:
        return f"will_start is {ours.will_start}"
    return _good_start(request, answer, ours) if answer["ok"] else _failed_start(answer, seen, ours)


def _unseen_order(answer: Json, ours: Judgement) -> t.Optional[str]:
    """Ours is ambiguous only if a replay in some order says so; that order may be one in thousands."""
    if answer["ok"]:
        return "ours is ambiguous, the kubelet always started"
    return None if answer["error"] in ours.errors else f"kubelet_errors lacks {answer['error']}"


def _good_start(request: Json, answer: Json, ours: Judgement) -> t.Optional[str]:
    kind = good_kind(request)
    if "pod_entries_dropped" in ours.codes and ours.verdict == "refuse":
        return None  # ours is stricter on purpose: the kubelet starts, and drops assignments of running pods
    if ours.verdict != kind:
        return f"verdict is {ours.verdict}, not {kind}"
    if (ours.machine_state_after or {}) != answer.get("machine_state_after", {}):
        return "machine_state_after differs"
    return None


def _failed_start(answer: Json, seen: t.Sequence[Json], ours: Judgement) -> t.Optional[str]:
    crashed_loading = answer["stage"] == "panic" and _load_panic(ours)
    wanted = "unreadable" if answer["stage"] == "load" or crashed_loading else "refuse"
    if ours.verdict != wanted:
        return f"verdict is {ours.verdict}, not {wanted}"
    unforeseen = {verdict["error"] for verdict in seen} - set(ours.errors)
    if unforeseen:
        return f"kubelet_errors lacks {sorted(unforeseen)}"
    if len(seen) == 1 and len(set(ours.errors)) == 1 and ours.errors[0] != answer["error"]:
        return f"kubelet_error is {ours.errors[0]}"
    kind, codes = _log_kind(answer) if STATES_DIFFER in answer["error"] else ("", frozenset())
    if codes and not (codes | _SYNONYMS.get(kind, frozenset())) & ours.codes:
        return f"no finding {' or '.join(sorted(codes))}"
    return None


def _load_panic(ours: Judgement) -> bool:
    """A crash while the file is loaded; the kubelet's panic does not say where it was."""
    return "state_nil_table" in ours.codes


def text_length(request: Json) -> int:
    return len(re.sub(r"\s", "", str(request)))
