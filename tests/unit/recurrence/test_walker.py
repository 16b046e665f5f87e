"""Engine and walker give the same fires round the clock changes of every zone, wherever one asks from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from unit.recurrence import walker
from unit.recurrence.expressions import dst_folds, dst_gaps, expressions
from unit.recurrence.walker import Change

from horarium import InvalidSpec
from horarium.core.recurrence.cron import compile_cron
from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap
from horarium.core.recurrence.zone import load_zone

pytestmark = pytest.mark.repeats
HOUR = 3600
DAY = 24 * HOUR
FIRST_YEAR, LAST_YEAR = 2020, 2037
CHOICES = list(product(DstGap, DstFold))

CHANGING = [name for name in walker.zone_names() if walker.changes(walker.zone(name), FIRST_YEAR, LAST_YEAR)]

# Half-hour and two-hour shifts, a lost day, winter time as the "saving" one, changes at 00:01, new standard times.
ODD = {
    "Pacific/Apia": (2009, 2013),
    "Australia/Lord_Howe": (2018, 2024),
    "Europe/Dublin": (2019, 2024),
    "Antarctica/Troll": (2010, 2024),
    "Africa/Casablanca": (2018, 2026),
    "America/St_Johns": (2006, 2012),
    "Asia/Pyongyang": (2015, 2018),
    "Asia/Kathmandu": (1985, 1986),
    "America/Caracas": (2007, 2016),
    "Pacific/Kwajalein": (1993, 1993),
    "Pacific/Kiritimati": (1979, 1995),
    "Asia/Manila": (1978, 1990),
    "America/Asuncion": (2020, 2024),
    "Pacific/Chatham": (2022, 2024),
    "Asia/Gaza": (2020, 2026),
    "Africa/Monrovia": (1971, 1972),
    "Africa/Juba": (2021, 2021),
    "Europe/Volgograd": (2018, 2020),
}


# ---- how they are compared ------------------------------------------------------------------------------


def engine(expr: str, name: str, dst_gap: str = "next_valid", dst_fold: str = "first") -> CronSchedule:
    return CronSchedule(compile_cron(expr), load_zone(name), dst_gap=DstGap(dst_gap), dst_fold=DstFold(dst_fold))


def enumerate_fires(schedule: CronSchedule, after: int, until: int) -> Iterator[int]:
    at = schedule.next_after(after)
    while at is not None and at <= until:
        yield at
        at = schedule.next_after(at)


def moments_to_ask_from(change: Change) -> list[int]:
    """Before, inside and after the gap or repeated hour, to the second at its edges."""
    size = abs(change.size)
    edges = (change.at - size, change.at, change.at + size)
    near = [edge + shift for edge in edges for shift in (-1, 0, 1)]
    inside = [change.at + size * part // 4 for part in (-3, -2, -1, 1, 2, 3)]
    return near + inside


def compare(expr: str, name: str, after: int, until: int, moments: list[int], *choice: str) -> None:
    schedule = engine(expr, name, *choice)
    dst_gap, dst_fold = choice or ("next_valid", "first")
    expected = walker.fires(expr, walker.zone(name), after, until, dst_gap=dst_gap, dst_fold=dst_fold)
    told = f"{expr!r} in {name}, {dst_gap}, {dst_fold}"
    assert list(enumerate_fires(schedule, after, until)) == expected, told
    assert schedule.count(after, until) == len(expected), told
    for moment in moments:
        assert after < moment <= until
        compare_from(schedule, expected, moment, (after, until), f"{told}, asked from {moment}")


def compare_from(schedule: CronSchedule, expected: list[int], moment: int, span: tuple[int, int], told: str) -> None:
    """All four questions from one moment; beyond the span the walker has not looked."""
    after, until = span
    earlier, later = bisect_left(expected, moment), bisect_right(expected, moment)
    following, preceding = schedule.next_after(moment), schedule.previous_before(moment)
    if later < len(expected):
        assert following == expected[later], f"next, {told}"
    else:
        assert following is None or following > until, f"next, {told}"
    if earlier > 0:
        assert preceding == expected[earlier - 1], f"previous, {told}"
    else:
        assert preceding is None or preceding <= after, f"previous, {told}"
    assert schedule.contains(moment) == (earlier < later), f"contains, {told}"
    assert schedule.count(moment, until) == len(expected) - later, f"count, {told}"
    assert schedule.count(after, moment) == later, f"count, {told}"


def shapes(change: Change) -> list[str]:
    """Expressions that aim at this change: its hours, minutes and date."""
    low = change.at + min(change.before, change.after)
    inside = datetime.fromtimestamp(low + abs(change.size) // 2, UTC)
    edge = datetime.fromtimestamp(low, UTC)
    minute, hour = inside.minute, inside.hour
    hours = ",".join(str(h) for h in sorted({edge.hour, hour, (hour + 1) % 24, (edge.hour - 1) % 24}))
    return [
        f"{minute} {hour} * * *",
        f"{edge.minute},{minute}/13 {hours} * * *",
        f"*/20 {hour} * * *",
        f"{minute} * * * {inside.isoweekday()}",
        f"{edge.minute} */2 * * *",
        f"*/20 {minute},{edge.minute} {hour} * * *",
        f"{minute} {hour} {inside.day} * {edge.isoweekday()}",
        f"*/45 */3 {inside.day} {inside.month} *",
    ]


# ---- the walker itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia"])
def test_a_wildcard_in_the_walker_is_every_minute_that_reads_so(name: str) -> None:
    tz = walker.zone(name)
    for change in walker.changes(tz, 2009, 2012):
        start = change.at - change.at % 60 - DAY
        minutes = range(start + 60, start + 2 * DAY + 60, 60)
        for expr in ("*/7 * * * *", "13 */2 * * *", "* 0-3 * * *"):
            walk = walker.read(expr)
            readings = [(at, walker.reading(tz, at)) for at in minutes]
            plain = [at for at, wall in readings if wall.minute in walk.minutes and wall.hour in walk.hours]
            assert walker.fires(expr, tz, start, start + 2 * DAY) == plain


def test_the_weekly_look_of_the_walker_misses_no_change() -> None:
    """The daily look is too slow for all years of all zones, so the odd ones stand for them."""
    for name, (first, last) in ODD.items():
        tz = walker.zone(name)
        start, end = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first, last + 1))
        daily = [
            walker.first_at(tz, at, at + DAY)
            for at in range(start, end, DAY)
            if walker.offset(tz, at) != walker.offset(tz, at + DAY)
        ]
        assert [change.at for change in walker.changes(tz, first, last) if change.at < end] == daily
        assert daily, name


# ---- the engine -----------------------------------------------------------------------------------------


# "Factory" is the placeholder of a machine whose zone was never set; it is no place, and may be refused.
PLACES = [name for name in walker.zone_names() if name != "Factory"]
SHARES = 6  # a test for each zone takes longer than its content


@pytest.mark.parametrize("share", range(SHARES))
def test_the_offsets_of_a_zone_are_those_of_zoneinfo(share: int) -> None:
    """A link is asked about its years only, which shows that it names the right zone."""
    years = [int(datetime(year, month, 1, tzinfo=UTC).timestamp()) for year in range(1905, 2140, 9) for month in (1, 7)]
    for name in PLACES[share::SHARES]:
        tz, ours = walker.zone(name), load_zone(name)
        clock_changes = [] if walker.is_link(name) else walker.changes(tz, 1970, 2040)
        edges = [change.at + shift for change in clock_changes for shift in (-1, 0, 1)]
        for at in edges + years:
            segment = ours.segment_at(at)
            assert segment.start <= at < segment.stop, (name, at)
            assert segment.offset == walker.offset(tz, at), (name, at)
            if segment.start in edges:
                assert segment.before == walker.offset(tz, segment.start - 1), (name, at)


@pytest.mark.parametrize("last_year", [2022, pytest.param(LAST_YEAR, marks=pytest.mark.long)])
@pytest.mark.parametrize("share", range(SHARES))
def test_round_every_clock_change_of_these_years_they_agree(share: int, last_year: int) -> None:
    """A link is asked about one year only: its rules are those of the zone it names. A full run goes on
    to the last year."""
    first_of: dict[bytes, str] = {}
    for name in CHANGING:
        first_of.setdefault(walker.zone_bytes(name), name)
    for name in CHANGING[share::SHARES]:
        is_first = first_of[walker.zone_bytes(name)] == name
        clock_changes = walker.changes(walker.zone(name), FIRST_YEAR, last_year)
        for number, change in enumerate(clock_changes if is_first else clock_changes[:2]):
            after, until = change.at - 30 * HOUR, change.at + 30 * HOUR
            for place, expr in enumerate(shapes(change)):
                choice = CHOICES[(number + place) % len(CHOICES)] if number >= 2 else ()
                compare(expr, name, after, until, moments_to_ask_from(change)[number // 2 % 2 :: 2], *choice)


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(("dst_gap", "dst_fold"), CHOICES)
@pytest.mark.parametrize("name", ODD)
def test_in_odd_zones_they_agree_on_every_choice(name: str, dst_gap: str, dst_fold: str, share: int) -> None:
    """The choices share the moments to ask from; a full run asks each of them from every moment."""
    begin = CHOICES.index((DstGap(dst_gap), DstFold(dst_fold))) % share
    for change in walker.changes(walker.zone(name), *ODD[name]):
        after, until = change.at - 3 * DAY, change.at + 3 * DAY
        for expr in (*shapes(change), "0 0 * * *", "30 0 L * 5", "0,30 0-4,23 * * *", "15,45 30 1-3 15W,LW * 0L"):
            compare(expr, name, after, until, moments_to_ask_from(change)[begin::share], dst_gap, dst_fold)


@pytest.mark.parametrize("expr", ["0 12 * * *", "0 0 30 12 *", "*/10 * * * *", "0 */5 * * FRI", "0 9 LW * *"])
def test_the_lost_day_of_samoa_looks_the_same_from_every_hour(expr: str) -> None:
    lost = int(datetime(2011, 12, 30, 10, tzinfo=UTC).timestamp())
    moments = [lost + hour * HOUR + shift for hour in range(-30, 31, 3) for shift in (-1, 0, 1, 1799)]
    for choice in CHOICES:
        compare(expr, "Pacific/Apia", lost - 3 * DAY, lost + 3 * DAY, moments, *choice)


@pytest.mark.parametrize("name", ["UTC", "America/New_York", "Australia/Lord_Howe"])
def test_every_second_is_a_fire_where_all_is_starred(name: str) -> None:
    schedule = engine("* * * * * *", name)
    for change in walker.changes(walker.zone(name), 2026, 2026) or [Change(1_790_000_000, 0, 3600)]:
        start = change.at - 2 * HOUR
        assert list(enumerate_fires(schedule, start, start + 4 * HOUR)) == list(range(start + 1, start + 4 * HOUR + 1))
        assert schedule.count(start, start + 4 * HOUR) == 4 * HOUR


# ---- with drawn expressions -----------------------------------------------------------------------------


@st.composite
def clock_changes(draw: st.DrawFn) -> tuple[str, Change]:
    name = draw(st.sampled_from(sorted(ODD)) | st.sampled_from(CHANGING))
    years = ODD.get(name, (FIRST_YEAR, LAST_YEAR))
    return name, draw(st.sampled_from(walker.changes(walker.zone(name), *years)))


def compile_or_never(expr: str, after: int) -> bool:
    """Whether the engine takes it; it may refuse only what no date of the years to come matches."""
    try:
        compile_cron(expr)
    except InvalidSpec:
        assert not walker.ever_fires(expr, after), expr
        return False
    return True


@settings(derandomize=True, deadline=None, max_examples=150)
@given(clock_changes(), expressions, dst_gaps, dst_folds, st.lists(st.integers(-3 * HOUR, 3 * HOUR), max_size=4))
def test_they_agree_on_drawn_expressions_near_clock_changes(
    where: tuple[str, Change], expr: str, dst_gap: str, dst_fold: str, shifts: list[int]
) -> None:
    name, change = where
    assume(compile_or_never(expr, change.at))
    # A sparse expression gets a span in which its day fields can show what they mean.
    reach = 50 * DAY if walker.read(expr).times_per_day <= 24 else 36 * HOUR
    moments = moments_to_ask_from(change) + [change.at + shift for shift in shifts]
    compare(expr, name, change.at - reach, change.at + reach, moments, dst_gap, dst_fold)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.tuples(expressions.filter(lambda expr: walker.read(expr).times_per_day <= 4), st.integers(0, 2**32)))
def test_they_agree_on_drawn_days_over_fourteen_months(drawn: tuple[str, int]) -> None:
    expr, after = drawn
    assume(compile_or_never(expr, after))
    compare(expr, "UTC", after, after + 425 * DAY, [after + 1, after + 1000 * HOUR])
