# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""validateState: the Static policy's judgement of a loaded state, exact and with tolerance (semantics 4.2, 5)."""

from __future__ import annotations

import itertools
import typing as t
from dataclasses import dataclass, replace

from .checkpoint import NIL_DEREFERENCE
from .machine_state import (
    EMPTY_WITH_ASSIGNMENTS,
    STATES_DIFFER,
    BadBlock,
    Difference,
    Replay,
    Shortfall,
    bad_blocks,
    compare,
    replay_outcomes,
)
from .state import MachineState, MemoryManagerState, assignment_units
from .tolerance import not_forgiven

MATCH = "match"
TOLERABLE = "tolerable"
REFUSE = "refuse"

_ORDER_DEPENDENT = frozenset(("cells", "group_free", "group_reserved", "group_asymmetric", "free", "reserved"))


@dataclass(frozen=True)
class Outcome:
    """What a start says. `starts` is None where that depends on the kubelet's random map order.

    `errors` are the kubelet's texts that can come, the likeliest first; empty if it starts.
    """

    starts: t.Optional[bool]
    errors: t.Tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """The Static policy's judgement.

    `exact` is the released kubelet's answer; `verdict` is ours with the bound (with bound 0 it is the exact one), and
    `errors` the texts of a refusal. `differences` are those between the recorded and the expected state, all of them;
    `unforgiven` those that the bound does not cover. `machine_state` is the state in memory after a good start: the
    recorded one, the defaults for an empty file, or the re-baselined one for `tolerable`.
    """

    verdict: str
    exact: Outcome
    errors: t.Tuple[str, ...] = ()
    ambiguous: bool = False
    differences: t.Tuple[Difference, ...] = ()
    unforgiven: t.Tuple[Difference, ...] = ()
    bad_blocks: t.Tuple[BadBlock, ...] = ()
    shortfalls: t.Tuple[Shortfall, ...] = ()
    expected: t.Optional[MachineState] = None
    machine_state: t.Optional[MachineState] = None
    filled_in: bool = False


def judge(
    state: MemoryManagerState, defaults: MachineState, bound: int, pod_level: bool = False, group_sums: bool = True
) -> Judgement:
    """Judge a loaded state against a machine's default state.

    :param bound: tolerated drift per NUMA node in bytes, inclusive; 0 is exact
    :param pod_level: gate PodLevelResourceManagers
    :param group_sums: see `machine_state.compare`
    """
    if not state.nodes:
        return _judge_empty(state, defaults)
    units = assignment_units(state, pod_level)
    bad = bad_blocks(defaults, units)
    if bad:
        return _judge_bad_blocks(state, defaults, bad)
    outcomes = replay_outcomes(defaults, units, state.nodes, group_sums)
    judged = _judge_outcomes(state, outcomes.replays, bound, group_sums)
    return judged if outcomes.exhaustive else _without_proof(judged)


def _judge_empty(state: MemoryManagerState, defaults: MachineState) -> Judgement:
    if state.entries:
        return Judgement(REFUSE, Outcome(False, (EMPTY_WITH_ASSIGNMENTS,)), (EMPTY_WITH_ASSIGNMENTS,))
    return Judgement(MATCH, Outcome(True), expected=defaults, machine_state=defaults, filled_in=True)


def _judge_bad_blocks(state: MemoryManagerState, defaults: MachineState, bad: t.Tuple[BadBlock, ...]) -> Judgement:
    errors = tuple(dict.fromkeys(block.error for block in bad))
    # The comparison is never reached; its static part still tells a person what changed on the machine.
    static = tuple(
        difference
        for difference in compare(state.nodes, defaults)
        if difference.kind not in _ORDER_DEPENDENT | {"assignment_count"}
    )
    return Judgement(
        REFUSE, Outcome(False, errors), errors, differences=static, unforgiven=static, bad_blocks=bad, expected=defaults
    )


def _without_proof(judged: Judgement) -> Judgement:
    """Not every order was tried: a refusal stands, a good answer counts as ambiguous."""
    if judged.exact.starts:
        judged = replace(judged, exact=Outcome(None, (STATES_DIFFER,)))
    if judged.verdict == REFUSE:
        return judged
    return replace(judged, verdict=REFUSE, errors=(STATES_DIFFER,), ambiguous=True)


def _judge_outcomes(state: MemoryManagerState, outcomes: t.Sequence[Replay], bound: int, group_sums: bool) -> Judgement:
    judged = [_judge_order(state, outcome, bound, group_sums) for outcome in outcomes]
    if len(judged) == 1:
        return judged[0]
    # The kubelet names what it meets first in the order that it happens to take.
    first = replace(
        judged[0],
        differences=_of_any_order(one.differences for one in judged),
        unforgiven=_of_any_order(one.unforgiven for one in judged),
    )
    errors = tuple(dict.fromkeys(error for one in judged for error in one.errors))
    exact_errors = tuple(dict.fromkeys(error for one in judged for error in one.exact.errors))
    starts = {one.exact.starts for one in judged}
    exact = Outcome(starts.pop() if len(starts) == 1 else None, exact_errors)
    if len({one.verdict for one in judged}) == 1 and exact.starts is not None:
        return replace(first, exact=exact, errors=errors)
    return replace(first, verdict=REFUSE, exact=exact, errors=errors or exact_errors, ambiguous=True)


def _of_any_order(found: t.Iterable[t.Tuple[Difference, ...]]) -> t.Tuple[Difference, ...]:
    """The differences of each order, a field once."""
    fields: t.Dict[t.Tuple[t.Any, ...], Difference] = {}
    for difference in itertools.chain.from_iterable(found):
        fields.setdefault((difference.kind, difference.numa_node, difference.resource), difference)
    return tuple(fields.values())


def _judge_order(state: MemoryManagerState, outcome: Replay, bound: int, group_sums: bool) -> Judgement:
    differences = compare(state.nodes, outcome.machine_state, group_sums)
    exact = Outcome(not differences, comparison_errors(differences))
    common = Judgement(
        MATCH,
        exact,
        differences=differences,
        shortfalls=outcome.shortfalls,
        expected=outcome.machine_state,
        machine_state=state.nodes,
    )
    if bound == 0:
        verdict = REFUSE if differences else MATCH
        return replace(common, verdict=verdict, errors=exact.errors, unforgiven=differences)
    if outcome.shortfalls:
        errors = tuple(dict.fromkeys(shortfall.error for shortfall in outcome.shortfalls))
        unforgiven = not_forgiven(state.nodes, outcome.machine_state, bound)
        return replace(common, verdict=REFUSE, errors=errors, unforgiven=unforgiven)
    if not differences:
        return common
    unforgiven = not_forgiven(state.nodes, outcome.machine_state, bound)
    if unforgiven:
        return replace(common, verdict=REFUSE, errors=comparison_errors(unforgiven), unforgiven=unforgiven)
    return replace(common, verdict=TOLERABLE, machine_state=rebaselined(outcome.machine_state))


def comparison_errors(differences: t.Sequence[Difference]) -> t.Tuple[str, ...]:
    """The texts that a failing comparison can end in: nodes and resources are walked in random order."""
    if not differences:
        return ()
    if differences[0].kind == "node_count":
        return (STATES_DIFFER,)
    errors = (STATES_DIFFER,) if any(not difference.crashes for difference in differences) else ()
    crash = (NIL_DEREFERENCE,) if any(difference.crashes for difference in differences) else ()
    return errors + crash


def rebaselined(expected: MachineState) -> MachineState:
    """The state that a tolerating kubelet stores: the expected one, with cells ascending (semantics 5.6)."""
    return {
        node_id: None if node is None else replace(node, cells=tuple(sorted(node.cells or ())))
        for node_id, node in expected.items()
    }
