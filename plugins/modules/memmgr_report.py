#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin memmgr_report, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memmgr_report
short_description: Makes table, limit files and query of the results of runs
version_added: 0.1.0
description:
  - Reads what M(kubenode.memory.memmgr_record) wrote in one run or several, such as those of slices of a fleet. Of each
    host the newest result counts.
  - Runs on the controller, in Ansible's own process.
extends_documentation_fragment:
  - kubenode.memory._attributes
options:
  runs:
    description: Directories of the runs on the controller.
    type: list
    elements: path
    required: true
  dest:
    description:
      - Directory on the controller for C(table.txt), C(results.jsonl) and, where they name a host, C(failed.limit) and
        C(selected.limit).
      - By default the directory of the run if there is one run only; with several runs nothing is written by default.
      - A limit file without a host is removed, since Ansible takes an empty one for every host.
    type: path
  query:
    description:
      - A JMESPath expression over the list of results. Needs the Python library jmespath on the controller.
    type: str
  bad_verdicts:
    description: Verdicts that put a host into C(failed.limit). Hosts without a verdict are always in it.
    type: list
    elements: str
    choices: [match, tolerable, refuse, unreadable, absent, not_applicable]
    default: [refuse, unreadable]
attributes:
  check_mode:
    support: full
    details:
      - The report of a run is written in check mode too; it says what the run found.
  diff_mode:
    support: none
  idempotent:
    support: full
  platform:
    support: full
    platforms: all
  action:
    description: Has an action plugin, which runs on the controller.
    support: full
requirements:
  - jmespath (on the controller, for O(query) only)
seealso:
  - module: kubenode.memory.memmgr_record
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Report one run
  kubenode.memory.memmgr_report:
    runs: [memmgr-reports/20261129T173512-482913]
  register: report

- name: Report the slices of a fleet together
  kubenode.memory.memmgr_report:
    runs: [slice-1, slice-2, slice-3]
    dest: memmgr-reports/fleet

- name: Which nodes would come back by themselves once they are re-baselined?
  kubenode.memory.memmgr_report:
    runs: [memmgr-reports/20261129T173512-482913]
    query: "[?verdict == 'tolerable' && !will_start]"

- name: Put the nodes that need a re-baseline into failed.limit too
  kubenode.memory.memmgr_report:
    runs: [memmgr-reports/20261129T173512-482913]
    bad_verdicts: [refuse, unreadable, tolerable]
"""

RETURN = r"""
table:
  description: The table, line by line, the worst hosts first, and the counts below it.
  returned: always
  type: list
  elements: str
  sample:
    - "HOST        VERDICT    STARTS  KUBELET  WHAT"
    - "ran-muc-03  refuse     no      1.34.4   memory_changed, node 1 -504.0 MiB, bound 116.0 MiB [memory blocks]"
    - "ran-muc-02  tolerable  no      1.35.3   node 1 +8 KiB, bound 116.0 MiB [pages only]"
    - "ran-muc-01  match      yes     1.34.4"
    - ""
    - "3 hosts = 1 refuse + 1 tolerable + 1 match; 2 kubelets will not start"
counts:
  description: How many hosts have each outcome.
  returned: always
  type: dict
  sample: {"refuse": 1, "tolerable": 1, "match": 1}
hosts:
  description: All hosts of the runs, the worst first.
  returned: always
  type: list
  elements: str
  sample: [ran-muc-03, ran-muc-02, ran-muc-01]
failed_hosts:
  description: Hosts with a bad verdict, unreachable ones, and those that failed or were never started.
  returned: always
  type: list
  elements: str
  sample: [ran-muc-03]
dest:
  description: Directory that was written to; null if none was.
  returned: always
  type: str
  sample: /home/ops/memmgr-reports/20261129T173512-482913
query_result:
  description: What the query gave.
  returned: with O(query)
  type: raw
  sample: [ran-muc-02]
query_table:
  description: The same as lines for people, a table if the query selects whole results.
  returned: with O(query)
  type: list
  elements: str
  sample: [ran-muc-02]
selected_hosts:
  description: The hosts that the query selected.
  returned: with O(query)
  type: list
  elements: str
  sample: [ran-muc-02]
"""
