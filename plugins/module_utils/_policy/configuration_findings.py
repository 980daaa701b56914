# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""What a kubelet says of its configuration at a start, before it looks at its state file (semantics 5.5, 6)."""

from __future__ import annotations

import typing as t

from . import feature_gates
from .findings import Finding, info, stops_start, warning
from .kernel_image import KernelImageUnavailable, derive_kernel_image
from .release import NEWEST, OLDEST
from .reservation import ReservationFault, reservation_faults
from .subject import NONE, STATIC, Subject
from .tolerance import GATE, OPTION, ToleranceError, parse_tolerance


def release_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    release = subject.release
    if release is None:
        return (
            warning(
                "version_unknown",
                "The kubelet's version is not known; the file counts as readable only if 1.34, 1.36 and 1.37 all read "
                "it. Pass kubelet_version.",
                field="kubelet_version",
            ),
        )
    if release.proof == "source":
        return (
            info(
                "release_unproven",
                f"The rules for kubelet {release} come from its source; they were not compared with the binary.",
            ),
        )
    if release.series > NEWEST or release.series < OLDEST:
        return (
            warning(
                "release_unknown",
                f"Kubelet {release} is outside {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}, whose rules are "
                "known; those of the nearest are used.",
                field="kubelet_version",
            ),
        )
    return ()


def gate_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    return tuple(
        feature_gates.gate_findings(
            subject.rules, subject.feature_gates, subject.gate_sources, subject.listed_gates, subject.overridden_gates
        )
    )


def policy_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    policy = subject.policy
    if policy in (NONE, STATIC):
        return ()
    where = {"field": "memoryManagerPolicy", "found": policy, "path": subject.gate_sources.get("memoryManagerPolicy")}
    if policy == "BestEffort" and subject.rules.at_least(1, 32):
        text = 'policy "BestEffort" is not available for platform "linux"'
        message = "memoryManagerPolicy BestEffort exists on Windows only. Set Static or None."
        return (stops_start("policy_unavailable", message, kubelet_error=text, **where),)
    message = f"memoryManagerPolicy is {policy!r}; the kubelet knows Static and None, spelt just so."
    return (stops_start("policy_unknown", message, kubelet_error=f'unknown policy: "{policy}"', **where),)


def option_policy_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    """Options with a policy that has none (semantics 5.5); only kubelets that know the gate look at options."""
    if subject.policy == STATIC or not subject.policy_options or not _knows_drift_gate(subject):
        return ()
    text = 'policy "{0}" does not support policy options map[{1}]'.format(
        subject.policy, " ".join("{0}:{1}".format(*item) for item in sorted(subject.policy_options.items()))
    )
    message = (
        f"memoryManagerPolicyOptions needs memoryManagerPolicy Static, it is {subject.policy}. Remove the options."
    )
    return (stops_start("option_policy", message, field="memoryManagerPolicyOptions", kubelet_error=text),)


def _knows_drift_gate(subject: Subject) -> bool:
    return feature_gates.knows_gate(subject.rules, GATE, subject.listed_gates) is True


def tolerates_by_itself(subject: Subject) -> bool:
    """Whether the installed kubelet has KEP-6232's gate and option: then drift is its own matter (design, 6)."""
    return (
        subject.policy == STATIC
        and OPTION in subject.policy_options
        and _knows_drift_gate(subject)
        and not _option_findings(subject)
    )


def kubelet_tolerance(subject: Subject) -> t.Tuple[int, t.Tuple[Finding, ...]]:
    """(the bound that the installed kubelet itself applies, findings about gate and option)"""
    options = subject.policy_options
    if not _knows_drift_gate(subject):
        return 0, (_option_ignored(subject),) if options else ()
    findings = _option_findings(subject)
    if findings or subject.policy != STATIC or OPTION not in options:
        return 0, findings
    setting = parse_tolerance(options[OPTION])
    if not setting.is_auto:
        return setting.quantity or 0, ()
    try:
        # The kubelet trusts a partly hidden image; this predicts the kubelet.
        return (derive_kernel_image(subject.iomem).bound if subject.iomem is not None else 0), ()
    except KernelImageUnavailable:
        return 0, ()


def _option_ignored(subject: Subject) -> Finding:
    return warning(
        "option_ignored",
        f"memoryManagerPolicyOptions is set, but kubelet {subject.rules} does not know the field and ignores it "
        "without a word: no drift is tolerated. The guard gives this kubelet the same behaviour (playbook "
        "install_guard).",
        field="memoryManagerPolicyOptions",
    )


def _option_findings(subject: Subject) -> t.Tuple[Finding, ...]:
    options, field_name = subject.policy_options, "memoryManagerPolicyOptions"
    if not options or subject.policy != STATIC:
        return ()
    gates = subject.feature_gates
    if not gates.get(GATE, gates.get("AllAlpha", False)):
        text = f'memory manager policy option "{sorted(options)[0]}" requires the {GATE} feature gate'
        message = f"memoryManagerPolicyOptions is set without the feature gate {GATE}. Set both, or neither."
        return (stops_start("option_without_gate", message, field=field_name, kubelet_error=text),)
    found = []
    for name, value in sorted(options.items()):
        if name != OPTION:
            text = f'unknown Memory Manager Policy option: "{name}"'
            message = f"memoryManagerPolicyOptions has the unknown option {name}. Remove it."
            found.append(stops_start("option_unknown", message, field=field_name, found=name, kubelet_error=text))
            continue
        try:
            parse_tolerance(value)
        except ToleranceError as error:
            message = f"{OPTION} is {value!r}; it takes auto, off or a quantity such as 128Mi."
            found.append(
                stops_start("option_invalid", message, field=field_name, found=value, kubelet_error=str(error))
            )
    return tuple(found)


def reservation_findings(subject: Subject) -> t.Tuple[t.Tuple[Finding, ...], t.Tuple[ReservationFault, ...]]:
    if subject.policy != STATIC or subject.reservation is None:
        return (), ()
    faults = tuple(reservation_faults(subject.machine, subject.reservation, subject.reserved_memory))
    return tuple(fault_finding(fault) for fault in faults), faults


def fault_finding(fault: ReservationFault) -> Finding:
    """A reservation fault as a finding."""
    steps = {
        "reserved_memory_sum": "Make reservedMemory add up to kubeReserved + systemReserved + evictionHard",
        "reserved_memory_not_int64": f"Write it as a whole number of a smaller unit, such as {fault.expected}",
        "reserved_memory_unknown_node": "Remove the entry, or find out where the node went",
        "reserved_memory_missing": "Static needs reservedMemory; give it the node's reservation",
    }
    where = "" if fault.numa_node is None else f" of NUMA node {fault.numa_node}"
    what = "" if fault.resource is None else f" {fault.resource}"
    return stops_start(
        fault.code,
        "{0}{1}{2}: {3}. {4}.".format(
            fault.field, what, where, fault.kubelet_error, steps.get(fault.code, "Correct the value")
        ),
        numa_node=fault.numa_node,
        resource=fault.resource,
        field=fault.field,
        found=fault.found,
        expected=fault.expected,
        kubelet_error=fault.kubelet_error,
    )
