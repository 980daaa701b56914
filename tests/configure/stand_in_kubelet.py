# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands for the kubelet that KEP-6232 describes, of which there is no release: gate in the help, rules at a start.

Written from the KEP's text, and from nothing of this collection, so that both can disagree.
"""

from __future__ import annotations

import re
import sys
import typing as t

import yaml

GATE, OPTION = "MemoryManagerDriftTolerance", "memory-drift-tolerance"
QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][-+]?\d+)?\Z")
HELP = f"""      --feature-gates mapStringBool    A set of key=value pairs that describe feature gates. Options are:
                AllAlpha=true|false (ALPHA - default=false)
                {GATE}=true|false (ALPHA - default=false)
"""


def problem(configuration: t.Mapping[str, t.Any]) -> str | None:
    """Why the memory manager is not built: policy name, options of the policy, gate, option, value, in this order."""
    policy = configuration.get("memoryManagerPolicy") or "None"
    options = configuration.get("memoryManagerPolicyOptions") or {}
    if policy not in ("None", "Static"):
        return f'unknown policy: "{policy}"'
    if policy == "None" and options:
        return f'policy "None" does not support policy options map[{" ".join(f"{k}:{v}" for k, v in options.items())}]'
    if options and not (configuration.get("featureGates") or {}).get(GATE):
        return f'memory manager policy option "{min(options)}" requires the {GATE} feature gate'
    for name, value in options.items():
        if name != OPTION:
            return f'unknown Memory Manager Policy option: "{name}"'
        if value in ("auto", "off"):
            continue
        if not QUANTITY.match(value):
            return f'bad value for option "{OPTION}": '
        if value.startswith("-") and re.search("[1-9]", value):
            return f'bad value for option "{OPTION}": "{value}" is negative'
    return None


def main() -> int:
    if "--version" in sys.argv:
        print("Kubernetes v1.38.0")
    elif "--help" in sys.argv:
        print(HELP)
    else:
        with open(sys.argv[1], encoding="utf-8") as stream:
            found = problem(yaml.safe_load(stream))
        print(found or "memorymanager started")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
