# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The zip application: the same bytes each time, all that the guard imports, and nothing else."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.kubenode.memory.plugins.plugin_utils import _guard_archive
from ansible_collections.kubenode.memory.plugins.plugin_utils._guard_archive import (
    SOURCES,
    ArchiveError,
    guard_archive,
    needed_sources,
)


def test_the_same_bytes_whatever_the_files_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = guard_archive("/usr/bin/python3")
    for path in needed_sources():
        copy = tmp_path / path
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((SOURCES / path).read_bytes())
        copy.chmod(0o600)
    monkeypatch.setattr(_guard_archive, "SOURCES", tmp_path)
    assert guard_archive("/usr/bin/python3") == first


def test_first_line_order_dates_and_modes() -> None:
    archive = guard_archive("/usr/libexec/platform-python")
    assert archive.startswith(b"#!/usr/libexec/platform-python -I\nPK")
    entries = zipfile.ZipFile(io.BytesIO(archive)).infolist()
    names = [entry.filename for entry in entries]
    assert names == ["__main__.py", *sorted(names[1:])]
    assert {(entry.date_time, entry.external_attr >> 16, entry.compress_type) for entry in entries} == {
        ((1980, 1, 1, 0, 0, 0), 0o100644, zipfile.ZIP_STORED)
    }


def test_only_what_the_guard_needs() -> None:
    needed = set(needed_sources())
    assert {"_guard.py", "_node/writer.py", "_policy/evaluation.py", "_policy/__init__.py"} <= needed
    assert not needed & {"_configure.py", "_arguments.py", "_mapping.py", "_node/configuration_writer.py"}


def test_another_line_of_code_is_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest() -> bytes:
        match = re.search(rb"main\('([0-9a-f]{64})'\)", guard_archive("/usr/bin/python3"))
        assert match is not None
        return match.group(1)

    before = digest()
    sources = needed_sources()
    sources["_policy/units.py"] += b"\n"
    monkeypatch.setattr(_guard_archive, "needed_sources", lambda: sources)
    assert digest() != before


def test_it_runs(tmp_path: Path) -> None:
    program = tmp_path / "guard"
    program.write_bytes(guard_archive(sys.executable if " " not in sys.executable else "/usr/bin/python3"))
    done = subprocess.run(
        [sys.executable, "-I", program, "bound", "--host-root", tmp_path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "/proc/iomem" in done.stdout


@pytest.mark.parametrize(
    "interpreter", ["python3", "", "/opt/my python/bin/python3", "/usr/bin/python3\n-c", "/" + "x" * 130]
)
def test_what_cannot_be_a_first_line(interpreter: str) -> None:
    with pytest.raises(ArchiveError, match="interpreter is"):
        guard_archive(interpreter)
