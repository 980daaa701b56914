#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does kernelMemcgNotification do anything on this node, and at which usage? See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memcg_notifier_info
short_description: Says whether the kernel can wake a node's kubelet when memory runs low
version_added: 0.2.0
description:
  - Reads the node's cgroup version, its memory controller and the kubelet's configuration, and says whether
    C(kernelMemcgNotification) can work, why not, and whether it is set.
  - Computes for each memory threshold the usage in bytes at which the kubelet would be woken now, as the kubelet does,
    C(capacity - eviction threshold + inactive file), from the control groups' own statistics. It refuses to compute
    from counters that contradict each other.
  - The controller's files decide, not a directory; kernels without C(CONFIG_MEMCG_V1) may have an empty one.
  - Events that are refused only when they are registered are found by M(kubenode.memory.memcg_notifier_probe).
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._attributes.read_only
options:
  host_root:
    description:
      - Directory that stands for the node's root. Every path, links included, stays below it.
      - With another root than V(/) no program of the node is run.
    type: path
    default: /
  kubelet_config:
    description: Path of the kubelet's configuration file, in place of its C(--config).
    type: path
  kubelet_config_dir:
    description: Path of the kubelet's drop-in directory, in place of its C(--config-dir).
    type: path
  kubelet_root_dir:
    description: The kubelet's root directory, in place of its C(--root-dir).
    type: path
  kubelet_version:
    description: The kubelet's version, where its binary cannot be asked. Needed with another O(host_root).
    type: str
  candidate_config:
    description:
      - Text of a KubeletConfiguration (YAML or JSON) that is merged last, as a drop-in would be, to learn what it would
        do before it is written.
    type: str
seealso:
  - module: kubenode.memory.memcg_notifier_probe
  - module: kubenode.memory.memmgr_validate
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Does kernelMemcgNotification do anything here?
  kubenode.memory.memcg_notifier_info:
  become: true
  register: notifier

- name: List the nodes on which the setting does nothing
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }}: {{ notifier.msg }}"
  when: notifier.configured and not notifier.supported

- name: Where would the thresholds be with 1 GiB?
  kubenode.memory.memcg_notifier_info:
    candidate_config: |
      evictionHard:
        memory.available: 1Gi
  become: true

- name: Look at a captured tree
  kubenode.memory.memcg_notifier_info:
    host_root: /srv/captures/worker-17
    kubelet_version: v1.34.4
"""

RETURN = r"""
cgroup_mode:
  description: V(v1), V(hybrid) (hierarchies of both versions), V(v2) or V(none).
  returned: always
  type: str
  sample: hybrid
memory_mount:
  description: Mount point of the memory hierarchy, the unified one with V(v2); null where there is none.
  returned: always
  type: str
  sample: /sys/fs/cgroup/memory
supported:
  description: Whether the kernel can notify a kubelet that starts on this node.
  returned: always
  type: bool
  sample: true
reason:
  description:
    - V(cgroup_v2), V(no_memory_controller), V(no_event_control), V(preempt_rt) or, where the kubelet itself refuses
      cgroup v1, V(cgroup_v1_refused). Null where it can.
  returned: always
  type: str
  sample: null
reason_text:
  description: The reason in a sentence.
  returned: always
  type: str
  sample: null
configured:
  description: Whether C(kernelMemcgNotification) is in effect true.
  returned: always
  type: bool
  sample: true
configured_by:
  description: The file or flag that says so; V(default) or null where none does.
  returned: always
  type: str
  sample: /var/lib/kubelet/config.yaml
active:
  description: Whether the kernel will wake this kubelet, that is, configured and supported.
  returned: always
  type: bool
  sample: true
fail_cgroup_v1:
  description: Whether this kubelet refuses cgroup v1; null where its release does not know the field, or there is none.
  returned: always
  type: bool
  sample: false
memory_manager_policy:
  description: The kubelet's C(memoryManagerPolicy).
  returned: always
  type: str
  sample: Static
eviction_hard:
  description: C(evictionHard) in effect; null where there is none and no default applies.
  returned: always
  type: dict
  sample:
    memory.available: 100Mi
    nodefs.available: 10%
    nodefs.inodesFree: 5%
    imagefs.available: 15%
    imagefs.inodesFree: 5%
eviction_soft:
  description: C(evictionSoft) in effect.
  returned: always
  type: dict
  sample: {"memory.available": "1Gi"}
eviction_soft_grace_period:
  description: C(evictionSoftGracePeriod) in effect.
  returned: always
  type: dict
  sample: {"memory.available": "1m30s"}
thresholds:
  description: Each threshold about memory. Sizes are bytes, null where the control group's statistics do not give them.
  returned: always
  type: list
  elements: dict
  contains:
    signal:
      description: The kubelet's signal.
      type: str
      returned: always
      sample: memory.available
    kind:
      description: V(hard) or V(soft).
      type: str
      returned: always
      sample: hard
    name:
      description: The kubelet's name of the notifier, as in its log.
      type: str
      returned: always
      sample: hard memory eviction threshold
    derived:
      description: Whether the kubelet made it from the hard C(memory.available).
      type: bool
      returned: always
      sample: false
    statement:
      description: The threshold as configured.
      type: str
      returned: always
      sample: 100Mi
    grace_period:
      description: The soft threshold's grace period.
      type: str
      returned: always
      sample: null
    cgroup:
      description: The control group that is watched.
      type: str
      returned: always
      sample: /
    eviction_bytes:
      description: Evict when less than this is available.
      type: int
      returned: always
      sample: 104857600
    notify_at_bytes:
      description: The usage at which the kernel is to notify.
      type: int
      returned: always
      sample: 27810365440
    distance_bytes:
      description: By how much usage may grow before that; negative where it has crossed.
      type: int
      returned: always
      sample: 22000275456
    capacity_bytes:
      description: MemTotal for the root group, else the group's limit.
      type: int
      returned: always
      sample: 25276063744
    usage_bytes:
      description: Memory in use, with the page cache.
      type: int
      returned: always
      sample: 5810089984
    inactive_file_bytes:
      description: The part of it that can be reclaimed.
      type: int
      returned: always
      sample: 2639159296
    available_bytes:
      description: Capacity without the working set.
      type: int
      returned: always
      sample: 22105133056
    registered:
      description: Whether the kubelet has the kernel watch this threshold.
      type: bool
      returned: always
      sample: true
    reason:
      description: Why there are no numbers.
      type: str
      returned: always
      sample: null
findings:
  description: What is wrong or odd, as in M(kubenode.memory.memmgr_validate).
  returned: always
  type: list
  elements: dict
  sample:
    - code: notifier_without_effect
      severity: info
      field: kernelMemcgNotification
      path: /var/lib/kubelet/config.yaml
      message: >-
        kernelMemcgNotification is true (/var/lib/kubelet/config.yaml) and does nothing: cgroup v2 has no memory
        threshold events; the kubelet makes a notifier that does nothing. The kubelet polls every 10 s, whatever its log
        says. Remove the setting; soft thresholds act earlier.
kubelet:
  description: The kubelet that was found.
  returned: always
  type: dict
  sample: {"version": "1.34.4", "layout": "kubeadm", "config": "/var/lib/kubelet/config.yaml", "config_dir": null}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.memory.plugins.module_utils._node.kubelet import KubeletOverrides
from ansible_collections.kubenode.memory.plugins.module_utils._node.notifier import NotifierReading, read_notifier
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import (
    FIELD,
    Assessment,
    NotifierThreshold,
)
from ansible_collections.kubenode.memory.plugins.module_utils._policy.units import mebibytes
from ansible_collections.kubenode.memory.plugins.module_utils._present_report import present_finding

ARGUMENTS = {
    "host_root": {"type": "path", "default": "/"},
    "kubelet_config": {"type": "path"},
    "kubelet_config_dir": {"type": "path"},
    "kubelet_root_dir": {"type": "path"},
    "kubelet_version": {"type": "str"},
    "candidate_config": {"type": "str"},
}


def present(reading: NotifierReading) -> t.Dict[str, t.Any]:
    assessment, configuration, kubelet = reading.assessment, reading.effective.configuration, reading.kubelet
    findings = (*kubelet.findings, *reading.effective.findings, *assessment.findings)
    code, text = reason(assessment)
    return {
        "cgroup_mode": assessment.cgroups.mode,
        "memory_mount": assessment.cgroups.memory_mount,
        "supported": assessment.supported,
        "reason": code,
        "reason_text": text,
        "configured": assessment.configured,
        "configured_by": configuration.sources.get(FIELD),
        "active": assessment.active,
        "fail_cgroup_v1": configuration.fail_cgroup_v1 if kubelet.found else None,
        "memory_manager_policy": configuration.memory_manager_policy,
        "eviction_hard": configuration.eviction_hard,
        "eviction_soft": dict(configuration.eviction_soft),
        "eviction_soft_grace_period": dict(configuration.eviction_soft_grace_period),
        "thresholds": [present_threshold(one, assessment.active) for one in assessment.thresholds],
        "findings": [present_finding(finding) for finding in findings],
        "kubelet": {
            "version": None if kubelet.version is None else str(kubelet.version),
            "layout": kubelet.layout,
            "config": kubelet.config_path,
            "config_dir": kubelet.config_dir,
        },
    }


def reason(assessment: Assessment) -> t.Tuple[t.Optional[str], t.Optional[str]]:
    """Code and sentence of what is in the way; a kubelet that does not start comes first."""
    if assessment.refuses_v1:
        return "cgroup_v1_refused", "this kubelet does not start on cgroup v1 (failCgroupV1)"
    return (assessment.obstacle.code, assessment.obstacle.message) if assessment.obstacle else (None, None)


def present_threshold(one: NotifierThreshold, active: bool) -> t.Dict[str, t.Any]:
    origin, counters = one.origin, one.statistics.counters
    return {
        "signal": origin.signal,
        "kind": "hard" if origin.hard else "soft",
        "name": origin.description,
        "derived": origin.derived,
        "statement": origin.text,
        "grace_period": origin.grace_period,
        "cgroup": one.statistics.group,
        "eviction_bytes": one.eviction,
        "notify_at_bytes": one.notify_at,
        "distance_bytes": one.distance,
        "capacity_bytes": counters.capacity if counters else None,
        "usage_bytes": counters.usage if counters else None,
        "inactive_file_bytes": counters.inactive_file if counters else None,
        "available_bytes": counters.available if counters else None,
        "registered": active and one.notify_at is not None,
        "reason": one.reason,
    }


def summary(assessment: Assessment) -> str:
    """One short line: `active: hard memory eviction threshold in 20981.1 MiB`."""
    if not assessment.supported:
        state = "set, but does nothing" if assessment.configured else "not set, and would do nothing"
        return f"{state}: {reason(assessment)[1]}"
    state = "active" if assessment.configured else "works here, but is not set"
    distances = [
        f"{one.origin.description} in {mebibytes(one.distance)}" for one in assessment.thresholds if one.distance
    ]
    return f"{state}: {', '.join(distances)}" if distances else state


def main() -> t.NoReturn:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    overrides = KubeletOverrides(
        config=module.params["kubelet_config"],
        config_dir=module.params["kubelet_config_dir"],
        root_dir=module.params["kubelet_root_dir"],
        version=module.params["kubelet_version"],
    )
    try:
        reading = read_notifier(HostRoot(module.params["host_root"]), overrides, module.params["candidate_config"])
    except NodeError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, msg=summary(reading.assessment), **present(reading))


if __name__ == "__main__":
    main()
