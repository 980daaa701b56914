# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's own packages start with every file that we write for a tolerable row, and leave it as it is."""

from __future__ import annotations

import typing as t

import pytest
from differential.kubelet_oracle import RELEASES, Json, Oracle, build_oracle

from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_machine_state
from rebaseline.test_vectors import ONE_EACH, Case, rewritten


def start(case: Case, text: str) -> Json:
    """A request of the oracle: one start of the memory manager with a file."""
    return {
        "policy": case.row["policy"],
        "pod_level_resource_managers_gate": case.row["pod_level_resource_managers_gate"],
        "machine": case.row["machine"],
        "node_allocatable_reservation": case.row["node_allocatable_reservation"],
        "reserved_memory": case.row["reserved_memory"],
        "file_text": text,
        "repeat": 3,
    }


@pytest.mark.parametrize("release", RELEASES)
def test_each_real_release_that_could_read_the_original_starts(
    release: str, record_property: t.Callable[[str, object], None]
) -> None:
    cases = [case for found in ONE_EACH.values() for case in found]
    files = [rewritten(case) for case in cases]
    with Oracle(build_oracle(release)) as oracle:
        before = oracle.ask([start(case, case.row["file_text"]) for case in cases])
        after = oracle.ask([start(case, file.content.decode()) for case, file in zip(cases, files)])
    read = 0
    for case, file, old, new in zip(cases, files, before, after):
        assert not old["ok"], case.name
        if old["stage"] == "load":
            continue
        read += 1
        assert (new["ok"], new["stage"]) == (True, "ok"), (case.name, new)
        assert new["file_after"]["file_text"].encode() == file.content, case.name
        state = file.after.state
        assert state is not None
        assert new["machine_state_after"] == present_machine_state(state.nodes), case.name
    assert read > 0
    text = f"kubelet {release}: {read} of {len(cases)} files could be read; all of those start after the rewrite"
    record_property("figure", text)
