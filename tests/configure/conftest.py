# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two columns at the end; in CI nothing is skipped but what is named here."""

from __future__ import annotations

import typing as t

import pytest
from kubelet.harness.session import fail_unnamed_skips, lab_directory, node_root, surroundings

__all__ = ["lab_directory", "node_root", "surroundings"]

# Names of tests that CI may skip, with the reason here; there is none.
MAY_BE_SKIPPED: tuple[str, ...] = ()


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """What the module did, beside what the kubelet did with the same values."""
    rows = [
        (report.nodeid.split("[")[-1].rstrip("]"), dict(report.user_properties))
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, [])
        if report.when == "call" and "kubelet" in dict(report.user_properties)
    ]
    if not rows:
        return
    terminalreporter.section("configure | kubelet")
    for name, said in rows:
        terminalreporter.write_line(f"{name:44.44} | {said['module']:28.28} | {said['kubelet']:90.90}")
    terminalreporter.write_line(f"{len(rows)} rows")


def pytest_sessionfinish(session: pytest.Session) -> None:
    fail_unnamed_skips(session, MAY_BE_SKIPPED)
