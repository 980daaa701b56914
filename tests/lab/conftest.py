# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab for the session. What is not part of CI runs with LAB=all."""

from __future__ import annotations

import os
import typing as t

import pytest
from kubelet.harness import host, lab as harness
from kubelet.harness.session import fail_unnamed_skips, skip_without

from .lab import Lab, lab

PROGRAMS = (
    *("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs", "depmod", "cpio", "busybox", "ssh", "ssh-keygen"),
    *("containerd", "ctr", "etcd", "openssl", "setpriv", "unshare", "go"),
)


@pytest.fixture(scope="session")
def numa_lab() -> t.Iterator[Lab]:
    skip_without(host.missing_for_root(PROGRAMS))
    with harness.directory() as root, lab(root) as running:
        yield running


def pytest_ignore_collect(collection_path: t.Any) -> bool | None:
    """All but the first file would take longer than CI has."""
    is_extra = collection_path.name.startswith("test_") and collection_path.name != "test_maintenance.py"
    return True if is_extra and os.environ.get("LAB") != "all" else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    fail_unnamed_skips(session, ())
