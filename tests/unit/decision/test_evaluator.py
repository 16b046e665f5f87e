"""The forecast decides coming occurrences as the engine will, says how certain that is, and changes nothing."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.decision.evaluator import Forecaster
from horarium.decision.facts import NO_FACTS, Facts, RunTimes, Shared
from horarium.decision.forecast import Certainty, Forecast
from horarium.decision.forecast_rows import Row
from horarium.instant import HOUR, MINUTE, SECOND, Instant
from horarium.policy.limits import Budget
from horarium.policy.overlap import OverlapPolicy
from horarium.recurrence.spec import compile_spec
from horarium.schedule.calendar import Calendar, CalendarKind
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.reason import Reason

GO, SKIP = Forecast.DISPATCH, Forecast.SKIP
CERTAIN, LIKELY, UNKNOWN = Certainty.CERTAIN, Certainty.LIKELY, Certainty.UNKNOWN
BRIEF = RunTimes((), 8 * SECOND)
"""The history of a schedule whose runs take eight seconds."""


def forecaster(planning: Planning, facts: Facts = NO_FACTS, **rest: Any) -> Forecaster:
    options = {"now": NOON, "position": make_position(NOON), **rest}
    return Forecaster(planning, UID, options.pop("position"), facts, **options)


def look(
    planning: Planning, facts: Facts = NO_FACTS, *, after: Instant = NOON, rows: int = 5, **rest: Any
) -> list[Row]:
    return list(islice(forecaster(planning, facts, **rest).rows(after), rows))


def said(rows: list[Row]) -> list[tuple[Forecast, Certainty]]:
    return [(row.decision, row.certainty) for row in rows]


# ── what is decided ───────────────────────────────────────────────────────────────────────────────────


def test_rows_are_the_next_occurrences() -> None:
    rows = look(make_planning("0 * * * *", overlap=OverlapPolicy.ALLOW_ALL), rows=2)
    assert rows == [Row(clock("13:00"), clock("13:00"), GO), Row(clock("14:00"), clock("14:00"), GO)]


def test_the_forecast_ends_with_the_spec() -> None:
    ending = make_planning(spec=make_spec("0 * * * *", end_at=clock("15:00")))
    assert [row.tick_at for row in look(ending)] == [clock("13:00"), clock("14:00"), clock("15:00")]
    assert look(make_planning(spec=compile_spec(at=["2026-05-04T09:00:00Z"]))) == []


def test_a_row_shows_when_to_act_beside_its_name() -> None:
    spec = make_spec("0 * * * *", jitter_ms=600_000)
    [row] = look(make_planning(spec=spec), rows=1)
    assert (row.tick_at, row.due) == (clock("13:00"), spec.due(UID, clock("13:00")))
    assert row.due > row.tick_at


def test_a_skip_says_why() -> None:
    holiday = Calendar("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 6)}))
    planning = make_planning("0 9 * * *", calendars=("c",), rotation=3)
    rows = look(planning, Facts(calendars={"c": holiday}), rows=3)
    assert [row.decision for row in rows] == [GO, SKIP, GO]
    assert rows[1].reason is Reason.CALENDAR
    assert rows[1].detail is not None
    assert rows[1].detail["date"] == "2026-05-06"


def test_the_rotation_counts_predicted_dispatches_only() -> None:
    weekdays = Calendar("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 6)}))
    planning = make_planning("0 9 * * *", calendars=("c",), rotation=3)
    position = make_position(NOON, rotation_index=2)
    rows = look(planning, Facts(calendars={"c": weekdays}), position=position)
    assert [row.rotation_index for row in rows] == [2, None, 0, 1, 2]


def test_what_counts_by_the_day_starts_again_each_utc_day() -> None:
    planning = make_planning("0 */6 * * *", budget=Budget(None, 2))
    rows = look(planning, Facts(runs_today=1), rows=9)
    words = [(row.decision, row.reason) for row in rows]
    full = (SKIP, Reason.DAILY_LIMIT_REACHED)
    free = (GO, None)
    # 18:00 today takes the one that is left; then 00:00 and 06:00 of each day.
    assert words == [free, free, free, full, full, free, free, full, full]


def test_credits_are_reserved_by_predicted_dispatches_and_come_back_at_midnight() -> None:
    planning = make_planning("0 */6 * * *", budget=Budget(10), reserve=Decimal(4))
    rows = look(planning, Facts(spent_today=Decimal(7)), rows=6)
    assert [row.decision for row in rows] == [SKIP, GO, GO, SKIP, SKIP, GO]


def test_the_runs_that_are_left_run_out() -> None:
    rows = look(make_planning(max_runs=5), Facts(times=BRIEF), position=make_position(NOON, runs_born=3), rows=4)
    assert [row.reason for row in rows] == [None, None, *[Reason.REMAINING_ACTIONS_EXHAUSTED] * 2]


def test_facts_are_a_snapshot() -> None:
    planning = make_planning(condition=compile_condition({"/last_24h_stats/total": {"lt": 3}}))
    facts = Facts(context={"last_24h_stats": {"total": 2}}, times=BRIEF)
    assert {row.decision for row in look(planning, facts)} == {GO}


@pytest.mark.parametrize("status", [Status.PAUSED, Status.DELETED, Status.BROKEN])
def test_a_schedule_that_cannot_fire_is_predicted_to_skip(status: Status) -> None:
    rows = look(make_planning(), position=make_position(NOON, status=status))
    assert {row.reason for row in rows} == {Reason.STATUS_NOT_TRIGGERABLE}


def test_what_the_assignee_has_spent_today_counts_until_midnight() -> None:
    planning = make_planning("0 */6 * * *", assignee="ada", reserve=Decimal(1))
    facts = Facts(assignee_budget=Budget(3, 100))
    shared = Shared(spent_by_assignee={"ada": Decimal(3)}, runs_by_assignee={"ada": 7})
    rows = look(planning, facts, rows=5, shared=shared)
    assert [row.decision for row in rows] == [SKIP, GO, GO, GO, SKIP]
    assert shared == Shared(spent_by_assignee={"ada": Decimal(3)}, runs_by_assignee={"ada": 7})


def test_an_assignee_who_has_run_today_is_counted_from_nothing_tomorrow() -> None:
    planning = make_planning("0 0 * * *", assignee="ada")
    rows = look(planning, Facts(assignee_budget=Budget(None, 1)), rows=3)
    assert [row.decision for row in rows] == [GO, GO, GO]


def test_the_same_question_has_the_same_answer() -> None:
    planning = make_planning(rotation=2, spec=make_spec("* * * * *", jitter_ms=5_000))
    assert look(planning) == look(planning)
    assert look(planning, after=NOON + MINUTE)[0].tick_at == look(planning)[1].tick_at
    assert look(planning, after=NOON + HOUR)[0].tick_at == NOON + HOUR + MINUTE
