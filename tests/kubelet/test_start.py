# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the memory manager start, and with which error if not: the real kubelet, the table and our judgement agree."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from .cases import V134, Case, rows
from .harness import judge, state
from .harness.kubelet import Outcome, Surroundings, try_start
from .harness.node import NodeDirectory

_YAML_LINE = re.compile(r"yaml: line \d+: ")
ROWS = {name: (case, release) for name, case, release in rows()}


def against_the_table(case: Case, outcome: Outcome) -> t.Iterator[str]:
    """Where the real kubelet does something else than the table says."""
    if outcome.started != (case.error is None):
        yield f"kubelet: {outcome}; the table says {case.error or 'it starts'}"
    elif case.error is not None and not outcome.says(case.error):
        yield f"kubelet: {outcome}; it does not say {case.error}"
    elif outcome.panicked != case.panics:
        yield f"kubelet: {outcome}; a panic is {'' if case.panics else 'not '}in the table"


def against_the_file(case: Case, release: str, outcome: Outcome) -> t.Iterator[str]:
    """Where the state file after the start is not what the table says."""
    write = state.v1 if release == V134 else state.v3
    expected = write(case.recorded) if case.recorded else case.node.state
    if expected is not None and outcome.state != expected:
        yield f"the state file is\n{outcome.state}\nand not\n{expected}"


def against_the_kubelet(judgement: judge.Judgement, outcome: Outcome) -> t.Iterator[str]:
    """Where our judgement differs from what happened, in whether it starts or in the kubelet's words."""
    if judgement.will_start is not outcome.started:
        yield f"we: {judgement}; kubelet: {outcome}"
    elif not outcome.started and not any(_says(outcome, text) for text in judgement.kubelet_errors):
        yield f"we: {judgement.kubelet_errors}; kubelet: {outcome}"


def _says(outcome: Outcome, text: str) -> bool:
    """PyYAML and the kubelet's parser may count the line of a syntax error differently by one."""
    return any(_YAML_LINE.sub("", text) in _YAML_LINE.sub("", error) for error in outcome.errors)


@pytest.mark.parametrize("name", ROWS)
def test_start(
    name: str, node_root: pathlib.Path, surroundings: Surroundings, record_property: t.Callable[[str, object], None]
) -> None:
    case, release = ROWS[name]
    directory = NodeDirectory(node_root, case.node)
    directory.lay_out(surroundings.flags())
    judgement = judge.judge(directory, release)
    outcome = try_start(release, directory, surroundings)
    record_property("outcome", str(outcome))
    wrong = [*against_the_table(case, outcome), *against_the_file(case, release, outcome)]
    wrong += against_the_kubelet(judgement, outcome)
    assert not wrong, "\n".join(wrong)


def test_the_table_is_large_enough() -> None:
    assert len(ROWS) >= 120
