# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of each release for the session, with the guard installed by the playbook, and all its boots."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import subprocess
import typing as t

import pytest
from kubelet.cases import V134, V137
from kubelet.harness import host, lab
from kubelet.harness.process import until
from kubelet.harness.session import fail_unnamed_skips, skip_without
from systemd import controller, nodes

from . import boots

PROGRAMS = ("podman", "runc", "nsenter", "setpriv", "go")
# What changes by itself, and what the kubelet and Ansible leave.
LEFT_BY_OTHERS = (
    "/fixture",
    "/root/.ansible",
    "/run",
    "/tmp",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log",
)


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The nodes, and the controller that reaches them."""

    workers: tuple[nodes.Node, ...]
    ansible: controller.Controller

    def each(self, ask: t.Callable[[nodes.Node], t.Any]) -> dict[str, t.Any]:
        """The answers of all nodes, asked at the same time."""
        with concurrent.futures.ThreadPoolExecutor(len(self.workers)) as pool:
            return dict(zip((worker.name for worker in self.workers), pool.map(ask, self.workers)))

    def install(self, *arguments: str, **variables: t.Any) -> controller.Run:
        return self.ansible.playbook("install_guard", *arguments, memmgr_serial=["100%"], **variables)


@dataclasses.dataclass(frozen=True)
class Installation:
    """The runs that led to it, and what each node had before and after them.

    The check is one of the first node only, the repetition one of the last.
    """

    checked: controller.Run
    installed: controller.Run
    repeated: controller.Run
    files_before: t.Mapping[str, t.Sequence[str]]
    files_after_check: t.Mapping[str, t.Sequence[str]]
    kubelets_before: t.Mapping[str, str]
    kubelets_after: t.Mapping[str, str]


@pytest.fixture(scope="session")
def session_root() -> t.Iterator[pathlib.Path]:
    skip_without(host.missing_for_root(PROGRAMS))
    with lab.directory() as root:
        yield root


@pytest.fixture(scope="session")
def fleet(session_root: pathlib.Path) -> t.Iterator[Fleet]:
    """A node of each release with a kubelet that runs, on a machine that has not changed yet."""
    image = nodes.run(str(nodes.HERE / "image.sh")).strip()
    suffix = session_root.name[-4:].lower().replace("_", "x")
    with contextlib.ExitStack() as stack:
        workers = tuple(
            stack.enter_context(nodes.node(session_root, image, f"guard-{letter}-{suffix}", release, number, None))
            for letter, release, number in (("a", V134, 2), ("b", V137, 3))
        )
        for worker in workers:
            worker.systemctl("start", "kubelet.service")
            until(f"{worker.name} is up", lambda w=worker: boots.is_up(w), boots.SECONDS)  # type: ignore[misc]
        directory = session_root / "controller"
        controller.write_inventory(directory, {worker.name: {} for worker in workers}, **controller.IN_CONTAINERS)
        yield Fleet(workers, controller.Controller(directory))


def files(worker: nodes.Node) -> list[str]:
    """Every file and directory of the node but those that others leave, with type, mode, owner and size."""
    pruned = " -o ".join(f"-path {path}" for path in LEFT_BY_OTHERS)
    found = worker.exec("sh", "-c", rf"find / -xdev \( {pruned} \) -prune -o -printf '%p %y %m %u %s\n'")
    # a directory's size says what once was in it
    return sorted(line for line in found.splitlines() if " d " not in line) + sorted(
        line.rpartition(" ")[0] for line in found.splitlines() if " d " in line
    )


def invocation(worker: nodes.Node) -> str:
    return worker.unit("InvocationID")["InvocationID"]


@pytest.fixture(scope="session")
def installation(fleet: Fleet) -> Installation:
    before, kubelets_before = fleet.each(files), fleet.each(invocation)
    checked = fleet.install("--check", "--diff", "--limit", fleet.workers[0].name)
    after_check = fleet.each(files)
    installed, repeated = fleet.install(), fleet.install("--limit", fleet.workers[-1].name)
    return Installation(checked, installed, repeated, before, after_check, kubelets_before, fleet.each(invocation))


@pytest.fixture(scope="session")
def outcomes(fleet: Fleet, installation: Installation) -> dict[tuple[str, str], boots.Outcome]:
    """Every boot of every release by (boot, release)."""
    played = fleet.each(lambda worker: [boots.play(worker, boot) for boot in boots.BOOTS])
    return {(one.boot.name, worker.release): one for worker in fleet.workers for one in played[worker.name]}


@pytest.fixture(scope="session")
def prometheus() -> pathlib.Path:
    """The directory of promtool and node_exporter."""
    command = [str(pathlib.Path(__file__).with_name("prometheus.sh"))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(done.stdout.strip())


@pytest.fixture(scope="session")
def scraped(
    fleet: Fleet, outcomes: dict[tuple[str, str], boots.Outcome], prometheus: pathlib.Path
) -> dict[str, dict[str, float]]:
    """What a node_exporter on each node serves after the last boot."""
    exporter = prometheus / "prometheus-node-exporter"
    return {worker.name: boots.samples(boots.scrape(worker, exporter)) for worker in fleet.workers}


def pytest_sessionfinish(session: pytest.Session) -> None:
    fail_unnamed_skips(session, ())
