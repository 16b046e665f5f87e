"""How long a calendar's answer stays the same: until the first date that has another one, in the calendar's zone."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.calendar import (
    CalendarDefinition,
    CalendarKind,
    MissingCalendar,
    date_ends,
    local_date,
    unchanged_until,
)
from horarium.instant import DAY, HOUR, MINUTE, from_rfc3339


def calendar(**rest: Any) -> CalendarDefinition:
    return CalendarDefinition(
        **{"name": "mine", "kind": CalendarKind.SKIP_DATES, "timezone": "UTC", "dates": frozenset(), **rest}
    )


# Havana's clocks go back from 1:00 to 0:00, Azores' from 1:00 to 0:00 and forward at 0:00; Apia had no 30 December
# in 2011; Kwajalein had no 21 August in 1993; in São Paulo 2017-10-15 began at 1:00.
@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("UTC", "2026-05-04T12:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("America/Havana", "2026-11-01T05:00:00Z"),
        ("Atlantic/Azores", "2026-10-25T01:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
        ("America/Sao_Paulo", "2017-10-15T03:00:00Z"),
        ("America/Sao_Paulo", "2018-02-18T02:00:00Z"),
    ],
)
def test_a_date_ends_with_its_last_second_whatever_the_clocks_do(zone: str, near: str) -> None:
    begin = from_rfc3339(near) - 2 * DAY
    for step in range(0, 4 * 24 * 60, 7):
        at = begin + step * MINUTE
        end = date_ends(zone, at)
        assert at < end
        assert local_date(zone, end) != local_date(zone, at)
        assert {local_date(zone, t) for t in range(at, end, 13 * MINUTE)} == {local_date(zone, end - 1)}


def test_an_answer_lasts_until_the_first_date_that_has_another() -> None:
    weekends = calendar(rule="weekends")
    friday, monday = from_rfc3339("2026-05-08T12:00:00Z"), from_rfc3339("2026-05-11T00:00:00Z")
    last = friday + 30 * DAY
    assert unchanged_until([weekends], friday, last) == from_rfc3339("2026-05-09T00:00:00Z") - 1
    assert unchanged_until([weekends], friday + DAY, last) == monday - 1
    assert unchanged_until([weekends], friday + DAY, friday + DAY + HOUR) == friday + DAY + HOUR
    assert unchanged_until([], friday, last) == last


def test_what_cannot_be_judged_is_never_allowed() -> None:
    at, last = from_rfc3339("2026-05-08T12:00:00Z"), from_rfc3339("2099-05-08T12:00:00Z")
    weekends = calendar(rule="weekends")
    lost = calendar(timezone="Mars/Olympus")
    assert unchanged_until([weekends, MissingCalendar("gone")], at, last) == last
    assert unchanged_until([weekends, lost], at, last) == last


def test_a_question_looks_at_a_bounded_number_of_dates() -> None:
    never = calendar(kind=CalendarKind.ONLY_DATES)
    at = from_rfc3339("2026-05-08T12:00:00Z")
    assert unchanged_until([never], at, at + 10_000 * DAY) == from_rfc3339("2026-05-08T00:00:00Z") + 400 * DAY - 1
