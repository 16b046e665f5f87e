"""Whether an occurrence may have a run: eleven questions in a fixed order; the first "no" is the reason.

Overlap chooses among more than two outcomes and is asked after them, in `decide.py`. A guard
says for whom it is asked, whether a schedule needs it at all, which facts it reads, and how long its
answer stays the same: a year of missed seconds is not asked about one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from horarium.decision.facts import Fact, Facts, Tally
from horarium.decision.plan import Detail
from horarium.instant import Instant, to_rfc3339
from horarium.policy.limits import Amount, budget_allows, daily_allows
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.calendar import Calendar, MissingCalendar, check, unchanged_until
from horarium.schedule.context import ContextMember
from horarium.schedule.kinds import PROMPT
from horarium.schedule.planning import Planning, remembered
from horarium.schedule.position import Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin


class Question(NamedTuple):
    planning: Planning
    facts: Facts
    tally: Tally
    nominal: Instant


Answer = Detail | None
"""None is yes; a detail is no, and says what the guard saw."""


def _to_the_last(question: Question, last: Instant) -> Instant:
    return last


@dataclass(frozen=True, slots=True)
class Guard:
    """`unchanged` tells up to which occurrence, `last` at most, yes stays yes and no stays no.

    It may rely on the facts and on the tally: nobody asks for longer than no run is born.
    """

    reason: Reason
    asked_of: frozenset[Origin]
    applies: Callable[[Planning], bool]
    ask: Callable[[Question], Answer]
    fact: Fact | None = None
    unchanged: Callable[[Question, Instant], Instant] = _to_the_last


def first_refusal(guards: tuple[Guard, ...], question: Question) -> tuple[Reason, Detail] | None:
    for guard in guards:
        detail = guard.ask(question)
        if detail is not None:
            return guard.reason, detail
    return None


def refusal_until(guards: tuple[Guard, ...], reason: Reason, question: Question, last: Instant) -> Instant:
    """Up to which occurrence, `last` at most, a refusal is known to repeat itself, with the same reason.

    The guards that were asked before must go on saying yes; those after it were not asked, and will not be.
    """
    for guard in guards:
        last = guard.unchanged(question, last)
        if guard.reason is reason:
            break
    return last


@remembered
def guards_for(planning: Planning, origin: Origin) -> tuple[Guard, ...]:
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


def _status(question: Question) -> Answer:
    status = question.tally.status
    if status is Status.ACTIVE or status is Status.FINISHED:
        return None
    return {"status": status.value}


def _window(question: Question) -> Answer:
    spec, nominal = question.planning.spec, question.nominal
    if spec.start_at is not None and nominal < spec.start_at:
        return {"start_at": to_rfc3339(spec.start_at)}
    if spec.end_at is not None and nominal > spec.end_at:
        return {"end_at": to_rfc3339(spec.end_at)}
    return None


def _window_unchanged(question: Question, last: Instant) -> Instant:
    spec, nominal = question.planning.spec, question.nominal
    if spec.start_at is not None and nominal < spec.start_at:
        return min(last, spec.start_at - 1)
    if spec.end_at is not None and nominal <= spec.end_at:
        return min(last, spec.end_at)
    return last


def _exhausted(question: Question) -> Answer:
    most, born = question.planning.max_runs, question.tally.runs_born
    return None if most is None or born < most else {"max_runs": most, "runs_born": born}


def _native(question: Question) -> Answer:
    policies = question.tally.policies
    if policies is None or policies.assignee is None or not policies.keep_own_time():
        return None
    return {"assignee_type": policies.assignee.type.value, "assignee_id": policies.assignee.id}


def _calendar(question: Question) -> Answer:
    blocked = check(_calendars(question), question.nominal, question.planning.spec.zone.key)
    if blocked is None:
        return None
    day = None if blocked.date is None else blocked.date.isoformat()
    return {"calendar": blocked.calendar_name, "date": day, "kind": blocked.kind, "text": blocked.detail}


def _calendar_unchanged(question: Question, last: Instant) -> Instant:
    return unchanged_until(_calendars(question), question.nominal, last, question.planning.spec.zone.key)


def _calendars(question: Question) -> list[Calendar | MissingCalendar]:
    return attached(question.planning, question.facts.calendars)


def attached(planning: Planning, known: Mapping[str, Calendar]) -> list[Calendar | MissingCalendar]:
    """The calendars that a schedule obeys, in the order in which it names them."""
    return [known.get(name) or MissingCalendar(name) for name in planning.calendars]


def _condition(question: Question) -> Answer:
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


def _budget(question: Question) -> Answer:
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


def _daily(question: Question) -> Answer:
    planning, tally = question.planning, question.tally
    own = planning.budget.max_daily_runs
    if not daily_allows(own, runs_today=tally.runs_today):
        return {"of": "schedule", "max_daily_runs": own, "runs_today": tally.runs_today}
    for who, budget in tally.budgets():
        runs = tally.shared.runs_by_assignee.get(who, 0)
        if not daily_allows(budget.max_daily_runs, runs_today=runs):
            return {"of": who, "max_daily_runs": budget.max_daily_runs, "runs_today": runs}
    return None


def _cycle(question: Question) -> Answer:
    return {"nodes": list(question.facts.cycle)} if question.facts.cycle else None


def _owner(question: Question) -> Answer:
    """Whoever wrote the schedule was entitled to its workflow then; the workflow may have changed hands since."""
    owner, entitled_by = question.facts.workflow_owner, question.planning.workflow_owner
    return None if owner in (None, entitled_by) else {"workflow": question.planning.workflow, "owner": owner}


def _quota(question: Question) -> Answer:
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
GUARDS: tuple[Guard, ...] = (
    Guard(Reason.STATUS_NOT_TRIGGERABLE, _CLOCK | _HAND | _BACKFILL, _always, _status),
    Guard(
        Reason.OUTSIDE_WINDOW,
        _CLOCK | _BACKFILL,
        lambda planning: planning.spec.start_at is not None or planning.spec.end_at is not None,
        _window,
        unchanged=_window_unchanged,
    ),
    Guard(
        Reason.REMAINING_ACTIONS_EXHAUSTED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.max_runs is not None,
        _exhausted,
    ),
    Guard(
        Reason.NATIVE_SCHEDULER,
        _CLOCK,
        lambda planning: planning.kind == PROMPT.name and is_given(planning),
        _native,
        Fact.POLICIES,
    ),
    Guard(
        Reason.CALENDAR,
        _CLOCK | _BACKFILL,
        lambda planning: bool(planning.calendars),
        _calendar,
        Fact.CALENDARS,
        unchanged=_calendar_unchanged,
    ),
    Guard(Reason.CONDITION_FAILED, _CLOCK, lambda planning: planning.condition is not None, _condition, Fact.CONTEXT),
    Guard(
        Reason.BUDGET_EXCEEDED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.budget.spending_limit_credits is not None or is_given(planning),
        _budget,
        Fact.SPENDING,
    ),
    Guard(
        Reason.DAILY_LIMIT_REACHED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.budget.max_daily_runs is not None or is_given(planning),
        _daily,
        Fact.DAILY_RUNS,
    ),
    Guard(
        Reason.CYCLE_DETECTED,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.workflow is not None,
        _cycle,
        Fact.GRAPH,
    ),
    Guard(
        Reason.NOT_THE_OWNER,
        _CLOCK | _HAND | _BACKFILL,
        lambda planning: planning.workflow is not None,
        _owner,
        Fact.GRAPH,
    ),
    Guard(Reason.QUOTA_EXCEEDED, _CLOCK | _HAND | _BACKFILL, _always, _quota, Fact.QUOTA),
)
