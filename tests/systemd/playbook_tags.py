# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tasks of a playbook a choice of tags leaves, by Ansible's own rules and without a run.

playbook_tags.py PLAYBOOK reads choices as JSON, and writes the actions of all tasks and which of them each leaves.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("always", "memmgr_validate", "memmgr_rebaseline", "kubelet_restart", "memmgr_report")
# All else is done on the controller, or reads.
HARMLESS = (
    *("set_fact", "assert", "fail", "debug", "group_by", "validate_argument_spec", "include_tasks", "include_role"),
    *("memmgr_validate", "memmgr_record", "memmgr_report"),
)

Choice = t.Tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The tasks that run, and what they may see of the choice itself."""

    numbers: tuple[int, ...]
    may_touch_a_node: bool
    skips_restart: bool


def every_choice() -> list[Choice]:
    """Each set of the tags that a user may choose, and each that may be skipped."""
    sets = [",".join(names) for size in range(1, len(NAMES) + 1) for names in itertools.combinations(NAMES, size)]
    return [(option, names) for option in ("--tags", "--skip-tags") for names in sets]


def chosen(playbook: pathlib.Path, choices: t.Sequence[Choice], collections: str) -> dict[Choice, Chosen]:
    """What each choice leaves of a playbook; included files count like imported ones.

    `collections` is where those are that the included files need.
    """
    paths = os.environ.get("ANSIBLE_COLLECTIONS_PATH", str(ROOT / ".work/collections")) + ":" + collections
    answer = subprocess.run(
        [sys.executable, __file__, str(playbook)],
        input=json.dumps(choices),
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": paths},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    actions = found["actions"]
    return {
        choice: Chosen(
            tuple(numbers),
            any(actions[number].split(".")[-1] not in HARMLESS for number in numbers),
            choice[0] == "--skip-tags" and "kubelet_restart" in choice[1],
        )
        for choice, numbers in zip(choices, found["numbers"])
    }


def main() -> None:
    """In a process of its own, since Ansible's loaders are global."""
    from ansible import context
    from ansible.inventory.manager import InventoryManager
    from ansible.module_utils.common.collections import ImmutableDict
    from ansible.parsing.dataloader import DataLoader
    from ansible.playbook import Playbook
    from ansible.plugins.loader import init_plugin_loader
    from ansible.vars.manager import VariableManager

    context.CLIARGS = ImmutableDict(tags=["all"], skip_tags=[], start_at_task=None)
    init_plugin_loader()
    loader = DataLoader()
    variables = VariableManager(loader, InventoryManager(loader, sources=["localhost,"]))
    plays = Playbook.load(sys.argv[1], variable_manager=variables, loader=loader).get_plays()
    tasks = [task for play in plays for block in play.compile() for task in tasks_of(block, play, loader, variables)]

    def left(option: str, names: str) -> list[int]:
        only, skipped = (names.split(","), []) if option == "--tags" else (["all"], names.split(","))
        return [n for n, chain in enumerate(tasks) if all(one.evaluate_tags(only, skipped, {}) for one in chain)]

    numbers = [left(*choice) for choice in json.load(sys.stdin)]
    json.dump({"actions": [chain[-1].action for chain in tasks], "numbers": numbers}, sys.stdout)


def tasks_of(block: t.Any, play: t.Any, loader: t.Any, variables: t.Any) -> t.Iterator[tuple[t.Any, ...]]:
    """All tasks of a block but Ansible's own, each behind the tasks that include its file."""
    from ansible.playbook.block import Block
    from ansible.playbook.helpers import load_list_of_blocks

    for task in [*block.block, *block.rescue, *block.always]:
        if isinstance(task, Block):
            yield from tasks_of(task, play, loader, variables)
        elif not task.action.endswith("meta"):
            yield (task,)
            file = task.args.get("_raw_params", "") if task.action.endswith("include_tasks") else ""
            if file and "{" not in file:
                data = loader.load_from_file(f"{task._role._role_path}/tasks/{file}", trusted_as_template=True)
                options = {"role": task._role, "loader": loader, "variable_manager": variables}
                for inner in load_list_of_blocks(data, play=play, parent_block=task.build_parent_block(), **options):
                    yield from ((task, *chain) for chain in tasks_of(inner, play, loader, variables))


if __name__ == "__main__":
    main()
