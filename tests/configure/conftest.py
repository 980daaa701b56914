# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The laboratory of tests/kubelet, and the two columns at the end."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from kubelet.harness import lab
from kubelet.harness.kubelet import Surroundings


@pytest.fixture(scope="session")
def lab_directory() -> t.Iterator[pathlib.Path]:
    missing = lab.missing_capabilities()
    if missing and os.environ.get("CI"):
        pytest.fail("missing here: " + ", ".join(missing))
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
