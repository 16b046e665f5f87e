"""What a guard refuses of a backlog is one range for as long as it says the same, whatever the catch-up policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import (
    NOON,
    clock,
    enumerate_spec,
    expand,
    make_planning,
    tick,
    tick_to_the_end,
)

from horarium.condition import compile_condition
from horarium.core.decision.facts import Facts, Fire, Hold, Missed, Skip
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Catchup, CatchupPolicy, OverlapPolicy
from horarium.instant import DAY, SECOND

P, C = OverlapPolicy, CatchupPolicy
# Every minute from 12:00; looked at 12:05:30, with a grace of a minute: 12:00 to 12:04 are missed, 12:05 is on time.
FIVE: dict[str, Any] = {"now": clock("12:05:30")}


def caught(**numbers: Any) -> Planning:
    """Every minute, overlap allowed: what is left to see is the catch-up."""
    return make_planning(overlap=P.ALLOW_ALL, catchup=Catchup(**numbers))


@pytest.mark.parametrize("policy", [C.FIRE_ONCE, C.FIRE_ALL, C.SPREAD])
def test_a_refusal_that_holds_for_all_that_was_missed_is_one_range(policy: CatchupPolicy) -> None:
    plan = tick(replace(caught(policy=policy), budget=Budget(0), reserve=Decimal(1)), **FIVE)
    missed, on_time = plan.decisions
    assert isinstance(missed, Missed)
    assert (missed.first, missed.last, missed.count) == (NOON, clock("12:04"), 5)
    assert missed.reason is Reason.BUDGET_EXCEEDED
    assert missed.detail is not None
    assert missed.detail["of"] == "schedule"
    assert on_time == Skip(clock("12:05"), Reason.BUDGET_EXCEEDED, missed.detail)


def test_a_single_refusal_is_a_skip_as_it_would_be_on_time() -> None:
    planning = replace(caught(policy=C.FIRE_ONCE), budget=Budget(0), reserve=Decimal(1))
    decisions = tick(planning, now=NOON + 61 * SECOND).decisions
    assert [type(each) for each in decisions] == [Skip, Skip]


@pytest.mark.parametrize("policy", [C.FIRE_ALL, C.SPREAD])
def test_each_decision_sees_the_world_that_the_one_before_left(policy: CatchupPolicy) -> None:
    planning = replace(caught(policy=policy), budget=Budget(1), reserve=Decimal(1))
    first, refused, on_time = tick(planning, **FIVE).decisions
    assert isinstance(first, Fire | Hold)
    assert isinstance(refused, Missed)
    assert (refused.first, refused.count, refused.reason) == (clock("12:01"), 4, Reason.BUDGET_EXCEEDED)
    assert isinstance(on_time, Skip)


def test_a_full_buffer_refuses_the_rest_of_the_backlog_at_once() -> None:
    planning = make_planning(overlap=P.BUFFER_ONE, catchup=C.FIRE_ONCE)
    missed, on_time = tick(planning, facts=Facts(active=1, held=1), **FIVE).decisions
    assert missed == Missed(NOON, clock("12:04"), 5, Reason.BUFFER_FULL, {"active": 1, "held": 1})
    assert isinstance(on_time, Skip)


@pytest.mark.parametrize("policy", [C.FIRE_ONCE, C.FIRE_ALL])
def test_a_year_of_seconds_under_a_refusing_condition_is_one_plan_with_one_range(policy: CatchupPolicy) -> None:
    never = compile_condition({"/x": {"eq": 1}})
    planning = replace(
        make_planning("* * * * * *", overlap=P.ALLOW_ALL, catchup=Catchup(policy, max_catchup=10**9)), condition=never
    )
    plan = tick(planning, NOON - 365 * DAY, NOON)
    [missed] = [each for each in plan.decisions if isinstance(each, Missed)]
    assert (missed.first, missed.count) == (NOON - 365 * DAY + SECOND, 365 * 86_400 - 61)
    assert missed.reason is Reason.CONDITION_FAILED
    # The last minute and what is exactly at its beginning are on time.
    assert [type(each) for each in plan.decisions[1:]] == [Skip] * 61
    assert not plan.more


WEEKENDS = Facts(calendars={"c": CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset(), rule="weekends")})


def test_a_year_of_seconds_has_a_range_for_each_weekend() -> None:
    """Sunday, 4 May 2025 is the first, Sunday, 3 May 2026 the last of 53; between them are 52 working weeks."""
    planning = replace(make_planning("* * * * * *", catchup=Catchup(C.FIRE_ALL, max_catchup=10**9)), calendars=("c",))
    refusing = replace(planning, condition=compile_condition({"/x": {"eq": 1}}))
    plan = tick(refusing, clock("00:00", "2025-05-04") - 1, clock("00:00"), facts=WEEKENDS, limit=1_000)
    ranges = [(each.reason.value, each.count) for each in plan.decisions if isinstance(each, Missed)]
    week = [("condition_failed", 5 * 86_400), ("calendar", 2 * 86_400)]
    assert ranges == [("calendar", 86_400), *week * 51, week[0], ("calendar", 2 * 86_400 - 60)]


def test_days_that_a_calendar_forbids_one_after_the_other_are_one_range() -> None:
    """However many: one question looks at 400 dates, and the next range is joined to it."""
    planning = replace(make_planning("* * * * * *", catchup=C.FIRE_ONCE), calendars=("c",))
    nothing = CalendarDefinition("c", CalendarKind.ONLY_DATES, "America/New_York", frozenset())
    plan = tick(planning, NOON - 3_000 * DAY, NOON, facts=Facts(calendars={"c": nothing}))
    [missed] = [each for each in plan.decisions if isinstance(each, Missed)]
    assert (missed.reason, missed.count) == (Reason.CALENDAR, 3_000 * 86_400 - 61)
    assert missed.detail is None  # the dates were not the same
    assert not plan.more


def test_a_spread_keeps_its_pace_over_what_was_refused() -> None:
    """Six missed occurrences over fifty seconds: the third and fourth are refused, the fifth is due at forty."""
    planning = replace(make_planning("0 */12 * * *", catchup=Catchup(C.SPREAD, catchup_spread_seconds=50)),
                       calendars=("c",))  # fmt: skip
    tuesday = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 5)}))
    now = clock("13:00", "2026-05-06")
    decisions = tick(planning, clock("00:00") - 1, now, facts=Facts(calendars={"c": tuesday})).decisions
    assert [type(each) for each in decisions] == [Hold, Hold, Missed, Hold, Hold]
    offsets = [(each.release_at or 0) - now for each in decisions if isinstance(each, Hold)]
    assert offsets == [0, 10 * SECOND, 40 * SECOND, 50 * SECOND]


def test_refusals_that_change_every_day_are_bounded_too() -> None:
    """Odd days are refused by the calendar, even days by the condition: a range a day, a hundred a plan."""
    planning = replace(
        make_planning("0 * * * *", catchup=C.FIRE_ONCE),
        calendars=("c",),
        condition=compile_condition({"/x": {"eq": 1}}),
    )
    days = frozenset(date(2026, 5, 4) - timedelta(days=n) for n in range(0, 300, 2))
    facts = Facts(calendars={"c": CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", days)})
    before = clock("00:00") - 250 * DAY - 1
    plans = tick_to_the_end(planning, before, NOON, facts=facts)
    assert [len(plan.decisions) for plan in plans] == [100, 100, 52]
    decided = [nominal for plan in plans for nominal in expand(plan.decisions, planning.spec)]
    assert decided == enumerate_spec(planning.spec, before, NOON)
