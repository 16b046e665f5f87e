"""Several parts are counted together without being walked, and the answer is that of the walk."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horarium.core.recurrence.cron import Cron
from horarium.core.recurrence.parts import CronSchedule, Interval, Union, unite
from horarium.core.recurrence.spec import OneOffs, Spec, compile_spec
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_rfc3339

stable = settings(derandomize=True, deadline=None, max_examples=120)

# New York leaves an hour out and repeats one, Lord Howe half an hour; Apia lost a whole day, the 30th.
CHANGES = {
    "America/New_York": ("2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"),
    "Australia/Lord_Howe": ("2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"),
    "Pacific/Apia": ("2011-12-30T10:00:00Z",),
    "UTC": ("2026-05-04T12:00:00Z",),
}
CRONS = [
    "*/20 * * * * *",
    "* * * * *",
    "*/7 * * * *",
    "30 * * * *",
    "15,45 2 * * *",
    "0 2 * * *",
    "10 0,1,2,3 * * *",
    "*/10 1-2 * * SUN",
    "0 0 L * *",
    "30 1 1,15 * FRI",
]
INTERVALS = ["PT1M", "PT5M", "PT97S", "PT1H30M", "PT7H", "P1D", "P3D", "P1DT1S", "PT86399S"]


def walked(spec: Spec, after: Instant, until: Instant) -> list[Instant]:
    return list(takewhile(lambda nominal: nominal <= until, spec.occurrences(after)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Spec, Instant, Instant]:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    near = from_rfc3339(draw(st.sampled_from(CHANGES[zone])))
    after = near - draw(st.integers(0, 3 * DAY))
    until = after + draw(st.integers(0, 6 * DAY))
    one_offs = draw(st.lists(st.integers(after // SECOND - 60, until // SECOND + 60), max_size=5))
    made: dict[str, Any] = {
        "cron_expressions": draw(st.lists(st.sampled_from(CRONS), max_size=4, unique=True)),
        "intervals": [
            {"every": every, "offset": f"PT{draw(st.integers(0, 200))}S"}
            for every in draw(st.lists(st.sampled_from(INTERVALS), max_size=3, unique=True))
        ],
        "timezone": zone,
        "dst_gap": draw(st.sampled_from(["next_valid", "skip"])),
        "dst_fold": draw(st.sampled_from(["first", "second", "both"])),
    }
    if not (made["cron_expressions"] or made["intervals"]):
        made["cron_expressions"] = ["0 * * * *"]
    spec = compile_spec(**made)
    extra = (OneOffs(tuple(sorted(set(one_offs)))),) if one_offs else ()
    return Spec((*spec.parts, *extra), spec.zone), after, until


@stable
@given(cases())
def test_a_union_is_counted_as_it_is_walked(case: tuple[Spec, Instant, Instant]) -> None:
    spec, after, until = case
    expected = walked(spec, after, until)
    assert spec.count(after, until) == len(expected)
    assert spec.counter()(after, until) == len(expected), "also where they are few"
    assert spec.steps(after, until) >= len(expected)


@stable
@given(cases(), st.integers(0, 60))
def test_the_newest_are_found_as_they_are_walked(case: tuple[Spec, Instant, Instant], most: int) -> None:
    spec, after, until = case
    last = walked(spec, after, until)[-most:] if most else []
    assert spec.newest(after, until, most) == (last[0] if last else None, len(last))


@stable
@given(cases())
def test_walked_together_parts_give_what_each_gives(case: tuple[Spec, Instant, Instant]) -> None:
    spec, after, until = case
    single: set[Instant] = set()
    for part in spec.parts:
        single.update(walked(Spec((part,), spec.zone), after, until))
    assert walked(spec, after, until) == sorted(single)


@pytest.mark.parametrize("zone", ["America/New_York", "Africa/Casablanca", "Europe/Dublin", "UTC"])
def test_a_century_is_the_sum_of_its_years(zone: str) -> None:
    spec = compile_spec(
        cron_expressions=["*/7 * * * *", "0 */3 * * *", "30 2 29 2 *", "15 9 * * MON#1"],
        intervals=[{"every": "PT50M"}, {"every": "P1D", "offset": "PT90M"}],
        timezone=zone,
    )
    years = [from_rfc3339(f"{year}-01-01T00:00:00Z") for year in range(1950, 2051)]
    parts = [spec.count(one, two) for one, two in pairwise(years)]
    assert spec.count(years[0], years[-1]) == sum(parts)
    assert parts[76] == len(walked(spec, years[76], years[77]))


def test_two_crons_of_seconds_over_a_century_are_counted_by_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 of 3 seconds have a match: those that 2 or 3 divides. 36,525 days of the years 1927 to 2026."""
    steps = 0
    real = Cron.next_local

    def counted(cron: Cron, local: int) -> int | None:
        nonlocal steps
        steps += 1
        return real(cron, local)

    monkeypatch.setattr(Cron, "next_local", counted)
    spec = compile_spec(cron_expressions=["*/2 * * * * *", "*/3 * * * * *"])
    end = from_rfc3339("2026-12-31T23:59:59Z")
    start = from_rfc3339("1926-12-31T23:59:59Z")
    assert spec.count(start, end) == 36_525 * 86_400 * 2 // 3
    first, found = spec.newest(start, end, 1_000)
    # Of every six seconds four match, the first among them: a thousand are in 1,500 seconds.
    assert (first, found) == (end - 1_499 * SECOND, 1_000)
    assert steps < 2_000


def test_what_all_parts_share_is_counted_once() -> None:
    spec = compile_spec(cron_expressions=["*/30 * * * *", "0 * * * *"], intervals=[{"every": "PT30M"}])
    midnight = from_rfc3339("2026-05-04T00:00:00Z")
    assert spec.count(midnight - 1, midnight + 365 * DAY - 1) == 48 * 365


def test_one_offs_count_where_nothing_else_is() -> None:
    midnight = from_rfc3339("2026-05-04T00:00:00Z")
    spec = compile_spec(
        cron_expressions=["* * * * *"], at=["2026-05-04T00:05:00Z", "2026-05-04T00:05:30Z", "2027-05-04T00:05:30Z"]
    )
    assert spec.count(midnight, midnight + DAY) == 1_441


EVER = 10**18
EARLY, LATE = from_rfc3339("1930-01-01T00:00:00Z"), from_rfc3339("9860-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("first", "last"),
    [(-EVER, EARLY), (LATE, EVER), pytest.param(-EVER, EVER, marks=pytest.mark.long)],
    ids=["the beginning", "the end", "all of it"],
)
def test_the_ends_of_time_are_counted_and_walked_alike(first: int, last: int) -> None:
    spec = compile_spec(cron_expressions=["0 0 1 1 *"], intervals=[{"every": "P36500D"}])
    assert spec.count(first, last) == len(walked(spec, first, last)) > 0
    cron = compile_spec(cron_expressions=["0 0 1 1 *"], timezone="Asia/Tokyo")
    nominals = walked(cron, first, last)
    assert cron.count(first, last) == len(nominals)
    assert cron.previous_before(last) == nominals[-1]
    if first == -EVER:
        assert cron.previous_before(nominals[0]) is None


def test_before_the_first_occurrence_there_is_none() -> None:
    single = compile_spec(intervals=[{"every": "P36500D"}])
    assert single.count(-EVER, EVER) == len(walked(single, -EVER, EVER))
    first = single.next_after(-EVER)
    assert first is not None
    assert single.previous_before(first) is None


def test_the_newest_of_nothing_are_none() -> None:
    spec = compile_spec(cron_expressions=["0 9 * * *", "0 10 * * *"])
    noon = from_rfc3339("2026-05-04T12:00:00Z")
    assert spec.newest(noon, noon + HOUR, 5) == (None, 0)
    assert spec.newest(noon, noon + DAY, 0) == (None, 0)
    assert spec.newest(noon, noon - HOUR, 5) == (None, 0)
    assert spec.newest(noon - 3 * DAY, noon, 10**9) == (noon - 2 * DAY - 3 * HOUR, 6)


def test_what_a_union_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.core.recurrence.parts._MAX_DAYS", 4)
    crons = tuple(part for part in compile_spec(cron_expressions=CRONS[:2]).parts if isinstance(part, CronSchedule))
    odd, begin = Union(crons, (Interval(97),)), from_rfc3339("2026-01-01T00:00:00Z") // SECOND
    steady = Union(crons, ())
    year = range(begin, begin + 365 * 86_400, 86_400)
    assert odd.count(year[0], year[-1]) == sum(odd.count(day, day + 86_400) for day in year[:-1])
    assert steady.count(year[0], year[-1]) == sum(steady.count(day, day + 86_400) for day in year[:-1])
    assert max(len(odd._days), len(steady._months)) <= 4


def test_specs_that_read_alike_share_a_union() -> None:
    spec = compile_spec(cron_expressions=CRONS[:2])
    crons = tuple(part for part in spec.parts if isinstance(part, CronSchedule))
    again = compile_spec(cron_expressions=CRONS[:2])
    assert unite(crons, ()) is unite(tuple(p for p in again.parts if isinstance(p, CronSchedule)), ())


def test_a_walk_of_several_parts_keeps_the_window() -> None:
    noon = from_rfc3339("2026-05-04T12:00:00Z")
    spec = compile_spec(cron_expressions=["0 * * * *", "30 * * * *"], start_at=noon + MINUTE, end_at=noon + 2 * HOUR)
    assert list(islice(spec.occurrences(noon - DAY), 9)) == [noon + n * 30 * MINUTE for n in (1, 2, 3, 4)]
