# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd from the distribution, with roots and a socket of its own. Starts in a mount namespace: nothing stays."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import typing as t

from .process import Process

CNI_PLUGINS = "/usr/lib/cni"
NETWORK = """{
  "cniVersion": "0.3.1", "name": "kubelet-test",
  "plugins": [
    {"type": "ptp", "ipMasq": false,
     "ipam": {"type": "host-local", "dataDir": "%s", "ranges": [[{"subnet": "10.213.0.0/24"}]]}}
  ]
}
"""
CONFIG = """version = 2
root = "{root}/root"
state = "{root}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
oom_score = 0
[grpc]
  address = "{root}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{root}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""


def answers(path: pathlib.Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return path.exists() and client.connect_ex(str(path)) == 0


@contextlib.contextmanager
def containerd(root: pathlib.Path) -> t.Iterator[str]:
    """Run containerd below `root` and yield its endpoint, `unix:///...`."""
    (root / "cni").mkdir(parents=True)
    (root / "cni" / "10-test.conflist").write_text(NETWORK % (root / "ipam"), encoding="ascii")
    config = root / "config.toml"
    config.write_text(CONFIG.format(root=root, cni=CNI_PLUGINS), encoding="ascii")
    command = ["unshare", "--mount", "--propagation", "private", "containerd", "--config", str(config)]
    process = Process("containerd", command, root / "containerd.log")
    try:
        process.ready("its socket answers", lambda: answers(root / "containerd.sock"))
        process.ready("its services are up", lambda: any("successfully booted" in line for line in process.log.lines))
        yield f"unix://{root}/containerd.sock"
    finally:
        process.stop()
