"""Which instant a written time means: a table of spellings, of clocks that leap and repeat, and of what is refused."""

from __future__ import annotations

import pytest

from horarium.core.recurrence.zone import Moment, Wall, load_zone, read_moment
from horarium.errors import InvalidSpec
from horarium.instant import from_rfc3339, to_rfc3339

NOW = from_rfc3339("2026-11-16T12:00:00.5Z")


def read(text: str, zone: str | None = None) -> Moment:
    return read_moment(text, field="until", now=NOW, zone=None if zone is None else load_zone(zone))


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-17T09:00:00Z", "2026-11-17T09:00:00Z"),
        ("2026-11-17T09:00:00.25+03:00", "2026-11-17T06:00:00.250000Z"),
        ("2026-11-17 09:00+03:00", "2026-11-17T06:00:00Z"),
        ("4h", "2026-11-16T16:00:00Z"),
        ("-4h", "2026-11-16T08:00:00Z"),
        ("-P1D", "2026-11-15T12:00:00Z"),
        (" Now ", "2026-11-16T12:00:00Z"),
        ("1h30m", "2026-11-16T13:30:00Z"),
        (" 7 days ", "2026-11-23T12:00:00Z"),
        ("P1D", "2026-11-17T12:00:00Z"),
        ("pt30m", "2026-11-16T12:30:00Z"),
        ("0s", "2026-11-16T12:00:00Z"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),  # what is past is refused by whoever wants what is to come
    ],
)
@pytest.mark.parametrize("zone", [None, "Pacific/Kiritimati"])
def test_an_instant_and_a_length_need_no_zone_and_mind_none(text: str, instant: str, zone: str | None) -> None:
    assert to_rfc3339(read(text, zone).instant) == instant


# https://www.timeanddate.com/time/change/germany/berlin?year=2026, …/usa/new-york, …/australia/lord-howe-island,
# and of Samoa's lost day https://www.timeanddate.com/news/time/samoa-dateline.html
@pytest.mark.parametrize(
    ("text", "zone", "instant", "wall"),
    [
        ("2026-11-17T09:00", "Europe/Berlin", "2026-11-17T08:00:00Z", Wall.ONCE),
        ("2026-11-17 09:00:30", "Europe/Istanbul", "2026-11-17T06:00:30Z", Wall.ONCE),
        ("2026-11-17", "America/New_York", "2026-11-17T05:00:00Z", Wall.ONCE),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00:00Z", Wall.LEAPT),
        ("2026-03-08T02:00", "America/New_York", "2026-03-08T07:00:00Z", Wall.LEAPT),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", Wall.TWICE),
        ("2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00Z", Wall.TWICE),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", Wall.TWICE),
        ("2011-12-30", "Pacific/Apia", "2011-12-30T10:00:00Z", Wall.LEAPT),
    ],
)
def test_a_wall_time_is_what_the_clock_of_the_zone_shows(text: str, zone: str, instant: str, wall: Wall) -> None:
    found = read(text, zone)
    assert (to_rfc3339(found.instant), found.wall) == (instant, wall)


@pytest.mark.parametrize(
    ("text", "zone", "why"),
    [
        ("2026-11-17T09:00", None, "without a time zone"),
        ("2026-11-17", None, "without a time zone"),
        ("2026-02-30T09:00", "UTC", "does not exist"),
        ("2026-11-17T25:00", "UTC", "does not exist"),
        ("2026-11-17T25:00:00Z", "UTC", "not a valid date and time"),
        ("1800-01-01T00:00", "UTC", "outside the years"),
        ("9999-12-31", "UTC", "outside the years"),
        ("999999999w", "UTC", "exceeds 100 years"),
        ("P40000D", "UTC", "exceeds 100 years"),
        ("P1M", "UTC", "no fixed length"),
        ("tomorrow", "UTC", "is not a time"),
        ("--4h", "UTC", "is not a time"),
        ("-2026-11-17", "UTC", "is not a time"),
        ("-99 years", "UTC", "is not a time"),
        ("14400", "UTC", "is not a time"),
        ("", "UTC", "is not a time"),
        ("٢٠٢٦-١١-١٧", "UTC", "is not a time"),
        ("4h" * 40, "UTC", "too long"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words_that_name_the_field(text: str, zone: str | None, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why) as refused:
        read(text, zone)
    assert (refused.value.field, refused.value.message[:7]) == ("until", "until: ")
