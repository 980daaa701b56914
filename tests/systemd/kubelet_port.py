# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: the API server reaches the kubelet of a node that has no network, as it does for configz and logs.

The node's address stands on this machine's loopback interface for as long; its kubelet answers through a socket in the
directory that the node shares with the test.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import typing as t

from .nodes import Node, copy_stream, run

PORT = 10250
UNITS = {
    "etc/systemd/system/kubelet-port.socket": "[Socket]\nListenStream=/fixture/kubelet.sock\n",
    "etc/systemd/system/kubelet-port.service": (
        f"[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd 127.0.0.1:{PORT}\n"
    ),
}


@contextlib.contextmanager
def reachable(worker: Node) -> t.Iterator[None]:
    """The API server reaches the kubelet of a node while the context lasts."""
    for path, text in UNITS.items():
        worker.write(path, text)
    worker.systemctl("daemon-reload")
    worker.systemctl("start", "kubelet-port.socket")
    run("ip", "address", "add", f"{worker.address}/32", "dev", "lo")
    loop = asyncio.new_event_loop()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_unix_connection(str(worker.root / "kubelet.sock"))
            await asyncio.gather(copy_stream(reader, far_writer), copy_stream(far_reader, writer))

    try:
        loop.run_until_complete(asyncio.start_server(connected, worker.address, PORT))
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        yield
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    finally:
        run("ip", "address", "delete", f"{worker.address}/32", "dev", "lo", check=False)
