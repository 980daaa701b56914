# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One laboratory for the session; what is missing is said; CI does not let more than the named cases be skipped."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from .harness import apiserver as api, lab
from .harness.kubelet import Surroundings

# Names of tests that CI may skip, with the reason here; there is none.
MAY_BE_SKIPPED: tuple[str, ...] = ()


def _need(missing: t.Sequence[str]) -> None:
    if missing:
        pytest.skip("missing here: " + ", ".join(missing))


@pytest.fixture(scope="session")
def lab_directory() -> t.Iterator[pathlib.Path]:
    _need(lab.missing_capabilities())
    with lab.directory() as root:
        yield root


@pytest.fixture(scope="session")
def surroundings(lab_directory: pathlib.Path) -> t.Iterator[Surroundings]:
    """containerd, keys and a control group for the kubelets of this session."""
    with lab.surroundings(lab_directory) as shared:
        yield shared


@pytest.fixture(scope="session")
def apiserver(lab_directory: pathlib.Path, surroundings: Surroundings) -> t.Iterator[api.Api]:
    """A kube-apiserver over etcd; signs its tokens with the kubelets' key."""
    _need(lab.missing_api_capabilities())
    with api.apiserver(lab_directory / "api", surroundings.key) as server:
        yield server


@pytest.fixture
def node_root(lab_directory: pathlib.Path, request: pytest.FixtureRequest) -> t.Iterator[pathlib.Path]:
    """An empty directory for one node; removed afterwards."""
    with lab.node_directory(lab_directory) as root:
        yield root


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """A table of times, and what the kubelet said, for each case."""
    rows = [
        (report.duration, report.nodeid.split("::")[-1], dict(report.user_properties).get("outcome", ""))
        for reports in ("passed", "failed")
        for report in terminalreporter.stats.get(reports, [])
        if report.when == "call" and "kubelet/" in report.nodeid
    ]
    if not rows:
        return
    terminalreporter.section("kubelet starts")
    for seconds, name, outcome in rows:
        terminalreporter.write_line(f"{seconds:6.2f} s  {name}  {outcome[:100]}")
    terminalreporter.write_line(f"{len(rows)} cases, {sum(row[0] for row in rows):.0f} s")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped case is a failed run, unless it is named above."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [report.nodeid for report in reporter.stats.get("skipped", [])] if reporter else []
    unexpected = [nodeid for nodeid in skipped if nodeid.split("::")[-1] not in MAY_BE_SKIPPED]
    if os.environ.get("CI") and unexpected and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
