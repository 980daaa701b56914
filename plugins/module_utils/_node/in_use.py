# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Is a kubelet using a state directory? Nothing may be written below one that is (design, section 5)."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .presence import UNITS
from .processes import KubeletProcess, read_kubelets
from .root import HostRoot

STOPPED = ("inactive", "failed")
"""The states of a unit that has no process and is about to have none; every other one counts as use."""

SYSTEMCTL = ("systemctl", "show", "--property=Id,ActiveState")
TIMEOUT = 20

Units = t.Mapping[str, str]
"""State by unit."""


@dataclass(frozen=True)
class Usage:
    """`by` names what uses the directory; `unproven` says why it cannot be told whether something else does."""

    by: t.Tuple[str, ...] = ()
    unproven: t.Optional[str] = None


def find_usage(
    root: HostRoot,
    directory: str,
    unit: t.Optional[str] = None,
    own_unit_starts: bool = False,
    show: t.Optional[t.Callable[[t.Sequence[str]], Units]] = None,
) -> Usage:
    """Who uses `directory` as a kubelet's root directory.

    :param unit: a unit to be asked for beside the usual ones
    :param own_unit_starts: the caller is the unit's own pre-start, so that only live processes count
    :param show: asks systemd; by default `systemctl show` where the root is live and booted with systemd
    """
    reading = read_kubelets(root)
    by = tuple(f"process {one.pid} ({one.name})" for one in reading.kubelets if _uses(root, one, directory))
    unproven = reading.incomplete
    if show is None and root.is_live and root.exists("/run/systemd/system"):
        show = show_units
    if show is not None and not own_unit_starts:
        try:
            states = show(tuple(dict.fromkeys((*UNITS, *([unit] if unit else ())))))
        except (OSError, ValueError) as error:
            return Usage(by, unproven or f"systemd does not tell the state of the kubelet's unit: {error}")
        by = tuple(f"{name} is {state}" for name, state in states.items() if state not in STOPPED) + by
    return Usage(by, unproven)


def _uses(root: HostRoot, process: KubeletProcess, directory: str) -> bool:
    """In a mount namespace of its own, paths prove nothing."""
    return process.in_node_namespace is False or process.may_use(root, directory)


def show_units(units: t.Sequence[str], command: t.Sequence[str] = SYSTEMCTL) -> Units:
    """The ActiveState of units; one that systemd does not know is inactive.

    :raises OSError: if systemctl cannot be run
    :raises ValueError: if it takes too long, or its answer is not one
    """
    # Not needed in a start of the kubelet's unit, where importing it would be a good part of what the guard costs.
    import subprocess

    try:
        # The guard has no AnsibleModule whose run_command could be called.
        result = subprocess.run(  # pylint: disable=ansible-bad-function
            [*command, "--", *units],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            check=False,
        )
    except subprocess.SubprocessError as error:
        raise ValueError(str(error)) from error
    if result.returncode:
        raise ValueError(result.stderr.decode("utf-8", "replace").strip() or f"exit code {result.returncode}")
    answer = parse_show(result.stdout.decode("utf-8", "replace"))
    if len(answer) != len(units):
        raise ValueError(f"systemctl show was asked for {len(units)} units and answered for {len(answer)}")
    return dict(answer)


def parse_show(text: str) -> t.List[t.Tuple[str, str]]:
    """(Id, ActiveState) of each block, one block a unit that was asked for; an alias shows the unit behind it."""
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in text.strip().split("\n\n")]
    return [(block["Id"], block["ActiveState"]) for block in blocks if "Id" in block and "ActiveState" in block]
