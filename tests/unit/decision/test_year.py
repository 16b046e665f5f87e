"""A year is counted day by day, in days of the schedule's zone, and what calendars refuse is told apart."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from unit.decision.builders import make_planning, make_spec

from horarium.core.decision import year as years
from horarium.core.decision.year import FIRST_YEAR, LAST_YEAR, CountedDay, look_at_year
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason
from horarium.core.recurrence.parts import CronSchedule
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import from_datetime, to_datetime


def calendar(*days: date, zone: str | None = None, **rest: Any) -> CalendarDefinition:
    return CalendarDefinition("c", rest.pop("kind", CalendarKind.SKIP_DATES), zone, frozenset(days), **rest)


def days_of(planning: Planning, year: int = 2026, **calendars: CalendarDefinition) -> dict[date, CountedDay]:
    return {day.date: day for day in look_at_year(planning, calendars, year).days}


# How long days are with clocks that change: zdump of the zones.
@pytest.mark.parametrize(
    ("zone", "year", "lengths"),
    [
        ("UTC", 2026, {}),
        ("Europe/Berlin", 2026, {"2026-03-29": 23, "2026-10-25": 25}),
        ("America/New_York", 2026, {"2026-03-08": 23, "2026-11-01": 25}),
        ("America/Havana", 2024, {"2024-03-10": 23, "2024-11-03": 25}),  # at midnight
        ("Pacific/Apia", 2011, {"2011-04-02": 25, "2011-09-24": 23, "2011-12-30": 0}),  # a day that never was
    ],
)
def test_a_day_is_as_long_as_clocks_make_it(zone: str, year: int, lengths: dict[str, int]) -> None:
    found = days_of(make_planning(spec=make_spec("0 * * * *", timezone=zone)), year)
    all_days = [date(year, 1, 1) + timedelta(days=n) for n in range(366 if year == 2024 else 365)]
    expected = {day: lengths.get(day.isoformat(), 24) for day in all_days}
    assert {day: each.fires for day, each in found.items()} == {day: hours for day, hours in expected.items() if hours}


# In St. John's clocks went back at one minute past midnight: half an hour before it, the date was the next one already.
@pytest.mark.parametrize("zone", ["America/St_Johns", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Kiritimati"])
def test_days_are_those_that_zoneinfo_names(zone: str) -> None:
    spec = make_spec("*/7 * * * *", timezone=zone)
    begin, end = (from_datetime(datetime(each, 1, 1, tzinfo=ZoneInfo(zone))) for each in (2006, 2007))
    moments = takewhile(lambda nominal: nominal < end, spec.occurrences(begin - 1))
    expected = Counter(to_datetime(nominal).astimezone(ZoneInfo(zone)).date() for nominal in moments)
    assert {day: each.fires for day, each in days_of(make_planning(spec=spec), 2006).items()} == expected


def test_days_without_occurrences_are_left_out() -> None:
    planning = make_planning(spec=compile_spec(at=["2026-05-04T09:00:00Z", "2027-01-01T00:00:00Z"]))
    assert list(days_of(planning).values()) == [CountedDay(date(2026, 5, 4), fires=1)]
    assert days_of(planning, 2025) == {}


def test_the_window_counts() -> None:
    end = from_datetime(datetime(2026, 1, 2, 12, tzinfo=ZoneInfo("UTC")))
    found = days_of(make_planning(spec=make_spec("0 * * * *", end_at=end)))
    assert [(day.date.day, day.fires) for day in found.values()] == [(1, 24), (2, 13)]


def test_what_a_calendar_refuses_is_told_with_its_reason() -> None:
    planning = make_planning("0 9 * * *", calendars=("c",))
    found = days_of(planning, c=calendar(date(2026, 12, 25)))
    assert len(found) == 365
    assert found[date(2026, 12, 24)] == CountedDay(date(2026, 12, 24), fires=1)
    assert found[date(2026, 12, 25)] == CountedDay(
        date(2026, 12, 25), skips=1, reasons={Reason.CALENDAR: 1}, detail="c skips 2026-12-25"
    )


def test_a_calendar_of_another_zone_cuts_a_day_in_two() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", timezone="Europe/Berlin"), calendars=("c",))
    found = days_of(planning, c=calendar(date(2026, 5, 4), zone="America/New_York"))
    # New York's 4 May lasts from 6:00 on the 4th to 6:00 on the 5th in Berlin.
    assert [(day.date.day, day.fires, day.skips) for day in found.values() if day.skips] == [(4, 6, 18), (5, 18, 6)]


@pytest.mark.parametrize("known", [{}, {"c": calendar(zone="Mars/Olympus")}], ids=["missing", "zone that is gone"])
def test_what_cannot_be_judged_allows_nothing(known: dict[str, CalendarDefinition]) -> None:
    found = look_at_year(make_planning("0 9 * * *", calendars=("c",)), known, 2026)
    assert {(day.fires, day.skips) for day in found.days} == {(0, 1)}


def test_a_year_of_seconds_is_counted_and_not_walked() -> None:
    found = days_of(make_planning("* * * * * *"))
    assert sum(day.fires for day in found.values()) == 365 * 86_400


@pytest.mark.parametrize("year", [FIRST_YEAR, LAST_YEAR])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_every_year_has_all_its_days(year: int, zone: str) -> None:
    found = days_of(make_planning(spec=make_spec("* * * * *", timezone=zone)), year)
    assert len(found) == 365


def test_work_is_bounded_and_says_so() -> None:
    dense = make_planning("* 9 * * *", "* 10 * * *")
    found = look_at_year(dense, {}, 2026, max_work=20)
    assert found.bounded
    assert [day.date.day for day in found.days] == list(range(1, 11))
    assert not look_at_year(dense, {}, 2026, max_work=730).bounded


DENSE = [f"{n}-59 * * * * *" for n in range(50)] + [f"* {n}-59 * * * *" for n in range(50)]
SPARSE = [f"{n % 60} {n % 24} * * {n % 7}" for n in range(40)]


@pytest.mark.parametrize("crons", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_hundred_parts_and_many_zones_cost_few_steps(crons: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step asks one part for its next occurrence: 20 zones cut a year into 7,000 pieces."""
    steps = 0
    ask = CronSchedule.next_after

    def counted(part: CronSchedule, t: int) -> int | None:
        nonlocal steps
        steps += 1
        return ask(part, t)

    monkeypatch.setattr(CronSchedule, "next_after", counted)
    zones = ["Asia/Tokyo", "Asia/Kolkata", "Asia/Kabul", "Asia/Kathmandu", "America/Caracas", "Pacific/Chatham"]
    calendars = {zone: calendar(date(2026, 12, 25), zone=zone) for zone in zones}
    look_at_year(make_planning(*crons, calendars=zones), calendars, 2026)
    assert steps <= 6_000


def test_a_walk_and_a_count_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    planning, closed = make_planning(*SPARSE, calendars=["c"]), {"c": calendar(date(2026, 12, 25), zone="Asia/Tokyo")}
    walked = look_at_year(planning, closed, 2026)
    monkeypatch.setattr(years, "_SPARSE", 0)
    assert look_at_year(planning, closed, 2026) == walked
