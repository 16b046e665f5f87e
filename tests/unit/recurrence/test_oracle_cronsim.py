"""Other people's cron libraries agree with the engine, except where they are known to be wrong.

cronsim follows Debian's cron; near clock changes it differs (repeated hours of wildcard jobs, half-hour
shifts, gaps at midnight), and there the walker decides. croniter is asked in UTC only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from unit.recurrence import walker
from unit.recurrence.expressions import (
    date_fields,
    hour_fields,
    minute_fields,
    month_fields,
    second_fields,
    weekday_fields,
)

from horarium import InvalidSpec, next_fires

pytestmark = pytest.mark.repeats
ZONES = [
    "UTC", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Amman", "Asia/Kathmandu",
    "Asia/Kolkata", "Asia/Tokyo", "Australia/Sydney", "Europe/Berlin", "Europe/Dublin", "Europe/Riga",
]  # fmt: skip
SINCE = datetime(2018, 1, 1, tzinfo=UTC)


def shared_with_cronsim(field: str) -> bool:
    """cronsim has no `nW`, `?` or `FRIL`, reads `5-5/2` as `5/2`, and lets a weekday step run to 7."""
    for item in field.upper().split(","):
        head, _, step = item.partition("/")
        low, _, high = head.partition("-")
        if "?" in item or (item.endswith("W") and item != "LW") or (step and high and low == high):
            return False
        if item.endswith("L") and not (item == "L" or item[:-1].isdigit()):
            return False
    return True


def weekday_shared_with_cronsim(field: str) -> bool:
    return shared_with_cronsim(field) and ("/" not in field or field.startswith("*/"))


date_shared = date_fields.filter(shared_with_cronsim)
weekday_shared = weekday_fields.filter(weekday_shared_with_cronsim) | st.just("*")
times = st.tuples(minute_fields.filter(shared_with_cronsim), hour_fields.filter(shared_with_cronsim)).map(" ".join)
days = st.tuples(date_shared, month_fields.filter(shared_with_cronsim), weekday_shared).map(" ".join)
five = st.tuples(times, st.just("* * *") | days).map(" ".join)
six = st.tuples(second_fields, times, days).map(" ".join)
moments = st.integers(0, 12 * 366 * 86_400).map(lambda seconds: SINCE + timedelta(seconds=seconds))


def ours(expr: str, zone: str, after: datetime, count: int) -> list[datetime]:
    try:
        return next_fires(expr, timezone=zone, after=after, count=count)
    except InvalidSpec:
        assert not walker.ever_fires(expr, int(after.timestamp())), expr
        reject()


def cronsims(expr: str, zone: str, after: datetime, count: int) -> list[datetime]:
    start = after.astimezone(UTC if zone == "UTC" else walker.zone(zone))
    return [fire.astimezone(UTC) for fire in islice(CronSim(expr, start), count)]


def has_a_change(zone: str, after: datetime, until: datetime) -> bool:
    """A day of margin: a job moved out of a gap, or left out of a repeated hour, may lie on either side."""
    low, high = after.timestamp() - 86_400, until.timestamp() + 86_400
    return any(low <= change.at <= high for change in walker.changes(walker.zone(zone), after.year - 1, until.year + 1))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(five | six, st.sampled_from(ZONES), moments)
def test_cronsim_gives_the_same_fires_or_the_walker_overrules_it(expr: str, zone: str, after: datetime) -> None:
    answered = ours(expr, zone, after, 4)
    expected = cronsims(expr, zone, after, 4)
    if answered != expected:
        until = max(answered[-1], expected[-1])
        assert has_a_change(zone, after, until), (expr, zone, after, answered, expected)
        judged = walker.fires(expr, walker.zone(zone), int(after.timestamp()), int(answered[-1].timestamp()))
        assert [int(fire.timestamp()) for fire in answered] == judged


@settings(derandomize=True, deadline=None, max_examples=300)
@given(five | six, st.sampled_from(["UTC", "Asia/Kolkata", "Asia/Tokyo", "Asia/Kathmandu"]), moments)
def test_cronsim_gives_the_same_fires_where_clocks_never_change(expr: str, zone: str, after: datetime) -> None:
    assert ours(expr, zone, after, 6) == cronsims(expr, zone, after, 6)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Riga", "Europe/London", "Australia/Sydney"])
@pytest.mark.parametrize("expr", ["30 1 * * *", "30 2 * * *", "0 3 * * *", "15,45 1,2,3 * * *", "0 2 * * 0"])
def test_cronsim_gives_the_same_fires_for_fixed_times_at_plain_clock_changes(expr: str, zone: str) -> None:
    for change in walker.changes(walker.zone(zone), 2020, 2030):
        after = datetime.fromtimestamp(change.at - 30 * 3600, UTC)
        assert ours(expr, zone, after, 12) == cronsims(expr, zone, after, 12)


# ---- croniter -------------------------------------------------------------------------------------------

# Where its reading is ours: no star with a step in a day field, no step from a single value.
simple_minutes = st.sampled_from(["0", "*", "*/15", "7,22,59", "10-20", "0-59/7"])
simple_hours = st.sampled_from(["0", "*", "*/6", "3,15", "9-17", "1-23/5"])
simple_dates = st.sampled_from(["*", "1", "13", "29", "31", "1,15", "10-12", "L"])
simple_months = st.sampled_from(["*", "2", "jan,jul", "4-6", "*/3", "12"])
simple_weekdays = st.sampled_from(["*", "0", "7", "mon", "mon-fri", "2,4", "1-5/2", "sat", "fri#2"])


@settings(derandomize=True, deadline=None, max_examples=250)
@given(st.tuples(simple_minutes, simple_hours, simple_dates, simple_months, simple_weekdays), moments)
def test_croniter_gives_the_same_fires_for_simple_expressions(fields: tuple[str, ...], after: datetime) -> None:
    # croniter refuses `#` beside a restricted day of the month, and gives up on `31` beside a weekday in February.
    assume("#" not in fields[4] or fields[2] == "*")
    assume(fields[2:4] != ("31", "2"))
    expr = " ".join(fields)
    answered = ours(expr, "UTC", after, 4)
    oracle = croniter(expr, after)
    assert answered == [oracle.get_next(datetime) for _ in answered]
