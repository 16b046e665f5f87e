"""A crontab of Celery becomes a cron expression that fires when the real class does."""

from __future__ import annotations

from datetime import date

import pytest
from beat_apps import NOW, translated
from celery.schedules import crontab
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.compat.celery_beat.crontab import CALENDAR_YEARS
from horarium.compat.celery_beat.differences import compare


@pytest.mark.parametrize(
    ("written", "expression"),
    [
        pytest.param({}, "* * * * *", id="every minute"),
        pytest.param({"minute": 30, "hour": 2}, "30 2 * * *", id="numbers"),
        pytest.param({"minute": "*/15"}, "*/15 * * * *", id="a step keeps its star"),
        pytest.param({"minute": 0, "hour": "*/3,8-17"}, "0 */3,8-17 * * *", id="a list"),
        pytest.param({"minute": "50-59/2", "hour": 0}, "50-59/2 0 * * *", id="a range with a step"),
        pytest.param({"minute": 0, "hour": "22-2"}, "0 0-2,22-23 * * *", id="a range that wraps"),
        pytest.param({"minute": 0, "hour": "20-4/3"}, "0 2,20,23 * * *", id="a range that wraps, with a step"),
        pytest.param({"minute": {0, 30}, "hour": [8, 9, 10]}, "0,30 8-10 * * *", id="a set and a list"),
        pytest.param({"minute": "0, 30", "hour": 0}, "0,30 0 * * *", id="a blank in a list"),
        pytest.param({"minute": 0, "hour": 0, "day_of_week": "Mon-Fri"}, "0 0 * * mon-fri", id="short names"),
        pytest.param({"minute": 0, "hour": 0, "day_of_week": "monday"}, "0 0 * * 1", id="a long name"),
        pytest.param({"minute": 0, "hour": 0, "day_of_week": "fri-mon"}, "0 0 * * 0-1,5-6", id="names that wrap"),
        pytest.param({"minute": 0, "hour": 0, "day_of_week": "*/2"}, "0 0 * * */2", id="every other weekday"),
        pytest.param({"minute": 0, "hour": 0, "day_of_week": "0-6"}, "0 0 * * *", id="all days of the week"),
        pytest.param({"minute": 0, "hour": 0, "month_of_year": "*/3"}, "0 0 * */3 *", id="quarters"),
        pytest.param({"minute": 0, "hour": 0, "month_of_year": "nov-feb"}, "0 0 * 1-2,11-12 *", id="months that wrap"),
        pytest.param({"minute": 0, "hour": 0, "day_of_month": "2-30/2"}, "0 0 2-30/2 * *", id="even days"),
        pytest.param({"minute": 0, "hour": 0, "day_of_month": "1-31", "day_of_week": 1}, "0 0 * * 1", id="any date"),
        pytest.param(
            {"minute": 0, "hour": 0, "day_of_month": "1-7", "day_of_week": 1}, "0 0 * * 1#1", id="first Monday"
        ),
        pytest.param(
            {"minute": 0, "hour": 0, "day_of_month": "8-21", "day_of_week": "mon,fri"},
            "0 0 * * 1#2,5#2,1#3,5#3",
            id="whole weeks",
        ),
        pytest.param(
            {"minute": 0, "hour": 0, "day_of_month": "1,15", "day_of_week": "mon"},
            "0 0 */31,15 * mon",
            id="the first of the month carries the star",
        ),
        pytest.param(
            {"minute": 0, "hour": 0, "day_of_month": "*/2", "day_of_week": "mon"}, "0 0 */2 * mon", id="it has one"
        ),
        pytest.param(
            {"minute": 0, "hour": 0, "day_of_month": 13, "day_of_week": "sun,fri"},
            "0 0 13 * */7,5",
            id="Sunday carries the star",
        ),
    ],
)
def test_a_crontab_is_said_as_cron_says_it(written, expression):
    only = translated(crontab(**written))
    found = compare(only)

    assert only.document is not None
    assert only.document["spec"]["cron_expressions"] == [expression]
    assert only.calendar is None
    assert found is not None
    assert (found.count, found.fires_before) == (0, found.fires_after)
    assert found.fires_after > 0


def test_days_that_no_expression_can_say_are_left_to_a_calendar():
    only = translated(crontab(minute=0, hour=12, day_of_month=13, day_of_week="fri"))

    assert only.document is not None
    assert only.document["spec"]["cron_expressions"] == ["0 12 13 * *"]
    assert only.document["calendars"] == ["celery:13:fri"]
    assert only.calendar is not None
    # All Fridays that are a thirteenth in 2026, from a calendar on the wall.
    of_2026 = {day for day in only.calendar.dates if day.year == 2026}
    assert of_2026 == {date(2026, 2, 13), date(2026, 3, 13), date(2026, 11, 13)}
    assert only.calendar.covers == (date(2026, 1, 1), date(2026 + CALENDAR_YEARS - 1, 12, 31))
    found = compare(only)
    assert found is not None
    assert (found.fires_before, found.fires_after, found.count) == (3, 3, 0)


def test_working_days_have_a_calendar_already():
    only = translated(crontab(minute=0, hour=12, day_of_month="10-12", day_of_week="mon-fri"))

    assert only.document is not None
    assert only.document["calendars"] == ["weekdays"]
    found = compare(only)
    assert found is not None
    assert found.count == 0


def test_a_calendar_of_many_days_has_a_short_name_and_room():
    only = translated(crontab(minute=0, hour=0, day_of_month="2-31/2,3,5,9", day_of_week="1-6"))

    assert only.calendar is not None
    assert len(only.calendar.name) <= 60
    assert len(only.calendar.dates) < 10_000


def _fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number, st.integers(1, 7)).map(lambda each: f"{each[0]}-{each[1]}/{each[2]}")
    item = st.one_of(number.map(str), span, st.integers(1, 9).map(lambda step: f"*/{step}"))
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


@pytest.mark.repeats
@settings(max_examples=20, deadline=None)
@given(_fields(0, 59), _fields(0, 23), _fields(0, 6), st.one_of(st.just("*"), _fields(1, 28)), _fields(1, 12))
def test_without_clock_changes_both_fire_at_the_same_moments(minute, hour, week, days, months):
    only = translated(crontab(minute, hour, week, days, months), days=200, steps=100, now=NOW)
    found = compare(only)

    assert found is not None
    assert found.differences == ()
