# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a maintenance window is open, on the controller. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: maintenance_window
short_description: Says whether one of some maintenance windows is open
version_added: 0.2.0
description:
  - Windows that overlap or touch are one. Without any, it is always open.
positional: needed_minutes, now
options:
  _input:
    description:
      - A list of windows, mappings with the keys C(days), C(start), C(end) and C(tz).
      - "C(days): a list of V(mon) to V(sun), on which the window starts; all of them if left out."
      - "C(start), C(end): times of the day such as V(22:30), on the clocks of C(tz). An end that is not later than the
        start is on the next day."
      - "C(tz): the name of a time zone, such as V(Europe/Berlin)."
      - Of a time that the clocks show twice the first counts. One that they skip is where it would be had they not
        changed. Either way a window keeps its length.
    type: list
    elements: dict
    required: true
  needed_minutes:
    description: Minutes that have to be left, so that what begins now is over before the window is.
    type: int
    default: 0
  now:
    description: The time to judge, ISO 8601 with an offset. The controller's clock if empty.
    type: str
    default: ""
author:
  - The kubenode.memory authors (@kubenode)
"""

EXAMPLES = r"""
- name: Go on only in the night
  ansible.builtin.assert:
    that: (windows | kubenode.memory.maintenance_window).is_open
  vars:
    windows:
      - {days: [mon, tue, wed, thu], start: "22:00", end: "04:00", tz: Europe/Berlin}
      - {days: [sat, sun], start: "00:00", end: "00:00", tz: Europe/Berlin}

- name: Is half an hour left?
  ansible.builtin.debug:
    msg: "{{ (windows | kubenode.memory.maintenance_window(30)).is_open }}"
  vars:
    windows:
      - {start: "01:00", end: "05:00", tz: America/New_York}

- name: When does it open next?
  ansible.builtin.debug:
    msg: "{{ (windows | kubenode.memory.maintenance_window).text }}"
  vars:
    windows:
      - {days: [sun], start: "02:00", end: "06:00", tz: UTC}

- name: Would it be open in the night in which the clocks change?
  ansible.builtin.debug:
    msg: "{{ windows | kubenode.memory.maintenance_window(0, '2026-03-29T01:15:00+00:00') }}"
  vars:
    windows:
      - {start: "01:00", end: "02:30", tz: Europe/Berlin}
"""

RETURN = r"""
_value:
  description:
    - C(is_open); C(until), the end of what is open now; C(opens), the start of the next one, both ISO 8601 in UTC or
      null; and C(text), the same for people.
  type: dict
  sample:
    is_open: false
    until: null
    opens: "2026-12-05T21:00:00+00:00"
    text: closed until 2026-12-05T21:00:00+00:00
"""

import typing as t
from datetime import datetime, timedelta, timezone

from ansible.errors import AnsibleFilterError

from ansible_collections.kubenode.memory.plugins.plugin_utils._window import (
    WindowError,
    WindowState,
    parse_windows,
    window_state,
)


def maintenance_window(windows: t.Any, needed_minutes: int = 0, now: str = "") -> t.Dict[str, t.Any]:
    try:
        found = window_state(parse_windows(windows), _parse_now(now), timedelta(minutes=needed_minutes))
    except WindowError as error:
        raise AnsibleFilterError(f"maintenance_window: {error}") from error
    return {
        "is_open": found.is_open,
        "until": None if found.until is None else found.until.isoformat(),
        "opens": None if found.opens is None else found.opens.isoformat(),
        "text": _text(found),
    }


def _parse_now(text: str) -> datetime:
    if not text:
        return datetime.now(timezone.utc)
    try:
        now = datetime.fromisoformat(text)
    except ValueError:
        raise WindowError(f"now is {text!r}; give an ISO 8601 time such as 2026-03-29T01:15:00+00:00") from None
    if now.tzinfo is None:
        raise WindowError(f"now is {text!r}, without an offset from UTC; add one, such as +00:00")
    return now


def _text(state: WindowState) -> str:
    if state.is_open:
        return "open" if state.until is None else f"open until {state.until.isoformat()}"
    return (
        "closed, and no later one is long enough" if state.opens is None else f"closed until {state.opens.isoformat()}"
    )


class FilterModule:
    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"maintenance_window": maintenance_window}
