# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit costs beside `ansible.builtin.ping` on the same local hosts in the same run, and what it ships.

make bench            HOSTS=50 by default
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
import typing as t
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "playbooks" / "fleet" / "nodes"
HOSTS = int(os.environ.get("HOSTS", "50"))
ROUNDS = 3
OVERRIDE = ("-e", "memmgr_become=false")


def inventory(hosts: int) -> t.Dict[str, t.Any]:
    """Local hosts, each of which stands for a node of the sample fleet."""
    nodes = sorted(path for path in FLEET.iterdir() if path.is_dir())
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    return {
        "all": {
            "hosts": {
                f"host{number:03d}": {**variables, "memmgr_validate_host_root": str(nodes[number % len(nodes)])}
                for number in range(hosts)
            }
        }
    }


def seconds(command: t.Sequence[str], directory: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def wall_ratio() -> t.Tuple[float, float]:
    """Best of several rounds in turns: (ping, audit) in seconds."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "hosts.json").write_text(json.dumps(inventory(HOSTS)), encoding="utf-8")
        ping = ["ansible", "-i", "hosts.json", "all", "-f", "20", "-m", "ansible.builtin.ping"]
        audit = [
            "ansible-playbook",
            "-i",
            "hosts.json",
            "-f",
            "20",
            "kubenode.memory.audit",
            "-e",
            "memmgr_become=false",
        ]
        rounds = [(seconds(ping, directory), seconds(audit, directory)) for _round in range(ROUNDS)]
    return min(one[0] for one in rounds), min(one[1] for one in rounds)


def payload() -> t.Tuple[int, int]:
    """(files, compressed bytes) that memmgr_validate adds to AnsiballZ: what it imports, and what that imports."""
    script = (
        "import sys; import ansible_collections.kubenode.memory.plugins.modules.memmgr_validate;"
        "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if 'kubenode.memory.plugins' in n and m.__file__))"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    buffer = io.BytesIO()
    files = sorted(set(done.stdout.split("\n")) - {""})
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.rpartition("/plugins/")[2])
    return len(files), len(buffer.getvalue())


def main() -> None:
    files, size = payload()
    print(f"memmgr_validate adds {files} files, {size / 1024:.1f} KiB compressed, to the zip of the module")
    ping, audit = wall_ratio()
    print(f"audit of {HOSTS} local hosts: {audit / ping:.2f} times the wall time of ping ({audit:.1f} s, {ping:.1f} s)")


if __name__ == "__main__":
    main()
