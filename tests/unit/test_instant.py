"""Instants are whole microseconds: texts and datetimes become them and come back, and nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.errors import InvalidSpec
from horarium.instant import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    from_datetime,
    from_rfc3339,
    to_datetime,
    to_rfc3339,
)

NOON = 1_777_896_000 * SECOND

READ = [
    ("1970-01-01T00:00:00Z", 0),
    ("1969-12-31T23:59:59.999999Z", -1),
    ("2026-05-04T12:00:00Z", NOON),
    ("2026-05-04t12:00:00z", NOON),
    ("2026-05-04 12:00:00Z", NOON),
    ("2026-05-04T15:00:00+03:00", NOON),
    ("2026-05-04T06:30:00-05:30", NOON),
    ("2026-05-04T12:00:00-00:00", NOON),
    ("2026-05-04T12:00:00.5Z", NOON + SECOND // 2),
    ("2026-05-04T12:00:00.1234Z", NOON + 123_400),
    ("2026-05-04T12:00:00.000001Z", NOON + 1),
    ("2026-05-04T12:00:00.123456789+00:00", NOON + 123_456),
    ("2026-05-04T12:00:00.999999999Z", NOON + 999_999),
    ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
]


@pytest.mark.parametrize(("text", "instant"), READ, ids=[row[0] for row in READ])
def test_a_text_names_an_instant(text: str, instant: int) -> None:
    assert from_rfc3339(text) == instant


REFUSED = [
    "",
    "now",
    "2026-05-04",
    "2026-05-04T12:00Z",
    "2026-05-04T12:00:00",
    "2026-05-04T12:00:00+0300",
    "2026-05-04T12:00:00 Z",
    "2026-05-04T12:00:00Z\n",
    " 2026-05-04T12:00:00Z",
    "20260504T120000Z",
    "2026-W19-1T12:00:00Z",
    "2026-05-04T12:00:00.Z",
    "2026-05-04T12:00:00.1234567891Z",
    "2026-05-04T12:00:00,5Z",
    "2026-02-30T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "2026-05-04T24:00:00Z",
    "2026-05-04T12:60:00Z",
    "2026-06-30T23:59:60Z",
    "2026-05-04T12:00:00+24:00",
    "2026-05-04T12:00:00+05:99",
    "٢٠٢٦-05-04T12:00:00Z",
    "2026-05-04T12:00:00\ud800",
    "9" * 10_000,
    "2026-05-04T12:00:00." + "0" * 10_000 + "Z",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:40]))
def test_a_text_that_names_no_instant_is_refused_in_short_words(text: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        from_rfc3339(text, field="start_at")
    assert refused.value.field == "start_at"
    assert refused.value.message.startswith("start_at: ")
    assert len(refused.value.message) < 250


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_what_is_read_can_be_shown(text: str) -> None:
    """At the two ends of the calendar an offset can lead out of it; then the text must be refused."""
    try:
        instant = from_rfc3339(text)
    except InvalidSpec:
        return
    assert from_rfc3339(to_rfc3339(instant)) == instant


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (NOON, "2026-05-04T12:00:00Z"),
        (NOON + 1, "2026-05-04T12:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (from_rfc3339("0987-06-05T04:03:02Z"), "0987-06-05T04:03:02Z"),
        (from_rfc3339("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00Z"),
        (from_rfc3339("9999-12-31T23:59:59Z"), "9999-12-31T23:59:59Z"),
    ],
    ids=lambda value: str(value),
)
def test_an_instant_is_shown_in_utc_with_a_fraction_only_where_it_has_one(instant: int, text: str) -> None:
    assert to_rfc3339(instant) == text


def test_a_datetime_of_any_zone_becomes_the_same_instant() -> None:
    there = datetime(2026, 5, 4, 17, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert from_datetime(there) == from_datetime(datetime(2026, 5, 4, 12, tzinfo=UTC)) == NOON


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="after: the datetime has no time zone") as refused:
        from_datetime(datetime(2026, 5, 4), field="after")  # noqa: DTZ001 - the point of the test
    assert refused.value.field == "after"


def test_a_datetime_of_an_instant_is_aware() -> None:
    assert to_datetime(NOON) == datetime(2026, 5, 4, 12, tzinfo=UTC)
    assert to_datetime(NOON).tzinfo is UTC


def test_the_units_are_multiples_of_each_other() -> None:
    assert (SECOND, MINUTE, HOUR, DAY) == (10**6, 60 * SECOND, 60 * MINUTE, 24 * HOUR)


@settings(derandomize=True, deadline=None)
@given(st.integers(from_rfc3339("0001-01-01T00:00:00Z"), from_rfc3339("9999-12-31T23:59:59Z")))
def test_every_instant_of_the_calendar_comes_back_from_its_text_and_its_datetime(instant: int) -> None:
    assert from_rfc3339(to_rfc3339(instant)) == instant
    assert from_datetime(to_datetime(instant)) == instant
