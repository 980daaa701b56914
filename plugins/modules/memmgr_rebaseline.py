#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rewrite the kubelet's memory manager state for a drift within the bound. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: memmgr_rebaseline
short_description: Adapts a kubelet's memory manager state to a harmless drift of memory
version_added: 0.2.0
description:
  - Judges a node as M(kubenode.memory.memmgr_validate) does. Where the verdict is V(tolerable), the kubelet would not
    start with the state file C(memory_manager_state) as it is, and would with the new one, the file is rewritten as
    the kubelet of KEP-6232 would write it. Every assignment of a pod is kept.
  - In every other case nothing is changed, and RV(reason) says why.
  - The file keeps its format. It is replaced in one step; a run that is killed leaves the old or the new file, whole.
    A backup is made first, and a line is added to the node's history, both below C(/var/lib/kubenode-memory).
  - Nothing is written while a kubelet may use the file, and no option overrides that. The task fails with
    RV(reason=kubelet_in_use); stop the kubelet's unit first. In check mode a running kubelet is a warning.
notes:
  - A unit of the kubelet that is active, activating, reloading or deactivating counts as use, and so does a live
    process named kubelet, kubelite, k3s or rke2 that may have the file's directory as its root directory.
  - Between the last look at the node and the rename a kubelet can still be started. A kubelet that compares exactly
    then refuses the old file and writes nothing.
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._node
attributes:
  check_mode:
    support: full
    details:
      - RV(new_state_file) is what would be written. No lock is taken and nothing is created.
  diff_mode:
    support: full
    details:
      - Shows total, allocatable, reserved and free memory of each NUMA node.
  idempotent:
    support: full
  platform:
    support: full
    platforms: linux
options:
  action:
    description:
      - V(rebaseline) adapts the state file to the machine.
      - V(restore) puts the file O(backup) back, if the kubelet starts with it or, where memory has drifted since, with
        it re-baselined. It is refused if a container with an assignment today has none in the backup.
    type: str
    choices: [rebaseline, restore]
    default: rebaseline
  backup:
    description: What to restore, a name in C(/var/lib/kubenode-memory/backups) or an absolute path.
    type: str
  kubelet_is_stopped:
    description:
      - Says that no kubelet uses the files below O(host_root), where the node's C(/proc) is not to be seen there.
      - Counts for another O(host_root) than V(/) only, and not against a kubelet that is seen.
      - With O(host_root) V(/) it counts in check mode only. There it means that the kubelet will have been stopped, so
        that one that runs is no reason for a warning.
    type: bool
    default: false
  max_cumulative_drift:
    description:
      - Refuse to re-baseline where a NUMA node is further than this from the first baseline of its epoch, such as
        V(256Mi). Without it that is a warning, given from the bound on.
    type: str
  keep_backups:
    description: Number of backups that are kept.
    type: int
    default: 10
  lock_timeout:
    description: Seconds to wait for another run on the same node.
    type: int
    default: 10
  fail_on:
    description:
      - Verdicts with which the task fails. None by default.
      - V(will_not_start) stands for every result with which the kubelet does not start after this task.
    type: list
    elements: str
    choices: [match, tolerable, refuse, unreadable, absent, not_applicable, will_not_start]
    default: []
seealso:
  - module: kubenode.memory.memmgr_validate
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Say what would be written, without stopping anything
  kubenode.memory.memmgr_rebaseline:
  become: true
  check_mode: true
  diff: true
  register: prediction

- name: Bring a node back whose memory drifted
  become: true
  block:
    - name: Stop the kubelet
      ansible.builtin.systemd_service:
        name: kubelet
        state: stopped

    - name: Re-baseline
      kubenode.memory.memmgr_rebaseline:

  always:
    - name: Start the kubelet
      ansible.builtin.systemd_service:
        name: kubelet
        state: started

- name: Re-baseline, but not for a node that loses memory boot by boot
  kubenode.memory.memmgr_rebaseline:
    max_cumulative_drift: 256Mi
    fail_on: [refuse, unreadable, will_not_start]
  become: true

- name: Put a backup back
  kubenode.memory.memmgr_rebaseline:
    action: restore
    backup: memory_manager_state.20260131T235959.000000Z.0b4b8dd4-5b4c-4a59-9d1f-9b0f5f4f7a11
  become: true

- name: Re-baseline the file of a node that is mounted here
  kubenode.memory.memmgr_rebaseline:
    host_root: /mnt/node
    kubelet_version: v1.36.3
    kubelet_is_stopped: true
  become: true
"""

RETURN = r"""
reason:
  description:
    - V(rebaselined) or V(restored), in check mode what would be.
    - Nothing was to be written because of the verdict (V(match), V(refuse), V(unreadable), V(absent),
      V(not_applicable)), because the kubelet tolerates the drift itself (V(kubelet_tolerates)), because the drift of
      many boots adds up (V(cumulative_drift)), because the parts of the file contradict each other (V(halves_differ))
      or because the kubelet would not start with the new file either (V(would_not_help)).
    - A backup was not restored because today's pods are not in it (V(pods_missing)), because it is there already
      (V(same_content)), because it has nothing that the present file lacks (V(not_needed)), or because of its own
      verdict (such as V(backup_refuse)).
    - The task failed and the file is as it was because a kubelet uses it (V(kubelet_in_use)) or may use it
      (V(kubelet_unproven)), because another run did not end (V(busy)), because the node changed meanwhile
      (V(changed_meanwhile)), because of a link, owner or mode (V(unsafe_path)) or of an error (V(write_failed)).
  returned: always
  type: str
  sample: rebaselined
msg:
  description: The same as a sentence with the next step.
  returned: always
  type: str
  sample: >-
    /var/lib/kubelet/memory_manager_state is re-baselined to the memory that the machine has now; every assignment is
    kept.
new_state_file:
  description:
    - What was written or, in check mode, would be. C(machine_state) has the form of the state file.
    - Null where nothing is.
  returned: always
  type: dict
  sample:
    format: V1
    sha256: 6b947908d8d4832aedfb65ebe39a8e87d5c0b2046a4fa39e33db384f1534889e
    size: 974
    verdict: match
    will_start: true
    machine_state:
      "0":
        numberOfAssignments: 1
        memoryMap:
          memory: {total: 2112430080, systemReserved: 262144000, allocatable: 1850286080, reserved: 805306368,
            free: 1044979712}
        cells: [0]
backup:
  description: The copy of the old file; null where none was made.
  returned: always
  type: dict
  sample:
    id: memory_manager_state.20261129T175730.111243Z.67ba808c-a585-456b-9b22-a90a18a1a2b8
    path: >-
      /var/lib/kubenode-memory/backups/memory_manager_state.20261129T175730.111243Z.67ba808c-a585-456b-9b22-a90a18a1a2b8
epoch:
  description:
    - What the node's history knows of the file that is there now, and how far the machine is from the epoch's first
      baseline.
    - Null where the history does not know the file.
  returned: always
  type: dict
  sample:
    number: 1
    records: 2
    first_boot_id: 67ba808c-a585-456b-9b22-a90a18a1a2b8
    first_baseline_bytes: {"0": 2112430080, "1": 1996984320}
    distance_bytes: {"0": 0, "1": 8192}
verdict:
  description:
    - The verdict on the file that was found.
    - This and everything else is as M(kubenode.memory.memmgr_validate) returns it.
  returned: always
  type: str
  sample: tolerable
will_start:
  description: Whether the kubelet would have started with the file that was found.
  returned: always
  type: bool
  sample: false
summary:
  description: One short line about the file that was found.
  returned: always
  type: str
  sample: "tolerable: node 1 +8 KiB, bound 116.0 MiB"
findings:
  description: Every finding about the file that was found; C(cumulative_drift) is one of them.
  returned: always
  type: list
  elements: dict
  sample:
    - code: memory_drift
      severity: stops_start
      numa_node: 1
      resource: memory
      expected: 1996984320
      found: 1996992512
      hint: pages_only
      kubelet_error: "[memorymanager] the expected machine state is different from the real one"
      message: >-
        NUMA node 1: memory changed by +8 KiB, within the bound of 116.0 MiB (a few pages, as between any two boots).
        Re-baseline the file with memmgr_rebaseline.
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.memory.plugins.module_utils._arguments import node_arguments, request_from
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._present_outcome import present_diff, present_outcome
from ansible_collections.kubenode.memory.plugins.module_utils._rebaseline import Plan, parse_limit, run
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

FAIL_ON = ["match", "tolerable", "refuse", "unreadable", "absent", "not_applicable", "will_not_start"]


def arguments() -> t.Dict[str, t.Dict[str, t.Any]]:
    return {
        **node_arguments(),
        "action": {"type": "str", "choices": ["rebaseline", "restore"], "default": "rebaseline"},
        "backup": {"type": "str"},
        "kubelet_is_stopped": {"type": "bool", "default": False},
        "max_cumulative_drift": {"type": "str"},
        "keep_backups": {"type": "int", "default": 10},
        "lock_timeout": {"type": "int", "default": 10},
        "fail_on": {"type": "list", "elements": "str", "choices": FAIL_ON, "default": []},
    }


def plan_from(params: t.Mapping[str, t.Any], check: bool) -> Plan:
    """:raises InputError: for a value that cannot be used"""
    if params["keep_backups"] < 1:
        raise InputError(f"keep_backups is {params['keep_backups']}; at least one backup is kept.")
    return Plan(
        action=params["action"],
        backup=params["backup"] or "",
        check=check,
        kubelet_is_stopped=params["kubelet_is_stopped"],
        max_cumulative_drift=parse_limit(params["max_cumulative_drift"]),
        patience=params["lock_timeout"],
        keep_backups=params["keep_backups"],
    )


def is_failure(result: t.Mapping[str, t.Any], fail_on: t.Sequence[str]) -> bool:
    """Whether a result is one of those that fail the task; after a write it is the new file that counts."""
    verdict = {"verdict": result["verdict"], "will_start": result["will_start"], **(result["new_state_file"] or {})}
    return verdict["verdict"] in fail_on or ("will_not_start" in fail_on and verdict["will_start"] is False)


def main() -> t.NoReturn:
    module = AnsibleModule(
        argument_spec=arguments(), supports_check_mode=True, required_if=[("action", "restore", ["backup"])]
    )
    try:
        outcome = run(request_from(module.params), plan_from(module.params, module.check_mode))
    except (NodeError, InputError) as error:
        module.fail_json(msg=str(error))
    result = present_outcome(outcome)
    for text in outcome.warnings:
        module.warn(text)
    if module._diff:
        result["diff"] = present_diff(outcome)
    if outcome.failed or is_failure(result, module.params["fail_on"]):
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
