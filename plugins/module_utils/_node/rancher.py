# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""k3s and RKE2: no kubelet unit; its flags come from config.yaml, config.yaml.d and the unit's own command line."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass

from .._policy.findings import Finding, stops_start
from .._policy.release import parse_release
from .configuration import MAX_BYTES
from .documents import parse_document
from .launch import K3S, RKE2, Launch, unit_findings
from .presence import K3S_UNITS, RKE2_UNITS
from .root import HostRoot, NodeError, NotFound
from .systemd import Unit, read_unit

FIRST_WITH_CONFIG_DIR = (1, 32)
DEFAULT_EVICTION_HARD = "imagefs.available<5%,nodefs.available<5%"
"""What k3s passed before it wrote a drop-in: no threshold for memory."""

_RKE2_VERSION = re.compile(r"/data/(v\d+\.\d+\.\d+-rke2r\d+)")
_ARGUMENT_KEY = "kubelet-arg"


@dataclass(frozen=True)
class Flavour:
    """What differs between the two."""

    layout: str
    units: t.Tuple[str, ...]

    @property
    def config(self) -> str:
        return f"/etc/rancher/{self.layout}/config.yaml"

    @property
    def data_dir(self) -> str:
        return f"/var/lib/rancher/{self.layout}"


FLAVOURS = (
    Flavour(K3S, K3S_UNITS),
    Flavour(RKE2, RKE2_UNITS),
)


def find_rancher_launches(root: HostRoot) -> t.Iterator[Launch]:
    """Every k3s and RKE2 that has a unit on this node."""
    for flavour in FLAVOURS:
        for name in flavour.units:
            unit = read_unit(root, name)
            if unit is not None:
                yield _launch(root, flavour, unit)


def _launch(root: HostRoot, flavour: Flavour, unit: Unit) -> Launch:
    binary = unit.argv[0] if unit.argv else None
    options = tuple(unit.argv[2:])
    settings = _Settings(root, flavour.config, options, unit.environment)
    version = _version(root, settings.text("data-dir") or flavour.data_dir)
    arguments = (*settings.many(_ARGUMENT_KEY), *_options(options, "--" + _ARGUMENT_KEY))
    return Launch(
        layout=flavour.layout,
        source=", ".join((f"unit {unit.path}", *settings.read)),
        unit=unit.name,
        binary=binary,
        argv=kubelet_arguments(_defaults(root, settings, flavour, options, version), arguments),
        environment=unit.environment,
        findings=(*unit_findings(unit, binary), *settings.findings),
        version=version,
        complete=False,
    )


def _defaults(
    root: HostRoot,
    settings: _Settings,
    flavour: Flavour,
    options: t.Sequence[str],
    version: t.Optional[t.Tuple[str, str]],
) -> t.Dict[str, str]:
    """Flags that they set by themselves, as far as they matter here."""
    given = [*_options(options, "--data-dir"), *_options(options, "-d")]
    data_dir = given[-1] if given else settings.text("data-dir") or flavour.data_dir
    config_dir = posixpath.join(data_dir, "agent/etc/kubelet.conf.d")
    if root.exists(config_dir) and not _before_config_dir(version):
        return {"config-dir": config_dir}
    return {"eviction-hard": DEFAULT_EVICTION_HARD}


def _before_config_dir(version: t.Optional[t.Tuple[str, str]]) -> bool:
    try:
        return version is not None and parse_release(version[0]).series < FIRST_WITH_CONFIG_DIR
    except ValueError:
        return False


def kubelet_arguments(defaults: t.Mapping[str, str], extra: t.Sequence[str]) -> t.Tuple[str, ...]:
    """The kubelet's flags from `kubelet-arg` entries: sorted by name; an entry replaces the default of its name,
    `name+=value` adds to it, `name-=value` goes before it.

    With --config-dir, k3s moves --config and --config-dir of the user into its own directory when it starts.
    """
    initial = dict(defaults)
    values: t.Dict[str, t.List[str]] = {}
    for entry in extra:
        raw, equals, text = (entry[2:] if entry.startswith("--") else entry).partition("=")
        value = text if equals else "true"
        name = raw.rstrip("-+")
        kept = values.get(name, [])
        present = [initial.pop(name)] if name in initial else []
        if raw.endswith("+"):
            values[name] = [*present, *kept, value]
        elif raw.endswith("-"):
            values[name] = [value, *present, *kept]
        else:
            values[name] = [*kept, value]
    if "config-dir" in defaults:
        values.pop("config", None)
        values["config-dir"] = [defaults["config-dir"]]
    values.update((name, [value]) for name, value in initial.items())
    return tuple(f"--{name}={value.strip()}" for name in sorted(values) for value in values[name])


def _options(words: t.Sequence[str], name: str) -> t.List[str]:
    """The values of an option on the unit's command line."""
    values: t.List[str] = []
    for index, word in enumerate(words):
        if word.startswith(name + "="):
            values.append(word[len(name) + 1 :])
        elif word == name:
            values.extend(words[index + 1 : index + 2])
    return values


class _Settings:
    """config.yaml and config.yaml.d: a later file replaces a key, `key+` adds to it."""

    def __init__(
        self, root: HostRoot, default: str, options: t.Sequence[str], environment: t.Mapping[str, str]
    ) -> None:
        self.read: t.List[str] = []
        self.findings: t.List[Finding] = []
        self._values: t.Dict[str, t.List[str]] = {}
        given = [*_options(options, "--config"), *_options(options, "-c")]
        main = given[-1] if given else environment.get("K3S_CONFIG_FILE") or environment.get("RKE2_CONFIG_FILE")
        for path in (main or default, *_drop_ins(root, (main or default) + ".d")):
            self._file(root, path)

    def text(self, key: str) -> t.Optional[str]:
        values = self._values.get(key)
        return values[-1] if values else None

    def many(self, key: str) -> t.List[str]:
        return self._values.get(key, [])

    def _file(self, root: HostRoot, path: str) -> None:
        try:
            data = root.read_bytes(path, MAX_BYTES)
        except NotFound:
            return
        self.read.append(path)
        document = parse_document(path, data or b"{}")
        if document.problem is not None or not isinstance(document.value, (dict, type(None))):
            problem = document.problem or "it is no mapping"
            text = f"{path}: it cannot be read as configuration: {problem}. Correct it before the service is restarted."
            self.findings.append(stops_start("config_unreadable", text, path=path))
            return
        for key, value in (document.value or {}).items():
            items = [_as_text(item) for item in (value if isinstance(value, list) else [value])]
            name = key.rstrip("+")
            self._values[name] = [*self._values.get(name, []), *items] if key.endswith("+") else items


def _as_text(value: t.Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(getattr(value, "text", value))


def _drop_ins(root: HostRoot, directory: str) -> t.List[str]:
    try:
        names = root.listdir(directory)
    except NotFound:
        return []
    return [posixpath.join(directory, name) for name in names if name.endswith((".yaml", ".yml"))]


def _version(root: HostRoot, data_dir: str) -> t.Optional[t.Tuple[str, str]]:
    """RKE2 names its data directory after its version; k3s names it after a hash."""
    path = posixpath.join(data_dir, "bin")
    try:
        match = _RKE2_VERSION.search(root.realpath(path) + "/")
    except NodeError:
        return None
    return None if match is None else (match.group(1), path)
