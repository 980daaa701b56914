# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What this collection has written into a node's configuration files, and what stood there before."""

from __future__ import annotations

import base64
import hashlib
import json
import typing as t
from dataclasses import dataclass, replace

from .._policy.decode import Number
from .._policy.document_edit import ABSENT
from .._policy.memory_settings import Remembered
from .history import DIRECTORY
from .root import HostRoot, NodeError, NotFound

FILE_NAME = "configuration.json"
RECORD = DIRECTORY + "/" + FILE_NAME
_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True)
class WrittenFile:
    """A file that we wrote. `sha256` is that of our last content ("": we removed it).

    `original` is the content before our first change, as long as nobody else has written the file; None where there was
    no file (`created`), or where it is of no use any more.
    """

    path: str
    sha256: str
    created: bool = False
    original: t.Optional[bytes] = None
    settings: t.Tuple[Remembered, ...] = ()


@dataclass(frozen=True)
class Record:
    """Every file that we wrote on this node."""

    files: t.Tuple[WrittenFile, ...] = ()

    def file(self, path: str) -> t.Optional[WrittenFile]:
        return next((one for one in self.files if one.path == path), None)

    def with_file(self, written: WrittenFile) -> Record:
        """The record with one entry replaced, or without it where nothing of ours is left in the file."""
        others = tuple(one for one in self.files if one.path != written.path)
        return replace(self, files=(*others, written) if written.settings else others)


def sha256_of(content: t.Optional[bytes]) -> str:
    """The hash of a file's content; "" for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def read_record(root: HostRoot) -> Record:
    """:raises NodeError: if it cannot be read, or is no record"""
    try:
        text = root.read_text(RECORD, _LIMIT)
    except NotFound:
        return Record()
    try:
        return Record(tuple(_file_from(item) for item in json.loads(text)["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise NodeError(
            f"{root.display(RECORD)} is no record of settings ({error}); restore it, or move it away and accept that "
            "earlier values cannot be given back"
        ) from error


def record_text(record: Record) -> str:
    return json.dumps({"version": 1, "files": [_file_to(one) for one in record.files]}, indent=1, default=_number)


def _number(value: t.Any) -> float:
    if isinstance(value, Number):
        return float(value.text)
    raise TypeError(f"{value!r} is no JSON value")


def _file_to(one: WrittenFile) -> t.Dict[str, t.Any]:
    original = None if one.original is None else base64.b64encode(one.original).decode("ascii")
    settings = [_setting_to(setting) for setting in one.settings]
    return {"path": one.path, "sha256": one.sha256, "created": one.created, "original": original, "settings": settings}


def _file_from(item: t.Mapping[str, t.Any]) -> WrittenFile:
    original = None if item["original"] is None else base64.b64decode(item["original"], validate=True)
    settings = tuple(_setting_from(setting) for setting in item["settings"])
    return WrittenFile(str(item["path"]), str(item["sha256"]), bool(item["created"]), original, settings)


def _setting_to(one: Remembered) -> t.Dict[str, t.Any]:
    """ABSENT is a missing key."""
    setting = {"path": list(one.path), "value": one.value, "previous": one.previous, "holder": one.holder}
    return {key: value for key, value in setting.items() if value is not ABSENT}


def _setting_from(item: t.Mapping[str, t.Any]) -> Remembered:
    previous, holder = item.get("previous", ABSENT), item.get("holder", ABSENT)
    return Remembered(tuple(item["path"]), item["value"], previous, holder)
