#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin kubelet_memory_config_info, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_memory_config_info
short_description: Says with which memory settings a kubelet runs
version_added: 0.2.0
description:
  - Reads the configuration of the running kubelet, not the one on disk, and compares it with what is expected.
  - Asks the API for the kubelet's C(configz) where O(api) is given. Else, or where the API does not answer, it reads
    the configuration that kubelets since 1.37 log at their start from the node's journal.
  - A kubelet before 1.37 without an API says nothing. RV(in_force) is then null.
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._attributes.read_only
requirements:
  - The Python library kubernetes on the controller, where O(api) is given
options:
  unit:
    description: The systemd unit that runs the kubelet.
    type: str
    default: kubelet.service
  node_name:
    description: Name of the Node object. By default C(--hostname-override), else the host name in lower case.
    type: str
    default: ""
  api:
    description:
      - How the controller reaches the API, as arguments of M(kubernetes.core.k8s_info) such as C(kubeconfig),
        C(context), C(host), C(api_key), C(ca_cert) and C(validate_certs). It takes the right to C(get) C(nodes/proxy).
      - Empty means that the API is not asked.
    type: dict
    default: {}
  expected:
    description:
      - The settings that are expected, each with C(field), such as V(evictionHard.memory.available), and C(value). An
        entry without C(value) is expected not to be set. RV(kubenode.memory.kubelet_memory_config#module:in_force)
        has this form.
    type: list
    elements: dict
    default: []
attributes:
  action:
    description: Has an action plugin, which runs on the controller.
    support: full
seealso:
  - module: kubenode.memory.kubelet_memory_config
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: See what the kubelet runs with, by its own log
  kubenode.memory.kubelet_memory_config_info:
  become: true

- name: See what a kubelet before 1.37 runs with
  kubenode.memory.kubelet_memory_config_info:
    api:
      kubeconfig: ~/.kube/config
  become: true

- name: See whether a setting is in force
  kubenode.memory.kubelet_memory_config_info:
    unit: k3s-agent.service
    expected:
      - field: evictionHard.memory.available
        value: 500Mi
      - field: featureGates.MemoryManagerDriftTolerance
  become: true
  register: seen
  failed_when: seen.in_force is false

- name: Compare with what was written
  kubenode.memory.kubelet_memory_config_info:
    api: "{{ memmgr_api }}"
    node_name: worker-1.example.com
    expected: "{{ written.in_force }}"
  become: true
"""

RETURN = r"""
source:
  description: Who says so, V(configz) or V(log). Null for nobody.
  returned: always
  type: str
  sample: log
node_name:
  description: The name that the API was, or would be, asked for.
  returned: always
  type: str
  sample: worker-1
settings:
  description: The memory settings of the running kubelet, as fields of KubeletConfiguration.
  returned: always
  type: dict
  sample: {"memoryManagerPolicy": "Static", "kernelMemcgNotification": true}
differs:
  description: The settings that are not as expected. A C(found) of null means that it is not set.
  returned: always
  type: list
  elements: dict
  sample:
    - field: evictionHard.memory.available
      expected: 500Mi
      found: 100Mi
in_force:
  description: Whether the kubelet runs with everything that is expected. Null where nobody says with what it runs.
  returned: always
  type: bool
  sample: true
notes:
  description: Why a source was not used.
  returned: always
  type: list
  elements: str
  sample: []
"""
