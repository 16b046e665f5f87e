"""Backward is the inverse of forward, and counting is enumerating, with no judge but the engine itself."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from unit.recurrence import walker
from unit.recurrence.expressions import dst_folds, dst_gaps, expressions

from horarium import InvalidSpec
from horarium.core.recurrence.cron import compile_cron
from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap
from horarium.core.recurrence.zone import load_zone

pytestmark = pytest.mark.repeats
HOUR = 3600
DAY = 24 * HOUR
ZONES = [
    "UTC", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Europe/Dublin", "Antarctica/Troll",
    "Africa/Casablanca", "Asia/Beirut", "Pacific/Apia", "Asia/Pyongyang", "America/Havana", "Pacific/Chatham",
]  # fmt: skip
COMMON = ["30 2 * * *", "0 0 * * *", "*/15 * * * *", "0 */2 * * *", "0,30 0-3 * * *", "15 1 L * MON#2", "0 9 * * 1-5"]


def forward(schedule: CronSchedule, after: int, most: int) -> list[int]:
    found: list[int] = []
    at = schedule.next_after(after)
    while at is not None and len(found) < most:
        found.append(at)
        at = schedule.next_after(at)
    return found


def check_inverse(schedule: CronSchedule, after: int, most: int = 24) -> None:
    fires = forward(schedule, after, most)
    assert fires == sorted(set(fires))
    for earlier, later in pairwise(fires):
        middle = (earlier + later) // 2
        assert schedule.previous_before(later) == earlier
        assert schedule.previous_before(earlier + 1) == earlier
        assert schedule.next_after(later - 1) == later
        if earlier < middle:
            assert schedule.previous_before(middle + 1) == earlier
            assert schedule.next_after(middle) == later
            assert not schedule.contains(middle) or middle == later
        assert schedule.contains(later)
    for place, fire in enumerate(fires):
        assert schedule.count(after, fire) == place + 1
        assert schedule.count(after, fire - 1) == place
        assert schedule.count(fire, fires[-1]) == len(fires) - place - 1


def near_a_change(name: str, year: int, hours: int) -> int:
    found = walker.changes(walker.zone(name), year, year + 1)
    return (found[0].at if found else 1_600_000_000) + hours * HOUR


@pytest.mark.parametrize("name", ZONES)
def test_previous_undoes_next_round_clock_changes(name: str) -> None:
    for expr, dst_gap, dst_fold in product(COMMON, DstGap, DstFold):
        schedule = CronSchedule(compile_cron(expr), load_zone(name), dst_gap=dst_gap, dst_fold=dst_fold)
        for year in (2011, 2018):
            # Near enough for the densest of them to get past the change.
            check_inverse(schedule, near_a_change(name, year, -3))


@settings(derandomize=True, deadline=None, max_examples=250)
@given(st.sampled_from(ZONES), expressions, dst_gaps, dst_folds, st.integers(1990, 2040), st.integers(-2000, 2000))
def test_previous_undoes_next_for_drawn_expressions(
    name: str, expr: str, dst_gap: str, dst_fold: str, year: int, hours: int
) -> None:
    try:
        cron = compile_cron(expr)
    except InvalidSpec:
        reject()
    schedule = CronSchedule(cron, load_zone(name), dst_gap=DstGap(dst_gap), dst_fold=DstFold(dst_fold))
    check_inverse(schedule, near_a_change(name, year, hours), most=12)


@pytest.mark.parametrize("name", ZONES)
def test_counts_of_neighbouring_spans_add_up(name: str) -> None:
    start = near_a_change(name, 2011, -400)
    cuts = [start + part * 97 * HOUR + part * 13 for part in range(12)]
    for expr in COMMON:
        schedule = CronSchedule(compile_cron(expr), load_zone(name))
        counted = sum(schedule.count(low, high) for low, high in pairwise(cuts))
        assert counted == schedule.count(cuts[0], cuts[-1]), expr
        assert counted == len([fire for fire in forward(schedule, cuts[0], 10_000) if fire <= cuts[-1]]), expr


def test_an_empty_span_holds_nothing() -> None:
    schedule = CronSchedule(compile_cron("* * * * *"), load_zone("UTC"))
    assert schedule.count(1_600_000_020, 1_600_000_020) == 0
    assert schedule.count(1_600_000_020, 1_500_000_000) == 0


def test_counting_thirty_years_of_minutes_gives_all_of_them() -> None:
    schedule = CronSchedule(compile_cron("* * * * *"), load_zone("America/New_York"))
    start = 1_577_836_800
    assert schedule.count(start, start + 30 * 365 * DAY) == 30 * 365 * 1440
