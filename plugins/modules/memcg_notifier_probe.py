#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does this kernel really send memory threshold events? See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memcg_notifier_probe
short_description: Makes the kernel send one real memory threshold event, and times it
version_added: 0.2.0
description:
  - Makes a scratch control group in the cgroup v1 memory hierarchy, registers an event as the kubelet does (an eventfd
    written to C(cgroup.event_control)), and lets a child process cross the threshold by a few MiB.
  - Reports whether the event came and how fast, against the 10 seconds for which the kubelet otherwise sleeps.
  - The group has a memory limit, so that nothing else can be touched, and is removed whatever happens, on signals too.
    An empty group that a SIGKILL left behind is removed by the next run.
  - Where there is nothing to probe, as on cgroup v2, it says why and does nothing.
extends_documentation_fragment:
  - kubenode.memory._attributes
attributes:
  check_mode:
    support: full
    details:
      - Does nothing in check mode but look whether there is something to probe.
  diff_mode:
    support: N/A
    details:
      - Everything that is made is removed again.
  idempotent:
    support: full
    details:
      - Never reports a change.
  platform:
    support: full
    platforms: linux
options:
  size_mib:
    description: How many MiB the child allocates, 2 to 64; it crosses the threshold half-way.
    type: int
    default: 8
  timeout:
    description: How many seconds to wait for the event, 1 to 60.
    type: int
    default: 10
seealso:
  - module: kubenode.memory.memcg_notifier_info
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Does this kernel send memory threshold events?
  kubenode.memory.memcg_notifier_probe:
  become: true
  register: probe

- name: Say how fast
  ansible.builtin.debug:
    msg: "{{ probe.latency_microseconds }} µs instead of up to {{ probe.poll_interval_seconds }} s"
  when: probe.fired

- name: Cross by less, and wait for less time
  kubenode.memory.memcg_notifier_probe:
    size_mib: 4
    timeout: 2
  become: true

- name: Stop where the event does not come
  kubenode.memory.memcg_notifier_probe:
  become: true
  register: probe
  failed_when: not ansible_check_mode and not probe.fired
"""

RETURN = r"""
probed:
  description: Whether an event was registered; not in check mode, and not where there is nothing to probe.
  returned: always
  type: bool
  sample: true
fired:
  description: Whether the event came within the time.
  returned: always
  type: bool
  sample: true
reason:
  description: V(cgroup_v2), V(no_memory_controller), V(no_event_control) or V(kernel_refused) where there was none.
  returned: always
  type: str
  sample: null
latency_microseconds:
  description: From before the child's first byte to the event, so an upper bound.
  returned: always
  type: int
  sample: 3824
threshold_bytes:
  description: The usage of the scratch group at which the event was due.
  returned: always
  type: int
  sample: 4456448
usage_bytes:
  description: Its usage when the event had come.
  returned: always
  type: int
  sample: 4980736
poll_interval_seconds:
  description: How long the kubelet sleeps without the notifier.
  returned: always
  type: int
  sample: 10
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.memory.plugins.module_utils._node.cgroup import read_cgroups
from ansible_collections.kubenode.memory.plugins.module_utils._node.memcg_probe import (
    MIB,
    Interrupted,
    ProbeFailed,
    ProbeResult,
    probe,
)
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.notifier import POLL_INTERVAL_SECONDS, obstacle

LIMITS = {"size_mib": (2, 64), "timeout": (1, 60)}


def problem(params: t.Mapping[str, t.Any]) -> t.Optional[str]:
    """What is wrong with the arguments."""
    for name, (low, high) in LIMITS.items():
        if not low <= params[name] <= high:
            return f"{name} is {params[name]}, it has to be {low} to {high}"
    return None


def present(result: t.Optional[ProbeResult], reason: t.Optional[str] = None) -> t.Dict[str, t.Any]:
    latency = result.latency if result else None
    return {
        "probed": result is not None,
        "fired": result is not None and result.fired,
        "reason": reason,
        "latency_microseconds": None if latency is None else int(latency * 1000000),
        "threshold_bytes": result.threshold if result else None,
        "usage_bytes": result.usage if result else None,
        "poll_interval_seconds": POLL_INTERVAL_SECONDS,
    }


def summary(result: ProbeResult) -> str:
    if result.latency is None:
        return "no event came: the kernel took the registration, but does not notify"
    return f"the event came after {int(result.latency * 1000000)} µs; polling takes up to {POLL_INTERVAL_SECONDS} s"


def main() -> t.NoReturn:
    arguments = {"size_mib": {"type": "int", "default": 8}, "timeout": {"type": "int", "default": 10}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    wrong = problem(module.params)
    if wrong:
        module.fail_json(msg=wrong)
    try:
        cgroups = read_cgroups(HostRoot())
        in_the_way = obstacle(cgroups)
        if in_the_way is not None and in_the_way.code != "preempt_rt":
            module.exit_json(changed=False, msg=in_the_way.message, **present(None, in_the_way.code))
        if module.check_mode:
            module.exit_json(changed=False, msg="check mode: nothing is probed", **present(None))
        result = probe(cgroups.memory_mount or "", module.params["size_mib"] * MIB, module.params["timeout"])
    except (NodeError, Interrupted) as error:
        module.fail_json(msg=str(error))
    except ProbeFailed as error:
        if not error.refused:
            module.fail_json(msg=str(error))
        module.exit_json(changed=False, msg=str(error), **present(None, "kernel_refused"))
    module.exit_json(changed=False, msg=summary(result), **present(result))


if __name__ == "__main__":
    main()
