# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""The kubelet's command line: how pflag splits it, and what its flags set (semantics 6.1, 6.2)."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .decode import go_quote
from .quantity import QuantityError, parse_quantity

BOOLEAN_FLAGS = frozenset(
    """
    seccomp-default exit-on-lock-contention experimental-allocatable-ignore-eviction enable-server fail-swap-on
    fail-cgroupv1 anonymous-auth authentication-token-webhook rotate-server-certificates rotate-certificates
    enable-debugging-handlers contention-profiling cgroups-per-qos runonce cpu-cfs-quota enable-controller-attach-detach
    make-iptables-util-chains kernel-memcg-notification local-storage-capacity-isolation serialize-image-pulls
    protect-kernel-defaults register-node windows-service log-text-split-stream log-json-split-stream help
    logtostderr alsologtostderr skip-headers skip-log-headers add-dir-header one-output experimental-fail-swap-on
    experimental-kernel-memcg-notification experimental-check-node-capabilities-before-mount
    keep-terminated-pod-volumes allow-privileged log-cadvisor-usage enable-cadvisor-json-endpoints
    really-crash-for-testing
    docker-tls register-schedulable redirect-container-streaming
    """.split()
)
"""Flags that take no separate value: `--runonce false` is a stray argument. Some of them are long gone."""

_NO_VALUE = {"version": "true"}

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INTEGER = re.compile(r"[-+]?[0-9]+\Z", re.ASCII)
_RESERVED_FORMAT = (
    "the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got {0}"
)

FlagValue = t.Any


class FlagError(ValueError):
    """A value that the flag refuses; the message is the kubelet's."""


@dataclass(frozen=True)
class Flag:
    """One flag as given: its normalised name without dashes, and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class CommandLine:
    """The flags in order. `problem` is the kubelet's text where it cannot split the command line."""

    flags: t.Tuple[Flag, ...] = ()
    problem: t.Optional[str] = None

    def last(self, name: str) -> t.Optional[str]:
        """The value that counts for a flag that is one text; None where it is not given."""
        return next((flag.value for flag in reversed(self.flags) if flag.name == name), None)

    def values(self, name: str) -> t.Tuple[str, ...]:
        return tuple(flag.value for flag in self.flags if flag.name == name)


def split_command_line(arguments: t.Sequence[str]) -> CommandLine:
    """Split arguments (without the binary) into flags, as pflag does.

    A flag that this table does not know takes the next argument as its value unless that looks like a flag.
    """
    flags: t.List[Flag] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--" or not argument.startswith("-") or argument == "-":
            stray = rest[:1] if argument == "--" else [argument]
            if stray:
                return CommandLine(tuple(flags), f"unknown command {stray[0]}")
            break
        name, has_value, value = _split_flag(argument)
        if not name or name.startswith(("-", "=")):
            return CommandLine(tuple(flags), f"failed to parse kubelet flag: bad flag syntax: {argument}")
        if not has_value and not value:
            if not rest and name in _NEEDS_VALUE:
                problem = f"failed to parse kubelet flag: flag needs an argument: {argument}"
                return CommandLine(tuple(flags), problem)
            value = _next_value(name, rest)
        flags.append(Flag(name, value))
    return CommandLine(tuple(flags))


def _split_flag(argument: str) -> t.Tuple[str, str, str]:
    if argument.startswith("--"):
        name, has_value, value = argument[2:].partition("=")
        return name.replace("_", "-"), has_value, value
    # A shorthand: -v=2, -v2, -v 2.
    value = argument[2:]
    return argument[1], value, value[1:] if value.startswith("=") else value


def _next_value(name: str, rest: t.List[str]) -> str:
    if name in BOOLEAN_FLAGS or name in _NO_VALUE or name == "h":
        return "true"
    if rest and (name in _NEEDS_VALUE or not rest[0].startswith("-")):
        return rest.pop(0)
    return ""


def parse_bool(value: str) -> bool:
    """Go's strconv.ParseBool."""
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise FlagError(f"strconv.ParseBool: parsing {go_quote(value)}: invalid syntax")


def _set_text(_current: FlagValue, value: str) -> FlagValue:
    return value


def _set_bool(_current: FlagValue, value: str) -> FlagValue:
    return parse_bool(value)


def _pairs(value: str, separator: str, expected: str) -> t.Iterator[t.Tuple[str, str]]:
    for item in value.split(","):
        if not item:
            continue
        key, found, text = item.partition(separator)
        if not found:
            raise FlagError(f"malformed pair, expect {expected}")
        yield key.strip(), text.strip()


def _set_map(current: FlagValue, value: str) -> FlagValue:
    return {**(current or {}), **dict(_pairs(value, "=", "string=string"))}


def _set_thresholds(current: FlagValue, value: str) -> FlagValue:
    return {**(current or {}), **dict(_pairs(value, "<", "string<string"))}


def _set_gates(current: FlagValue, value: str) -> FlagValue:
    gates = dict(current or {})
    for name, text in _pairs(value, "=", "string=bool"):
        try:
            gates[name] = parse_bool(text)
        except FlagError as err:
            raise FlagError(f"invalid value of {name}: {text}, err: {err}") from err
    return gates


def _set_list(current: FlagValue, value: str) -> FlagValue:
    return [*(current or []), *(value.split(",") if value else [])]


def _set_reserved_memory(current: FlagValue, value: str) -> FlagValue:
    return [*(current or []), *map(_reservation, value.split(";"))]


def _reservation(text: str) -> t.Mapping[str, FlagValue]:
    parts = text.split(":")
    if len(parts) != 2:
        raise FlagError(_RESERVED_FORMAT.format(text))
    if not _INTEGER.match(parts[0]) or abs(int(parts[0][:20])) >> 63:
        raise FlagError(f"failed to convert the NUMA node ID, expected integer, got {parts[0]}")
    limits = dict(_limit(item) for item in parts[1].split(","))
    return {"numaNode": _int32(int(parts[0])), "limits": limits}


def _limit(text: str) -> t.Tuple[str, str]:
    parts = text.split("=")
    if len(parts) != 2:
        raise FlagError(f"the reserved limit has incorrect value, expected type=quantity, got {text}")
    resource, quantity = parts
    if resource != "memory" and not resource.startswith("hugepages-"):
        raise FlagError(f"memory type conversion error, unknown type: {go_quote(resource)}")
    try:
        parse_quantity(quantity)
    except QuantityError as err:
        raise FlagError(f"failed to parse the quantity: {quantity}") from err
    return resource, quantity


def _int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


Setter = t.Callable[[FlagValue, str], FlagValue]

CONFIGURATION_FLAGS: t.Mapping[str, t.Tuple[str, Setter]] = {
    "memory-manager-policy": ("memoryManagerPolicy", _set_text),
    "reserved-memory": ("reservedMemory", _set_reserved_memory),
    "feature-gates": ("featureGates", _set_gates),
    "system-reserved": ("systemReserved", _set_map),
    "kube-reserved": ("kubeReserved", _set_map),
    "eviction-hard": ("evictionHard", _set_thresholds),
    "eviction-soft": ("evictionSoft", _set_thresholds),
    "eviction-soft-grace-period": ("evictionSoftGracePeriod", _set_map),
    "kernel-memcg-notification": ("kernelMemcgNotification", _set_bool),
    "fail-cgroupv1": ("failCgroupV1", _set_bool),
    "enforce-node-allocatable": ("enforceNodeAllocatable", _set_list),
    "cgroup-root": ("cgroupRoot", _set_text),
    "cgroup-driver": ("cgroupDriver", _set_text),
    "cgroups-per-qos": ("cgroupsPerQOS", _set_bool),
    "pod-manifest-path": ("staticPodPath", _set_text),
    "experimental-allocatable-ignore-eviction": ("allocatableIgnoreEviction", _set_bool),
    "hostname-override": ("hostnameOverride", _set_text),
}
"""Flags that set what this project reads: the field (KubeletConfiguration's, or the flag's own) and how."""

FIELDS_WITHOUT_FLAG = frozenset(("memory-manager-policy-options", "merge-default-eviction-settings"))
"""What a flag would be called that does not exist; the kubelet stops at it, as at every unknown flag."""

_NEEDS_VALUE = (frozenset(CONFIGURATION_FLAGS) - BOOLEAN_FLAGS) | {"config", "config-dir", "root-dir", "kubeconfig"}


@dataclass(frozen=True)
class FlagProblem:
    """A flag's value that the kubelet refuses; `text` is its message."""

    name: str
    value: str
    text: str


@dataclass(frozen=True)
class FlagSettings:
    """Field name to value for all fields that flags set; maps and lists given by flag start from nothing."""

    values: t.Mapping[str, FlagValue]
    names: t.Mapping[str, str]
    problems: t.Tuple[FlagProblem, ...] = ()


def settings_of(command_line: CommandLine) -> FlagSettings:
    """What the flags set. A repeated flag adds to its map or list, or replaces its text."""
    values: t.Dict[str, FlagValue] = {}
    names: t.Dict[str, str] = {}
    problems: t.List[FlagProblem] = []
    for flag in command_line.flags:
        if flag.name in FIELDS_WITHOUT_FLAG:
            text = f"failed to parse kubelet flag: unknown flag: --{flag.name}"
            problems.append(FlagProblem(flag.name, flag.value, text))
        if flag.name not in CONFIGURATION_FLAGS or (flag.name == "reserved-memory" and not flag.value):
            continue
        field, setter = CONFIGURATION_FLAGS[flag.name]
        try:
            values[field] = setter(values.get(field), flag.value)
            names[field] = flag.name
        except FlagError as err:
            text = "failed to parse kubelet flag: invalid argument {0} for {1} flag: {2}"
            text = text.format(go_quote(flag.value), go_quote("--" + flag.name), err)
            problems.append(FlagProblem(flag.name, flag.value, text))
    return FlagSettings(values, names, tuple(problems))
