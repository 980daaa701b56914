# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab that stays: `python -m lab.up` starts one and says how to reach it, `python -m lab.up down` ends it.

One process holds it, and ends with it. What one has to know is in `running.txt` below the cache.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import typing as t

from kubelet.harness import lab as harness
from kubelet.harness.process import until
from tools.build_kubernetes import cache_root

from .lab import Lab, lab

STATE = cache_root() / "lab" / "running.txt"
LOG = STATE.with_name("running.log")
SECONDS = 900.0


def describe(running: Lab) -> str:
    """What there is to know; the first line is the id of the process that holds the lab."""
    rows = [
        f"process     {os.getpid()}",
        f"inventory   {running.ansible.directory / 'inventory.json'}",
        f"collections {running.ansible.collections}",
        f"kubeconfig  {running.directory / 'kubeconfig'}",
        *(f"{name:11} {shlex.join(guest.ssh())}" for name, guest in running.guests.items()),
    ]
    return "".join(row + "\n" for row in rows)


def hold() -> None:
    """Run a lab until SIGTERM or SIGINT."""
    with contextlib.suppress(KeyboardInterrupt), harness.directory() as root, lab(root) as running:
        try:
            new = STATE.with_suffix(".new")
            new.write_text(describe(running))
            new.rename(STATE)
            signal.pause()
        finally:
            STATE.unlink(missing_ok=True)


def holder() -> int | None:
    """The process that holds a lab, if there is one."""
    if not STATE.exists():
        return None
    pid = int(STATE.read_text().split()[1])
    cmdline = pathlib.Path(f"/proc/{pid}/cmdline")
    return pid if cmdline.exists() and b"lab.up" in cmdline.read_bytes() else None


def up() -> None:
    if holder() is None:
        STATE.unlink(missing_ok=True)
        STATE.parent.mkdir(parents=True, exist_ok=True)
        with LOG.open("w") as log:
            command = [sys.executable, "-m", "lab.up", "hold"]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until("the lab runs", lambda: STATE.exists() or process.poll() is not None, SECONDS, 0.5)
    print(STATE.read_text() if STATE.exists() else LOG.read_text(), end="")
    sys.exit(not STATE.exists())


def down() -> None:
    pid = holder()
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        until("the lab has ended", lambda: not pathlib.Path(f"/proc/{pid}").exists(), 60)


COMMANDS: dict[str, t.Callable[[], None]] = {"up": up, "down": down, "hold": hold}

if __name__ == "__main__":
    COMMANDS[sys.argv[1] if len(sys.argv) > 1 else "up"]()
