# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits on the controller the text of a node's file, between two calls of the module of the same name.

The first call says what is to be edited, or ends the matter. The second one gets the new text with the hash of the old.
"""

from __future__ import annotations

import base64
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.memory.plugins.module_utils._policy.document_edit import edits_from_json
from ansible_collections.kubenode.memory.plugins.plugin_utils._yaml_edit import EditError, edit_document

MODULE = "kubenode.memory.kubelet_memory_config"
Result = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: t.Optional[str] = None, task_vars: t.Optional[Result] = None) -> Result:
        super().run(tmp, task_vars)
        result = self._call({}, task_vars)
        wanted = result.pop("edit_request", None)
        if wanted is None or result.get("failed"):
            return result
        try:
            edited = edited_text(wanted)
        except EditError as error:
            place = result.get("place") or {}
            return {
                **result,
                "failed": True,
                "changed": False,
                "msg": f"{place.get('path')}: {error}. Nothing was written.",
            }
        return self._call({"_edited": edited}, task_vars)

    def _call(self, more: Result, task_vars: t.Optional[Result]) -> Result:
        arguments = {name: value for name, value in self._task.args.items() if name != "_edited"}
        result: Result = self._execute_module(
            module_name=MODULE, module_args={**arguments, **more}, task_vars=task_vars
        )
        return result


def edited_text(wanted: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """:raises EditError: where the text cannot be edited in place"""
    text = edit_document(wanted["text"], edits_from_json(wanted["edits"]))
    return {"sha256": wanted["sha256"], "content": base64.b64encode(text.encode("utf-8")).decode("ascii")}
