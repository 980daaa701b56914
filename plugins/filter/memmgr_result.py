# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of an answer of memmgr_validate. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: memmgr_result
short_description: What is kept of an answer of memmgr_validate
version_added: 0.1.0
description:
  - Makes a result for M(kubenode.memory.memmgr_record) of what a task with M(kubenode.memory.memmgr_validate)
    registered, also where that failed, or where the host could not be reached.
  - Leaves out memory maps and the list of assignments, for the sake of controllers with many hosts.
options:
  _input:
    description: What the task registered. An empty mapping stands for a host on which it did not run.
    type: dict
    required: true
author:
  - The kubenode.memory authors (@kubenode)
seealso:
  - module: kubenode.memory.memmgr_validate
  - module: kubenode.memory.memmgr_record
"""

EXAMPLES = r"""
- name: Judge a captured tree
  kubenode.memory.memmgr_validate:
    host_root: /srv/captures/worker-17
  register: memmgr
  ignore_errors: true

- name: Keep the result, whatever came of it
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/captures
    result: "{{ memmgr | kubenode.memory.memmgr_result }}"

- name: One line for people, also of a host that could not be reached
  ansible.builtin.debug:
    msg: "{{ (memmgr | kubenode.memory.memmgr_result).summary }}"

- name: Keep the results of all hosts in one task
  kubenode.memory.memmgr_record:
    run_dir: memmgr-reports/before-the-upgrade
    results: "{{ dict(ansible_play_hosts | zip(answers | map('kubenode.memory.memmgr_result'))) }}"
  vars:
    answers: "{{ ansible_play_hosts | map('extract', hostvars) | map(attribute='memmgr', default={}) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - C(status), which is V(judged), V(unreachable) or V(failed), and C(step), which is V(validate).
    - With V(judged) what M(kubenode.memory.memmgr_validate) returns of verdict, findings, bound, drift, kubelet and
      boot.
    - Else C(verdict) and C(will_start) are null, and C(summary) says why on one line.
  type: dict
"""

import typing as t

Json = t.Dict[str, t.Any]

KEPT = (
    "verdict",
    "will_start",
    "summary",
    "findings",
    "kubelet_error",
    "policy",
    "tolerance",
    "bound",
    "drift_bytes",
    "drift_total_bytes",
    "fit_margins",
    "hints",
    "state_file",
    "kubelet",
    "boot",
)


def memmgr_result(answer: t.Mapping[str, t.Any]) -> Json:
    if "verdict" in answer:
        return {**{key: answer[key] for key in KEPT if key in answer}, "step": "validate", "status": "judged"}
    status = "unreachable" if answer.get("unreachable") else "failed"
    why = " ".join(str(answer.get("msg") or "no answer").split())
    summary = f"{status}: {why}"
    return {"verdict": None, "will_start": None, "summary": summary, "step": "validate", "status": status}


class FilterModule:
    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"memmgr_result": memmgr_result}
