# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One API server and one node of each release for the session; in CI a skipped test is a failed run."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
from kubelet.cases import V134, V137
from kubelet.harness import apiserver as api, host, lab
from kubelet.harness.session import fail_unnamed_skips, skip_without

from . import controller, nodes

PROGRAMS = ("podman", "runc", "etcd", "openssl", "setpriv", "go")


@pytest.fixture(scope="session")
def lab_root() -> t.Iterator[pathlib.Path]:
    skip_without(host.missing_for_root(PROGRAMS))
    with lab.directory() as root:
        yield root


@pytest.fixture(scope="session")
def server(lab_root: pathlib.Path) -> t.Iterator[api.Api]:
    _rest, key = lab.certificate(lab_root)
    with api.apiserver(lab_root / "api", key) as running:
        yield running


@pytest.fixture(scope="session")
def workers(lab_root: pathlib.Path, server: api.Api) -> t.Iterator[list[nodes.Node]]:
    """One node of each release; the first has a name of its own in the API."""
    image = nodes.run(str(nodes.HERE / "image.sh")).strip()
    names = [f"worker-{letter}-{lab_root.name[-4:].lower().replace('_', 'x')}" for letter in "ab"]
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(nodes.node(lab_root, image, names[0], V134, 2, server, "first"))
        second = stack.enter_context(nodes.node(lab_root, image, names[1], V137, 3, server))
        for worker in (first, second):
            api.ready(server, worker.node_name, 90)
        yield [first, second]


@pytest.fixture(scope="session")
def ansible(lab_root: pathlib.Path, server: api.Api, workers: list[nodes.Node]) -> controller.Controller:
    return controller.for_containers(lab_root / "controller", server, workers)


def pytest_sessionfinish(session: pytest.Session) -> None:
    fail_unnamed_skips(session, ())
