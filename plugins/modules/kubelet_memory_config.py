#!/usr/bin/python
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets a kubelet's memory settings where they stay. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_memory_config
short_description: Sets the memory settings of a kubelet
version_added: 0.1.0
description:
  - Sets memory manager and eviction settings of a node's kubelet, in the file from which that kubelet takes them.
  - A file is edited in place. Comments, order, anchors, quotes, line ends and every other key stay as they are, as do
    the file's mode and owner. JSON stays JSON.
  - The node is judged as it would be after the change. What would stop the kubelet, or what it would silently ignore,
    is refused with the kubelet's own words, and nothing is written. There is no way around that.
  - Maps are merged into those that are there. O(reserved_memory) is a list and is written whole.
  - Where the disk signals of C(evictionHard) are in force by default only, an edit of that map writes them too, since a
    map that names one signal switches the defaults of the others off.
  - What stood there before is kept in C(/var/lib/kubenode-memory) and given back with O(state=absent).
  - The kubelet is not restarted. The role P(kubenode.memory.memmgr_drift_tolerance#role) does that, gated.
extends_documentation_fragment:
  - kubenode.memory._attributes
  - kubenode.memory._node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  platform:
    support: full
    platforms: linux
requirements:
  - ruamel.yaml on the controller, for a file that is YAML
  - PyYAML on the node, for a file that is YAML
options:
  state:
    description:
      - V(present) sets the values that are given.
      - V(absent) gives back what this module changed in that file, or the part of it that O(fields) names. A value
        that somebody else has changed since stays.
    type: str
    choices: [present, absent]
    default: present
  fields:
    description:
      - With O(state=absent), the settings to be given back, such as V(memoryManagerPolicyOptions) or
        V(featureGates.MemoryManagerDriftTolerance). All of them by default.
    type: list
    elements: str
    default: []
  memory_manager_policy:
    description: C(memoryManagerPolicy).
    type: str
    choices: [None, Static]
  memory_manager_policy_options:
    description: Keys of C(memoryManagerPolicyOptions). Refused for kubelets that do not know the field.
    type: dict
  reserved_memory:
    description: C(reservedMemory), as in the kubelet's configuration, C(numaNode) and C(limits).
    type: list
    elements: dict
  reserved_memory_from:
    description:
      - V(kubelet) computes C(reservedMemory), C(kubeReserved) + C(systemReserved) + C(evictionHard) of
        C(memory.available), to the byte.
    type: str
    choices: [kubelet]
  reserved_memory_rule:
    description:
      - How O(reserved_memory_from) places the sum on the NUMA nodes. In equal shares, by their memory without huge
        pages, or on O(reserved_memory_node).
      - Shares by size that add up already stay as long as each is within 1/64 of the sum, since the sizes drift.
    type: str
    choices: [even, by_size, one_node]
    default: even
  reserved_memory_node:
    description: The NUMA node of O(reserved_memory_rule=one_node). By default the first.
    type: int
  feature_gates:
    description: Keys of C(featureGates). A gate that the kubelet does not know would stop it, and is refused.
    type: dict
  kernel_memcg_notification:
    description: C(kernelMemcgNotification).
    type: bool
  eviction_hard:
    description: Keys of C(evictionHard).
    type: dict
  eviction_soft:
    description: Keys of C(evictionSoft).
    type: dict
  eviction_soft_grace_period:
    description: Keys of C(evictionSoftGracePeriod).
    type: dict
  merge_default_eviction_settings:
    description: C(mergeDefaultEvictionSettings). The kubelet looks at it in its main file only.
    type: bool
  place:
    description:
      - Where to write. V(auto) is a file of ours in the drop-in directory (C(--config-dir)) where the kubelet has one,
        C(kubelet-arg+) for k3s and RKE2 before 1.32, and else the kubelet's C(--config), edited in place.
    type: str
    choices: [auto, drop_in, in_place, kubelet_arg]
    default: auto
  drop_in_name:
    description: File name of the drop-in. A later file overrides it, which is reported.
    type: str
    default: 50-kubenode-memory.conf
  kubeadm_patches:
    description:
      - Directory for a kubeadm patch with the same settings, where kubeadm's C(--config) is edited in place. An upgrade
        rewrites that file, and keeps the settings only with C(--patches) and this directory.
      - Empty for no patch.
    type: str
    default: /etc/kubernetes/patches
  accept_reset:
    description:
      - Write although the present state file would no longer fit, as with another reservation or policy. The kubelet
        then starts only after the entry point C(reset) of the role P(kubenode.memory.memmgr_rebaseline#role).
    type: bool
    default: false
  _edited:
    description: What the action plugin edited on the controller. It is not for users.
    type: dict
seealso:
  - module: kubenode.memory.memmgr_validate
  - module: kubenode.memory.memmgr_rebaseline
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Tolerate a bounded drift, on a kubelet that knows the gate
  kubenode.memory.kubelet_memory_config:
    feature_gates:
      MemoryManagerDriftTolerance: true
    memory_manager_policy_options:
      memory-drift-tolerance: auto
  become: true

- name: Raise the hard eviction threshold and make the reservation add up again
  kubenode.memory.kubelet_memory_config:
    eviction_hard:
      memory.available: 500Mi
    reserved_memory_from: kubelet
    reserved_memory_rule: even
  become: true
  check_mode: true
  diff: true

- name: Get notified by the kernel
  kubenode.memory.kubelet_memory_config:
    kernel_memcg_notification: true
  become: true

- name: Give back what the module changed
  kubenode.memory.kubelet_memory_config:
    state: absent
    fields: [featureGates.MemoryManagerDriftTolerance, memoryManagerPolicyOptions]
  become: true

- name: Edit the main file, although there is a drop-in directory
  kubenode.memory.kubelet_memory_config:
    merge_default_eviction_settings: true
    place: in_place
  become: true
"""

RETURN = r"""
place:
  description: The file that is written, what kind of place it is, and the patch file for kubeadm (null for none).
  returned: always
  type: dict
  sample:
    kind: in_place
    path: /var/lib/kubelet/config.yaml
    layout: kubeadm
    kubeadm_patch: /etc/kubernetes/patches/kubeletconfiguration50-kubenode-memory+merge.json
settings:
  description: What this module has set in that file by now, with the value that stood there before, if any.
  returned: always
  type: dict
  sample: {"memoryManagerPolicy": {"value": "Static", "previous": "None"}}
files:
  description: Paths of the files that change.
  returned: always
  type: list
  elements: str
  sample: [/var/lib/kubelet/config.yaml]
edits:
  description: What this run changes. An edit without a value removes the setting.
  returned: always
  type: list
  elements: dict
  sample: [{"field": "evictionHard.memory.available", "value": "500Mi"}]
in_force:
  description:
    - Everything that this module has set in that file, or changes in this run, with the value that the kubelet will run
      with after its next start. No value means that it is not set. M(kubenode.memory.kubelet_memory_config_info)
      compares it with the running kubelet.
  returned: always
  type: list
  elements: dict
  sample: [{"field": "evictionHard.memory.available", "value": "500Mi"}]
kept:
  description: Settings that O(state=absent) leaves, since somebody has changed them.
  returned: always
  type: list
  elements: str
  sample: []
overridden:
  description: Findings for settings to which a flag or a later drop-in gives another value.
  returned: always
  type: list
  elements: dict
  sample: []
refused:
  description: Findings for which nothing is written, with the kubelet's own text in C(kubelet_error).
  returned: always
  type: list
  elements: dict
  sample: []
reset_needed:
  description: Whether the present state file does not fit the configuration after the change.
  returned: always
  type: bool
  sample: false
reset_reasons:
  description: Findings of what does not fit.
  returned: always
  type: list
  elements: dict
  sample: []
reservation:
  description: What the kubelet demands after the change, and the reservation that it then has.
  returned: always
  type: dict
  sample:
    demanded: {"memory": "2548Mi"}
    reserved_memory: [{"numaNode": 0, "limits": {"memory": "2548Mi"}}]
backup:
  description: Path of the copy that was made of the file, null for none.
  returned: always
  type: str
  sample: /var/lib/kubenode-memory/configuration/config.yaml.20261129T182345.123456Z
restore:
  description: Every file that was written, with the copy of what was there before; none where there was no file. In the
    form of C(kubelet_restart_restore) of the role P(kubenode.memory.kubelet_restart#role).
  returned: always
  type: list
  elements: dict
  sample:
    - path: /var/lib/kubelet/config.yaml
      backup: /var/lib/kubenode-memory/configuration/config.yaml.20261129T182345.123456Z
    - path: /var/lib/kubenode-memory/configuration.json
will_start:
  description: Whether the kubelet starts its memory manager with the configuration after the change and the present
    state file. Null where its answer depends on a random order.
  returned: always
  type: bool
  sample: true
knows_drift_tolerance:
  description: Whether the kubelet knows the gate C(MemoryManagerDriftTolerance). Null where that is not known.
  returned: always
  type: bool
  sample: false
restart_pending:
  description: Whether the running kubelet was started before the file was written last. Null where no kubelet runs.
  returned: always
  type: bool
  sample: true
kubelet_version:
  description: The kubelet's version.
  returned: always
  type: str
  sample: 1.37.2
policy:
  description: The memory manager policy after the change.
  returned: always
  type: str
  sample: Static
notes:
  description: What to know or to do next.
  returned: always
  type: list
  elements: str
  sample: []
"""

import base64
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kubenode.memory.plugins.module_utils._arguments import node_arguments, request_from
from ansible_collections.kubenode.memory.plugins.module_utils._configure import EditedText, Outcome, Wish, apply
from ansible_collections.kubenode.memory.plugins.module_utils._node.documents import LibraryMissing
from ansible_collections.kubenode.memory.plugins.module_utils._node.place import DROP_IN_NAME, PATCHES, PLACES
from ansible_collections.kubenode.memory.plugins.module_utils._node.root import NodeError
from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import Edit
from ansible_collections.kubenode.memory.plugins.module_utils._policy.reservation_plan import RULES, Rule
from ansible_collections.kubenode.memory.plugins.module_utils._present_configuration import (
    edit_request,
    present_diff,
    present_outcome,
)
from ansible_collections.kubenode.memory.plugins.module_utils._request import InputError

VALUES = {
    "memory_manager_policy": "memoryManagerPolicy",
    "kernel_memcg_notification": "kernelMemcgNotification",
    "merge_default_eviction_settings": "mergeDefaultEvictionSettings",
}
MAPS = {
    "memory_manager_policy_options": "memoryManagerPolicyOptions",
    "feature_gates": "featureGates",
    "eviction_hard": "evictionHard",
    "eviction_soft": "evictionSoft",
    "eviction_soft_grace_period": "evictionSoftGracePeriod",
}


def arguments() -> t.Dict[str, t.Dict[str, t.Any]]:
    spec = node_arguments()
    spec.update({name: {"type": "dict"} for name in MAPS})
    spec.update(
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
        fields={"type": "list", "elements": "str", "default": []},
        memory_manager_policy={"type": "str", "choices": ["None", "Static"]},
        kernel_memcg_notification={"type": "bool"},
        merge_default_eviction_settings={"type": "bool"},
        reserved_memory={"type": "list", "elements": "dict"},
        reserved_memory_from={"type": "str", "choices": ["kubelet"]},
        reserved_memory_rule={"type": "str", "choices": list(RULES), "default": "even"},
        reserved_memory_node={"type": "int"},
        place={"type": "str", "choices": list(PLACES), "default": "auto"},
        drop_in_name={"type": "str", "default": DROP_IN_NAME},
        kubeadm_patches={"type": "str", "default": PATCHES},
        accept_reset={"type": "bool", "default": False},
        _edited={"type": "dict"},
    )
    return spec


def edits_from(params: t.Mapping[str, t.Any]) -> t.Tuple[Edit, ...]:
    """:raises InputError: for a value that the field cannot have"""
    edits = [Edit((field,), params[name]) for name, field in VALUES.items() if params[name] is not None]
    for name, field in MAPS.items():
        for key, value in (params[name] or {}).items():
            edits.append(Edit((field, str(key)), _item(name, key, value)))
    if params["reserved_memory"] is not None:
        edits.append(Edit(("reservedMemory",), [_reservation(entry) for entry in params["reserved_memory"]]))
    return tuple(edits)


def _item(name: str, key: str, value: t.Any) -> t.Any:
    if isinstance(value, (dict, list)) or value is None:
        raise InputError(f"{name} {key} is {value!r}; it takes one value")
    if name != "feature_gates":
        return str(value)
    if str(value).lower() not in ("true", "false"):
        raise InputError(f"feature_gates {key} is {value!r}; it takes true or false")
    return str(value).lower() == "true"


def _reservation(entry: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    node, limits = entry.get("numaNode"), entry.get("limits")
    if not str(node).isdigit() or not isinstance(limits, dict) or not limits or entry.keys() - {"numaNode", "limits"}:
        raise InputError(f"reserved_memory has the entry {entry!r}; it takes numaNode and limits")
    return {"numaNode": int(str(node)), "limits": {str(name): str(text) for name, text in limits.items()}}


def wish_from(params: t.Mapping[str, t.Any]) -> Wish:
    """What a module's parameters ask for."""
    edited = params["_edited"]
    asks = params["reserved_memory_from"] is not None
    return Wish(
        state=params["state"],
        edits=edits_from(params),
        rule=Rule(params["reserved_memory_rule"], params["reserved_memory_node"]) if asks else None,
        fields=tuple(params["fields"]),
        place=params["place"],
        drop_in_name=params["drop_in_name"],
        patches=params["kubeadm_patches"],
        accepts_reset=params["accept_reset"],
        edited=EditedText(edited["sha256"], base64.b64decode(edited["content"])) if edited else None,
    )


def message(outcome: Outcome) -> str:
    """One line for people."""
    decision = outcome.decision
    if decision.refused:
        first = decision.refused[0]
        words = f" The kubelet says: {first.kubelet_error}" if first.kubelet_error else ""
        steps = " Drain the node, set accept_reset, and use the entry point reset of the role memmgr_rebaseline."
        return f"Nothing was written. {first.message}{words}{'' if decision.refusals else steps}"
    what = ", ".join(".".join(map(str, edit.path)) for edit in decision.change.edits)
    return f"{decision.target.place.path}: {what or 'nothing to change'}"


def main() -> t.NoReturn:
    module = AnsibleModule(
        argument_spec=arguments(),
        supports_check_mode=True,
        mutually_exclusive=[["reserved_memory", "reserved_memory_from"]],
    )
    try:
        outcome = apply(request_from(module.params), wish_from(module.params), module.check_mode)
    except LibraryMissing as error:
        module.fail_json(msg=missing_required_lib(error.library, reason=f"to read the configuration ({error})"))
    except (NodeError, InputError) as error:
        module.fail_json(msg=str(error))
    result = present_outcome(outcome)
    if outcome.decision.refused:
        module.fail_json(msg=message(outcome), **result)
    for finding in outcome.decision.overridden:
        module.warn(finding.message)
    wanted = edit_request(outcome)
    if wanted is not None:
        result["edit_request"] = wanted
    diff = {"diff": present_diff(outcome)} if module._diff else {}
    module.exit_json(changed=outcome.decision.changed, msg=message(outcome), **diff, **result)


if __name__ == "__main__":
    main()
