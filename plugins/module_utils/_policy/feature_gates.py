# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Feature gates by release: which ones a kubelet knows, and what naming the others does to it (semantics 6.4).

The table of 1.34 and later is generated from the kubelet's own packages. For 1.21 to 1.33 only the gates of the memory,
CPU and topology managers are known, from the source.
"""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass

from ._feature_gate_table import GATES_BY_RELEASE
from .findings import Finding, info, stops_start, warning
from .release import Release

POD_LEVEL_RESOURCE_MANAGERS = "PodLevelResourceManagers"

_NEEDS = "needs:"
_SPECIAL = frozenset(("AllAlpha", "AllBeta"))

_HISTORY: t.Mapping[str, t.Tuple[t.Tuple[int, str], ...]] = {
    "MemoryManager": ((21, "ALPHA false"), (22, "BETA true"), (32, "GA true locked"), (36, "")),
    "CPUManager": ((21, "BETA true"), (26, "GA true locked"), (32, "")),
    "TopologyManager": ((21, "BETA true"), (27, "GA true locked"), (29, "")),
    "TopologyManagerPolicyOptions": ((26, "ALPHA false"), (28, "BETA true"), (32, "GA true locked")),
    "CPUManagerPolicyOptions": ((22, "ALPHA false"), (23, "BETA true"), (33, "GA true locked")),
    "PodLevelResources": ((32, "ALPHA false"),),
    "WindowsCPUAndMemoryAffinity": ((32, "ALPHA false"),),
}


@dataclass(frozen=True)
class Gate:
    """A gate in one release: ALPHA, BETA, GA or DEPRECATED, its default, and whether it is locked to that.

    `needs` are the gates without which it stops the kubelet when it is on.
    """

    stage: str
    default: bool
    locked: bool
    needs: t.Tuple[str, ...] = ()


def has_full_table(release: Release) -> bool:
    """Whether every gate of the release is known here, so that an unlisted gate is proven unknown."""
    return release.series in GATES_BY_RELEASE


def find_gate(release: Release, name: str) -> t.Optional[Gate]:
    """The gate in that release; None if the release does not know it, or nothing is known about the pair."""
    if has_full_table(release):
        return _full_table(release.series).get(name)
    entries = [text for minor, text in _HISTORY.get(name, ()) if release.at_least(1, minor)]
    return _gate(entries[-1].split()) if entries and entries[-1] else None


@functools.lru_cache(maxsize=None)
def _full_table(series: t.Tuple[int, int]) -> t.Mapping[str, Gate]:
    lines = (line.split() for line in GATES_BY_RELEASE[series].splitlines())
    return {words[0]: _gate(words[1:]) for words in lines if words}


def _gate(words: t.Sequence[str]) -> Gate:
    needs = [name for word in words[2:] if word.startswith(_NEEDS) for name in word[len(_NEEDS) :].split(",")]
    return Gate(words[0], words[1] == "true", "locked" in words[2:], tuple(needs))


def was_removed(release: Release, name: str) -> bool:
    """Whether the release no longer has a gate that an older one had."""
    if find_gate(release, name) is not None:
        return False
    if any(release.at_least(1, minor) and not text for minor, text in _HISTORY.get(name, ())):
        return True
    older = (series for series in GATES_BY_RELEASE if series < release.series)
    return any(find_gate(Release(*series), name) is not None for series in older)


def is_enabled(release: Release, configured: t.Mapping[str, bool], name: str) -> bool:
    """The value that a gate has in a kubelet with this configuration; false for a gate that it does not know."""
    gate = find_gate(release, name)
    if gate is None:
        return False
    if gate.locked:
        return gate.default
    if name in configured:
        return configured[name]
    if gate.stage in ("ALPHA", "BETA") and configured.get("All" + gate.stage.capitalize(), False):
        return True
    return gate.default


def knows_gate(release: Release, name: str, listed: t.Optional[t.FrozenSet[str]]) -> t.Optional[bool]:
    """Whether the kubelet knows the gate; None where neither the binary nor the table can tell.

    :param listed: gates that `kubelet --help` lists; it hides GA and deprecated ones
    """
    if name in _SPECIAL or (listed is not None and name in listed):
        return True
    if has_full_table(release):
        return find_gate(release, name) is not None
    if find_gate(release, name) is not None:
        return True
    return False if was_removed(release, name) else None


def gate_findings(
    release: Release,
    configured: t.Mapping[str, bool],
    sources: t.Mapping[str, str],
    listed: t.Optional[t.FrozenSet[str]],
    overridden: t.Optional[t.Mapping[str, bool]] = None,
) -> t.List[Finding]:
    """What the configured gates do to this kubelet; gates given by flag stop it before the file is read.

    :param sources: `featureGates.NAME` to where the gate is set; a flag's source begins with `flag`
    :param overridden: values of the files in whose place a flag puts others: too late, if the kubelet stops at them
    """
    by_flag = {name: value for name, value in configured.items() if _is_flag(sources, name)}
    in_file = {name: value for name, value in configured.items() if name not in by_flag}
    found: t.List[Finding] = []
    for names in (by_flag, in_file):
        for name, value in sorted(names.items()):
            found.extend(_one_gate(release, name, value, sources.get("featureGates." + name), listed))
    for name, value in sorted((overridden or {}).items()):
        found.extend(_one_gate(release, name, value, "a configuration file", listed))
    together = _dependency_findings(release, {**configured, **(overridden or {})})
    return found + together + [one for one in _dependency_findings(release, configured) if one not in together]


def _is_flag(sources: t.Mapping[str, str], name: str) -> bool:
    return sources.get("featureGates." + name, "").startswith("flag")


def _one_gate(
    release: Release, name: str, value: bool, source: t.Optional[str], listed: t.Optional[t.FrozenSet[str]]
) -> t.Iterator[Finding]:
    where = {"field": "featureGates." + name, "path": source}
    known = knows_gate(release, name, listed)
    if known is None:
        yield warning(
            "gate_unverified",
            f"The feature gate {name} is set in {source}, and it is not known whether a kubelet {release} has it; an "
            "unknown gate stops it. Ask the binary (kubelet --help) or pass known_feature_gates.",
            **where,
        )
    elif not known:
        yield _unknown_gate(release, name, source, where)
    else:
        gate = find_gate(release, name)
        if gate is not None and gate.locked and gate.default != value:
            yield _locked_gate(release, name, value, source, where)
        elif gate is not None and gate.stage == "GA":
            yield info(
                "gate_ga",
                f"The feature gate {name} in {source} is GA in {release} and has no effect; a later release removes "
                "it, and then naming it stops the kubelet. Remove it.",
                **where,
            )


def _unknown_gate(release: Release, name: str, source: t.Optional[str], where: t.Mapping[str, t.Any]) -> Finding:
    removed = was_removed(release, name)
    return stops_start(
        "gate_removed" if removed else "gate_unknown",
        "The feature gate {0} in {1} is {2} kubelet {3}, which stops at it. Remove it from the configuration.".format(
            name, source, "gone from" if removed else "unknown to", release
        ),
        kubelet_error=_kubelet_error(release, source, "unrecognized feature gate: " + name),
        **where,
    )


def _locked_gate(
    release: Release, name: str, value: bool, source: t.Optional[str], where: t.Mapping[str, t.Any]
) -> Finding:
    error = f"cannot set feature gate {name} to {str(value).lower()}, feature is locked to {str(not value).lower()}"
    return stops_start(
        "gate_locked",
        f"The feature gate {name} in {source} cannot be changed in kubelet {release}, which stops at it. Remove it.",
        kubelet_error=_kubelet_error(release, source, error),
        **where,
    )


def _kubelet_error(release: Release, source: t.Optional[str], error: str) -> str:
    """By flag the kubelet exits; in a file it panics while it fills in defaults, since 1.32."""
    if (source or "").startswith("flag") or not release.at_least(1, 32):
        return "failed to set feature gates from initial flags-based config: " + error
    return "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: " + error


def _dependency_findings(release: Release, configured: t.Mapping[str, bool]) -> t.List[Finding]:
    """Gates that are on, by default perhaps, while one that they need is switched off."""
    gates = _full_table(release.series) if has_full_table(release) and configured else {}
    return [
        _dependency_finding(name, off)
        for name, gate in gates.items()
        if gate.needs and is_enabled(release, configured, name)
        for off in [[needed for needed in gate.needs if not is_enabled(release, configured, needed)]]
        if off
    ]


def _dependency_finding(name: str, off: t.Sequence[str]) -> Finding:
    return stops_start(
        "gate_dependency",
        f"The feature gate {name} needs {', '.join(off)}, which is off. Switch it on, or {name} off.",
        field="featureGates." + name,
        kubelet_error=f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]",
    )
