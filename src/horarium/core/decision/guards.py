"""Guards of an occurrence: eleven questions in a fixed order; the first refusal is the reason.

Overlap chooses among more than two outcomes and comes after them, in `decide.py`. A guard says for whom it is asked,
whether a schedule needs it at all, which facts it reads, and how long its answer stays the same, so that a year of
missed seconds is not evaluated one by one. `CalendarSpans` remembers the stretches of time on which calendars give
one answer, for schedules that share them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import NamedTuple

from horarium.core.decision.facts import Detail, Fact, Facts, RunTally
from horarium.core.document.calendar import CalendarDefinition, MissingCalendar, check, unchanged_until
from horarium.core.document.condition_context import ContextMember
from horarium.core.document.planning import Planning, remembered
from horarium.core.document.reader import PROMPT
from horarium.core.document.states import Origin, Reason, Status
from horarium.core.policy.limits import Amount, budget_allows, daily_allows
from horarium.core.policy.queue import OverlapPolicy
from horarium.instant import Instant, to_rfc3339


class GuardQuestion(NamedTuple):
    planning: Planning
    facts: Facts
    tally: RunTally
    nominal: Instant


Answer = Detail | None
"""None is yes; a detail is no, and says what the guard saw."""


def _to_the_last(question: GuardQuestion, last: Instant) -> Instant:
    return last


@dataclass(frozen=True, slots=True)
class DecisionGuard:
    """`unchanged` tells up to which occurrence, `last` at most, yes stays yes and no stays no.

    It may rely on the facts and on the tally: nobody asks for longer than no run is born.
    """

    reason: Reason
    asked_of: frozenset[Origin]
    applies: Callable[[Planning], bool]
    ask: Callable[[GuardQuestion], Answer]
    fact: Fact | None = None
    unchanged: Callable[[GuardQuestion, Instant], Instant] = _to_the_last


def first_refusal(guards: tuple[DecisionGuard, ...], question: GuardQuestion) -> tuple[Reason, Detail] | None:
    for guard in guards:
        detail = guard.ask(question)
        if detail is not None:
            return guard.reason, detail
    return None


def refusal_until(guards: tuple[DecisionGuard, ...], reason: Reason, question: GuardQuestion, last: Instant) -> Instant:
    """Up to which occurrence, `last` at most, a refusal is known to repeat itself, with the same reason.

    The guards that were asked before must go on saying yes; those after it were not asked, and will not be.
    """
    for guard in guards:
        last = guard.unchanged(question, last)
        if guard.reason is reason:
            break
    return last


@remembered
def guards_for(planning: Planning, origin: Origin) -> tuple[DecisionGuard, ...]:
    """The guards in force, in order; most schedules have three."""
    return tuple(guard for guard in GUARDS if origin in guard.asked_of and guard.applies(planning))


def is_given(planning: Planning) -> bool:
    """Tell whether an assignee does its work, named by the schedule or by an assignment."""
    return planning.assignee is not None or planning.assignment is not None


@remembered
def facts_needed(planning: Planning, origin: Origin) -> frozenset[Fact]:
    """Facts that the store must read before this schedule can be decided."""
    needed = {guard.fact for guard in guards_for(planning, origin) if guard.fact is not None}
    if planning.overlap.policy is not OverlapPolicy.ALLOW_ALL or planning.overlap.max_concurrency is not None:
        needed.add(Fact.RUNS)
    if planning.concurrency_key is not None:
        needed.add(Fact.KEYS)
    if is_given(planning):
        needed.add(Fact.POLICIES)
    return frozenset(needed)


@remembered
def context_needed(planning: Planning) -> frozenset[ContextMember]:
    """Members of the context that a clause of the condition can read."""
    condition = planning.condition
    return frozenset(member for member in ContextMember if condition is not None and condition.reads(member.value))


def reads_signal(planning: Planning) -> bool:
    """Tell whether a scheduled decision needs the signal provider's result."""
    return ContextMember.SIGNAL_RPC_RESULT in context_needed(planning)


def _status(question: GuardQuestion) -> Answer:
    status = question.tally.status
    if status is Status.ACTIVE or status is Status.FINISHED:
        return None
    return {"status": status.value}


def _window(question: GuardQuestion) -> Answer:
    spec, nominal = question.planning.spec, question.nominal
    if spec.start_at is not None and nominal < spec.start_at:
        return {"start_at": to_rfc3339(spec.start_at)}
    if spec.end_at is not None and nominal > spec.end_at:
        return {"end_at": to_rfc3339(spec.end_at)}
    return None


def _window_unchanged(question: GuardQuestion, last: Instant) -> Instant:
    spec, nominal = question.planning.spec, question.nominal
    if spec.start_at is not None and nominal < spec.start_at:
        return min(last, spec.start_at - 1)
    if spec.end_at is not None and nominal <= spec.end_at:
        return min(last, spec.end_at)
    return last


def _exhausted(question: GuardQuestion) -> Answer:
    most, born = question.planning.max_runs, question.tally.runs_born
    return None if most is None or born < most else {"max_runs": most, "runs_born": born}


def _native(question: GuardQuestion) -> Answer:
    policies = question.tally.policies
    if policies is None or policies.assignee is None or not policies.keep_own_time():
        return None
    return {"assignee_type": policies.assignee.type.value, "assignee_id": policies.assignee.id}


def _calendar(question: GuardQuestion) -> Answer:
    blocked = check(_calendars(question), question.nominal, question.planning.spec.zone.key)
    if blocked is None:
        return None
    day = None if blocked.date is None else blocked.date.isoformat()
    return {"calendar": blocked.calendar_name, "date": day, "kind": blocked.kind, "text": blocked.detail}


def _calendar_unchanged(question: GuardQuestion, last: Instant) -> Instant:
    return unchanged_until(_calendars(question), question.nominal, last, question.planning.spec.zone.key)


def _calendars(question: GuardQuestion) -> list[CalendarDefinition | MissingCalendar]:
    return attached(question.planning, question.facts.calendars)


def attached(planning: Planning, known: Mapping[str, CalendarDefinition]) -> list[CalendarDefinition | MissingCalendar]:
    """The calendars that a schedule obeys, in the order in which it names them."""
    return [known.get(name) or MissingCalendar(name) for name in planning.calendars]


def _condition(question: GuardQuestion) -> Answer:
    condition, context = question.planning.condition, question.facts.context
    if condition is None or condition.evaluate(context):
        return None
    failed = question.facts.signal_error
    return {
        "result": False,
        **({} if failed is None else {"signal_error": failed}),
        "clauses": [
            {
                "pointer": each.pointer,
                "operator": each.operator.value,
                "operand": each.operand,
                "found": each.found,
                "value": each.value,
                "holds": each.holds,
            }
            for each in condition.explain(context)
        ],
    }


def _budget(question: GuardQuestion) -> Answer:
    planning, tally = question.planning, question.tally
    own, reserve = planning.budget.spending_limit_credits, tally.reserve()
    if not budget_allows(own, spent=tally.spent, reserve=reserve):
        return _spending("schedule", own, tally.spent, reserve)
    for who, budget in tally.budgets():
        limit = budget.spending_limit_credits
        spent = tally.shared.spent_by_assignee.get(who, Decimal(0))
        if not budget_allows(limit, spent=spent, reserve=reserve):
            return _spending(who, limit, spent, reserve)
    return None


def _spending(whose: str, limit: Amount | None, spent: Decimal, reserve: Decimal) -> Detail:
    return {"of": whose, "spending_limit_credits": str(limit), "spent_today": str(spent), "reserve": str(reserve)}


def _daily(question: GuardQuestion) -> Answer:
    planning, tally = question.planning, question.tally
    own = planning.budget.max_daily_runs
    if not daily_allows(own, runs_today=tally.runs_today):
        return {"of": "schedule", "max_daily_runs": own, "runs_today": tally.runs_today}
    for who, budget in tally.budgets():
        runs = tally.shared.runs_by_assignee.get(who, 0)
        if not daily_allows(budget.max_daily_runs, runs_today=runs):
            return {"of": who, "max_daily_runs": budget.max_daily_runs, "runs_today": runs}
    return None


def _cycle(question: GuardQuestion) -> Answer:
    return {"nodes": list(question.facts.cycle)} if question.facts.cycle else None


def _owner(question: GuardQuestion) -> Answer:
    """Whoever wrote the schedule was entitled to its workflow then; the workflow may have changed hands since."""
    owner, entitled_by = question.facts.workflow_owner, question.planning.workflow_owner
    return None if owner in (None, entitled_by) else {"workflow": question.planning.workflow, "owner": owner}


def _quota(question: GuardQuestion) -> Answer:
    shared = question.tally.shared
    if shared.births < shared.room.births:
        return None
    found = shared.room.exceeded(shared.births)
    return {"quota": found.quota.value, "limit": found.limit, "used": found.used}


def _always(planning: Planning) -> bool:
    return True


_CLOCK = frozenset({Origin.SCHEDULED})
_HAND = frozenset({Origin.MANUAL})
_BACKFILL = frozenset({Origin.BACKFILL})

# The order is part of the contract. A trigger by hand asks only what is about permission; a backfill is
# explicit, so it is allowed while paused and asks no condition about a world that has moved on.
GUARDS: tuple[DecisionGuard, ...] = (
    DecisionGuard(Reason.STATUS_NOT_TRIGGERABLE, _CLOCK | _HAND | _BACKFILL, _always, _status),
    DecisionGuard(
        Reason.OUTSIDE_WINDOW,
        _CLOCK | _BACKFILL,
        lambda planning: planning.spec.start_at is not None or planning.spec.end_at is not None,
        _window,
        unchanged=_window_unchanged,
    ),
    DecisionGuard(
        Reason.REMAINING_ACTIONS_EXHAUSTED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.max_runs is not None,
        _exhausted,
    ),
    DecisionGuard(
        Reason.NATIVE_SCHEDULER,
        _CLOCK,
        lambda planning: planning.kind == PROMPT.name and is_given(planning),
        _native,
        Fact.POLICIES,
    ),
    DecisionGuard(
        Reason.CALENDAR,
        _CLOCK | _BACKFILL,
        lambda planning: bool(planning.calendars),
        _calendar,
        Fact.CALENDARS,
        unchanged=_calendar_unchanged,
    ),
    DecisionGuard(
        Reason.CONDITION_FAILED, _CLOCK, lambda planning: planning.condition is not None, _condition, Fact.CONTEXT
    ),
    DecisionGuard(
        Reason.BUDGET_EXCEEDED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.budget.spending_limit_credits is not None or is_given(planning),
        _budget,
        Fact.SPENDING,
    ),
    DecisionGuard(
        Reason.DAILY_LIMIT_REACHED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.budget.max_daily_runs is not None or is_given(planning),
        _daily,
        Fact.DAILY_RUNS,
    ),
    DecisionGuard(
        Reason.CYCLE_DETECTED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.workflow is not None,
        _cycle,
        Fact.GRAPH,
    ),
    DecisionGuard(
        Reason.NOT_THE_OWNER,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.workflow is not None,
        _owner,
        Fact.GRAPH,
    ),
    DecisionGuard(Reason.QUOTA_EXCEEDED, _CLOCK | _HAND | _BACKFILL, _always, _quota, Fact.QUOTA),
)


# ── Calendars ─────────────────────────────────────────────────────────────────────────────────────────


class CalendarSpans:
    """Schedules of one namespace that are looked at together share it, and many obey the same calendars: each day is
    then looked at once and not once for each schedule.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], str], list[tuple[Instant, Instant]]] = {}

    def unchanged(self, question: GuardQuestion, guard: DecisionGuard, last: Instant, horizon: Instant) -> Instant:
        """Up to which instant, `last` at most, the calendars answer as they do for the question."""
        planning, nominal = question.planning, question.nominal
        if nominal > horizon:
            return guard.unchanged(question, last)
        spans = self._known.setdefault((planning.calendars, planning.spec.zone.key), [])
        place = bisect_right(spans, nominal, key=itemgetter(0)) - 1
        if place >= 0 and nominal <= spans[place][1]:
            return min(last, spans[place][1])
        until = guard.unchanged(question, horizon)
        insort(spans, (nominal, until))
        return min(last, until)
