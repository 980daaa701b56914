# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guard costs before a start on a node that is as it was, beside `python3 -c 'import json, yaml'`.

make bench-guard          ROUNDS=15 by default; as root

Both run in turns and in the same root directory: a node with 300 processes, a kubelet that is configured in YAML,
30 pinned pods and this machine's list of packages. Prints wall time as a ratio, and the peak of memory.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import conftest  # noqa: E402, F401  # pylint: disable=unused-import
import yaml  # noqa: E402
from guard.sandbox import GUARD, TEXTFILES, Sandbox, pythons  # noqa: E402
from rebaseline.node import MIB, RECORDED, SYSTEMD, state_of  # noqa: E402

from ansible_collections.kubenode.memory.plugins.plugin_utils._guard_archive import guard_archive  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "15"))
PROCESSES, PODS = 300, 30
DPKG = Path("/var/lib/dpkg/status")
RUN = ("-I", GUARD, "run", "--unit", "kubelet.service", "--textfile-directory", TEXTFILES)
REFERENCE = ("-c", "import json, yaml")
YAML = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
evictionHard:
  memory.available: 512Mi
memoryManagerPolicy: Static
reservedMemory:
  - numaNode: 0
    limits: {memory: 256Mi}
  - numaNode: 1
    limits: {memory: 256Mi}
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
topologyManagerPolicy: single-numa-node
"""


def node(base: Path, python: str) -> Sandbox:
    """A node that is as it was, with the guard as it is delivered."""
    sandbox = Sandbox(base, python, fmt="V3", drift=(0, 0))
    sandbox.write(GUARD, guard_archive("/usr/bin/python3"))
    sandbox.write("/etc/kubelet", YAML)
    pods = {f"6f1b2c3d-{pod:04x}-4e5f-8a9b-0c1d2e3f4a5b": (((pod % 2,), 16 * MIB),) for pod in range(PODS)}
    sandbox.record(state_of(RECORDED, pods), "V3")
    for pid in range(1000, 1000 + PROCESSES):
        sandbox.write(f"/proc/{pid}/stat", SYSTEMD.replace("1 (systemd)", f"{pid} (kworker/{pid})", 1))
    if DPKG.exists():
        sandbox.write(str(DPKG), DPKG.read_bytes())
    return sandbox


def with_yaml(python: str) -> str:
    """Shell that gives a Python without PyYAML the pure part of ours; its other packages are hidden for the time."""
    version = Path(python).name[len("python") :]
    site = f"{Path(python).parents[1]}/lib/python{version}/site-packages"[1:]
    ours = Path(yaml.__file__).parent
    return "" if python.startswith("/usr/") else f"cp -r {ours} y; mount -t tmpfs none {site}; cp -r y {site}/yaml"


def in_turns(sandbox: Sandbox, rounds: int, *commands: t.Sequence[str]) -> t.List[t.List[t.List[float]]]:
    """What `in_turns.py` measures of commands of the node's Python."""
    words = json.dumps([["chroot", ".", sandbox.python, *command] for command in commands])
    measure = [sandbox.python, "-IS", str(Path(__file__).with_name("in_turns.py")), str(rounds), words]
    script = f"{sandbox.mounts}\n{with_yaml(sandbox.python)}\nexec {shlex.join(measure)}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-euc", script],
        cwd=sandbox.base,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return list(json.loads(done.stdout)) if done.returncode == 0 else []


def report(python: str, base: Path) -> str:
    sandbox = node(base, python)
    if not in_turns(sandbox, 1, REFERENCE):
        return f"{python}: has no PyYAML"
    first = in_turns(sandbox, 1, RUN)[0][0][0]
    rounds = in_turns(sandbox, ROUNDS, REFERENCE, RUN)
    wall, cpu = (statistics.median(run[what] / reference[what] for reference, run in rounds) for what in (0, 1))
    reference, run = (min(one[column][0] for one in rounds) * 1000 for column in (0, 1))
    peak = max(run[2] for _reference, run in rounds) / 1024
    return (
        f"{python}: a run on `match` takes {wall:.2f} times the wall time of importing json and yaml (median of "
        f"{ROUNDS}; CPU time {cpu:.2f} times; at best {run:.0f} ms and {reference:.0f} ms), the first run "
        f"{first * 1000:.0f} ms; peak memory {peak:.1f} MiB"
    )


def main() -> None:
    for python in dict.fromkeys(["/usr/bin/python3", *pythons().values()]):
        with tempfile.TemporaryDirectory() as name:
            print(report(python, Path(name)), flush=True)


if __name__ == "__main__":
    main()
