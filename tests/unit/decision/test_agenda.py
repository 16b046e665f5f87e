"""A fleet's occurrences become one list: in order, cut where it is long, counted by buckets."""

from __future__ import annotations

from itertools import islice

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position

from horarium.core.decision.agenda import (
    AgendaEntry,
    AgendaSource,
    Bucket,
    Grid,
    LaneCounts,
    arrange,
    buckets,
    comes_after,
    count_coming,
    counts_of,
    predict,
    undecided_after,
)
from horarium.core.decision.facts import Facts, SharedFacts
from horarium.core.decision.statuses import Forecast
from horarium.core.document.states import Status
from horarium.instant import DAY, HOUR, MINUTE, Instant

RUN, SKIP = Forecast.DISPATCH, Forecast.SKIP


def coming(
    name: str, cron: str, *, status: Status = Status.ACTIVE, paused_until: Instant | None = None
) -> AgendaSource:
    position = make_position(NOON, status=status)
    return AgendaSource(UID, name, make_planning(cron), position, NOON, Facts(), SharedFacts(), paused_until)


def test_schedules_are_merged_in_the_order_of_time() -> None:
    rows = predict([coming("b", "0,30 * * * *"), coming("a", "0 * * * *")], now=NOON, end=NOON + HOUR + MINUTE)
    assert [(row.at, row.schedule_id) for row in rows] == [
        (clock("12:30"), "b"), (clock("13:00"), "a"), (clock("13:00"), "b"),
    ]  # fmt: skip


def test_nobody_pays_for_rows_that_nobody_asks_for() -> None:
    many = [coming(f"s{number}", "* * * * *") for number in range(50)]
    assert len(list(islice(predict(many, now=NOON, end=NOON + 10_000 * DAY), 100))) == 100


def test_a_pause_that_ends_by_itself_is_foreseen() -> None:
    paused = coming("a", "0 * * * *", status=Status.PAUSED, paused_until=clock("14:00"))
    found = [(row.at, row.decision, row.reason) for row in predict([paused], now=NOON, end=clock("14:01"))]
    assert found == [(clock("13:00"), SKIP, "status_not_triggerable"), (clock("14:00"), RUN, None)]


@pytest.mark.parametrize(
    ("status", "start", "paused_until", "expected"),
    [
        (Status.ACTIVE, NOON, None, NOON - 1),
        (Status.ACTIVE, NOON - DAY, None, NOON - 2 * HOUR),
        (Status.PAUSED, NOON - DAY, None, NOON),
        (Status.PAUSED, NOON - DAY, NOON + HOUR, NOON),
        (Status.PAUSED, NOON - DAY, NOON - HOUR, NOON - HOUR - 1),
        (Status.ACTIVE, NOON + DAY, None, NOON + DAY - 1),
    ],
)
def test_what_is_decided_is_not_predicted(
    status: Status, start: Instant, paused_until: Instant | None, expected: Instant
) -> None:
    assert undecided_after(NOON - 2 * HOUR, status, start, NOON, paused_until) == expected


@pytest.mark.parametrize(
    ("due", "jitter", "expected"),
    [
        ((NOON - 1, "z"), 0, False),
        ((NOON, "a"), 0, False),
        ((NOON, "m"), 0, True),
        ((NOON, "z"), 0, True),
        ((NOON + HOUR, "a"), 0, True),
        ((NOON + HOUR, "z"), HOUR, False),
        ((NOON + HOUR + 1, "a"), HOUR, True),
    ],
)
def test_what_is_due_later_comes_after_a_row_by_its_time_and_its_name(
    due: tuple[Instant, str], jitter: Instant, expected: bool
) -> None:
    assert comes_after((NOON, "m"), due, jitter) is expected


def row(minute: int, **fields: object) -> AgendaEntry:
    return AgendaEntry(NOON + minute * MINUTE, "s", fields.pop("decision", RUN), **fields)  # type: ignore[arg-type]  # a table


@pytest.mark.parametrize(
    ("limit", "known_until", "minutes", "truncated"),
    [
        (9, None, [0, 1, 2, 3], False),
        (4, None, [0, 1, 2, 3], False),
        (3, None, [0, 1, 2], True),
        (9, NOON + MINUTE, [0, 1], True),
    ],
)
def test_a_list_is_cut_honestly(limit: int, known_until: Instant | None, minutes: list[int], truncated: bool) -> None:
    rows, is_cut = arrange([row(2), row(0)], [row(1), row(3)], limit=limit, known_until=known_until)
    assert ([(each.at - NOON) // MINUTE for each in rows], is_cut) == (minutes, truncated)


def test_buckets_count_starts_and_skips_and_leave_out_what_is_empty() -> None:
    rows = [row(0), row(1), row(2, decision=SKIP, count=3), row(180)]
    assert buckets(rows, NOON, 3_600) == (Bucket(NOON, 2, 3), Bucket(NOON + 3 * HOUR, 1, 0))


@pytest.mark.parametrize("cron", ["* * * * * *", "*/7 * * * *", "30 12 * * *"])
@pytest.mark.parametrize("minutes", [1, 13, 60])
def test_the_counts_of_the_coming_occurrences_are_those_of_the_rows(cron: str, minutes: int) -> None:
    seen, grid = coming("a", cron), Grid(NOON - 5 * MINUTE, NOON + HOUR + 7 * MINUTE, minutes * MINUTE)
    expected: dict[int, LaneCounts] = {}
    for row in predict([seen], now=NOON, end=grid.end):
        place = grid.place(row.at)
        expected[place] = expected.get(place, LaneCounts()).plus(counts_of(row.decision, row.reason, held=row.held))
    assert count_coming(seen, grid, now=NOON) == expected
    assert sum(counts.starts + counts.skips for counts in expected.values()) > 0
