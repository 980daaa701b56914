# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The settings that this collection writes: what is wanted, what was there before, and how it is given back."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .configuration import DEFAULT, DEFAULT_EVICTION_HARD, KubeletConfiguration
from .document_edit import ABSENT, Edit, Json, Path, apply_edits, is_same, value_at

EVICTION_HARD = "evictionHard"
FLAGS: t.Mapping[str, str] = {
    "memoryManagerPolicy": "memory-manager-policy",
    "reservedMemory": "reserved-memory",
    "featureGates": "feature-gates",
    "evictionHard": "eviction-hard",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "kernelMemcgNotification": "kernel-memcg-notification",
}
"""The flag of each setting that has one."""

_ATTRIBUTES: t.Mapping[str, str] = {
    "memoryManagerPolicy": "memory_manager_policy",
    "memoryManagerPolicyOptions": "memory_manager_policy_options",
    "featureGates": "feature_gates",
    "kernelMemcgNotification": "kernel_memcg_notification",
    "evictionHard": "eviction_hard",
    "evictionSoft": "eviction_soft",
    "evictionSoftGracePeriod": "eviction_soft_grace_period",
    "mergeDefaultEvictionSettings": "merge_default_eviction_settings",
}


def field_of(path: Path) -> str:
    """`featureGates.NAME`, the name of a setting in results and in `KubeletConfiguration.sources`."""
    return ".".join(map(str, path))


def with_default_signals(edits: t.Sequence[Edit], present: KubeletConfiguration) -> t.Tuple[Edit, ...]:
    """The edits, and with one of evictionHard also the signals that are in force by default only.

    A map that names one signal takes the default away from the others (semantics 3.4).
    """
    if not any(edit.path[0] == EVICTION_HARD for edit in edits):
        return tuple(edits)
    given = {edit.path for edit in edits}
    defaults = (
        Edit((EVICTION_HARD, signal), text)
        for signal, text in DEFAULT_EVICTION_HARD.items()
        if present.sources.get(f"{EVICTION_HARD}.{signal}") == DEFAULT
    )
    return (*edits, *(edit for edit in defaults if edit.path not in given))


def value_in_force(configuration: KubeletConfiguration, path: Path) -> Json:
    """What the kubelet would use for a setting; ABSENT where it has none."""
    if path[0] == "reservedMemory":
        return [{"numaNode": entry.numa_node, "limits": dict(entry.limits)} for entry in configuration.reserved_memory]
    value = getattr(configuration, _ATTRIBUTES[str(path[0])])
    return value_at(dict(value or {}), path[1:]) if len(path) > 1 else value


def flag_arguments(settings: t.Mapping[str, Json]) -> t.List[str]:
    """`kubelet-arg` entries, without dashes, for settings by field; each field has to be one of FLAGS.

    A map is added (`+=`) to what k3s and RKE2, or somebody else, give: the kubelet merges a flag that is repeated.
    """
    signs = {name: "+=" if isinstance(value, t.Mapping) else "=" for name, value in settings.items()}
    return [f"{FLAGS[name]}{signs[name]}{_flag_value(name, value)}" for name, value in settings.items()]


def _flag_value(name: str, value: Json) -> str:
    if name == "reservedMemory":
        return ";".join(
            f"{entry['numaNode']}:" + ",".join(f"{resource}={text}" for resource, text in entry["limits"].items())
            for entry in value
        )
    if isinstance(value, t.Mapping):
        sign = "<" if name in ("evictionHard", "evictionSoft") else "="
        return ",".join(f"{key}{sign}{_flag_value('', item)}" for key, item in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- previous values -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remembered:
    """A setting that we wrote: our value, and the one that stood there before (ABSENT: none).

    `holder` is what stood in place of the mapping that it is in, where that was missing, null or empty.
    """

    path: Path
    value: Json
    previous: Json
    holder: Json = ABSENT

    @property
    def field(self) -> str:
        return field_of(self.path)


@dataclass(frozen=True)
class Return:
    """How settings are given back: the edits, and the settings that stay since somebody has changed them."""

    edits: t.Tuple[Edit, ...]
    kept: t.Tuple[Remembered, ...] = ()


def remember(known: t.Sequence[Remembered], document: Json, edits: t.Iterable[Edit]) -> t.Tuple[Remembered, ...]:
    """What is remembered after edits of a document, in which `known` were written before.

    The first previous value stays, also where a run was interrupted; a value that somebody else has put there since
    becomes the previous one.
    """
    by_path = {one.path: one for one in known}
    for edit in edits:
        present, old = value_at(document, edit.path), by_path.get(edit.path)
        if old is not None and (is_same(present, old.value) or is_same(present, old.previous)):
            by_path[edit.path] = Remembered(edit.path, edit.value, old.previous, old.holder)
        else:
            by_path[edit.path] = Remembered(edit.path, edit.value, present, value_at(document, edit.path[:1]))
    return tuple(by_path.values())


def give_back(document: Json, settings: t.Sequence[Remembered]) -> Return:
    """The edits that put the previous values back, except where somebody changed ours since."""
    changed = [one for one in settings if not _is_ours(document, one)]
    ours = [one for one in settings if one not in changed]
    kept = [one for one in changed if not is_same(value_at(document, one.path), one.previous)]
    stays = _defaults_that_stay(document, ours)
    edits = [Edit(one.path, one.previous) for one in ours if one not in stays]
    return Return(_without_holders(document, ours, edits), (*kept, *stays))


def _is_ours(document: Json, one: Remembered) -> bool:
    return is_same(value_at(document, one.path), one.value)


def _defaults_that_stay(document: Json, ours: t.Sequence[Remembered]) -> t.List[Remembered]:
    """Default signals of an evictionHard that we made and to which somebody has added: without them they are off."""
    mine = [one for one in ours if one.path[0] == EVICTION_HARD and one.previous is ABSENT and not one.holder]
    present = value_at(document, (EVICTION_HARD,))
    if not mine or not isinstance(present, t.Mapping) or len(present) == len(mine):
        return []
    return [one for one in mine if DEFAULT_EVICTION_HARD.get(str(one.path[1])) == one.value]


def _without_holders(document: Json, ours: t.Sequence[Remembered], edits: t.Sequence[Edit]) -> t.Tuple[Edit, ...]:
    """A mapping that was not there, or was empty, is put back as a whole once nothing is left in it."""
    after = apply_edits(document, edits)
    hollow = {one.path[0]: one.holder for one in ours if len(one.path) > 1 and not one.holder}
    emptied = {key: holder for key, holder in hollow.items() if value_at(after, (key,)) == {}}
    return (
        *(edit for edit in edits if edit.path[0] not in emptied),
        *(Edit((key,), holder) for key, holder in emptied.items()),
    )
