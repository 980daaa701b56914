#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bound that KEP-6232 derives from the kernel image. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_image_bound
short_description: Derives the bound of memory drift from the running kernel's image
version_added: 0.1.0
description:
  - Reads the span of the kernel image from C(/proc/iomem), lowest start to highest end of the rows C(Kernel code),
    C(Kernel data) and C(Kernel bss), and adds the 64 MiB of KEP-6232.
  - Says why there is no bound where the rows are missing, as on ppc64le, or hidden from a reader without
    C(CAP_SYS_ADMIN).
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._attributes.read_only
options:
  host_root:
    description: Directory that stands for the node's root. Every path, links included, stays below it.
    type: path
    default: /
  required:
    description: Whether the task fails where no bound can be derived.
    type: bool
    default: false
seealso:
  - module: kubenode.memory.memmgr_validate
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: How far may this node's memory drift?
  kubenode.memory.kernel_image_bound:
  become: true
  register: kernel_image_bound

- name: Say it
  ansible.builtin.debug:
    msg: "memory-drift-tolerance auto stands for {{ kernel_image_bound.bound_bytes }} bytes here"

- name: Stop where the option would have to be a quantity
  kubenode.memory.kernel_image_bound:
    required: true
  become: true

- name: The bound of a captured boot
  kubenode.memory.kernel_image_bound:
    host_root: /srv/captures/worker-17
"""

RETURN = r"""
bound_bytes:
  description: The bound; null where there is none.
  returned: always
  type: int
  sample: 121634816
kernel_image_bytes:
  description: The span of the kernel image; null where it is not known.
  returned: always
  type: int
  sample: 54525952
grace_bytes:
  description: What KEP-6232 adds to the span.
  returned: always
  type: int
  sample: 67108864
rows:
  description: The rows of C(/proc/iomem) that count, addresses in hexadecimal.
  returned: always
  type: list
  elements: dict
  sample:
    - {"name": "Kernel code", "start": "aff800000", "end": "b00dfffff"}
unavailable:
  description: V(no_iomem), V(no_rows), V(hidden) or V(partly_hidden) where there is no bound.
  returned: always
  type: str
  sample: null
reason:
  description: The reason in a sentence with the next step.
  returned: always
  type: str
  sample: null
memory_block_size_bytes:
  description: Size of a memory block. A bound of at least this could hide a lost block.
  returned: always
  type: int
  sample: 134217728
kernel:
  description: Release of the kernel.
  returned: always
  type: str
  sample: 6.1.0-57-amd64
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.memory.plugins.module_utils._node.boot import read_boot_facts
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import HostRoot, NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.tolerance import ToleranceSetting, derive_bound
from ansible_collections.kubenode.memory.plugins.module_utils._present_bound import bound_sentence, present_bound


def main() -> t.NoReturn:
    arguments = {"host_root": {"type": "path", "default": "/"}, "required": {"type": "bool", "default": False}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    try:
        boot = read_boot_facts(HostRoot(module.params["host_root"]))
    except NodeError as error:
        module.fail_json(msg=str(error))
    bound = derive_bound(ToleranceSetting("auto"), boot.iomem.value, boot.iomem.reason)
    result = present_bound(boot, bound)
    if bound.kernel_image is None and (module.params["required"] or boot.iomem.denied):
        module.fail_json(msg=bound.reason or "no bound can be derived", **result)
    module.exit_json(changed=False, msg=bound_sentence(bound), **result)


if __name__ == "__main__":
    main()
