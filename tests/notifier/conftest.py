# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Surroundings for the kubelets; lines for the end of the run; in CI nothing is skipped but what is named here."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from kubelet.harness import lab
from kubelet.harness.kubelet import Surroundings

# Names of tests that CI may skip: those that need cgroup v1, on a machine that has none.
MAY_BE_SKIPPED: tuple[str, ...] = ()
FIGURE = "figure"


@pytest.fixture(scope="session")
def lab_directory() -> t.Iterator[pathlib.Path]:
    missing = lab.missing_capabilities()
    if missing:
        pytest.skip("missing here: " + ", ".join(missing))
    with lab.directory() as root:
        yield root


@pytest.fixture(scope="session")
def surroundings(lab_directory: pathlib.Path) -> t.Iterator[Surroundings]:
    with lab.surroundings(lab_directory) as shared:
        yield shared


@pytest.fixture
def node_root(lab_directory: pathlib.Path) -> t.Iterator[pathlib.Path]:
    with lab.node_directory(lab_directory) as root:
        yield root


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """The figures that the tests took."""
    figures = [
        text
        for report in terminalreporter.stats.get("passed", [])
        for name, text in report.user_properties
        if name == FIGURE and report.when == "call"
    ]
    if figures:
        terminalreporter.section("memory threshold notifier")
    for text in figures:
        terminalreporter.write_line(str(text))


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [report.nodeid for report in reporter.stats.get("skipped", [])] if reporter else []
    unexpected = [nodeid for nodeid in skipped if nodeid.split("::")[-1] not in MAY_BE_SKIPPED]
    if os.environ.get("CI") and unexpected and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
