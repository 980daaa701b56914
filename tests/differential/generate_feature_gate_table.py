# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write plugins/module_utils/_policy/_feature_gate_table.py from the kubelet's own packages.

python3 tests/differential/generate_feature_gate_table.py            writes the file
python3 tests/differential/generate_feature_gate_table.py --check    says whether it is up to date
"""

from __future__ import annotations

import re
import sys
import typing as t
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from differential.kubelet_oracle import RELEASES, Oracle, build_oracle

TABLE = Path(__file__).resolve().parents[2] / "plugins" / "module_utils" / "_policy" / "_feature_gate_table.py"
HEAD = '''\
# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Every feature gate of the kubelet by release: name, stage, default, `locked` where it cannot be
changed, and the gates without which it stops the kubelet when it is on.

Generated from the Go modules k8s.io/kubernetes {releases}
by tests/differential/generate_feature_gate_table.py. Do not edit.
"""

from __future__ import annotations

import typing as t

GATES_BY_RELEASE: t.Mapping[t.Tuple[int, int], str] = {{
'''


def gate_line(gate: t.Mapping[str, t.Any]) -> str:
    words = [gate["name"], gate["stage"], "true" if gate["default"] else "false"]
    needs = ["needs:" + ",".join(gate["needs"])] if gate["needs"] else []
    return " ".join(words + (["locked"] if gate["locked"] else []) + needs)


def release_entry(release: str, gates: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    major, minor = re.findall(r"\d+", release)[:2]
    lines = "".join(gate_line(gate) + "\n" for gate in gates)
    return f'    ({major}, {minor}): """\\\n{lines}""",\n'


def gates_of(release: str) -> t.List[t.Dict[str, t.Any]]:
    with Oracle(build_oracle(release)) as oracle:
        return oracle.gates()


def table_text(gates_by_release: t.Mapping[str, t.Sequence[t.Mapping[str, t.Any]]]) -> str:
    head = HEAD.format(releases=", ".join(gates_by_release))
    return head + "".join(release_entry(*item) for item in gates_by_release.items()) + "}\n"


def generate() -> str:
    return table_text({release: gates_of(release) for release in RELEASES})


def main() -> int:
    text = generate()
    if sys.argv[1:] == ["--check"]:
        return 0 if TABLE.read_text(encoding="utf-8") == text else 1
    TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
