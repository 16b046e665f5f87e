"""The next run is the first coming occurrence that nothing known now stands against."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.evaluator import FACTS, Forecaster
from horarium.core.decision.facts import NO_FACTS, Fact, Facts, OpenRunFacts, RunTimes, SharedFacts
from horarium.core.decision.forecast import OF_OVERLAP, NextRun
from horarium.core.decision.guards import GUARDS
from horarium.core.decision.predicted_runs import is_guarded
from horarium.core.decision.statuses import Forecast, NoRun
from horarium.core.document import calendar as calendar_module
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Status
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import OverlapPolicy
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import DAY, HOUR, MINUTE, SECOND

MONDAY = date(2026, 5, 4)
HOURLY = ("0 * * * *",)


def days(kind: CalendarKind, *offsets: int) -> Facts:
    listed = frozenset(MONDAY + timedelta(days=each) for each in offsets)
    return Facts(calendars={"c": CalendarDefinition("c", kind, "UTC", listed)})


def skips(*offsets: int) -> Facts:
    return days(CalendarKind.SKIP_DATES, *offsets)


def only(*offsets: int) -> Facts:
    return days(CalendarKind.ONLY_DATES, *offsets)


def ahead(planning: Planning, facts: Facts = NO_FACTS, shared: SharedFacts | None = None, **position: Any) -> NextRun:
    before = make_position(**position)
    before = before._replace(next_due=planning.spec.next_after(before.decided_until))
    return Forecaster(planning, UID, before, facts, now=NOON - 1, shared=shared).next_run()


def hourly(**rest: Any) -> Planning:
    return make_planning(*HOURLY, **rest)


MIDNIGHT = clock("00:00", "2026-05-05")
OUT = {
    "plain": (hourly(), NO_FACTS, NextRun(NOON)),
    "a holiday": (hourly(calendars=("c",)), skips(0), NextRun(MIDNIGHT)),
    "two holidays": (hourly(calendars=("c",)), skips(0, 1), NextRun(MIDNIGHT + DAY)),
    "another day": (hourly(calendars=("c",)), skips(3), NextRun(NOON)),
    "a day far away": (hourly(calendars=("c",)), only(300), NextRun(MIDNIGHT + 299 * DAY)),
    "no day any more": (hourly(calendars=("c",)), only(-1), NextRun(None, NoRun.CALENDAR)),
    "a calendar that is gone": (hourly(calendars=("c",)), NO_FACTS, NextRun(None, NoRun.CALENDAR)),
    "weekly, on a holiday": (make_planning("0 13 * * 1", calendars=("c",)), skips(0), NextRun(NOON + HOUR + 7 * DAY)),
    "the daily limit": (
        hourly(budget=Budget(None, 2)), Facts(runs_today=2), NextRun(MIDNIGHT),
    ),
    "money": (hourly(budget=Budget(1)), Facts(spent_today=Decimal(1)), NextRun(MIDNIGHT)),
    "no money ever": (hourly(budget=Budget(0)), NO_FACTS, NextRun(None, NoRun.BUDGET_EXCEEDED)),
    "no run a day": (hourly(budget=Budget(None, 0)), NO_FACTS, NextRun(None, NoRun.DAILY_LIMIT_REACHED)),
    "money and then a holiday": (
        hourly(calendars=("c",), budget=Budget(1)), skips(1)._replace(spent_today=Decimal(1)), NextRun(MIDNIGHT + DAY),
    ),
    "no more runs": (hourly(max_runs=0), NO_FACTS, NextRun(None, NoRun.REMAINING_ACTIONS_EXHAUSTED)),
    "a run left": (hourly(max_runs=1), NO_FACTS, NextRun(NOON)),
    "a window to come": (
        make_planning(spec=make_spec(*HOURLY, start_at=NOON + 9 * DAY), calendars=("c",)),
        skips(9), NextRun(MIDNIGHT + 9 * DAY),
    ),
    "a window that ends first": (
        make_planning(spec=make_spec(*HOURLY, end_at=NOON + HOUR), calendars=("c",)),
        skips(0), NextRun(None, NoRun.CALENDAR),
    ),
    "years away": (
        make_planning(spec=compile_spec(at=["2031-05-04T12:00:00Z"]), max_runs=3),
        NO_FACTS, NextRun(clock("12:00", "2031-05-04")),
    ),
    "a condition that is false now": (
        hourly(condition=compile_condition({"/x": {"eq": 1}})), NO_FACTS, NextRun(None, NoRun.CONDITION_FAILED),
    ),
    "a condition that is true now": (
        hourly(condition=compile_condition({"/x": {"eq": 1}})), Facts(context={"x": 1}), NextRun(NOON),
    ),
    "an open run that ends in time": (
        hourly(overlap=OverlapPolicy.SKIP),
        Facts(active=1, times=RunTimes((OpenRunFacts("r", NOON - MINUTE),), 30 * SECOND)), NextRun(NOON + HOUR),
    ),
    "a run that awaits approval": (
        hourly(overlap=OverlapPolicy.SKIP),
        Facts(active=1, times=RunTimes((OpenRunFacts("r", NOON, is_waiting=True, expires_at=NOON + 3 * HOUR),))),
        NextRun(NOON + 3 * HOUR),
    ),
    "a run that is buffered": (hourly(overlap=OverlapPolicy.BUFFER_ALL), Facts(active=1), NextRun(NOON)),
}  # fmt: skip


@pytest.mark.parametrize(("planning", "facts", "expected"), OUT.values(), ids=OUT)
def test_the_table_of_next_runs(planning: Planning, facts: Facts, expected: NextRun) -> None:
    assert ahead(planning, facts) == expected


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.PAUSED, NoRun.STATUS_NOT_TRIGGERABLE),
        (Status.BROKEN, NoRun.STATUS_NOT_TRIGGERABLE),
        (Status.DELETED, NoRun.STATUS_NOT_TRIGGERABLE),
        (Status.FINISHED, NoRun.FINISHED),
    ],
    ids=str,
)
@pytest.mark.parametrize("planning", [hourly(), hourly(calendars=("c",))], ids=["plain", "guarded"])
def test_a_schedule_whose_clock_stands_still_runs_never(status: Status, reason: NoRun, planning: Planning) -> None:
    assert ahead(planning, skips(), status=status) == NextRun(None, reason)


def test_the_limits_of_its_agent_count_and_others_are_not_disturbed() -> None:
    shared = SharedFacts(runs_by_assignee={"a": 3})
    facts = Facts(assignee_budget=Budget(None, 3))
    for _ in range(2):
        assert ahead(hourly(assignee="a"), facts, shared) == NextRun(MIDNIGHT)
    assert shared.runs_by_assignee == {"a": 3}


def test_what_is_overdue_counts_for_today() -> None:
    """Nobody acted since the day before yesterday: those are decided today, when nothing more may run."""
    planning = hourly(budget=Budget(None, 1))
    assert ahead(planning, Facts(runs_today=1), decided_until=NOON - 2 * DAY) == NextRun(MIDNIGHT)


def test_jitter_is_part_of_the_moment() -> None:
    planning = make_planning(spec=make_spec(*HOURLY, jitter_ms=60_000), calendars=("c",))
    assert ahead(planning, skips(0)).due == planning.spec.due(UID, MIDNIGHT)


def test_a_year_of_refusals_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = calendar_module.local_date

    def counted(*given: Any) -> date:
        nonlocal looks
        looks += 1
        return real(*given)

    monkeypatch.setattr(calendar_module, "local_date", counted)
    assert ahead(make_planning("* * * * * *", calendars=("c",)), only()) == NextRun(None, NoRun.CALENDAR)
    assert 300 < looks <= 800


@pytest.mark.parametrize(("planning", "facts"), [each[:2] for each in OUT.values()], ids=OUT)
def test_it_is_the_first_row_that_is_dispatched(planning: Planning, facts: Facts) -> None:
    found = ahead(planning, facts)
    rows = islice(Forecaster(planning, UID, make_position(), facts, now=NOON - 1).rows(NOON - 1), 2_000)
    first = next((row for row in rows if row.decision is Forecast.DISPATCH), None)
    if first is not None and first.tick_at <= NOON + 366 * DAY:
        assert (first.due, None) == (found.due, found.reason)
    else:
        assert found.due is None or found.due > NOON + 80 * DAY


def test_every_guard_is_foreseen_but_the_quota_of_this_minute() -> None:
    words = {each.value for each in NoRun}
    assert {guard.reason.value for guard in GUARDS} - words == {"quota_exceeded"}
    assert {reason.value for reason in OF_OVERLAP} <= words
    assert {guard.fact for guard in GUARDS if Origin.SCHEDULED in guard.asked_of} - {None} <= FACTS | {Fact.QUOTA}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, False),
        ({"concurrency_key": "k"}, False),
        ({"workflow": "w"}, True),
        ({"condition": compile_condition({"/x": {"eq": 1}})}, True),
        ({"calendars": ("c",)}, True),
        ({"max_runs": 3}, True),
        ({"budget": Budget(1)}, True),
        ({"budget": Budget(None, 1)}, True),
        ({"assignee": "a"}, True),
    ],
    ids=str,
)
def test_most_schedules_need_no_look(fields: dict[str, Any], expected: bool) -> None:
    assert is_guarded(hourly(**fields)) is expected
    assert is_guarded(make_planning(spec=make_spec(*HOURLY, end_at=NOON + MINUTE), **fields)) is expected
