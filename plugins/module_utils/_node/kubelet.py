# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Which kubelet this node runs: layout, command line, files, version (semantics 6.6, 6.7; design, section 6)."""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import dataclass, field, replace

from .._policy.findings import Finding, stops_start, warning
from .._policy.flags import CONFIGURATION_FLAGS, CommandLine, split_command_line
from .._policy.release import Release, parse_release
from .kubelet_binary import ask_binary
from .launch import (
    BOTTLEROCKET,
    EKS,
    K3S,
    KUBEADM,
    MICROK8S,
    NONE,
    OPENSHIFT,
    PLAIN,
    PROCESS,
    RKE2,
    TALOS,
    Launch,
    find_microk8s_launch,
    find_unit_launch,
    kubelet_of,
    os_release,
)
from .overrides import NO_OVERRIDES, KubeletOverrides
from .processes import DEFAULT_ROOT_DIR, KubeletProcess, read_kubelets
from .rancher import find_rancher_launches
from .root import HostRoot, NodeError

__all__ = [
    "BOTTLEROCKET",
    "EKS",
    "K3S",
    "KUBEADM",
    "MANAGED",
    "MICROK8S",
    "NONE",
    "OPENSHIFT",
    "PLAIN",
    "PROCESS",
    "RKE2",
    "TALOS",
    "KubeletFacts",
    "KubeletOverrides",
    "find_kubelet",
]

MANAGED = (OPENSHIFT, TALOS, BOTTLEROCKET)
"""Layouts whose distribution rewrites what is edited on the node."""

DROP_IN_VARIABLE = "KUBELET_CONFIG_DROPIN_DIR_ALPHA"
HOSTNAME = ("/proc/sys/kernel/hostname", "/etc/hostname")

_SUPERVISORS = {K3S: ("k3s", "k3s-server", "k3s-agent"), MICROK8S: ("kubelite", "kubelet")}
_PATH_FLAGS = ("config", "config-dir", "root-dir")


@dataclass(frozen=True)
class KubeletFacts:
    """The kubelet that the next start on this node would run.

    `argv` is the command line on disk without the binary (from the unit, or from k3s' and RKE2's configuration);
    without a unit it is the running process's. `running_argv` is None where no kubelet runs or cannot be seen.
    `changed_flags` are the flags in which both differ. `known_gates` is None where the binary was not asked; a gate
    that is missing in it is not proven unknown (design, section 6). `node_name` is that of the Node object, unless a
    cloud provider names it. `sources` says where each attribute comes from.
    """

    layout: str = NONE
    unit: t.Optional[str] = None
    binary: t.Optional[str] = None
    argv: t.Tuple[str, ...] = ()
    environment: t.Mapping[str, str] = field(default_factory=dict)
    config_path: t.Optional[str] = None
    config_dir: t.Optional[str] = None
    root_dir: str = "/var/lib/kubelet"
    node_name: t.Optional[str] = None
    version: t.Optional[Release] = None
    known_gates: t.Optional[t.FrozenSet[str]] = None
    running_pid: t.Optional[int] = None
    running_argv: t.Optional[t.Tuple[str, ...]] = None
    changed_flags: t.Tuple[str, ...] = ()
    findings: t.Tuple[Finding, ...] = ()
    sources: t.Mapping[str, str] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        return self.layout != NONE

    @property
    def state_file(self) -> str:
        return self.root_dir.rstrip("/") + "/memory_manager_state"


def find_kubelet(root: HostRoot, overrides: KubeletOverrides = NO_OVERRIDES) -> KubeletFacts:
    """Find the kubelet below a root; runs the kubelet's binary (`--version`, `--help`) only if the root is live.

    :raises NodeError: with the path, where a file cannot be read (PermissionMissing) or is no text
    """
    reading = read_kubelets(root)
    launch = _find_launch(root, reading.kubelets, overrides.unit)
    if launch is None:
        return _without_kubelet(overrides)
    process = _running(launch, reading.kubelets)
    command_line = split_command_line(launch.argv)
    version, gates, sources = _version(root, launch, overrides)
    facts = KubeletFacts(
        layout=launch.layout,
        unit=launch.unit,
        binary=launch.binary,
        argv=launch.argv,
        environment=launch.environment,
        config_path=overrides.config or command_line.last("config") or None,
        config_dir=overrides.config_dir or command_line.last("config-dir") or None,
        root_dir=overrides.root_dir or command_line.last("root-dir") or DEFAULT_ROOT_DIR,
        node_name=_node_name(root, command_line),
        version=version,
        known_gates=gates,
        running_pid=None if process is None else process.pid,
        running_argv=None if process is None else kubelet_of(process.argv)[1],
        changed_flags=() if process is None else changed_flags(launch, process),
        findings=launch.findings,
        sources={**_path_sources(launch, command_line, overrides), **sources},
    )
    return replace(facts, findings=(*facts.findings, *_config_dir_findings(facts)))


def _node_name(root: HostRoot, command_line: CommandLine) -> t.Optional[str]:
    """As the kubelet does (GetHostname): --hostname-override or the host's name, without blanks, in lower case."""
    names = [command_line.last("hostname-override") or ""]
    for path in HOSTNAME:
        with contextlib.suppress(NodeError):
            names.append(root.read_text(path))
    return next((name.strip().lower() for name in names if name.strip()), None)


def _without_kubelet(overrides: KubeletOverrides) -> KubeletFacts:
    """No kubelet; what the user gave is kept, so that a bare set of files can still be judged."""
    return KubeletFacts(
        config_path=overrides.config or None,
        config_dir=overrides.config_dir or None,
        root_dir=overrides.root_dir or DEFAULT_ROOT_DIR,
        version=_given_version(overrides),
        known_gates=None if overrides.known_feature_gates is None else frozenset(overrides.known_feature_gates),
    )


def _find_launch(root: HostRoot, processes: t.Sequence[KubeletProcess], unit: str) -> t.Optional[Launch]:
    """Of several, that of the unit, else the one that runs; otherwise the first one that is not masked."""
    found = [find_unit_launch(root), *find_rancher_launches(root), find_microk8s_launch(root)]
    launches = [launch for launch in found if launch is not None]
    launches = [launch for launch in launches if launch.unit == unit] or launches
    for launch in launches:
        if _running(launch, processes) is not None and not _is_masked(launch):
            return _with_process(launch, processes)
    for launch in launches:
        if not _is_masked(launch):
            return launch
    return _process_launch(root, processes) or (launches[0] if launches else None)


def _is_masked(launch: Launch) -> bool:
    return any(finding.code == "unit_masked" for finding in launch.findings)


def _with_process(launch: Launch, processes: t.Sequence[KubeletProcess]) -> Launch:
    """Where the unit starts a script, the process tells the command line."""
    process = _running(launch, processes)
    if process is None or all(finding.code != "command_line_unclear" for finding in launch.findings):
        return launch
    binary, argv = kubelet_of(process.argv)
    if binary is None:
        return launch
    return replace(launch, binary=binary, argv=argv, source=f"process {process.pid}", findings=())


def _process_launch(root: HostRoot, processes: t.Sequence[KubeletProcess]) -> t.Optional[Launch]:
    """A kubelet without a unit that we know. One in a container counts only if its root directory is on this node."""
    layout = TALOS if os_release(root).get("ID") == "talos" else PROCESS
    for process in processes:
        binary, argv = kubelet_of(process.argv)
        if binary is None:
            continue
        if process.in_node_namespace is False and not root.exists(process.root_dir or DEFAULT_ROOT_DIR):
            continue
        own = binary if process.in_node_namespace is not False else None
        return Launch(layout, f"process {process.pid}", binary=own, argv=argv)
    return None


def _running(launch: Launch, processes: t.Sequence[KubeletProcess]) -> t.Optional[KubeletProcess]:
    names = _SUPERVISORS.get(launch.layout, ("kubelet",))
    return next((process for process in processes if process.name in names), None)


def changed_flags(launch: Launch, process: KubeletProcess) -> t.Tuple[str, ...]:
    """The flags whose values differ between the command line on disk and the process's.

    Where the distribution adds flags by itself, only those that matter here are compared; where the process does not
    show the kubelet's command line (k3s, MicroK8s), nothing is.
    """
    binary, argv = kubelet_of(process.argv)
    if binary is None:
        return ()
    disk, running = split_command_line(launch.argv), split_command_line(argv)
    names = {flag.name for line in (disk, running) for flag in line.flags}
    if not launch.complete:
        names &= set(CONFIGURATION_FLAGS)
    return tuple(sorted(name for name in names if disk.values(name) != running.values(name)))


def _path_sources(launch: Launch, command_line: CommandLine, overrides: KubeletOverrides) -> t.Dict[str, str]:
    sources = {"argv": launch.source, "layout": launch.source}
    given = {"config": overrides.config, "config-dir": overrides.config_dir, "root-dir": overrides.root_dir}
    attributes = {"config": "config_path", "config-dir": "config_dir", "root-dir": "root_dir"}
    for flag in _PATH_FLAGS:
        if given[flag]:
            sources[attributes[flag]] = "argument"
        elif command_line.last(flag):
            sources[attributes[flag]] = f"flag --{flag}, {launch.source}"
    sources.setdefault("root_dir", "default")
    return sources


def _given_version(overrides: KubeletOverrides) -> t.Optional[Release]:
    """:raises NodeError: if the argument is no version"""
    if not overrides.version:
        return None
    try:
        return parse_release(overrides.version)
    except ValueError as error:
        raise NodeError(f"kubelet_version: {error}") from error


def _version(
    root: HostRoot, launch: Launch, overrides: KubeletOverrides
) -> t.Tuple[t.Optional[Release], t.Optional[t.FrozenSet[str]], t.Dict[str, str]]:
    """Version and listed gates: from the arguments, else from the binary, else (the version) from a file."""
    sources: t.Dict[str, str] = {}
    version = _given_version(overrides)
    gates = None if overrides.known_feature_gates is None else frozenset(overrides.known_feature_gates)
    sources.update({"version": "argument"} if version is not None else {})
    sources.update({"known_gates": "argument"} if gates is not None else {})
    if launch.binary and (version is None or gates is None):
        answer = ask_binary(root, launch.binary, overrides.cache_file, overrides.timeout)
        if answer is not None and version is None:
            version, sources["version"] = answer.version, f"{launch.binary} --version"
        if answer is not None and gates is None and answer.gates is not None:
            gates, sources["known_gates"] = answer.gates, f"{launch.binary} --help"
    if version is None and launch.version is not None:
        text, path = launch.version
        version = _lenient_release(text)
        sources.update({"version": path} if version is not None else {})
    return version, gates, sources


def _lenient_release(text: str) -> t.Optional[Release]:
    try:
        return parse_release(text)
    except ValueError:
        return None


def _config_dir_findings(facts: KubeletFacts) -> t.Iterator[Finding]:
    if not facts.config_dir or facts.version is None or facts.version.series >= (1, 30):
        return
    if facts.version.series < (1, 28):
        text = f"Kubernetes {facts.version} has no --config-dir and stops with an unknown flag. Remove it."
        yield stops_start("flag_invalid", text, field="--config-dir", kubelet_error="unknown flag: --config-dir")
    elif DROP_IN_VARIABLE not in facts.environment and facts.layout != PROCESS:
        text = f"Kubernetes {facts.version} refuses --config-dir without the environment variable {DROP_IN_VARIABLE}."
        yield stops_start("flag_invalid", f"{text} Set it in the unit.", field="--config-dir")
    else:
        text = f"--config-dir is an alpha feature of Kubernetes {facts.version}. Upgrade to 1.30 or later."
        yield warning("config_dir_alpha", text, field="--config-dir")
