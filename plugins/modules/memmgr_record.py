#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin memmgr_record, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memmgr_record
short_description: Writes on the controller what became of a host
version_added: 0.1.0
description:
  - Appends one line of JSON to the host's own file below the directory of a run, C(hosts/HOST.jsonl), so that a run
    that is killed leaves the results that it had, and forks never share a file.
  - Runs on the controller, in Ansible's own process, whatever the host's connection. Nothing is sent to the host, so
    that an unreachable one is recorded like any other.
extends_documentation_fragment:
  - kubenode.memory._attributes
options:
  run_dir:
    description: Directory of the run on the controller. It is created.
    type: path
    required: true
  result:
    description:
      - What became of the host, such as C(memmgr_validate_result). It has C(verdict), or C(status) (V(failed) or
        V(unreachable)) where there is none.
      - C(host) and C(time) are added.
    type: dict
  results:
    description: The results of several hosts, by their names, so that one task is enough for all of them.
    type: dict
  pending:
    description:
      - Hosts of O(results) of which this is not the last word, since work is still to be done on them. They are
        recorded without their verdict, as not started, which holds if the run ends before that work.
    type: list
    elements: str
    default: []
    version_added: 0.2.0
  hosts:
    description:
      - The hosts that the run is to reach, noted once in C(run.json). By it M(kubenode.memory.memmgr_report) knows the
        hosts that were never started.
    type: list
    elements: str
attributes:
  check_mode:
    support: full
    details:
      - The record of a run is written in check mode too; it says what the run found.
  diff_mode:
    support: N/A
    details:
      - Only adds lines.
  idempotent:
    support: none
    details:
      - Each call adds a line.
  platform:
    support: full
    platforms: all
  action:
    description: Has an action plugin, which runs on the controller.
    support: full
seealso:
  - module: kubenode.memory.memmgr_report
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Note which hosts this run is to reach
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true

- name: Keep the result of this host
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    result: "{{ memmgr_validate_result }}"

- name: Keep the results of all hosts in one task
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    results: "{{ dict(ansible_play_hosts | zip(found)) }}"
  vars:
    found: "{{ ansible_play_hosts | map('extract', hostvars, 'memmgr_validate_result') }}"
  run_once: true

- name: Keep what a step of my own found
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    result: "{{ memmgr_validate_result | combine({'step': 'after the firmware update'}) }}"

- name: Record a host that was left out on purpose
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    result:
      status: failed
      summary: in maintenance until Friday
"""

RETURN = r"""
run_dir:
  description: Directory of the run.
  returned: always
  type: str
  sample: /home/ops/memmgr-reports/before-the-upgrade
path:
  description: File of the host.
  returned: with O(result)
  type: str
  sample: /home/ops/memmgr-reports/before-the-upgrade/hosts/ran-muc-01.jsonl
summaries:
  description: C(summary) of each host.
  returned: with O(results)
  type: dict
  sample: {"ran-muc-01": "match", "ran-muc-02": "tolerable: node 1 +8 KiB, bound 116.0 MiB"}
"""
