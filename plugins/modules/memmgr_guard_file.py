#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin memmgr_guard_file, which makes the file on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memmgr_guard_file
short_description: Puts the executable of the guard on a node
version_added: 0.1.0
description:
  - Makes the guard on the controller, of the collection's own code, and copies it to the node. It is one file, a Python
    zip application, which needs nothing else but that Python, and PyYAML where the kubelet's configuration is YAML.
  - The same release of the collection and the same O(interpreter) give the same file, byte for byte. So the task
    changes nothing on a node that has it already.
  - The file alone does nothing. Role P(kubenode.memory.memmgr_guard#role) installs it, its settings and the drop-in of
    the kubelet's unit.
extends_documentation_fragment:
  - kubenode.memory._attributes
options:
  dest:
    description: Path of the executable on the node. Its directory has to be there.
    type: path
    default: /usr/local/sbin/kubenode-memory-guard
  interpreter:
    description:
      - Absolute path of the Python on the node that runs the guard, 3.8 to 3.13, of at most 121 characters and without
        blanks, because it stands in the file's first line.
      - It outlives the play, so it should be the distribution's and not one of a virtual environment.
    type: str
    required: true
  owner:
    description: Owner of the executable.
    type: str
    default: root
  group:
    description: Group of the executable.
    type: str
    default: root
  mode:
    description: Mode of the executable.
    type: raw
    default: "0755"
  backup:
    description: Keep the previous file beside the new one, with a time stamp.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - A binary file is not shown; the difference is that of owner, group and mode, and whether the content differs.
  idempotent:
    support: full
  platform:
    support: full
    platforms: linux
  action:
    description: Has an action plugin, which makes the file on the controller.
    support: full
seealso:
  - module: ansible.builtin.copy
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Put the guard on the node
  kubenode.memory.memmgr_guard_file:
    interpreter: /usr/bin/python3

- name: Use the Python that Ansible has found
  kubenode.memory.memmgr_guard_file:
    interpreter: "{{ ansible_facts['python']['executable'] }}"

- name: Show whether the file would change
  kubenode.memory.memmgr_guard_file:
    interpreter: /usr/libexec/platform-python
  check_mode: true
  diff: true

- name: Put the guard into an image that is mounted below /mnt
  kubenode.memory.memmgr_guard_file:
    dest: /mnt/usr/local/sbin/kubenode-memory-guard
    interpreter: /usr/bin/python3
"""

RETURN = r"""
dest:
  description: Path of the executable.
  returned: always
  type: str
  sample: /usr/local/sbin/kubenode-memory-guard
checksum:
  description: SHA-1 of the file.
  returned: always
  type: str
  sample: c112ea0ba6bec7811f41fe53bd3ff4b07b384f2b
"""
