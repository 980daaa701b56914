# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The bytes of a re-baselined state file, and the proof that they help (semantics 5.6; design, section 5)."""

from __future__ import annotations

import hashlib
import typing as t
from dataclasses import dataclass, replace

from . import gojson
from .checkpoint import CheckpointError, encode, load
from .evaluation import Evaluation, evaluate
from .release import NEWEST, Release
from .state import MemoryManagerState
from .static_policy import MATCH, TOLERABLE
from .subject import Subject
from .tolerance import ToleranceSetting


class RewriteRefused(Exception):
    """The file is not to be written; `code` is a reason's, the text a sentence for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Rewrite:
    """Bytes for the state file, and the evaluation of a node that has them."""

    content: bytes
    format: str
    after: Evaluation

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def rebaseline(subject: Subject, setting: ToleranceSetting, evaluation: Evaluation) -> Rewrite:
    """The present file with today's machine state: format, entries and pod entries stay.

    :param evaluation: that of the subject with the setting
    :raises RewriteRefused: if the verdict is not `tolerable`, or if writing would not help
    """
    loaded, machine_state = evaluation.loaded, evaluation.machine_state_after
    if evaluation.verdict != TOLERABLE or loaded is None or machine_state is None:
        raise RewriteRefused(
            evaluation.verdict, f"Only a tolerable drift is re-baselined; the verdict is {evaluation.verdict}."
        )
    if evaluation.will_start is not False:
        raise RewriteRefused(
            "kubelet_tolerates", "The kubelet tolerates this drift itself and re-baselines the file when it starts."
        )
    state = replace(loaded.state, machine_state=machine_state)
    fmt = _stored_format(subject, loaded.state)
    content = encode(state, fmt, pod_level=True).encode("utf-8")
    return _proven(subject, setting, Rewrite(content, fmt, evaluation), state)


def as_it_is(subject: Subject, evaluation: Evaluation) -> Rewrite:
    """The subject's own file, byte for byte, if the kubelet starts with it.

    :raises RewriteRefused: if it does not
    """
    content, loaded = subject.state_file.content, evaluation.loaded
    if evaluation.will_start is not True or loaded is None or content is None:
        raise RewriteRefused(
            evaluation.verdict, f"The kubelet does not start with it; the verdict is {evaluation.verdict}."
        )
    return Rewrite(content, loaded.format, evaluation)


def _stored_format(subject: Subject, state: MemoryManagerState) -> str:
    """V1, V2 or V3 of the file itself; an old kubelet reads a V3 file as V1.

    :raises RewriteRefused: if the parts of the file do not say the same
    """
    try:
        whole = load(subject.state_file.content or b"", Release(*NEWEST), True, subject.policy)
    except CheckpointError as error:
        raise RewriteRefused(
            "halves_differ", f"{subject.state_file.path}: the part for newer kubelets cannot be loaded: {error.cause}."
        ) from None
    if whole.state != state:
        raise RewriteRefused(
            "halves_differ",
            f"{subject.state_file.path}: the part that this kubelet reads differs from the part for others, so that "
            "one of them would be lost. Find out who edited the file.",
        )
    return whole.format


def _proven(subject: Subject, setting: ToleranceSetting, rewrite: Rewrite, state: MemoryManagerState) -> Rewrite:
    """The rewrite with the evaluation of its bytes.

    :raises RewriteRefused: if the kubelet would not start with them, or would read something else
    """
    state_file = replace(subject.state_file, content=rewrite.content)
    after = evaluate(replace(subject, state_file=state_file), setting)
    if after.verdict != MATCH or after.will_start is not True or after.state != state:
        raise RewriteRefused(
            "would_not_help",
            f"The kubelet would not start with the new file either ({after.verdict}). Report this with the state file.",
        )
    return replace(rewrite, after=after)


# --- whose assignments a file has ------------------------------------------------------------------------------------

Containers = t.FrozenSet[t.Tuple[str, str]]
"""(pod UID, container); the container of a pod-level entry is empty."""


def assigned_containers(content: bytes) -> t.Optional[Containers]:
    """Whoever has an entry in any part of a file, whatever its checksums say; None where it is not even JSON."""
    try:
        whole = gojson.parse_bytes(content)
        parts = [gojson.parse(data) for data in _members(whole, "data") if isinstance(data, str) and data]
    except gojson.GoJsonError:
        return None
    return frozenset(found for part in (whole, *parts) for found in _entries(part))


def _entries(value: t.Any) -> t.Iterator[t.Tuple[str, str]]:
    for entries in _members(value, "entries"):
        yield from ((pod, container) for pod, containers in _object(entries) for container, _b in _object(containers))
    for entries in _members(value, "podEntries"):
        yield from ((pod, "") for pod, _rest in _object(entries))


def _members(value: t.Any, name: str) -> t.Iterator[t.Any]:
    """The values of a key, which may be there more than once and in any letter case."""
    return (content for key, content in _object(value) if gojson.fold(key) == gojson.fold(name))


def _object(value: t.Any) -> gojson.JsonObject:
    return value if isinstance(value, tuple) else ()
