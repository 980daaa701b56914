# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to the collection: breaking changes at any time.
"""Maintenance windows: whether one is open now, until when, or from when on. Pure: the time is an argument."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone

from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KEYS = ("days", "start", "end", "tz")
# A week, the day before it that a window may have begun on, and one for the way to UTC.
DAYS_AHEAD = range(-2, 9)


class WindowError(Exception):
    """A window that cannot be understood; the text names the field, its value and the next step."""


@dataclass(frozen=True)
class Window:
    """From `start` to `end` on the clocks of `zone`, on those days on which it starts.

    An `end` that is not later than `start` is on the next day. Of a time that the clocks show twice the first counts;
    one that they skip is where it would be had they not changed. Either way a window keeps its length.
    """

    days: t.FrozenSet[int]
    start: time
    end: time
    zone: ZoneInfo

    def opening(self, day: date) -> Opening:
        """The opening that starts on a day."""
        end_day = day if self.end > self.start else day + timedelta(days=1)
        return Opening(self._instant(day, self.start), self._instant(end_day, self.end))

    def _instant(self, day: date, clock: time) -> datetime:
        return datetime.combine(day, clock, self.zone).astimezone(timezone.utc)


@dataclass(frozen=True)
class Opening:
    """One night of a window, in UTC; `end` is no longer in it."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class WindowState:
    """`until` is when the openings that overlap now are over; None where there is no window, so that it never ends.

    `opens` is when the next one long enough starts, None if there is none.
    """

    is_open: bool
    until: t.Optional[datetime] = None
    opens: t.Optional[datetime] = None


def window_state(windows: t.Sequence[Window], now: datetime, needed: timedelta = timedelta()) -> WindowState:
    """Whether work that takes `needed` may begin at `now`, an aware time. No windows mean always."""
    if not windows:
        return WindowState(True)
    openings = _joined(windows, now)
    current = next((one for one in openings if one.start <= now < one.end), None)
    if current is not None and current.end - now >= needed:
        return WindowState(True, until=current.end)
    later = (one.start for one in openings if one.start > now and one.end - one.start >= needed)
    return WindowState(False, opens=next(later, None))


def _joined(windows: t.Sequence[Window], now: datetime) -> t.List[Opening]:
    """The openings around `now` in order; those that overlap or touch are one."""
    found: t.List[Opening] = []
    for one in sorted(_openings(windows, now), key=lambda one: one.start):
        if found and one.start <= found[-1].end:
            found[-1] = Opening(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def _openings(windows: t.Sequence[Window], now: datetime) -> t.Iterator[Opening]:
    for window in windows:
        today = now.astimezone(window.zone).date()
        for day in (today + timedelta(days=number) for number in DAYS_AHEAD):
            opening = window.opening(day)
            if day.weekday() in window.days and opening.start < opening.end:
                yield opening


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_windows(value: t.Any) -> t.List[Window]:
    """Windows from a list of mappings with the keys days, start, end and tz.

    :raises WindowError: if it is something else
    """
    if not isinstance(value, (list, tuple)):
        raise WindowError(f"the windows are {value!r}; give a list of mappings with the keys {', '.join(KEYS)}")
    return [_parse_window(item, f"window {number}") for number, item in enumerate(value, 1)]


def _parse_window(item: t.Any, where: str) -> Window:
    if not isinstance(item, t.Mapping):
        raise WindowError(f"{where} is {item!r}; give a mapping with the keys {', '.join(KEYS)}")
    unknown = sorted(set(map(str, item)) - set(KEYS))
    if unknown:
        raise WindowError(f"{where}: {', '.join(unknown)} is none of {', '.join(KEYS)}; correct the key")
    return Window(
        days=_parse_days(item.get("days", DAYS), where),
        start=_parse_clock(item.get("start"), f"{where}: start"),
        end=_parse_clock(item.get("end"), f"{where}: end"),
        zone=_parse_zone(item.get("tz"), f"{where}: tz"),
    )


def _parse_days(value: t.Any, where: str) -> t.FrozenSet[int]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        raise WindowError(f"{where}: days is {value!r}; give a list of {', '.join(DAYS)}, or leave it out for all")
    wrong = [name for name in names if str(name).lower()[:3] not in DAYS]
    if wrong:
        raise WindowError(f"{where}: days has {wrong[0]!r}, which is none of {', '.join(DAYS)}; correct it")
    return frozenset(DAYS.index(str(name).lower()[:3]) for name in names)


def _parse_clock(value: t.Any, where: str) -> time:
    """YAML 1.1 reads 22:30 without quotes as the number 1350, which is taken as what was meant."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return time(*divmod(value, 60))
    try:
        return datetime.strptime(str(value), "%H:%M").time()
    except ValueError:
        raise WindowError(f'{where} is {value!r}; give a time of the day such as "22:30", in quotes') from None


def _parse_zone(value: t.Any, where: str) -> ZoneInfo:
    try:
        return ZoneInfo(str(value))
    except (LookupError, ValueError, OSError):
        raise WindowError(
            f"{where} is {value!r}; give the name of a time zone such as Europe/Berlin or UTC. If that is one, the "
            "controller has no time zone data: install the package tzdata, of the distribution or for Python."
        ) from None
