# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the guard on the controller and copies it to the node. The documentation is the module's of the same name.

A lookup cannot hand a binary file to `ansible.builtin.copy`, so its action is called with a file that is made here.
"""

from __future__ import annotations

import tempfile
import typing as t
from pathlib import Path

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.memory.plugins.plugin_utils._guard_archive import ArchiveError, guard_archive

Result = t.Dict[str, t.Any]

NAME = "kubenode-memory-guard"
ARGUMENTS = {
    "dest": {"type": "path", "default": "/usr/local/sbin/" + NAME},
    "interpreter": {"type": "str", "required": True},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "mode": {"type": "raw", "default": "0755"},
    "backup": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = True

    def run(self, tmp: t.Optional[str] = None, task_vars: t.Optional[Result] = None) -> Result:
        super().run(tmp, task_vars)
        _rest, arguments = t.cast(t.Any, self).validate_argument_spec(ARGUMENTS)
        try:
            archive = guard_archive(arguments.pop("interpreter"))
        except ArchiveError as error:
            raise AnsibleActionFail(str(error)) from None
        try:
            with tempfile.TemporaryDirectory(dir=t.cast(t.Any, constants).DEFAULT_LOCAL_TMP) as directory:
                source = Path(directory, NAME)
                source.write_bytes(archive)
                return self._copy({**arguments, "src": str(source)}, task_vars)
        finally:
            t.cast(t.Any, self)._remove_tmp_path(self._connection._shell.tmpdir)

    def _copy(self, arguments: Result, task_vars: t.Optional[Result]) -> Result:
        """What `ansible.builtin.copy` does, in check and diff mode too."""
        task = self._task.copy()
        task.args = arguments
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        result: Result = action.run(task_vars=task_vars)
        return result
