# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for the conftest.py of each directory of tests with real kubelets; in CI nothing is skipped unnoticed."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from . import lab
from .kubelet import Surroundings


def skip_without(missing: t.Sequence[str]) -> None:
    """Skip the test that asks, and say which capabilities it misses."""
    if missing:
        pytest.skip("missing here: " + ", ".join(missing))


@pytest.fixture(scope="session")
def lab_directory() -> t.Iterator[pathlib.Path]:
    skip_without(lab.missing_capabilities())
    with lab.directory() as root:
        yield root


@pytest.fixture(scope="session")
def surroundings(lab_directory: pathlib.Path) -> t.Iterator[Surroundings]:
    """containerd, keys and a control group for the kubelets of this session."""
    with lab.surroundings(lab_directory) as shared:
        yield shared


@pytest.fixture
def node_root(lab_directory: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """An empty directory for one node; removed afterwards."""
    with lab.node_directory(lab_directory) as root:
        yield root


def unnamed(nodeids: t.Iterable[str], may_be_skipped: t.Container[str]) -> list[str]:
    """The tests that are not on the list, which has their names without path, as in `test_a[case]`."""
    return [nodeid for nodeid in nodeids if nodeid.split("::")[-1] not in may_be_skipped]


def fail_unnamed_skips(session: pytest.Session, may_be_skipped: t.Container[str]) -> None:
    """Make the run of CI a failure where a test was skipped that is not on the list; for pytest_sessionfinish."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return
    unexpected = unnamed((report.nodeid for report in reporter.stats.get("skipped", [])), may_be_skipped)
    if unexpected and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("\nCI lets only the tests in MAY_BE_SKIPPED be skipped, not " + ", ".join(unexpected))
