# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""How a module is told of a node. Empty values mean: find out."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  host_root:
    description:
      - Directory that stands for the node's root. Every path, links included, stays below it.
      - With another root than V(/) no program of the node is run.
    type: path
    default: /
  tolerance:
    description:
      - Drift that the verdict tolerates on each NUMA node, in the grammar of the kubelet's option
        C(memory-drift-tolerance), V(auto), V(off) or a quantity such as V(128Mi).
      - Without it the guard's setting on the node decides, else the node's own C(memory-drift-tolerance), else V(auto).
    type: str
  state_file:
    description: Path of the state file. By default C(memory_manager_state) in the kubelet's root directory.
    type: path
  kubelet_config:
    description: Path of the kubelet's configuration file, in place of its C(--config).
    type: path
  kubelet_config_dir:
    description: Path of the kubelet's drop-in directory, in place of its C(--config-dir).
    type: path
  kubelet_root_dir:
    description: The kubelet's root directory, in place of its C(--root-dir).
    type: path
  kubelet_version:
    description: The kubelet's version, where its binary cannot be asked. Needed with another O(host_root).
    type: str
  known_feature_gates:
    description: Feature gates that the kubelet knows, where its binary cannot be asked.
    type: list
    elements: str
  candidate_config:
    description:
      - Text of a KubeletConfiguration (YAML or JSON) that is merged last, as a drop-in would be, to learn what it would
        do before it is written.
    type: str
"""
