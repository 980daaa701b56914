# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judgement of memmgr_validate on the controller, over data from any source. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: memmgr_evaluate
short_description: Judges a kubelet's memory manager state from plain data
version_added: 0.1.0
description:
  - Gives the same answer as M(kubenode.memory.memmgr_validate), over a mapping instead of a node.
positional: kubelet_version, tolerance
options:
  _input:
    description:
      - A mapping with the keys below. Sizes are bytes, quantities are text.
      - "C(machine): C(nodes), a list of C(id), C(memory) and C(hugepages) (a list of C(page_size_kb), C(num_pages))."
      - "C(policy): V(Static) or V(None)."
      - "C(reserved_memory): a list of C(numa_node) and C(limits) (resource to quantity)."
      - "C(node_allocatable_reservation): resource to quantity, the sum of kubeReserved, systemReserved and the hard
        eviction threshold."
      - "C(file_text): content of the state file, or null for no file; C(file_base64) where it is not text."
      - "C(pod_level_resource_managers_gate): whether the feature gate PodLevelResourceManagers is on."
      - "C(iomem_text): content of C(/proc/iomem), needed for the tolerance V(auto)."
      - "C(memory_block_size_bytes): size of a memory block."
    type: dict
    required: true
  kubelet_version:
    description: The kubelet's version, such as V(v1.36.3). Without it a file counts as readable only if every release
      reads it.
    type: str
    default: ""
  tolerance:
    description: V(auto), V(off) or a quantity, as C(memory-drift-tolerance) takes it.
    type: str
    default: auto
author:
  - The kubenode.memory authors (@kubenode)
seealso:
  - module: kubenode.memory.memmgr_validate
"""

EXAMPLES = r"""
- name: Judge a state file that was collected long ago
  ansible.builtin.debug:
    msg: "{{ (collected | kubenode.memory.memmgr_evaluate('v1.36.3', '128Mi')).verdict }}"
  vars:
    collected:
      policy: Static
      machine:
        nodes:
          - {id: 0, memory: 8589934592, hugepages: []}
      reserved_memory:
        - {numa_node: 0, limits: {memory: 1Gi}}
      node_allocatable_reservation: {memory: 1Gi}
      file_text: "{{ lookup('ansible.builtin.file', 'memory_manager_state') }}"

- name: Which of these nodes would refuse with half the tolerance?
  ansible.builtin.debug:
    msg: "{{ item.name }}"
  loop: "{{ fleet }}"
  when: (item | kubenode.memory.memmgr_evaluate('v1.36.3', '64Mi')).verdict == 'refuse'

- name: What would the file hold after a re-baseline?
  ansible.builtin.debug:
    msg: "{{ (collected | kubenode.memory.memmgr_evaluate('v1.37.2', 'auto')).machine_state_after }}"

- name: The kubelet's own words
  ansible.builtin.debug:
    msg: "{{ (collected | kubenode.memory.memmgr_evaluate('v1.37.2', 'off')).kubelet_error }}"
"""

RETURN = r"""
_value:
  description:
    - What M(kubenode.memory.memmgr_validate) returns, without what it says of the kubelet and of the boot.
    - C(machine_state_after) is added, the machine state that is in force after a good start or a re-baseline, in the
      form of the state file, else null.
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError


def memmgr_evaluate(
    data: t.Mapping[str, t.Any], kubelet_version: str = "", tolerance: str = "auto"
) -> t.Dict[str, t.Any]:
    # Here, since Ansible loads all filters of a collection for any of them, in a new process for each host and task.
    from ansible_collections.kubenode.memory.plugins.module_utils._mapping import evaluate_mapping
    from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

    try:
        return evaluate_mapping(data, kubelet_version, tolerance)
    except InputError as error:
        raise AnsibleFilterError(f"memmgr_evaluate: {error}") from error


class FilterModule:
    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"memmgr_evaluate": memmgr_evaluate}
