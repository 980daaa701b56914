# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""How a node starts its kubelet: kubelet.service, MicroK8s' argument file, or only a process (semantics 6.6)."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from .._policy.findings import Finding, stops_start, warning
from .presence import KUBELET_UNIT, MICROK8S_ARGUMENTS, MICROK8S_UNITS
from .root import HostRoot, NodeError, NotFound
from .systemd import Unit, read_unit
from .systemd_syntax import parse_environment_file, split_relaxed

KUBEADM = "kubeadm"
K3S = "k3s"
RKE2 = "rke2"
MICROK8S = "microk8s"
EKS = "eks"
OPENSHIFT = "openshift"
TALOS = "talos"
BOTTLEROCKET = "bottlerocket"
PLAIN = "plain"
PROCESS = "process"
NONE = "none"

MICROK8S_SNAP = "/snap/microk8s/current/meta/snap.yaml"
KUBEADM_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
DPKG_STATUS = "/var/lib/dpkg/status"

_MICROK8S_VARIABLES = {
    "SNAP": "/snap/microk8s/current",
    "SNAP_DATA": "/var/snap/microk8s/current",
    "SNAP_COMMON": "/var/snap/microk8s/common",
}
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)\}?")
_DPKG_VERSION = re.compile(r"^Package: kubelet\n(?:\S.*\n| .*\n)*?Version: (?:\d+:)?(\S+)$", re.M)
_SNAP_VERSION = re.compile(r"^version: *['\"]?(\S+?)['\"]?\s*$", re.M)
_OS_LAYOUTS = {"talos": TALOS, "bottlerocket": BOTTLEROCKET, "rhcos": OPENSHIFT, "scos": OPENSHIFT}


@dataclass(frozen=True)
class Launch:
    """How a kubelet is started. `argv` is without the binary; `source` says where it is written.

    `version` is text from a file (not asked of the binary), with its source.
    """

    layout: str
    source: str
    unit: t.Optional[str] = None
    binary: t.Optional[str] = None
    argv: t.Tuple[str, ...] = ()
    environment: t.Mapping[str, str] = field(default_factory=dict)
    findings: t.Tuple[Finding, ...] = ()
    version: t.Optional[t.Tuple[str, str]] = None
    complete: bool = True
    """False where the distribution adds flags that are not written anywhere."""


def find_unit_launch(root: HostRoot) -> t.Optional[Launch]:
    """The kubelet of kubelet.service."""
    unit = read_unit(root, KUBELET_UNIT)
    if unit is None:
        return None
    binary, argv = kubelet_of(unit.argv)
    return Launch(
        layout=_layout(root, unit),
        source=f"unit {unit.path}",
        unit=unit.name,
        binary=binary,
        argv=argv,
        environment=unit.environment,
        findings=unit_findings(unit, binary),
        version=_package_version(root),
    )


def kubelet_of(command: t.Sequence[str]) -> t.Tuple[t.Optional[str], t.Tuple[str, ...]]:
    """The kubelet's binary and arguments in a command that may have a wrapper in front; None where there is none."""
    for index, word in enumerate(command):
        if posixpath.basename(word) == "kubelet":
            hyperkube = word == "kubelet" and index > 0
            return command[index - 1] if hyperkube else word, tuple(command[index + 1 :])
    return None, ()


def unit_findings(unit: Unit, binary: t.Optional[str]) -> t.Tuple[Finding, ...]:
    if unit.masked:
        text = f"{unit.path} masks {unit.name}: systemd will not start it. Unmask it if this node is to run a kubelet."
        return (warning("unit_masked", text, path=unit.path),)
    if unit.problem is not None:
        text = f"systemd will not start {unit.name}: {unit.problem}. Correct the unit and run systemctl daemon-reload."
        return (stops_start("unit_invalid", text, path=unit.path),)
    if binary is None:
        text = (
            f"{unit.path}: the kubelet's command line cannot be told from ExecStart={' '.join(unit.argv)}. "
            "Start the kubelet without a script, or give kubelet_config and kubelet_version."
        )
        return (warning("command_line_unclear", text, path=unit.path),)
    return ()


def _layout(root: HostRoot, unit: Unit) -> str:
    system = os_release(root).get("ID", "")
    if system in _OS_LAYOUTS:
        return _OS_LAYOUTS[system]
    if root.exists("/etc/machine-config-daemon"):
        return OPENSHIFT
    if root.exists("/etc/eks"):
        return EKS
    uses_kubeadm = any("kubeadm" in posixpath.basename(path) for path in unit.files) or root.exists(KUBEADM_FLAGS)
    return KUBEADM if uses_kubeadm else PLAIN


def os_release(root: HostRoot) -> t.Mapping[str, str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            return parse_environment_file(root.read_text(path, 64 * 1024, "replace"))
        except NotFound:
            continue
        except NodeError:
            break
    return {}


def _package_version(root: HostRoot) -> t.Optional[t.Tuple[str, str]]:
    return _version_in(root, DPKG_STATUS, _DPKG_VERSION, "Package: kubelet\n")


def _version_in(root: HostRoot, path: str, pattern: t.Pattern[str], begin: str = "") -> t.Optional[t.Tuple[str, str]]:
    """What a file says, with its path. A match begins with `begin`, which finds its place in a large file at once."""
    try:
        text = root.read_text(path, errors="replace")
    except NodeError:
        return None
    start = text.find(begin)
    match = pattern.search(text, start) if start >= 0 else None
    return None if match is None else (match.group(1), path)


def find_microk8s_launch(root: HostRoot) -> t.Optional[Launch]:
    """The kubelet inside MicroK8s' kubelite: one flag per line in its argument file."""
    unit = next((name for name in MICROK8S_UNITS if read_unit(root, name) is not None), None)
    try:
        text = root.read_text(MICROK8S_ARGUMENTS, 256 * 1024)
    except NotFound:
        return None
    return Launch(
        layout=MICROK8S,
        source=MICROK8S_ARGUMENTS,
        unit=unit or MICROK8S_UNITS[0],
        argv=tuple(_microk8s_words(text)),
        version=_version_in(root, MICROK8S_SNAP, _SNAP_VERSION),
    )


def _microk8s_words(text: str) -> t.Iterator[str]:
    for line in text.splitlines():
        if not line.lstrip().startswith("#"):
            expanded = _VARIABLE.sub(lambda match: _MICROK8S_VARIABLES.get(match.group(1), match.group(0)), line)
            yield from split_relaxed(expanded)
