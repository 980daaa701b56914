# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures for the end of the run; in CI nothing is skipped but what is named here."""

from __future__ import annotations

import typing as t

import pytest
from kubelet.harness.session import fail_unnamed_skips, lab_directory, node_root, surroundings

__all__ = ["lab_directory", "node_root", "surroundings"]

# Names of tests that CI may skip: those that need cgroup v1, on a machine that has none.
MAY_BE_SKIPPED: tuple[str, ...] = ()
FIGURE = "figure"


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
    fail_unnamed_skips(session, MAY_BE_SKIPPED)
