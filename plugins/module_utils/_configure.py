# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Sets memory settings of a kubelet: decides, judges the node as it would be, refuses, writes.

The text of an edited file comes from the controller, which knows positions: `decide` first says which edits it needs,
and accepts a text only for the content that it was made from, and only if it says what was wanted.
"""

from __future__ import annotations

import json
import time
import typing as t
from dataclasses import dataclass, replace

from ._node.configuration import parse_document, read_inputs
from ._node.configuration_writer import LIMIT, Changed, configuration_lock, replace_file, save_backup, write_record
from ._node.edited_root import EditedRoot
from ._node.kubelet import KubeletFacts
from ._node.place import AUTO, DROP_IN, DROP_IN_NAME, PATCHES, Place, choose_place
from ._node.rancher import find_rancher_launches
from ._node.root import HostRoot, NodeError, NotFound
from ._node.settings_record import RECORD, Record, WrittenFile, read_record, sha256_of
from ._policy.configuration import API_VERSION, KIND, effective_configuration
from ._policy.decode import Number
from ._policy.document_edit import ABSENT, Edit, Json, apply_edits, effective_edits, is_same
from ._policy.findings import Finding, stops_start
from ._policy.memory_settings import (
    FLAGS,
    Remembered,
    field_of,
    flag_arguments,
    give_back,
    remember,
    with_default_signals,
)
from ._policy.refusals import Comparison, overridden, refusals, reset_reasons
from ._policy.reservation import ReservationError, node_allocatable_reservation, system_reserved
from ._policy.reservation_plan import PlanError, Rule, is_close, plan_reservation, reserved_memory_value
from ._preflight import NodeReading, judge_reading, read_node, with_configuration
from ._request import InputError, Request

PRESENT, GIVEN_BACK = "present", "absent"
HEADER: t.Mapping[str, str] = {"apiVersion": API_VERSION, "kind": KIND}
NEW_FILE = (
    "# Written by the Ansible collection kubenode.memory (module kubelet_memory_config).\n"
    f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
)
KUBELET_ARG = "kubelet-arg+"
RESERVED = ("reservedMemory",)


@dataclass(frozen=True)
class EditedText:
    """What the controller made of a file with the hash `sha256`."""

    sha256: str
    content: bytes


@dataclass(frozen=True)
class Wish:
    """What is asked for. `rule` asks for a reservation to be computed; `fields` limits what is given back (all)."""

    state: str = PRESENT
    edits: t.Tuple[Edit, ...] = ()
    rule: t.Optional[Rule] = None
    fields: t.Tuple[str, ...] = ()
    place: str = AUTO
    drop_in_name: str = DROP_IN_NAME
    patches: str = PATCHES
    accepts_reset: bool = False
    edited: t.Optional[EditedText] = None

    @property
    def gives_back(self) -> bool:
        return self.state == GIVEN_BACK


@dataclass(frozen=True)
class Target:
    """The file to be written: what is in it now, as text and as value, and what we wrote into it before."""

    place: Place
    content: t.Optional[bytes]
    value: Json
    written: t.Optional[WrittenFile]

    @property
    def settings(self) -> t.Tuple[Remembered, ...]:
        return () if self.written is None else self.written.settings

    @property
    def is_as_written(self) -> bool:
        return self.written is not None and self.written.sha256 == sha256_of(self.content)


@dataclass(frozen=True)
class Change:
    """What is to become of the file. `text` is None until the controller has made it; `removes` deletes the file."""

    edits: t.Tuple[Edit, ...] = ()
    settings: t.Tuple[Remembered, ...] = ()
    kept: t.Tuple[Remembered, ...] = ()
    text: t.Optional[bytes] = None
    removes: bool = False

    @property
    def needs_text(self) -> bool:
        return bool(self.edits) and self.text is None and not self.removes


@dataclass(frozen=True)
class Decision:
    """Everything that was found out; nothing is written yet."""

    reading: NodeReading
    wish: Wish
    target: Target
    change: Change
    record: Record
    comparison: Comparison
    wanted: t.Tuple[Edit, ...] = ()
    patch: t.Optional[bytes] = None
    patch_before: t.Optional[bytes] = None
    without_flag: t.Tuple[Finding, ...] = ()
    refusals: t.Tuple[Finding, ...] = ()
    reset: t.Tuple[Finding, ...] = ()
    overridden: t.Tuple[Finding, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.change.edits) or self.patch != self.patch_before

    @property
    def writes(self) -> bool:
        """Also where only the record of an interrupted run is out of date."""
        return self.changed or self.change.settings != self.target.settings

    @property
    def refused(self) -> t.Tuple[Finding, ...]:
        """The reasons that forbid this change; none where there is nothing to change."""
        if not self.change.edits:
            return self.without_flag
        return self.without_flag + self.refusals + (() if self.wish.accepts_reset else self.reset)


@dataclass(frozen=True)
class Restore:
    """A file that was written, and the copy of what was there before; None where there was no file."""

    path: str
    backup: t.Optional[str]


@dataclass(frozen=True)
class Outcome:
    """A decision and what became of it."""

    decision: Decision
    written: bool = False
    restore: t.Tuple[Restore, ...] = ()

    @property
    def backup(self) -> t.Optional[str]:
        path = self.decision.target.place.path
        return next((one.backup for one in self.restore if one.path == path), None)


# --- decide ----------------------------------------------------------------------------------------------------------


def decide(request: Request, wish: Wish) -> Decision:
    """What would have to be written, and what speaks against it.

    :raises NodeError, InputError: if the node cannot be read, has no place for settings, or an argument is wrong
    """
    if request.candidate_config:
        raise InputError("candidate_config is for memmgr_validate; this module judges its own change")
    reading = read_node(request)
    if not reading.kubelet.found:
        raise InputError("there is no kubelet on this node: nothing to configure")
    place = choose_place(reading.root, reading.kubelet, wish.place, wish.drop_in_name, wish.patches)
    record = read_record(reading.root)
    target = _target(reading.root, place, record)
    wanted = () if wish.gives_back else _wanted(reading, target, wish)
    change = _giving_back(target, wish) if wish.gives_back else _setting(target, wanted)
    change = _with_text(target, change, wish)
    comparison = _compare(reading, target, change)
    decision = Decision(reading, wish, target, change, record, comparison, wanted)
    before, after = _patches(decision)
    return replace(
        decision,
        patch=after,
        patch_before=before,
        without_flag=tuple(_without_flag(target, wish, reading.kubelet)),
        refusals=refusals(comparison, change.edits, wish.gives_back),
        reset=reset_reasons(comparison),
        overridden=overridden(comparison, wanted),
    )


def _content(root: HostRoot, path: str) -> t.Optional[bytes]:
    try:
        return root.read_bytes(path, LIMIT)
    except NotFound:
        return None


def _target(root: HostRoot, place: Place, record: Record) -> Target:
    content, written = _content(root, place.path), record.file(place.path)
    target = Target(place, content, {}, written)
    if place.is_flags:
        if content is not None and not target.is_as_written:
            raise NodeError(f"{place.path} is not as this module wrote it; move it away, or set the values by hand")
        settings = target.settings if content is not None else ()
        return replace(target, value=apply_edits({}, [Edit(one.path, one.value) for one in settings]))
    if content is None and place.kind != DROP_IN:
        raise NodeError(f"{root.display(place.path)}, the kubelet's --config, does not exist; create it first")
    document = parse_document(place.path, NEW_FILE.encode() if content is None else content)
    if document.problem is not None or not isinstance(document.value, dict):
        problem = document.problem or "it is no mapping"
        raise NodeError(f"the kubelet cannot read {root.display(place.path)}: {problem}. Correct it first.")
    return replace(target, value=document.value)


def _wanted(reading: NodeReading, target: Target, wish: Wish) -> t.Tuple[Edit, ...]:
    edits = with_default_signals(wish.edits, reading.effective.configuration)
    if target.place.is_flags:
        edits = tuple(edit for edit in edits if edit.path[0] in FLAGS)
    return edits if wish.rule is None else (*edits, _reservation_edit(reading, target, edits, wish.rule))


def _without_flag(target: Target, wish: Wish, kubelet: KubeletFacts) -> t.Iterator[Finding]:
    """What a kubelet that reads no file can not be told."""
    for edit in wish.edits if target.place.is_flags else ():
        if edit.path[0] not in FLAGS:
            field = field_of(edit.path)
            message = (
                f"{field}: there is no flag for it, and {kubelet.layout} before 1.32 reads no file. Upgrade first, or "
                "leave it out."
            )
            yield stops_start("flag_missing", message, field=field, path=target.place.path)


def _reservation_edit(reading: NodeReading, target: Target, edits: t.Sequence[Edit], rule: Rule) -> Edit:
    """reservedMemory for the configuration that the other edits make."""
    candidate = _candidate(reading, target.place, _document_text(target.place, apply_edits(target.value, edits)))
    machine = candidate.subject.machine
    try:
        demanded = node_allocatable_reservation(candidate.effective.configuration, machine.memory_capacity or 0)
        plan = plan_reservation(machine, demanded, rule)
    except (PlanError, ReservationError) as error:
        raise InputError(f"reservedMemory cannot be computed: {error}") from None
    present = candidate.subject.reserved_memory
    in_force = {node: sizes.get("memory", 0) for node, sizes in system_reserved(present).items()}
    if present and is_close(in_force, plan, rule):
        return Edit(RESERVED, [{"numaNode": one.numa_node, "limits": dict(one.limits)} for one in present])
    return Edit(RESERVED, reserved_memory_value(plan))


def _setting(target: Target, wanted: t.Sequence[Edit]) -> Change:
    edits = effective_edits(target.value, wanted)
    return Change(edits, remember(target.settings, target.value, edits))


def _giving_back(target: Target, wish: Wish) -> Change:
    ours = [one for one in target.settings if not wish.fields or _is_named(one, wish.fields)]
    others = tuple(one for one in target.settings if one not in ours)
    returned = give_back(target.value, ours)
    edits = effective_edits(target.value, returned.edits)
    change = Change(edits, others, returned.kept)
    left = apply_edits(target.value, edits)
    if target.written is None or not edits:
        return change
    if target.written.created and not (left.keys() - HEADER.keys()):
        return replace(change, removes=True)
    if not others and target.is_as_written and target.written.original is not None:
        return replace(change, text=target.written.original)
    return change


def _is_named(one: Remembered, fields: t.Sequence[str]) -> bool:
    return one.field in fields or str(one.path[0]) in fields


def _with_text(target: Target, change: Change, wish: Wish) -> Change:
    """The change with its text, where the node can make it or the controller has made it."""
    if not change.needs_text:
        return change
    value = apply_edits(target.value, change.edits)
    if target.place.is_flags:
        return replace(change, text=_document_text(target.place, value), removes=not value)
    if wish.edited is None:
        return change
    if wish.edited.sha256 != sha256_of(target.content):
        raise Changed(f"{target.place.path} has changed while it was edited; run the task again")
    document = parse_document(target.place.path, wish.edited.content)
    if document.problem is not None or not is_same(document.value, value):
        raise NodeError(f"{target.place.path}: the edited text does not say what was wanted; nothing was written")
    return replace(change, text=wish.edited.content)


def _document_text(place: Place, value: Json) -> bytes:
    """A value as JSON, for a candidate or a file of flags."""
    document = {KUBELET_ARG: flag_arguments(value)} if place.is_flags else value
    return (json.dumps(document, indent=2, default=_number) + "\n").encode("utf-8")


def _number(value: t.Any) -> float:
    if not isinstance(value, Number):
        raise TypeError(f"{value!r} is no value of JSON")
    return float(value.text)


# --- judge -----------------------------------------------------------------------------------------------------------


def _candidate(reading: NodeReading, place: Place, content: t.Optional[bytes]) -> NodeReading:
    """The node with that content at the place."""
    root = EditedRoot(reading.root, place.path, content)
    kubelet = _with_flags(reading.kubelet, root) if place.is_flags else reading.kubelet
    effective = effective_configuration(read_inputs(root, kubelet), kubelet.version)
    return with_configuration(replace(reading, kubelet=kubelet), effective)


def _with_flags(kubelet: KubeletFacts, root: HostRoot) -> KubeletFacts:
    argv = next((launch.argv for launch in find_rancher_launches(root) if launch.unit == kubelet.unit), kubelet.argv)
    return replace(kubelet, argv=argv)


def _compare(reading: NodeReading, target: Target, change: Change) -> Comparison:
    before = judge_reading(reading)
    after = reading
    if change.edits:
        content = change.text or _document_text(target.place, apply_edits(target.value, change.edits))
        after = _candidate(reading, target.place, None if change.removes else content)
    empty = replace(after.subject, state_file=replace(after.subject.state_file, content=None))
    source = "flag" if target.place.is_flags else target.place.path
    return Comparison(
        before,
        reading.effective,
        judge_reading(after) if change.edits else before,
        after.effective,
        judge_reading(replace(after, subject=empty)),
        after.subject,
        source,
        target.place.kind == DROP_IN,
    )


# --- kubeadm's patch -------------------------------------------------------------------------------------------------


def _patches(decision: Decision) -> t.Tuple[t.Optional[bytes], t.Optional[bytes]]:
    """(present content, content with our settings) of the patch file; somebody else's keys in it stay."""
    place, settings = decision.target.place, decision.change.settings
    if place.patch is None:
        return None, None
    before = _content(decision.reading.root, place.patch)
    value = _patch_value(place.patch, before)
    gone = {one.path for one in decision.target.settings} - {one.path for one in settings}
    edits = [Edit(path, ABSENT) for path in gone] + [Edit(one.path, one.value) for one in settings]
    after = {key: item for key, item in apply_edits(value, edits).items() if item != {} or key not in _tops(gone)}
    if is_same(after, value):
        return before, before
    return before, (json.dumps(after, indent=2) + "\n").encode("utf-8") if after else None


def _patch_value(path: str, content: t.Optional[bytes]) -> t.Dict[str, Json]:
    if content is None:
        return {}
    try:
        value = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise NodeError(f"{path} is no JSON ({error}); correct it, or move it away") from error
    if not isinstance(value, dict):
        raise NodeError(f"{path} is no JSON object; correct it, or move it away")
    return value


def _tops(paths: t.Iterable[t.Tuple[t.Union[str, int], ...]]) -> t.Set[str]:
    return {str(path[0]) for path in paths}


# --- write -----------------------------------------------------------------------------------------------------------


def apply(request: Request, wish: Wish, check_mode: bool) -> Outcome:
    """Decide, and write what is decided. Nothing is written where something is refused or the text is still missing."""
    decision = decide(request, wish)
    if check_mode or not decision.writes or decision.refused or decision.change.needs_text:
        return Outcome(decision)
    root = decision.reading.root
    with configuration_lock(root):
        if read_record(root) != decision.record:
            raise Changed("another run has changed this node's configuration meanwhile; run the task again")
        return Outcome(decision, True, _write(root, decision))


def _write(root: HostRoot, decision: Decision) -> t.Tuple[Restore, ...]:
    """What is remembered is written before the file when values are set, and after it when they are given back."""
    target, change = decision.target, decision.change
    content = None if change.removes else change.text if change.edits else target.content
    restore = tuple(_save(root, path, before) for path, before in _before(root, decision))
    record = decision.record.with_file(_written(target, change, sha256_of(content)))
    if not decision.wish.gives_back:
        write_record(root, record)
    if change.edits:
        replace_file(root, target.place.path, content, sha256_of(target.content))
    if target.place.patch is not None and decision.patch != decision.patch_before:
        replace_file(root, target.place.patch, decision.patch, sha256_of(decision.patch_before))
    if decision.wish.gives_back:
        write_record(root, record)
    return restore


def _before(root: HostRoot, decision: Decision) -> t.Iterator[t.Tuple[str, t.Optional[bytes]]]:
    """Each file that is about to be written, with its content."""
    yield from changed_files(decision)
    yield RECORD, _content(root, RECORD)


def changed_files(decision: Decision) -> t.Iterator[t.Tuple[str, t.Optional[bytes]]]:
    """The files of the node's configuration that change."""
    place = decision.target.place
    if decision.change.edits:
        yield place.path, decision.target.content
    if place.patch is not None and decision.patch != decision.patch_before:
        yield place.patch, decision.patch_before


def _save(root: HostRoot, path: str, content: t.Optional[bytes]) -> Restore:
    return Restore(path, None if content is None else save_backup(root, path, content, time.time()))


def _written(target: Target, change: Change, sha256: str) -> WrittenFile:
    old, path = target.written, target.place.path
    if old is None:
        return WrittenFile(path, sha256, target.content is None, target.content, change.settings)
    interrupted = sha256_of(target.content) == sha256_of(old.original)
    original = old.original if target.is_as_written or interrupted else None
    return WrittenFile(path, sha256, old.created, original, change.settings)
