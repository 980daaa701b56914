#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Will this node's kubelet start its memory manager, and if not, why? See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memmgr_validate
short_description: Says whether a node's kubelet will start its memory manager
version_added: 0.1.0
description:
  - Judges the state file C(memory_manager_state) of a kubelet against the machine and the kubelet's configuration, as
    the kubelet itself does at its start, and as KEP-6232 does with a bounded drift of memory.
  - Everything that a verdict needs is read in one call. Nothing is written.
  - A refusal is a result, not a failure of the task; O(fail_on) makes it one.
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._attributes.read_only
  - kubenode.memory._node
options:
  fail_on:
    description:
      - Verdicts with which the task fails. None by default.
      - V(will_not_start) stands for every result in which RV(will_start=false), whatever the verdict.
    type: list
    elements: str
    choices: [match, tolerable, refuse, unreadable, absent, not_applicable, will_not_start]
    default: []
seealso:
  - module: kubenode.memory.kernel_image_bound
  - plugin: kubenode.memory.memmgr_evaluate
    plugin_type: filter
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Judge this node
  kubenode.memory.memmgr_validate:
  become: true
  register: memmgr

- name: Stop the play before a restart that is known to fail
  kubenode.memory.memmgr_validate:
    fail_on: [refuse, unreadable, will_not_start]
  become: true

- name: Judge with a fixed tolerance, whatever the node is set to
  kubenode.memory.memmgr_validate:
    tolerance: 128Mi
  become: true

- name: Would this change of the configuration stop the kubelet?
  kubenode.memory.memmgr_validate:
    candidate_config: |
      apiVersion: kubelet.config.k8s.io/v1beta1
      kind: KubeletConfiguration
      evictionHard:
        memory.available: 500Mi
  become: true

- name: Judge a captured tree
  kubenode.memory.memmgr_validate:
    host_root: /srv/captures/worker-17
    kubelet_version: v1.36.3
"""

RETURN = r"""
verdict:
  description:
    - V(match), the recorded state is this machine's.
    - V(tolerable), it differs by drift within the bound only, and every assignment still fits.
    - V(refuse), a real change, an assignment that does not fit, or a configuration that the kubelet rejects.
    - V(unreadable), the installed release cannot load the file.
    - V(absent), there is no file, and the kubelet writes a fresh one.
    - V(not_applicable), there is nothing to compare, such as with policy None.
  returned: always
  type: str
  sample: tolerable
will_start:
  description:
    - Whether the installed kubelet, with its configuration on disk, will start its memory manager.
    - Null where its answer depends on the random order in which it walks the assignments, or where there is no kubelet.
  returned: always
  type: bool
  sample: false
summary:
  description: One short line for people.
  returned: always
  type: str
  sample: "tolerable: node 0 -44.2 MiB, node 1 +44.2 MiB, bound 116.0 MiB"
findings:
  description: Every finding, in the order in which a start meets them.
  returned: always
  type: list
  elements: dict
  contains:
    code:
      description: Stable code of the finding.
      type: str
      returned: always
      sample: memory_drift
    severity:
      description: V(stops_start), V(warning) or V(info).
      type: str
      returned: always
      sample: stops_start
    message:
      description: A sentence with the next step.
      type: str
      returned: always
      sample: "NUMA node 0: memory changed by -44.2 MiB, within the bound of 116.0 MiB. Re-baseline the file."
    numa_node:
      description: The NUMA node.
      type: int
      returned: where it applies
      sample: 0
    resource:
      description: The resource.
      type: str
      returned: where it applies
      sample: memory
    pod_uid:
      description: UID of the pod.
      type: str
      returned: where it applies
      sample: 3bd07f8c-6d8c-4e57-a8a1-3f7e6b0e4a8e
    container:
      description: Name of the container.
      type: str
      returned: where it applies
      sample: app
    expected:
      description: What is recorded, or what the kubelet demands. Sizes are bytes.
      type: raw
      returned: where it applies
      sample: 2112430080
    found:
      description: What the machine or the configuration has.
      type: raw
      returned: where it applies
      sample: 2066071552
    kubelet_error:
      description: The kubelet's own text.
      type: str
      returned: where there is one
      sample: "[memorymanager] the expected machine state is different from the real one"
    hint:
      description: What the difference looks like, such as V(image_moved), V(pages_only) or V(memory_blocks).
      type: str
      returned: where the numbers allow it
      sample: image_moved
    field:
      description: The configuration's field.
      type: str
      returned: where it applies
      sample: reservedMemory
    path:
      description: The file.
      type: str
      returned: where it applies
      sample: /var/lib/kubelet/memory_manager_state
kubelet_error:
  description: The text with which the installed kubelet stops; null if it starts.
  returned: always
  type: str
  sample: "[memorymanager] the expected machine state is different from the real one"
kubelet_errors:
  description: Every text that it may stop with, where that depends on a random order.
  returned: always
  type: list
  elements: str
  sample: ["[memorymanager] the expected machine state is different from the real one"]
policy:
  description: The configured memory manager policy.
  returned: always
  type: str
  sample: Static
tolerance:
  description: The tolerance that RV(verdict) was judged with, and whether it is the argument, the guard's setting, the
    node's configuration or the default.
  returned: always
  type: dict
  sample: {"value": "auto", "source": "default"}
bound:
  description: The bound of that tolerance in bytes, where it comes from, and why there is none.
  returned: always
  type: dict
  sample: {"bytes": 121634816, "source": "kernel_image", "reason": null, "kernel_image_bytes": 54525952}
drift_bytes:
  description: Bytes that each NUMA node has more, or less, than is recorded.
  returned: always
  type: dict
  sample: {"0": -46358528, "1": 46350336}
drift_total_bytes:
  description: Sum over the nodes.
  returned: always
  type: int
  sample: -8192
fit_margins:
  description: How much each NUMA group can lose before an assignment no longer fits.
  returned: always
  type: list
  elements: dict
  sample: [{"numa_nodes": [0], "bytes": 1073741824}]
hints:
  description: What the drift looks like. Hints never change the verdict.
  returned: always
  type: list
  elements: str
  sample: ["the kernel image (44.2 MiB) moved from NUMA node 1 to NUMA node 0"]
state_file:
  description: The state file, its format and its content's hash.
  returned: always
  type: dict
  sample:
    path: /var/lib/kubelet/memory_manager_state
    exists: true
    format: V1
    policy: Static
    sha256: 0c0e0a2b0d3a1c8b5b7ee0c6c9a3d1b4a0a3c5c0a4c9e8a6f2f1d0b9c8a7f6e5
    size: 1043
numa_nodes:
  description: Each NUMA node of the machine with its memory in bytes and what is recorded of it.
  returned: always
  type: list
  elements: dict
  sample:
    - numa_node: 0
      memory: 2066071552
      hugepages: {}
      recorded: {}
      assignments: 0
      group: [0]
groups:
  description: The recorded groups of NUMA nodes.
  returned: always
  type: list
  elements: list
  sample: [[0], [1]]
assignments:
  description: Who is pinned where; C(pod) is null where the node's own files do not name the pod.
  returned: always
  type: list
  elements: dict
  sample:
    - pod_uid: 3bd07f8c-6d8c-4e57-a8a1-3f7e6b0e4a8e
      pod: default/db-0
      container: app
      numa_affinity: [0]
      resource: memory
      bytes: 268435456
kubelet:
  description: The kubelet that was found, and how well its release's rules are known.
  returned: always
  type: dict
  sample:
    version: 1.36.3
    rules: proven
    layout: kubeadm
    unit: kubelet.service
    config: /var/lib/kubelet/config.yaml
    config_dir: null
    root_dir: /var/lib/kubelet
    node_name: worker-17
    running: true
boot:
  description: Boot id, kernel release and architecture.
  returned: always
  type: dict
  sample: {"boot_id": "0b4b8dd4-5b4c-4a59-9d1f-9b0f5f4f7a11", "kernel": "6.1.0-57-amd64", "architecture": "x86_64"}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.memory.plugins.module_utils._answer import answer
from ansible_collections.kubenode.memory.plugins.module_utils._arguments import node_arguments, request_from
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

FAIL_ON = ("match", "tolerable", "refuse", "unreadable", "absent", "not_applicable", "will_not_start")


def is_failure(result: t.Mapping[str, t.Any], fail_on: t.Sequence[str]) -> bool:
    """Whether a result is one of those that fail the task."""
    return result["verdict"] in fail_on or ("will_not_start" in fail_on and result["will_start"] is False)


def main() -> t.NoReturn:
    arguments = node_arguments()
    arguments["fail_on"] = {"type": "list", "elements": "str", "choices": list(FAIL_ON), "default": []}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    try:
        result = answer(request_from(module.params))
    except (NodeError, InputError) as error:
        module.fail_json(msg=str(error))
    if is_failure(result, module.params["fail_on"]):
        module.fail_json(msg=result["summary"], **result)
    module.exit_json(changed=False, msg=result["summary"], **result)


if __name__ == "__main__":
    main()
