# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Settings that this collection wrote and that are no longer there, as after an upgrade that rewrites the file."""

from __future__ import annotations

import posixpath
import typing as t

from .._policy.document_edit import is_same, value_at
from .._policy.findings import Finding, warning
from .configuration import MAX_BYTES
from .documents import parse_document
from .place import KUBELET_ARG_NAME
from .root import HostRoot, NodeError, NotFound, PermissionMissing
from .settings_record import RECORD, WrittenFile, read_record, sha256_of


def lost_settings(root: HostRoot) -> t.Tuple[Finding, ...]:
    """One warning for each file that we wrote and that has other values by now.

    :raises PermissionMissing: if the record or a file may not be read
    """
    try:
        files = read_record(root).files
    except PermissionMissing:
        raise
    except NodeError as error:
        return (warning("settings_record_unreadable", f"{error}.", path=RECORD),)
    lost = ((file, _lost_fields(root, file)) for file in files)
    return tuple(_finding(file.path, fields) for file, fields in lost if fields)


def _lost_fields(root: HostRoot, written: WrittenFile) -> t.List[str]:
    try:
        content = root.read_bytes(written.path, MAX_BYTES)
    except NotFound:
        return [one.field for one in written.settings]
    if sha256_of(content) == written.sha256:
        return []
    if posixpath.basename(written.path) == KUBELET_ARG_NAME:
        return [one.field for one in written.settings]
    value = parse_document(written.path, content).value
    return [one.field for one in written.settings if not is_same(value_at(value, one.path), one.value)]


def _finding(path: str, fields: t.Sequence[str]) -> Finding:
    message = (
        f"{path} no longer has what kubelet_memory_config set in it: {', '.join(fields)}. An upgrade by kubeadm "
        "without --patches rewrites the file, for one. Run the playbook configure again, or give the settings up with "
        "state absent."
    )
    return warning("settings_lost", message, field=", ".join(fields), path=path)
