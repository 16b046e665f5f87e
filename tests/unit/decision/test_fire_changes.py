"""What an edit does to fires, by name: which come, which go, and which are the same at another time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from horarium.core.decision.facts import NO_FACTS
from horarium.core.decision.year import (
    COMPARED,
    MAX_CHANGES,
    MAX_COMPARED,
    ComingFire,
    FireComparison,
    coming_fires,
    compare_fires,
)
from horarium.core.document.calendar import parse_calendar
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.core.recurrence.zone import load_zone
from horarium.instant import HOUR, MINUTE, SECOND, from_rfc3339, to_rfc3339

NOW = from_rfc3339("2026-03-03T12:00:00Z")  # a Tuesday
UTC = load_zone("UTC")
BEGUN = Position(decided_until=NOW, next_due=None)


def spec(*crons: str, **more: Any) -> Spec:
    return compile_spec(cron_expressions=list(crons), **more)


def compared(before: Spec | None, after: Spec) -> FireComparison:
    old, new = (
        iter(()) if each is None else coming_fires(Planning(each), BEGUN, NO_FACTS, now=NOW) for each in (before, after)
    )
    return compare_fires(old, new, after.zone, now=NOW)


def short(moment: int) -> str:
    return to_rfc3339(moment)[5:16]


DAILY_AT_8 = spec("0 8 * * *")
# Each row: the spec before and after, then the first of what is added, removed and moved.
ROWS: dict[str, tuple[Spec | None, Spec, list[str], list[str], list[tuple[str, str]]]] = {
    "nothing": (DAILY_AT_8, DAILY_AT_8, [], [], []),
    "new": (None, DAILY_AT_8, ["03-04T08:00", "03-05T08:00"], [], []),
    "an hour later": (DAILY_AT_8, spec("0 9 * * *"), [], [], [("03-04T08:00", "03-04T09:00")]),
    # Today's 08:00 is over, so that 21:00 comes on top; from tomorrow on it is the fire of the same day.
    "later on each day": (DAILY_AT_8, spec("0 21 * * *"), ["03-03T21:00"], [], [("03-04T08:00", "03-04T21:00")]),
    "earlier on each day": (
        spec("0 23 * * *"), spec("0 1 * * *"), [], ["03-03T23:00"], [("03-04T23:00", "03-04T01:00")],
    ),
    "another zone": (
        DAILY_AT_8, spec("0 8 * * *", timezone="Europe/Istanbul"), [], [], [("03-04T08:00", "03-04T05:00")],
    ),
    "another weekday": (spec("0 8 * * 1"), spec("0 8 * * 2"), [], [], [("03-09T08:00", "03-10T08:00")]),
    "a nearer weekday": (spec("0 8 * * 1"), spec("0 8 * * 4"), ["03-05T08:00"], [], [("03-09T08:00", "03-12T08:00")]),
    "too far": (spec("0 8 1 * *"), spec("0 8 15 * *"), ["03-15T08:00"], ["04-01T08:00"], []),
    "half as often": (spec("0 * * * *"), spec("0 */2 * * *"), [], ["03-03T13:00", "03-03T15:00"], []),
    "one more": (DAILY_AT_8, spec("0 8,20 * * *"), ["03-03T20:00", "03-04T20:00"], [], []),
    "at other minutes": (
        spec("30 * * * *"), spec("20,40 * * * *"), ["03-03T12:20", "03-03T13:20"], [],
        [("03-03T12:30", "03-03T12:40"), ("03-03T13:30", "03-03T13:40")],
    ),
    "an end": (DAILY_AT_8, spec("0 8 * * *", end_at=NOW + 24 * HOUR), [], ["03-05T08:00", "03-06T08:00"], []),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after", "added", "removed", "moved"), ROWS.values(), ids=ROWS)
def test_a_change_of_spec_is_told_fire_by_fire(
    before: Spec | None, after: Spec, added: list[str], removed: list[str], moved: list[tuple[str, str]]
) -> None:
    found = compared(before, after)
    assert [short(each) for each in found.added][: len(added) or 1] == added
    assert [short(each) for each in found.removed][: len(removed) or 1] == removed
    assert [(short(each.before), short(each.after)) for each in found.moved][: len(moved) or 1] == moved


def test_what_is_told_is_all_there_is_up_to_its_end() -> None:
    before, after = spec("0 8 * * 1"), spec("0 8 * * 1", "30 9 * * *")
    found = compared(before, after)
    assert found.bounded
    assert len(found.added) == MAX_CHANGES
    assert found.until == found.added[-1]
    assert after.count(NOW, found.until) - before.count(NOW, found.until) == MAX_CHANGES


def test_few_changes_are_those_of_a_year() -> None:
    found = compared(spec("0 8 1 * *"), spec("0 8 15 * *"))
    assert (found.until, found.bounded) == (NOW + COMPARED, False)
    assert (len(found.added), len(found.removed)) == (12, 12)


def test_a_fire_that_moves_past_the_end_has_moved() -> None:
    """Each fire is a pair of changes: the last one that is told must not lose its other half."""
    one_more = "0 0 4 3 *"  # so that the hundredth change is the first half of a pair
    for found in (
        compared(DAILY_AT_8, spec("0 9 * * *", one_more)),
        compared(spec("0 8 * * 1"), spec("0 8 * * 2", one_more)),
    ):
        assert found.bounded
        assert len(found.added) == 1
        assert not found.removed
        assert len(found.moved) == MAX_CHANGES // 2
        assert found.moved[-1].before == found.until < found.moved[-1].after


def test_of_seconds_only_the_first_are_looked_at() -> None:
    every = spec("* * * * * *")
    found = compared(every, every)
    assert found == FireComparison((), (), (), NOW + MAX_COMPARED * SECOND, bounded=True)


def test_what_never_fires_ends_as_well() -> None:
    def refused() -> Iterator[ComingFire]:
        return (ComingFire(NOW + each * MINUTE, fires=False) for each in count(1))

    assert compare_fires(refused(), refused(), UTC, now=NOW).bounded


def test_calendars_and_runs_that_are_left_take_fires_away() -> None:
    only = parse_calendar({"name": "chosen", "kind": "only_dates", "dates": ["2026-03-07", "2026-03-08"]})
    facts = NO_FACTS._replace(calendars={"chosen": only})
    plain = Planning(DAILY_AT_8)
    guarded = Planning(DAILY_AT_8, calendars=("chosen",), max_runs=2)
    old, new = (coming_fires(each, BEGUN._replace(runs_born=1), facts, now=NOW) for each in (plain, guarded))
    found = compare_fires(old, new, UTC, now=NOW)
    assert [short(each) for each in found.removed[:4]] == ["03-04T08:00", "03-05T08:00", "03-06T08:00", "03-08T08:00"]
    assert not found.added
    assert not found.moved


def test_the_days_are_those_of_the_zone() -> None:
    """23:30 and 00:30 in Auckland are two days there, and one in UTC."""
    auckland = "Pacific/Auckland"
    found = compared(spec("30 23 * * *", timezone=auckland), spec("30 0 * * *", timezone=auckland))
    first = found.moved[0]
    zone = load_zone(auckland)
    days = {(each // SECOND + zone.offset_at(each // SECOND)) // 86_400 for each in (first.before, first.after)}
    assert len(days) == 1
