# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of a run on the controller: what is written is read again, and a damaged run is told, not guessed."""

from __future__ import annotations

import builtins
import typing as t
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.plugin_utils import _results as results
from ansible_collections.kubenode.memory.plugins.plugin_utils._query import query_results, selected_hosts

TIMES = [f"2026-11-29T17:00:0{second}.000Z" for second in range(10)]


def record(run: Path, host: str, outcome: str, second: int = 0, **more: t.Any) -> None:
    key = "verdict" if outcome not in ("failed", "unreachable") else "status"
    results.append_record(run, host, {key: outcome, "time": TIMES[second], "summary": f"{outcome}: text", **more})


def outcomes(*runs: Path) -> t.Dict[str, str]:
    return {result.host: result.outcome for result in results.read_runs(runs).hosts}


def test_newest_record_of_a_host_counts(tmp_path: Path) -> None:
    record(tmp_path / "b", "n1", "unreachable", 1)
    record(tmp_path / "a", "n1", "match", 2)
    record(tmp_path / "a", "n2", "tolerable", 3)
    record(tmp_path / "a", "n2", "match", 4)
    assert outcomes(tmp_path / "a", tmp_path / "b") == {"n1": "match", "n2": "match"}


def test_hosts_without_a_result_are_not_started(tmp_path: Path) -> None:
    assert results.start_run(tmp_path / "run", ["n1", "n2"], TIMES[0])
    assert not results.start_run(tmp_path / "run", ["n3"], TIMES[1])
    record(tmp_path / "run", "n1", "match")
    assert outcomes(tmp_path / "run") == {"n2": "not_started", "n1": "match"}


def test_worst_hosts_come_first_and_the_columns_are_aligned(tmp_path: Path) -> None:
    for host, outcome in {"a": "match", "b": "tolerable", "long-name": "refuse", "c": "unreachable"}.items():
        record(tmp_path, host, outcome)
    hosts = results.read_runs([tmp_path]).hosts
    assert [result.host for result in hosts] == ["long-name", "c", "b", "a"]
    lines = results.table(hosts)
    assert {line.index(text) for line, text in zip(lines, ("VERDICT", "refuse", "unreach", "toler", "match"))} == {11}
    assert results.count_line(hosts).startswith("4 hosts = 1 refuse + 1 unreachable + 1 tolerable + 1 match")
    assert results.failed_hosts(hosts, ["refuse"]) == ["long-name", "c"]


@pytest.mark.parametrize(
    ("outcome", "reboot", "note"),
    [
        ("match", {"status": "listed", "needed": True}, "[needs a reboot]"),
        ("match", {"status": "rebooted", "needed": False, "cordon": "ours"}, "[rebooted]"),
        ("match", {"status": "rebooted", "cordon": "kept"}, "[rebooted, still cordoned by somebody else]"),
        ("failed", {"status": "failed", "needed": True}, "text"),
    ],
)
def test_reboots_are_told(tmp_path: Path, outcome: str, reboot: t.Dict[str, t.Any], note: str) -> None:
    record(tmp_path, "a", outcome, reboot=reboot)
    assert results.table(results.read_runs([tmp_path]).hosts)[1].endswith(note)


def test_host_names_cannot_leave_the_run(tmp_path: Path) -> None:
    for host in ("../../etc/passwd", "a/b", "[fe80::1]", ".."):
        record(tmp_path / "run", host, "match")
        assert outcomes(tmp_path / "run")[host] == "match"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    "line", [b"{", b"null", b"[]", b"{}", b'{"host": "x", "verdict": "fine", "time": ""}', b"\xff"]
)
def test_damaged_lines_are_left_out_and_told(tmp_path: Path, line: bytes) -> None:
    record(tmp_path, "n1", "match")
    file = tmp_path / "hosts" / "n1.jsonl"
    file.write_bytes(file.read_bytes() + line)
    found = results.read_runs([tmp_path])
    assert [result.outcome for result in found.hosts] == ["match"]
    assert found.problems == (f"{file}, line 2: not a result, it is left out",)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"hosts": 3}', "\0"])
def test_damaged_run_file_is_an_error_with_its_path(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(results.ResultsError, match=r"run\.json"):
        results.read_runs([tmp_path])


def test_directory_of_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(results.ResultsError, match="is not the directory of a run"):
        results.read_runs([tmp_path / "missing"])


def test_limit_file_without_hosts_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "failed.limit"
    results.write_limit(file, ["n1", "n2"])
    assert file.read_text() == "n1\nn2\n"
    results.write_limit(file, [])
    results.write_limit(file, [])
    assert not file.exists()


def test_directory_that_cannot_be_written_is_an_error_with_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(results.ResultsError, match=r"file/run.*memmgr_report_dir"):
        results.start_run(tmp_path / "file" / "run", [], TIMES[0])


def test_query_selects_hosts(tmp_path: Path) -> None:
    pytest.importorskip("jmespath")
    record(tmp_path, "n1", "tolerable", will_start=False)
    record(tmp_path, "n2", "match", will_start=True)
    hosts = results.read_runs([tmp_path]).hosts
    assert query_results(hosts, "[?verdict == 'tolerable'].host") == ["n1"]
    assert selected_hosts(query_results(hosts, "[?will_start]")) == ["n2"]
    assert selected_hosts(query_results(hosts, "[].{host: host, when: time}")) == ["n1", "n2"]
    assert selected_hosts(query_results(hosts, "length(@)")) == []
    with pytest.raises(results.ResultsError, match=r"memmgr_report_query is '\[\?'"):
        query_results(hosts, "[?")


def test_answers_of_queries_are_told_without_quotes() -> None:
    answer = {"host": "n1", "codes": ["a", "b"], "none": [], "bytes": 4096, "will_start": False}
    assert results.plain(answer) == "host=n1  codes=a, b  none=-  bytes=4096  will_start=false"


def test_query_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_jmespath(name: str, *rest: t.Any, **more: t.Any) -> t.Any:
        if name.startswith("jmespath"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_jmespath)
    with pytest.raises(results.ResultsError, match="pip install jmespath"):
        query_results([], "[]")
