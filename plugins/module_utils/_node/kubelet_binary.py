# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What a kubelet's binary says about itself: its version and the feature gates in its help (semantics 6.7)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import typing as t
from dataclasses import dataclass

from .._policy.release import Release, parse_release
from .overrides import TIMEOUT
from .root import HostRoot, NodeError

OUTPUT_LIMIT = 4 * 1024 * 1024
CACHE_LIMIT = 256 * 1024
CACHE_ENTRIES = 8

_VERSION = re.compile(r"\bv\d{1,4}\.\d{1,4}\.\d{1,6}\S*")
_GATE = re.compile(r"^\s*(?:--feature-gates\s.*?)?(?:[a-z]+:)?([A-Z][A-Za-z0-9]*)=true\|false\b", re.M)


@dataclass(frozen=True)
class BinaryAnswer:
    """`version` is None where the binary did not say one. `gates` lists what its help shows: alpha and beta gates."""

    version: t.Optional[Release]
    gates: t.Optional[t.FrozenSet[str]]


def ask_binary(
    root: HostRoot, path: str, cache_file: t.Optional[str] = None, timeout: float = TIMEOUT
) -> t.Optional[BinaryAnswer]:
    """Run the binary with --version and --help; None where it may not be run (another root) or cannot be.

    The answers are kept in `cache_file` by path, inode, size and time of change; one that took longer than `timeout`
    seconds is not.
    """
    if not root.is_live or not os.path.isabs(path):
        return None
    try:
        key = _key(root, path)
    except NodeError:
        return None
    cache = _read_cache(cache_file)
    cached = _from_json(cache.get(key))
    if cached is not None:
        return cached
    version = parse_version_output(_run(path, "--version", timeout) or "")
    if version is None:
        return None
    text = _run(path, "--help", timeout)
    answer = BinaryAnswer(version, parse_gates(text or "") or None)
    if text is not None:
        _write_cache(cache_file, {**cache, key: _to_json(answer)})
    return answer


def parse_version_output(text: str) -> t.Optional[Release]:
    """The release in `Kubernetes v1.37.2` or `k3s version v1.36.3+k3s1 (abcdef)`."""
    match = _VERSION.search(text)
    if match is None:
        return None
    try:
        return parse_release(match.group(0))
    except ValueError:
        return None


def parse_gates(text: str) -> t.FrozenSet[str]:
    """The gates that the help of --feature-gates lists."""
    return frozenset(_GATE.findall(text))


def _run(path: str, argument: str, timeout: float) -> t.Optional[str]:
    """What it prints: "" where it fails, None where it does not end in time."""
    # Imported where a binary has to be asked: most starts know its answer, and an import costs as much as a judgement.
    import subprocess

    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    try:
        # The guard has no AnsibleModule whose run_command could be called.
        result = subprocess.run(  # pylint: disable=ansible-bad-function
            [path, argument],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except (OSError, ValueError):
        return ""
    return result.stdout[:OUTPUT_LIMIT].decode("utf-8", "replace") if result.returncode == 0 else ""


def _key(root: HostRoot, path: str) -> str:
    status = root.stat(path)
    return f"{path}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def _to_json(answer: BinaryAnswer) -> t.Dict[str, t.Any]:
    return {"version": str(answer.version), "gates": None if answer.gates is None else sorted(answer.gates)}


def _from_json(value: t.Any) -> t.Optional[BinaryAnswer]:
    if not isinstance(value, dict) or not isinstance(value.get("version"), str):
        return None
    gates = value.get("gates")
    if gates is not None and not (isinstance(gates, list) and all(isinstance(gate, str) for gate in gates)):
        return None
    try:
        return BinaryAnswer(parse_release(value["version"]), None if gates is None else frozenset(gates))
    except ValueError:
        return None


def _read_cache(cache_file: t.Optional[str]) -> t.Dict[str, t.Any]:
    if cache_file is None:
        return {}
    try:
        with open(cache_file, "rb") as stream:
            content = json.loads(stream.read(CACHE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_cache(cache_file: t.Optional[str], content: t.Dict[str, t.Any]) -> None:
    """Losing the cache costs time only: no error is raised."""
    if cache_file is None:
        return
    kept = dict(list(content.items())[-CACHE_ENTRIES:])
    temporary = cache_file + ".tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(kept, stream)
        os.replace(temporary, cache_file)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
