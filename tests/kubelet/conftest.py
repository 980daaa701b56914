# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One API server for the session; a table of times; in CI nothing is skipped but what is named here."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from .harness import apiserver as api, lab
from .harness.kubelet import Surroundings
from .harness.session import fail_unnamed_skips, lab_directory, node_root, skip_without, surroundings

__all__ = ["lab_directory", "node_root", "surroundings"]

# Names of tests that CI may skip, with the reason here; there is none.
MAY_BE_SKIPPED: tuple[str, ...] = ()


@pytest.fixture(scope="session")
def apiserver(lab_directory: pathlib.Path, surroundings: Surroundings) -> t.Iterator[api.Api]:
    """A kube-apiserver over etcd; signs its tokens with the kubelets' key."""
    skip_without(lab.missing_api_capabilities())
    with api.apiserver(lab_directory / "api", surroundings.key) as server:
        yield server


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
    fail_unnamed_skips(session, MAY_BE_SKIPPED)
