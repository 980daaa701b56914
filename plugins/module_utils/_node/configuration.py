# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Read the kubelet's configuration files: --config and the *.conf files below --config-dir (semantics 6.2)."""

from __future__ import annotations

import posixpath
import stat
import typing as t

from .._policy.configuration import ConfigurationInputs, Document
from .._policy.decode import go_quote
from .documents import LibraryMissing, parse_document
from .root import HostRoot, NodeError, NotFound

if t.TYPE_CHECKING:  # pragma: no cover
    from .kubelet import KubeletFacts

__all__ = ["LibraryMissing", "parse_document", "read_document", "read_inputs"]

MAX_BYTES = 256 * 1024
MAX_FILES = 500
MAX_DEPTH = 20
EXTENSION = ".conf"


def read_inputs(root: HostRoot, facts: KubeletFacts) -> ConfigurationInputs:
    """Read what the command line names; what the kubelet could not read or parse is the document's `problem`.

    :raises PermissionMissing: where a file exists and may not be read
    :raises LibraryMissing: where a file is YAML and PyYAML is not importable
    :raises NodeError: where a file is too large, too deeply nested, or not a file
    """
    main = read_document(root, facts.config_path) if facts.config_path else None
    dropins = read_drop_ins(root, facts.config_dir) if facts.config_dir else None
    return ConfigurationInputs(main, dropins, facts.argv)


def read_document(root: HostRoot, path: str) -> Document:
    """Read one YAML or JSON file."""
    try:
        data = root.read_bytes(path, MAX_BYTES)
    except NotFound:
        quoted = go_quote(path)
        problem = f"failed to read kubelet config file {quoted}, error: open {path}: no such file or directory"
        return Document(path, problem=problem)
    return parse_document(path, data)


def read_drop_ins(root: HostRoot, directory: str) -> t.Tuple[Document, ...]:
    """All *.conf files below a directory in the kubelet's order; a directory that is not there is a problem."""
    try:
        # The kubelet does not descend into a directory that is a link, unless its name ends with a slash.
        mode = root.stat(directory, follow=directory.endswith("/")).st_mode
    except NotFound:
        text = f"failed to walk through kubelet dropin directory {go_quote(directory)}: "
        problem = f"{text}lstat {directory}: no such file or directory"
        return (Document(directory, problem=problem),)
    paths = list(_walk(root, directory, mode, 0))
    if len(paths) > MAX_FILES:
        raise NodeError(f"{directory} has more than {MAX_FILES} *.conf files; look at it on the node")
    return tuple(read_document(root, path) for path in paths)


def _walk(root: HostRoot, path: str, mode: int, depth: int) -> t.Iterator[str]:
    if not stat.S_ISDIR(mode):
        if posixpath.basename(path).endswith(EXTENSION):
            yield path
        return
    if depth > MAX_DEPTH:
        raise NodeError(f"{path} is nested deeper than {MAX_DEPTH} directories; look at it on the node")
    for name in root.listdir(path):
        below = posixpath.join(path, name)
        yield from _walk(root, below, root.stat(below, follow=False).st_mode, depth + 1)
