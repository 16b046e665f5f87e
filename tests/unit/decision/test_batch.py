"""Schedules that are planned together share keys and budgets, and a bad one stops nobody else."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from unit.decision.builders import NOON, make_planning, make_position

from horarium.core.decision.facts import Facts, Fire, Hold, Plan, SharedFacts, Skip
from horarium.core.decision.tick import Due, ParkedSchedule, PlanTime, plan_batch
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.policy.limits import Budget
from horarium.instant import SECOND, Instant

FIRED = (Fire(NOON, NOON),)


def batch(*plannings: Planning) -> list[Due]:
    return [Due(bytes([n]), planning, make_position()) for n, planning in enumerate(plannings)]


class Corrupt:
    """A spec that raises, as one from a damaged row would."""

    start_at = end_at = None

    def next_after(self, instant: Instant) -> Instant:
        raise ValueError("damaged " * 1_000)


def test_a_bad_row_is_parked_and_the_others_go_on() -> None:
    good, bad = make_planning(), replace(make_planning(), spec=Corrupt())  # type: ignore[arg-type]  # broken on purpose
    dues = batch(good, bad, good)
    answers = list(plan_batch(dues, {}, SharedFacts(), PlanTime(NOON)))
    assert [due for due, _ in answers] == dues
    first, parked, last = (answer for _, answer in answers)
    assert isinstance(first, Plan)
    assert isinstance(last, Plan)
    assert first.decisions == last.decisions == FIRED
    assert isinstance(parked, ParkedSchedule)
    assert (parked.uid, parked.error_class, len(parked.error)) == (bytes([1]), "ValueError", 1_000)


class SecondLookFails(dict[str, CalendarDefinition]):
    """A calendar that can be read once."""

    def get(self, key: str, default: Any = None) -> Any:
        if not self:
            raise ValueError("gone")
        return self.pop(key)


def test_a_parked_schedule_leaves_nothing_behind_in_what_is_shared() -> None:
    every_day = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset())
    bad = make_planning("* * * * * *", calendars=("c",), concurrency_key="k", assignee="ada", reserve=Decimal(1))
    good = make_planning(concurrency_key="k")
    facts = {bytes([0]): Facts(calendars=SecondLookFails(c=every_day))}
    shared = SharedFacts()
    dues = [batch(bad)[0]._replace(position=make_position(NOON - 2 * SECOND)), batch(good)[0]._replace(uid=b"good")]
    (_, parked), (_, plan) = plan_batch(dues, facts, shared, PlanTime(NOON))
    assert isinstance(parked, ParkedSchedule)
    assert isinstance(plan, Plan)
    assert plan.decisions == FIRED
    assert (shared.active_by_key, shared.spent_by_assignee.get("ada", 0)) == ({"k": 1}, 0)


def test_schedules_of_a_batch_share_a_key() -> None:
    sharing = [make_planning(concurrency_key="k", concurrency_limit=2)] * 3
    plans = [
        plan for _, plan in plan_batch(batch(*sharing), {}, SharedFacts(), PlanTime(NOON)) if isinstance(plan, Plan)
    ]
    assert [type(plan.decisions[0]) for plan in plans] == [Fire, Fire, Hold]


def test_schedules_of_a_batch_share_the_budget_of_an_assignee() -> None:
    sharing = [make_planning(assignee="ada", reserve=Decimal(2))] * 3
    facts = {bytes([n]): Facts(assignee_budget=Budget(5)) for n in range(3)}
    answers = plan_batch(batch(*sharing), facts, SharedFacts(), PlanTime(NOON))
    decisions = [plan.decisions[0] for _, plan in answers if isinstance(plan, Plan)]
    assert [type(each) for each in decisions] == [Fire, Fire, Skip]
