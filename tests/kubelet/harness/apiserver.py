# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kube-apiserver over the distribution's etcd, on loopback, and the few calls that the tests make."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import pathlib
import ssl
import subprocess
import typing as t

from .kubelet import binary
from .process import Process, free_port, until

RELEASE = "v1.37.2"
TOKEN = "for-this-test-only"
PODS = "/api/v1/namespaces/default/pods"

Document = t.Dict[str, t.Any]


class ApiError(Exception):
    """An answer that is not 2xx; carries the status code."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclasses.dataclass(frozen=True)
class Api:
    """A client; by default one that may do everything."""

    port: int
    token: str = TOKEN

    def call(self, method: str, path: str, body: Document | None = None) -> Document:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": kind, "Connection": "close"}
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        if answer.status >= 300:
            raise ApiError(answer.status, text)
        parsed: Document = json.loads(text) if text.startswith("{") else {}
        return parsed

    def find(self, path: str) -> Document | None:
        """The object, or None where there is none or nobody answers yet."""
        try:
            return self.call("GET", path)
        except (ApiError, OSError):
            return None

    def create_pod(self, manifest: Document) -> str:
        """Create a pod; returns its UID."""
        return str(self.call("POST", PODS, manifest)["metadata"]["uid"])

    def pod(self, name: str) -> Document:
        return self.call("GET", f"{PODS}/{name}")

    def delete_pod(self, name: str) -> None:
        """Remove a pod without waiting for its kubelet."""
        self.call("DELETE", f"{PODS}/{name}", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    def delete_node(self, name: str) -> None:
        with contextlib.suppress(ApiError):
            self.call("DELETE", f"/api/v1/nodes/{name}")

    def kubeconfig(self) -> str:
        """The text of a kubeconfig file for this server."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": "test",
                        "cluster": {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True},
                    }
                ],
                "users": [{"name": "test", "user": {"token": self.token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                "current-context": "test",
            }
        )


@contextlib.contextmanager
def etcd(root: pathlib.Path) -> t.Iterator[str]:
    """Run etcd below `root`; yields its client URL."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _rest in range(2))
    flags = {
        "data-dir": root / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    command = ["etcd", "--unsafe-no-fsync", *(f"--{name}={value}" for name, value in flags.items())]
    process = Process("etcd", _supported(command), root / "etcd.log")
    try:
        process.ready(
            "it serves clients", lambda: any("serving" in line and "client" in line for line in process.log.lines)
        )
        yield client
    finally:
        process.stop()


def _supported(command: t.Sequence[str]) -> list[str]:
    """The command without the options that this etcd (3.4 in Debian 12) does not have."""
    help_text = ["etcd", "--help"]
    options = subprocess.run(help_text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    return [part for part in command if part != "--unsafe-no-fsync" or "unsafe-no-fsync" in options]


@contextlib.contextmanager
def apiserver(
    root: pathlib.Path, key: pathlib.Path, authorization: str = "AlwaysAllow", users: t.Mapping[str, str] | None = None
) -> t.Iterator[Api]:
    """Run etcd and kube-apiserver below `root`; yields when the default namespace is there.

    `authorization` are the modes, `users` more users by name with their tokens.
    """
    root.mkdir(parents=True)
    tokens = root / "tokens.csv"
    rows = [
        f'{TOKEN},admin,admin,"system:masters"',
        *(f"{token},{name},{name}" for name, token in (users or {}).items()),
    ]
    tokens.write_text("".join(row + "\n" for row in rows), encoding="ascii")
    with etcd(root) as etcd_url:
        api = Api(free_port())
        flags = _apiserver_flags(root, key, tokens, etcd_url, api.port)
        command = [binary("kube-apiserver", RELEASE), *flags, f"--authorization-mode={authorization}"]
        process = Process("kube-apiserver", command, root / "apiserver.log")
        try:
            process.ready("namespace default exists", lambda: api.find("/api/v1/namespaces/default"), 240)
            yield api
        finally:
            process.stop(graceful=False)


def _apiserver_flags(
    root: pathlib.Path, key: pathlib.Path, tokens: pathlib.Path, etcd_url: str, port: int
) -> t.Iterator[str]:
    flags = {
        "etcd-servers": etcd_url,
        "secure-port": port,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "kubelet-preferred-address-types": "InternalIP",
        "cert-dir": root / "certs",
        "token-auth-file": tokens,
        "disable-admission-plugins": "ServiceAccount",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.214.0.0/24",
        "profiling": "false",
    }
    return (f"--{name}={value}" for name, value in flags.items())


Limits = t.Mapping[str, t.Mapping[str, str]]


def guaranteed_pod(name: str, node: str, containers: Limits, init_containers: Limits | None = None) -> Document:
    """A pod bound to a node without a scheduler, with limits as requests for each container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "enableServiceLinks": False,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": _containers(init_containers or {}),
            "containers": _containers(containers),
        },
    }


def _containers(limits: Limits) -> list[Document]:
    return [
        {
            "name": name,
            "image": "localhost/pause:1",
            "imagePullPolicy": "Never",
            "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        }
        for name, amounts in limits.items()
    ]


def ready(api: Api, node: str, seconds: float = 30.0) -> None:
    """Wait until a node says of itself that it is Ready."""

    def is_ready() -> bool:
        found = api.find(f"/api/v1/nodes/{node}") or {}
        conditions = found.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    until(f"node {node} is Ready", is_ready, seconds)
