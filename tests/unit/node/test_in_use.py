# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd's answer means; the processes are in tests/rebaseline."""

from __future__ import annotations

import sys
import typing as t

import pytest

from ansible_collections.kubenode.memory.plugins.module_utils._node.in_use import UNITS, parse_show, show_units

ANSWER = "Id=kubelet.service\nActiveState=active\n\nId=k3s.service\nActiveState=inactive\n"


def systemctl(program: str) -> t.List[str]:
    """A stand-in: a Python program that is given the units after `--`."""
    return [sys.executable, "-c", program]


def test_a_block_for_each_unit() -> None:
    assert parse_show(ANSWER) == [("kubelet.service", "active"), ("k3s.service", "inactive")]
    assert parse_show("") == []


def test_an_alias_shows_the_unit_behind_it() -> None:
    program = "import sys; [print(f'Id=snap.{u}\\nActiveState=active\\n') for u in sys.argv[1:] if u != '--']"
    assert show_units(["kubelet.service"], systemctl(program)) == {"snap.kubelet.service": "active"}


@pytest.mark.parametrize(
    "program",
    [
        "import sys; sys.exit('System has not been booted with systemd')",
        "print('Id=kubelet.service')",
        "print('Id=kubelet.service\\nActiveState=inactive')",
        "",
    ],
)
def test_half_an_answer_is_none(program: str) -> None:
    with pytest.raises(ValueError, match=r"booted with systemd|was asked for 2 units"):
        show_units(["kubelet.service", "k3s.service"], systemctl(program))


def test_a_missing_systemctl() -> None:
    with pytest.raises(OSError, match="No such file"):
        show_units(UNITS, ["/nonexistent/systemctl"])
