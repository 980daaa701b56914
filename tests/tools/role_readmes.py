# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes each role's README.md from its argument specs: `role_readmes.py [--check]`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import typing as t
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "kubenode.memory"

Spec = t.Mapping[str, t.Any]


def readme(role: Path) -> str:
    """The text of a role's README."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    main = specs.get("main") or next(iter(specs.values()))
    parts = [
        f"<!-- Made by tests/tools/role_readmes.py from meta/argument_specs.yml -->\n\n# {COLLECTION}.{role.name}",
        f"{main['short_description']}.",
    ]
    for name in sorted(specs, key=lambda entry: (entry != "main", entry)):
        parts.extend(_entry_point(role.name, name, specs[name]))
    parts.append("## Licence\n\nGPL-3.0-or-later")
    return "\n\n".join(parts) + "\n"


def _entry_point(role: str, name: str, spec: Spec) -> t.Iterator[str]:
    yield f"## Entry point `{name}`"
    if name != "main":
        yield f"{spec['short_description']}."
    yield "\n".join(f"- {_markdown(line)}" for line in _lines(spec.get("description", [])))
    yield f"```yaml\n{_example(role, name, spec)}```"
    for option, content in (spec.get("options") or {}).items():
        yield f"### `{option}`"
        yield "\n".join(f"- {_markdown(line)}" for line in (*_lines(content["description"]), *_facts(content)))


def _lines(text: t.Union[str, t.Sequence[str]]) -> t.Sequence[str]:
    return [text] if isinstance(text, str) else text


def _facts(content: Spec) -> t.Iterator[str]:
    """Type, choices and default of an option."""
    elements = f" of {content['elements']}" if "elements" in content else ""
    yield f"Type: {content.get('type', 'str')}{elements}{', required' if content.get('required') else ''}"
    if "choices" in content:
        yield "Choices: " + ", ".join(f"`{choice}`" for choice in content["choices"])
    if "default" in content:
        yield f"Default: `{json.dumps(content['default'])}`"


def _example(role: str, name: str, spec: Spec) -> str:
    task: t.Dict[str, t.Any] = {"name": f"{COLLECTION}.{role}"}
    if name != "main":
        task["tasks_from"] = name
    example: t.Dict[str, t.Any] = {"name": spec["short_description"], "ansible.builtin.import_role": task}
    required = {option: "..." for option, content in (spec.get("options") or {}).items() if content.get("required")}
    if required:
        example["vars"] = required
    return str(yaml.safe_dump([example], sort_keys=False, width=120))


_MARKUP = (
    (re.compile(r"\b[MPR]\(([^()#,]+)(?:[#,][^()]*)?\)"), r"`\1`"),
    (re.compile(r"\b(?:C|V|O|RV|E)\(([^()]*)\)"), r"`\1`"),
    (re.compile(r"\bB\(([^()]*)\)"), r"**\1**"),
    (re.compile(r"\bI\(([^()]*)\)"), r"*\1*"),
    (re.compile(r"\bL\(([^(),]*), *([^()]*)\)"), r"[\1](\2)"),
)


def _markdown(text: str) -> str:
    """Ansible's semantic markup as Markdown."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text


def readmes() -> t.Dict[Path, str]:
    roles = sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
    return {role / "README.md": readme(role) for role in roles}


def outdated() -> t.List[Path]:
    """The READMEs that are not what their argument specs make of them."""
    return [path for path, text in readmes().items() if not path.is_file() or path.read_text() != text]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a README is out of date")
    wrong = outdated()
    if parser.parse_args().check:
        for path in wrong:
            print(f"{path.relative_to(ROOT)} is out of date, run python tests/tools/role_readmes.py")
        return 1 if wrong else 0
    for path in wrong:
        path.write_text(readmes()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
