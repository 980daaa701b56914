# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the API, or the node's journal, what a kubelet runs with. The documentation is the module's of the same name."""

from __future__ import annotations

import shlex
import typing as t
from dataclasses import asdict, dataclass

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.memory.plugins.plugin_utils._configz import NotAnswered, configz
from ansible_collections.kubenode.memory.plugins.plugin_utils._running_configuration import (
    MESSAGE,
    Configuration,
    differences,
    logged_configuration,
    value_of,
)

Result = t.Dict[str, t.Any]

FIELDS = (
    "memoryManagerPolicy",
    "memoryManagerPolicyOptions",
    "reservedMemory",
    "featureGates",
    "kernelMemcgNotification",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "mergeDefaultEvictionSettings",
)
ARGUMENTS = {
    "unit": {"type": "str", "default": "kubelet.service"},
    "node_name": {"type": "str", "default": ""},
    "api": {"type": "dict", "default": {}, "no_log": True},
    "expected": {"type": "list", "elements": "dict", "default": []},
}
# The host name, --hostname-override where there is one, a mark, and the log of the unit's present invocation: not an
# earlier start's.
LOOK = r"""unit={unit}
cat /proc/sys/kernel/hostname
pid=$(systemctl show --value --property=MainPID -- "$unit")
tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n -e 's/^--hostname-override=//p' -e '/^--hostname-override$/{{n;p}}'
echo "==="
invocation=$(systemctl show --value --property=InvocationID -- "$unit")
journalctl --no-pager --output=cat "_SYSTEMD_INVOCATION_ID=$invocation" | sed -n '/{message}/,/^ >/p'
"""


@dataclass(frozen=True)
class Seen:
    """What the node itself says: the name of its Node object, and what its kubelet has logged."""

    node_name: str
    log: str


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: t.Optional[str] = None, task_vars: t.Optional[Result] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        _rest, arguments = t.cast(t.Any, self).validate_argument_spec(ARGUMENTS)
        expected = [(str(one["field"]), one.get("value")) for one in arguments["expected"] if one.get("field")]
        if len(expected) != len(arguments["expected"]):
            return {**result, "failed": True, "msg": "expected has an entry without field; it takes field and value"}
        seen = self._look(arguments["unit"])
        node = arguments["node_name"] or seen.node_name
        source, running, notes = running_configuration(arguments["api"], node, seen.log)
        result.update(changed=False, source=source, node_name=node, notes=notes, **compared(expected, running))
        return result

    def _look(self, unit: str) -> Seen:
        command = LOOK.format(unit=shlex.quote(unit), message=MESSAGE)
        done = t.cast(t.Any, self)._low_level_execute_command(command)
        return seen_from(str(done["stdout"]))


def seen_from(text: str) -> Seen:
    """What LOOK has printed; the last --hostname-override counts."""
    before, _mark, log = text.replace("\r\n", "\n").partition("\n===\n")
    host, *overrides = before.split("\n")
    return Seen(overrides[-1] if overrides else host.strip().lower(), log)


def running_configuration(
    api: t.Mapping[str, t.Any], node: str, log: str
) -> t.Tuple[t.Optional[str], t.Optional[Configuration], t.List[str]]:
    """(source, configuration, notes): from the API where one is given, else from the log, else None."""
    notes = []
    if api:
        try:
            return "configz", configz(api, node), []
        except NotAnswered as problem:
            notes.append(str(problem))
    running = logged_configuration(log)
    if running is None:
        notes.append("The kubelet has logged no configuration, as it does since 1.37.")
    return (None if running is None else "log"), running, notes


def compared(expected: t.Sequence[t.Tuple[str, t.Any]], running: t.Optional[Configuration]) -> Result:
    if running is None:
        return {"settings": {}, "differs": [], "in_force": None}
    settings = {name: value_of(name, running) for name in FIELDS if value_of(name, running) is not None}
    found = [asdict(one) for one in differences(expected, running)]
    return {"settings": settings, "differs": found, "in_force": not found}
