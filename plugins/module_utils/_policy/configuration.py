# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""KubeletConfiguration, as far as the memory manager and the eviction manager read it (semantics 6.1).

Quantities stay text: the kubelet compares and prints them as written, and its int64 trap depends on the spelling.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .decode import DecodeError, decode_struct, go_quote, json_kind
from .findings import Finding, stops_start, warning
from .flags import settings_of, split_command_line
from .kubelet_fields import KUBELET_CONFIGURATION, SINCE
from .quantity import parse_quantity
from .release import NEWEST, Release

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"
DEFAULT = "default"
FLAG_SOURCE = "flag --{0}"

DEFAULT_EVICTION_HARD: t.Mapping[str, str] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

_DEFAULTS: t.Mapping[str, t.Any] = {
    "memoryManagerPolicy": "None",
    "cgroupDriver": "cgroupfs",
    "cgroupsPerQOS": True,
    "enforceNodeAllocatable": ["pods"],
}
_MEMORY_WORDS = ("memory", "evict", "reserve", "featuregate", "cgroup", "numa")
_NO_HEADER = "couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go struct field"
_MISPRINT = ("NUMA node ID, expected", "NUMA node ID, exptected")
_NO_OBJECT = "couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go value of type struct"


@dataclass(frozen=True)
class MemoryReservation:
    """One entry of `reservedMemory`: resource name to quantity text on one NUMA node."""

    numa_node: int
    limits: t.Mapping[str, str]


@dataclass(frozen=True)
class KubeletConfiguration:
    """The effective configuration: defaults, --config, drop-ins and flags merged (semantics 6.2).

    `eviction_hard` is None where no threshold was configured and no default applies; an empty mapping is `{}` as
    written. Defaults that `merge_default_eviction_settings` adds are in it already: the kubelet adds them only while it
    loads the main file, and flags and drop-ins may take them away again. `reserialised` is true where `reserved_memory`
    went through the serialisation before a drop-in merge: its quantities are in canonical text then (semantics 3.4,
    point 3); those that a drop-in or a flag gives are as written.

    `overridden_gates` are those to which a flag gives another value than the files; the kubelet reads the files' first.

    `sources` says where a field's value comes from: a path, `flag --NAME` or `default`. Its names are the kubelet's
    (`memoryManagerPolicy`); a key of a map is `featureGates.NAME`, `evictionHard.memory.available` and so on.
    """

    memory_manager_policy: str = "None"
    memory_manager_policy_options: t.Mapping[str, str] = field(default_factory=dict)
    reserved_memory: t.Tuple[MemoryReservation, ...] = ()
    feature_gates: t.Mapping[str, bool] = field(default_factory=dict)
    overridden_gates: t.Mapping[str, bool] = field(default_factory=dict)
    system_reserved: t.Mapping[str, str] = field(default_factory=dict)
    kube_reserved: t.Mapping[str, str] = field(default_factory=dict)
    eviction_hard: t.Optional[t.Mapping[str, str]] = None
    eviction_soft: t.Mapping[str, str] = field(default_factory=dict)
    eviction_soft_grace_period: t.Mapping[str, str] = field(default_factory=dict)
    merge_default_eviction_settings: bool = False
    kernel_memcg_notification: bool = False
    fail_cgroup_v1: t.Optional[bool] = None
    enforce_node_allocatable: t.Tuple[str, ...] = ("pods",)
    cgroup_root: str = ""
    cgroup_driver: str = "cgroupfs"
    cgroups_per_qos: bool = True
    allocatable_ignore_eviction: bool = False
    static_pod_path: str = ""
    hostname_override: str = ""
    reserialised: bool = False
    sources: t.Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """One configuration file, parsed by the edge.

    `value` is what the text says as JSON values (mappings with text keys, lists, text, bool, int, None, and
    :class:`.decode.Number` or float for other numbers). `problem` is the kubelet's text where the file cannot be read
    or parsed; `value` is None then. `duplicate_keys` has the kubelet's text for each key that occurs twice in one
    mapping, where the last one wins.
    """

    path: str
    value: t.Any = None
    problem: t.Optional[str] = None
    duplicate_keys: t.Tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfigurationInputs:
    """Everything that a kubelet's configuration is made from.

    `main` is None without --config. `dropins` is None without --config-dir (an empty directory still makes the kubelet
    serialise its configuration again). `flags` is the command line without the binary.
    """

    main: t.Optional[Document] = None
    dropins: t.Optional[t.Tuple[Document, ...]] = None
    flags: t.Tuple[str, ...] = ()


@dataclass(frozen=True)
class UnknownField:
    """A field that this release does not know, and where it is written; `name` is dotted from the document's root."""

    name: str
    source: str


@dataclass(frozen=True)
class EffectiveConfiguration:
    """The configuration that the kubelet would run with; findings that stop the start carry the kubelet's text."""

    configuration: KubeletConfiguration
    findings: t.Tuple[Finding, ...] = ()
    unknown_fields: t.Tuple[UnknownField, ...] = ()


def effective_configuration(
    inputs: ConfigurationInputs,
    release: t.Optional[Release] = None,
    candidate: t.Optional[Document] = None,
) -> EffectiveConfiguration:
    """Merge documents and flags as the kubelet of this release does (semantics 6.2, 6.3).

    `candidate` is merged as one more drop-in after all others. Without a release the newest one's rules apply.
    Never raises: what the kubelet would refuse is a finding, and the configuration holds what could be understood.
    """
    merge = _Merge(release)
    if inputs.main is not None:
        merge.main_file(inputs.main)
    if inputs.dropins is not None:
        merge.serialise()
    for dropin in inputs.dropins or ():
        merge.drop_in(dropin)
    if candidate is not None:
        merge.candidate(candidate)
    if inputs.dropins is not None or candidate is not None:
        merge.decode_again()
    merge.defaults()
    merge.flags(inputs.flags)
    return merge.result()


class _Merge:
    """The configuration on its way from file to drop-ins to flags; fields have the kubelet's names."""

    def __init__(self, release: t.Optional[Release]) -> None:
        self._series = NEWEST if release is None else release.series
        self._fields: t.Dict[str, t.Any] = {}
        self._sources: t.Dict[str, str] = {}
        self._findings: t.List[Finding] = []
        self._unknown: t.List[UnknownField] = []
        self._reserialised = False
        self._overridden_gates: t.Mapping[str, bool] = {}

    def main_file(self, document: Document) -> None:
        self._warn_duplicates(document)
        problem = document.problem or header_problem(document.value)
        if problem is not None:
            self._unusable(document, problem)
        if isinstance(document.value, t.Mapping):
            decoded = decode_struct(document.value, KUBELET_CONFIGURATION)
            self._record_sources(decoded.fields, document.path)
            self._report_errors(decoded.errors, "failed to decode: ", document.path)
            self._report_unknown(decoded.unknown, document.path)
            self._report_unknown([name for name in decoded.fields if not self._knows(name)], document.path)
            self._fields.update(decoded.fields)
        self._default_eviction()

    def serialise(self) -> None:
        """Write the base as JSON, as the kubelet does before a merge: empty values vanish, quantities are canonical."""
        self.defaults()
        self._fields = {name: value for name, value in self._fields.items() if value not in ("", {}, [])}
        entries = self._fields.get("reservedMemory")
        if entries is not None:
            self._fields["reservedMemory"] = [_canonical(entry) for entry in entries]
            self._reserialised = True

    def drop_in(self, document: Document) -> None:
        problem = document.problem or drop_in_problem(document)
        if problem is not None:
            self._unusable(document, problem)
        self._merge(document)

    def candidate(self, document: Document) -> None:
        """Like a drop-in, but it needs no header, and a key that occurs twice is only a warning."""
        self._warn_duplicates(document)
        if not isinstance(document.value, t.Mapping):
            self._unusable(document, document.problem or "it is no mapping of KubeletConfiguration fields")
        self._merge(document)

    def decode_again(self) -> None:
        decoded = decode_struct(self._fields, KUBELET_CONFIGURATION, fold_case=True)
        self._report_errors(decoded.errors, "failed to unmarshal merged JSON into kubelet configuration: ")
        self._fields = dict(decoded.fields)

    def defaults(self) -> None:
        for name, value in {**_DEFAULTS, "failCgroupV1": self._series >= (1, 35)}.items():
            if self._fields.get(name) in (None, ""):
                self._fields[name] = value
                self._sources.setdefault(name, DEFAULT)

    def flags(self, arguments: t.Sequence[str]) -> None:
        command_line = split_command_line(arguments)
        settings = settings_of(command_line)
        if command_line.problem is not None:
            self._stop("flag_invalid", "The kubelet cannot parse its command line", command_line.problem)
        for problem in settings.problems:
            what = f"The kubelet refuses the value {problem.value!r} of --{problem.name}"
            # The misprint was corrected in 1.35; people search for the text that they see.
            text = problem.text if self._series >= (1, 35) else problem.text.replace(*_MISPRINT)
            self._stop("flag_invalid", what, text, field="--" + problem.name, found=problem.value)
        for name, value in settings.values.items():
            self._set_by_flag(name, value, FLAG_SOURCE.format(settings.names[name]))

    def result(self) -> EffectiveConfiguration:
        return EffectiveConfiguration(self._configuration(), tuple(self._findings), tuple(self._unknown))

    def _default_eviction(self) -> None:
        # The kubelet adds them while it loads the file, so that drop-ins merge into them (semantics 6.2).
        present = self._fields.get("evictionHard")
        if present is not None and not self._merges_default_eviction():
            return
        self._fields["evictionHard"] = {**DEFAULT_EVICTION_HARD, **(present or {})}
        self._sources.setdefault("evictionHard", DEFAULT)
        for signal in DEFAULT_EVICTION_HARD:
            self._sources.setdefault("evictionHard." + signal, DEFAULT)

    def _merges_default_eviction(self) -> bool:
        name = "mergeDefaultEvictionSettings"
        return self._knows(name) and bool(self._fields.get(name))

    def _merge(self, document: Document) -> None:
        if not isinstance(document.value, t.Mapping):
            return
        patch = document.value
        if any(key.lower() == "reservedmemory" for key in patch):
            self._reserialised = False
        known = {field_name(key): value for key, value in patch.items() if field_name(key) is not None}
        self._record_sources({name: value for name, value in known.items() if name is not None}, document.path)
        unknown = [key for key in patch if not self._knows(field_name(key))]
        self._report_unknown(unknown, document.path)
        self._fields = merge_patch(self._fields, patch)

    def _set_by_flag(self, name: str, value: t.Any, source: str) -> None:
        if name == "reservedMemory":
            self._reserialised = False
        if name != "featureGates":
            self._sources = {key: path for key, path in self._sources.items() if not key.startswith(name + ".")}
        self._record_sources({name: value}, source)
        if name == "featureGates":
            of_files = self._fields.get(name) or {}
            self._overridden_gates = {gate: on for gate, on in of_files.items() if value.get(gate, on) != on}
            value = {**of_files, **value}
        self._fields[name] = value

    def _record_sources(self, fields: t.Mapping[str, t.Any], source: str) -> None:
        for name, value in fields.items():
            self._sources[name] = source
            for key in value if isinstance(value, t.Mapping) else ():
                self._sources[f"{name}.{key}"] = source

    def _knows(self, name: t.Optional[str]) -> bool:
        return name is not None and SINCE.get(name, (0, 0)) <= self._series

    def _warn_duplicates(self, document: Document) -> None:
        for text in document.duplicate_keys:
            message = f"{document.path}: {text}; the last one counts. Remove the others."
            self._findings.append(warning("duplicate_field", message, path=document.path))

    def _report_unknown(self, names: t.Iterable[str], source: str) -> None:
        for name in names:
            self._unknown.append(UnknownField(name, source))
            if not concerns_memory(name) or name in SINCE:
                continue
            message = "{0}: this kubelet does not know the field {1} and ignores it. Check its spelling and case."
            self._findings.append(warning("unknown_field", message.format(source, name), path=source, field=name))

    def _report_errors(self, errors: t.Iterable[DecodeError], prefix: str, path: t.Optional[str] = None) -> None:
        for error in errors:
            root = error.field.partition(".")[0]
            if not self._knows(root):
                continue
            source = path or self._sources.get(root)
            what = "{}: the value of {} has the wrong type or form".format(source or "The configuration", error.field)
            self._stop("config_invalid", what, prefix + error.text, path=source, field=error.field)

    def _unusable(self, document: Document, problem: str) -> None:
        code = "config_invalid" if document.problem is None else "config_unreadable"
        what = f"{document.path}: the kubelet cannot use this file: {problem}"
        self._stop(code, what, problem, path=document.path)

    def _stop(self, code: str, what: str, kubelet_error: str, **details: t.Any) -> None:
        message = f"{what}. Correct it before the kubelet is restarted."
        self._findings.append(stops_start(code, message, kubelet_error=kubelet_error, **details))

    def _configuration(self) -> KubeletConfiguration:
        fields = self._fields
        return KubeletConfiguration(
            memory_manager_policy=fields["memoryManagerPolicy"],
            memory_manager_policy_options=fields.get("memoryManagerPolicyOptions", {}),
            reserved_memory=tuple(map(_reservation, fields.get("reservedMemory", ()))),
            feature_gates=fields.get("featureGates", {}),
            overridden_gates=self._overridden_gates,
            system_reserved=fields.get("systemReserved", {}),
            kube_reserved=fields.get("kubeReserved", {}),
            eviction_hard=fields.get("evictionHard"),
            eviction_soft=fields.get("evictionSoft", {}),
            eviction_soft_grace_period=fields.get("evictionSoftGracePeriod", {}),
            merge_default_eviction_settings=self._merges_default_eviction(),
            kernel_memcg_notification=fields.get("kernelMemcgNotification", False),
            fail_cgroup_v1=fields["failCgroupV1"] if self._knows("failCgroupV1") else None,
            enforce_node_allocatable=tuple(fields["enforceNodeAllocatable"]),
            cgroup_root=fields.get("cgroupRoot", ""),
            cgroup_driver=fields["cgroupDriver"],
            cgroups_per_qos=fields["cgroupsPerQOS"],
            allocatable_ignore_eviction=fields.get("allocatableIgnoreEviction", False),
            static_pod_path=fields.get("staticPodPath", ""),
            hostname_override=fields.get("hostnameOverride", ""),
            reserialised=self._reserialised,
            sources=self._sources,
        )


def field_name(key: str) -> t.Optional[str]:
    """The field that a key of a drop-in sets; case does not matter there. None for an unknown field."""
    if key in KUBELET_CONFIGURATION.fields:
        return key
    return next((name for name in KUBELET_CONFIGURATION.fields if name.lower() == key.lower()), None)


def concerns_memory(name: str) -> bool:
    """Whether an unknown field looks like one that this project reads, perhaps misspelt."""
    return any(word in name.lower() for word in _MEMORY_WORDS)


def header_problem(value: t.Any) -> t.Optional[str]:
    """The kubelet's text where a main file's apiVersion or kind is not right (the beginning of it, where it quotes)."""
    if value is not None and not isinstance(value, t.Mapping):
        return "failed to decode: " + _NO_OBJECT.format(json_kind(value))
    header = {key.lower(): text for key, text in (value or {}).items() if key.lower() in ("apiversion", "kind")}
    for key, name in (("kind", "Kind"), ("apiversion", "apiVersion")):
        if not isinstance(header.get(key), (str, type(None))):
            return "failed to decode: " + _NO_HEADER.format(json_kind(header[key]))
        if not header.get(key):
            return f"failed to decode: Object '{name}' is missing"
    if (header["apiversion"], header["kind"]) != (API_VERSION, KIND):
        text = "failed to decode: no kind {0} is registered for version {1}"
        return text.format(go_quote(header["kind"]), go_quote(header["apiversion"]))
    return None


def drop_in_problem(document: Document) -> t.Optional[str]:
    """The kubelet's text where it refuses a drop-in as a whole (semantics 6.2); a key that occurs twice is fatal."""
    failed = f"failed to load kubelet dropin file, path: {document.path}, "
    unread = failed + "error: "
    if document.value is not None and not isinstance(document.value, t.Mapping):
        return unread + _NO_OBJECT.format(json_kind(document.value))
    api_version, kind = ((document.value or {}).get(key) for key in ("apiVersion", "kind"))
    if not kind or not isinstance(kind, str):
        return unread + "Object 'Kind' is missing"
    if document.duplicate_keys:
        return unread + "strict decoding error: " + ", ".join(document.duplicate_keys)
    if (api_version, kind) != (API_VERSION, KIND):
        version = api_version if isinstance(api_version, str) else ""
        return failed + f"unknown apiVersion/kind: {version if '/' in version else '/' + version}, Kind={kind}"
    return None


def merge_patch(base: t.Mapping[str, t.Any], patch: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """RFC 7386: mappings merge, null deletes, everything else replaces."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, t.Mapping):
            below = merged.get(key)
            merged[key] = merge_patch(below if isinstance(below, t.Mapping) else {}, value)
        else:
            merged[key] = _without_nulls(value)
    return merged


def _without_nulls(value: t.Any) -> t.Any:
    if isinstance(value, t.Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return value


def _canonical(entry: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    limits = entry.get("limits", {})
    return {**entry, "limits": {name: str(parse_quantity(text)) for name, text in limits.items()}}


def _reservation(entry: t.Mapping[str, t.Any]) -> MemoryReservation:
    return MemoryReservation(entry.get("numaNode", 0), entry.get("limits", {}))
