"""ISO-8601 durations are whole seconds; what has no fixed length is refused with a hint."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.recurrence.zone import DAY, HOUR, MINUTE, WEEK, format_duration, parse_duration
from horarium.errors import InvalidSpec

READ = [
    ("PT30M", 30 * MINUTE),
    ("pt30m", 30 * MINUTE),
    ("PT1H30M", 90 * MINUTE),
    ("PT1H2M3S", HOUR + 2 * MINUTE + 3),
    ("P1D", DAY),
    ("P1DT12H", DAY + 12 * HOUR),
    ("P2W", 2 * WEEK),
    ("P1W2DT3S", WEEK + 2 * DAY + 3),
    ("PT90S", 90),
    ("PT0S", 0),
    ("P0D", 0),
    ("PT000000007S", 7),
    ("P36525D", 36_525 * DAY),
]


@pytest.mark.parametrize(("text", "seconds"), READ, ids=[row[0] for row in READ])
def test_a_duration_lasts_whole_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text, field="every") == seconds


REFUSED = [
    ("", "empty"),
    ("P", "not an ISO-8601"),
    ("PT", "not an ISO-8601"),
    ("P1DT", "not an ISO-8601"),
    ("T5M", "not an ISO-8601"),
    ("5M", "not an ISO-8601"),
    ("30", "not an ISO-8601"),
    ("PT5", "not an ISO-8601"),
    ("-PT5M", "not an ISO-8601"),
    ("PT-5M", "not an ISO-8601"),
    ("PT5M ", "not an ISO-8601"),
    ("PT5S5M", "not an ISO-8601"),
    ("P1D1W", "not an ISO-8601"),
    ("PT٣M", "not an ISO-8601"),
    ("PT1234567890S", "not an ISO-8601"),
    ("PT1.5H", "only integers"),
    ("PT1,5H", "only integers"),
    ("P1M", "months and years"),
    ("P1Y2DT3H", "months and years"),
    ("P36526D", "100 years"),
    ("PT999999999H", "100 years"),
    ("P" + "1" * 10_000 + "D", "too long"),
    ("\ud800", "not an ISO-8601"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[row[0][:12] or "empty" for row in REFUSED])
def test_what_is_no_duration_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidSpec, match=why) as refused:
        parse_duration(text, field="offset")
    assert refused.value.field == "offset"
    assert refused.value.message.startswith("offset: ")
    assert len(refused.value.message) < 200


def test_months_in_the_date_part_are_not_minutes_in_the_time_part() -> None:
    assert parse_duration("P1DT1M", field="every") == DAY + MINUTE
    with pytest.raises(InvalidSpec, match="cron expression"):
        parse_duration("P1M1DT1M", field="every")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "PT0S"),
        (1, "PT1S"),
        (90, "PT1M30S"),
        (5_400, "PT1H30M"),
        (86_400, "P1D"),
        (90_061, "P1DT1H1M1S"),
        (604_800, "P7D"),
        (86_403, "P1DT3S"),
    ],
)
def test_seconds_are_written_in_the_usual_form(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 36_525 * DAY))
def test_what_is_written_is_read_again(seconds: int) -> None:
    assert parse_duration(format_duration(seconds), field="every") == seconds
