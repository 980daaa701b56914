# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Maintenance windows: midnight, days, the nights in which the clocks change, and what is refused."""

from __future__ import annotations

import typing as t
from datetime import datetime, timedelta, timezone

import pytest
from ansible.errors import AnsibleFilterError
from hypothesis import given, strategies as st

from ansible_collections.kubenode.memory.plugins.filter.maintenance_window import maintenance_window
from ansible_collections.kubenode.memory.plugins.plugin_utils import _window as window

BERLIN = "Europe/Berlin"
NIGHT = {"days": ["fri"], "start": "22:00", "end": "04:00", "tz": BERLIN}
SPRING = {"start": "01:00", "end": "02:30", "tz": BERLIN}
SATURDAY, SUNDAY = ({"days": [day], "start": "00:00", "end": "00:00", "tz": "UTC"} for day in ("sat", "sun"))


def state(now: str, *windows: t.Mapping[str, t.Any], needed: int = 0) -> window.WindowState:
    moment = datetime.fromisoformat(now)
    return window.window_state(window.parse_windows(windows), moment, timedelta(minutes=needed))


@pytest.mark.parametrize(
    ("now", "is_open"),
    [
        ("2026-12-04T21:59:59+01:00", False),
        ("2026-12-04T22:00:00+01:00", True),
        ("2026-12-05T00:00:00+01:00", True),
        ("2026-12-05T03:59:59+01:00", True),
        ("2026-12-05T04:00:00+01:00", False),
        ("2026-12-05T22:30:00+01:00", False),
        ("2026-12-04T03:00:00+01:00", False),
        ("2026-12-04T21:30:00+00:00", True),
        ("2026-07-03T20:30:00+00:00", True),
        ("2026-07-03T19:30:00+00:00", False),
    ],
)
def test_days_are_those_on_which_a_window_starts(now: str, is_open: bool) -> None:
    assert state(now, NIGHT).is_open is is_open


@pytest.mark.parametrize(
    ("now", "is_open"),
    [
        # In spring 02:00 is followed by 03:00, and 02:30 is what would have been 02:30.
        ("2026-03-29T00:59:59+01:00", False),
        ("2026-03-29T01:59:59+01:00", True),
        ("2026-03-29T03:29:59+02:00", True),
        ("2026-03-29T03:30:00+02:00", False),
        # In autumn 02:30 is shown twice.
        ("2026-10-25T02:29:59+02:00", True),
        ("2026-10-25T02:30:00+02:00", False),
        ("2026-10-25T02:10:00+01:00", False),
    ],
)
def test_clocks_that_change_leave_a_window_its_length(now: str, is_open: bool) -> None:
    assert state(now, SPRING).is_open is is_open


def test_end_and_next_start_are_told() -> None:
    assert state("2026-12-04T23:00:00+01:00", NIGHT).until == datetime(2026, 12, 5, 3, tzinfo=timezone.utc)
    assert state("2026-12-05T23:00:00+01:00", NIGHT).opens == datetime(2026, 12, 11, 21, tzinfo=timezone.utc)


def test_windows_that_touch_are_one() -> None:
    weekend = state("2026-12-05T12:00:00+00:00", SATURDAY, SUNDAY)
    assert weekend.until == datetime(2026, 12, 7, tzinfo=timezone.utc)


def test_what_begins_has_to_be_over_in_time() -> None:
    assert state("2026-12-05T03:30:00+01:00", NIGHT, needed=30).is_open
    assert not state("2026-12-05T03:30:01+01:00", NIGHT, needed=30).is_open
    assert state("2026-12-05T03:30:00+01:00", NIGHT, needed=7 * 60).opens is None


def test_no_window_is_always_open() -> None:
    assert state("2026-12-05T03:30:00+01:00", needed=10**6) == window.WindowState(True)


CLOCKS = st.times().map(lambda time: time.strftime("%H:%M"))
ZONES = st.sampled_from([BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"])
WINDOWS = st.fixed_dictionaries(
    {"days": st.lists(st.sampled_from(window.DAYS), min_size=1), "start": CLOCKS, "end": CLOCKS, "tz": ZONES}
)


@given(WINDOWS, st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(timezone.utc)))
def test_a_closed_window_opens_when_it_says(one: t.Dict[str, t.Any], now: datetime) -> None:
    windows = window.parse_windows([one])
    found = window.window_state(windows, now)
    if found.is_open:
        assert found.until is not None
        assert found.until > now
        assert window.window_state(windows, found.until - timedelta(microseconds=1)).is_open
    elif found.opens is not None:
        assert found.opens > now
        assert window.window_state(windows, found.opens).is_open
        assert not window.window_state(windows, found.opens - timedelta(microseconds=1)).is_open


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ("22:00", "the windows are '22:00'; give a list"),
        (["22:00"], "window 1 is '22:00'; give a mapping"),
        ([{**NIGHT, "stop": "x"}], "window 1: stop is none of days, start, end, tz"),
        ([{**NIGHT, "days": ["someday"]}], "window 1: days has 'someday'"),
        ([{**NIGHT, "days": []}], r"window 1: days is \[\]"),
        ([NIGHT, {**NIGHT, "start": "25:00"}], "window 2: start is '25:00'"),
        ([{**NIGHT, "end": True}], "window 1: end is True"),
        ([{"start": "1:00", "end": "2:00"}], "window 1: tz is None"),
        ([{**NIGHT, "tz": "Mars/Olympus"}], "window 1: tz is 'Mars/Olympus'.*tzdata"),
        ([{**NIGHT, "tz": "../etc/passwd"}], "window 1: tz is"),
    ],
)
def test_what_is_wrong_is_named(windows: t.Any, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        maintenance_window(windows)


def test_times_that_yaml_reads_as_numbers_are_times() -> None:
    assert window.parse_windows([{**NIGHT, "start": 22 * 60}]) == window.parse_windows([NIGHT])


def test_filter_says_the_same_in_words() -> None:
    assert maintenance_window([NIGHT], 0, "2026-12-05T05:00:00+01:00") == {
        "is_open": False,
        "until": None,
        "opens": "2026-12-11T21:00:00+00:00",
        "text": "closed until 2026-12-11T21:00:00+00:00",
    }
    assert (
        maintenance_window([NIGHT], now="2026-12-04T23:00:00+01:00")["text"] == "open until 2026-12-05T03:00:00+00:00"
    )
    assert maintenance_window([])["text"] == "open"
    with pytest.raises(AnsibleFilterError, match="without an offset"):
        maintenance_window([NIGHT], 0, "2026-12-05T05:00:00")
