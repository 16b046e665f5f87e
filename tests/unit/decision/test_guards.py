"""Each guard says yes and no where it should, in the order of the contract, and names the facts it reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import NOON, make_planning, make_question, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.facts import NO_FACTS, Fact, Facts, SharedFacts
from horarium.core.decision.guards import GUARDS, context_needed, facts_needed, first_refusal, guards_for
from horarium.core.decision.run_policies import CreationPolicies, PolicyBundle
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.condition_context import ContextMember
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Reason, Status
from horarium.core.policy.limits import Budget, Quota, QuotaRoom
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.instant import DAY, SECOND

R = Reason
HOLIDAY = CalendarDefinition("feast", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 4)}))
WORKDAYS = CalendarDefinition("work", CalendarKind.ONLY_DATES, "UTC", frozenset({date(2026, 5, 4)}))
TOKYO = CalendarDefinition("tokyo", CalendarKind.SKIP_DATES, "Asia/Tokyo", frozenset({date(2026, 5, 5)}))
PASSED = compile_condition({"/prior_run_result/status": {"eq": "completed"}})


@dataclass(frozen=True)
class Case:
    """`detail` None = the guard says yes; otherwise what its no must say, at least."""

    name: str
    reason: Reason
    planning: Planning
    detail: dict[str, Any] | None
    facts: Facts = NO_FACTS
    shared: SharedFacts | None = None
    position: dict[str, Any] | None = None
    nominal: int = NOON


def spec_window(**window: int) -> Planning:
    return make_planning(spec=make_spec("* * * * *", **window))


def spending(limit: Any, reserve: Any = 0, assignee: str | None = None) -> Planning:
    return make_planning(budget=Budget(limit), reserve=Decimal(reserve), assignee=assignee)


def calendars(*known: CalendarDefinition) -> Facts:
    return Facts(calendars={calendar.name: calendar for calendar in known})


OURS, NATIVE = PolicyBundle(None, None), PolicyBundle(None, None, native_scheduler=True)
PROMPT = make_planning(kind="prompt", assignee="ada")


def workers(*bundles: PolicyBundle) -> CreationPolicies:
    """Who may work, under whatever names."""
    by_member: dict[str | None, PolicyBundle] = {str(place): each for place, each in enumerate(bundles[1:])}
    return CreationPolicies(Assignee(AssigneeType.AGENT, "ada"), {None: bundles[0], **by_member})


CASES = [
    *(
        Case(f"status {status}", R.STATUS_NOT_TRIGGERABLE, make_planning(), detail, position={"status": status})
        for status, detail in {
            Status.ACTIVE: None,
            Status.FINISHED: None,
            Status.PAUSED: {"status": "paused"},
            Status.DELETED: {"status": "deleted"},
            Status.BROKEN: {"status": "broken"},
        }.items()
    ),
    Case("at the start", R.OUTSIDE_WINDOW, spec_window(start_at=NOON), None),
    Case(
        "before the start",
        R.OUTSIDE_WINDOW,
        spec_window(start_at=NOON + 1),
        {"start_at": "2026-05-04T12:00:00.000001Z"},
    ),
    Case("at the end", R.OUTSIDE_WINDOW, spec_window(end_at=NOON), None),
    Case("after the end", R.OUTSIDE_WINDOW, spec_window(end_at=NOON - SECOND), {"end_at": "2026-05-04T11:59:59Z"}),
    Case("no limit of runs", R.REMAINING_ACTIONS_EXHAUSTED, make_planning(), None, position={"runs_born": 9}),
    Case("one run left", R.REMAINING_ACTIONS_EXHAUSTED, make_planning(max_runs=3), None, position={"runs_born": 2}),
    Case(
        "no run left",
        R.REMAINING_ACTIONS_EXHAUSTED,
        make_planning(max_runs=3),
        {"max_runs": 3, "runs_born": 3},
        position={"runs_born": 3},
    ),
    Case("none allowed", R.REMAINING_ACTIONS_EXHAUSTED, make_planning(max_runs=0), {"max_runs": 0, "runs_born": 0}),
    Case("no calendars", R.CALENDAR, make_planning(), None),
    Case("a day to run", R.CALENDAR, make_planning(calendars=("work",)), None, calendars(WORKDAYS)),
    Case(
        "a day to skip",
        R.CALENDAR,
        make_planning(calendars=("work", "feast")),
        {"calendar": "feast", "date": "2026-05-04", "kind": "skip_dates"},
        calendars(WORKDAYS, HOLIDAY),
    ),
    Case(
        "not a day to run",
        R.CALENDAR,
        make_planning(calendars=("work",)),
        {"calendar": "work", "date": "2026-05-05", "kind": "only_dates"},
        calendars(WORKDAYS),
        nominal=NOON + DAY,
    ),
    Case(
        "the calendar's own zone",
        R.CALENDAR,
        make_planning(calendars=("tokyo",)),
        {"calendar": "tokyo", "date": "2026-05-05"},
        calendars(TOKYO),
        nominal=NOON + 4 * 3_600 * SECOND,
    ),
    Case(
        "a calendar that nobody has",
        R.CALENDAR,
        make_planning(calendars=("gone",)),
        {"calendar": "gone", "date": None, "kind": None},
        calendars(HOLIDAY),
    ),
    Case("no condition", R.CONDITION_FAILED, make_planning(), None),
    Case(
        "a condition that holds",
        R.CONDITION_FAILED,
        make_planning(condition=PASSED),
        None,
        Facts(context={"prior_run_result": {"status": "completed"}}),
    ),
    Case(
        "a condition that does not hold",
        R.CONDITION_FAILED,
        make_planning(condition=PASSED),
        {
            "result": False,
            "clauses": [
                {
                    "pointer": "/prior_run_result/status",
                    "operator": "eq",
                    "operand": "completed",
                    "found": True,
                    "value": "failed",
                    "holds": False,
                }
            ],
        },
        Facts(context={"prior_run_result": {"status": "failed"}}),
    ),
    Case("a context without the path", R.CONDITION_FAILED, make_planning(condition=PASSED), {"result": False}),
    Case("no budget", R.BUDGET_EXCEEDED, spending(None), None, Facts(spent_today=Decimal(10**9))),
    Case("the reserve just fits", R.BUDGET_EXCEEDED, spending(10, 4), None, Facts(spent_today=Decimal(6))),
    Case(
        "the reserve does not fit",
        R.BUDGET_EXCEEDED,
        spending(10, 4),
        {"of": "schedule", "spending_limit_credits": "10.000000", "spent_today": "6.5", "reserve": "4"},
        Facts(spent_today=Decimal("6.5")),
    ),
    Case(
        "used up, though the run is free",
        R.BUDGET_EXCEEDED,
        spending(10),
        {"of": "schedule"},
        Facts(spent_today=Decimal(10)),
    ),
    Case("nothing may be spent", R.BUDGET_EXCEEDED, spending(0), {"of": "schedule", "spent_today": "0"}),
    Case(
        "the assignee has enough",
        R.BUDGET_EXCEEDED,
        spending(None, 4, "ada"),
        None,
        Facts(assignee_budget=Budget(10)),
        SharedFacts(spent_by_assignee={"ada": Decimal(6), "bob": Decimal(99)}),
    ),
    Case(
        "the assignee has spent it",
        R.BUDGET_EXCEEDED,
        spending(None, 4, "ada"),
        {"of": "ada", "spending_limit_credits": "10.000000", "spent_today": "7", "reserve": "4"},
        Facts(assignee_budget=Budget(10)),
        SharedFacts(spent_by_assignee={"ada": Decimal(7)}),
    ),
    Case("no daily limit", R.DAILY_LIMIT_REACHED, make_planning(), None, Facts(runs_today=10**6)),
    Case(
        "one run left today",
        R.DAILY_LIMIT_REACHED,
        make_planning(budget=Budget(max_daily_runs=3)),
        None,
        Facts(runs_today=2),
    ),
    Case(
        "no run left today",
        R.DAILY_LIMIT_REACHED,
        make_planning(budget=Budget(max_daily_runs=3)),
        {"of": "schedule", "max_daily_runs": 3, "runs_today": 3},
        Facts(runs_today=3),
    ),
    Case(
        "the assignee may run once more",
        R.DAILY_LIMIT_REACHED,
        make_planning(assignee="ada"),
        None,
        Facts(assignee_budget=Budget(max_daily_runs=2)),
        SharedFacts(runs_by_assignee={"ada": 1, "bob": 9}),
    ),
    Case(
        "the assignee has run enough",
        R.DAILY_LIMIT_REACHED,
        make_planning(assignee="ada"),
        {"of": "ada", "max_daily_runs": 2, "runs_today": 2},
        Facts(assignee_budget=Budget(max_daily_runs=2)),
        SharedFacts(runs_by_assignee={"ada": 2}),
    ),
    Case("an agent whose time is ours", R.NATIVE_SCHEDULER, PROMPT, None, Facts(policies=workers(NATIVE, OURS))),
    Case("nobody is known", R.NATIVE_SCHEDULER, PROMPT, None),
    Case(
        "an agent that keeps its own time",
        R.NATIVE_SCHEDULER,
        PROMPT,
        {"assignee_type": "agent", "assignee_id": "ada"},
        Facts(policies=workers(NATIVE)),
    ),
    Case(
        "all of a team",
        R.NATIVE_SCHEDULER,
        PROMPT,
        {"assignee_type": "agent", "assignee_id": "ada"},
        Facts(policies=workers(NATIVE, NATIVE)),
    ),
    Case("room without end", R.QUOTA_EXCEEDED, make_planning(), None),
    Case("the last place", R.QUOTA_EXCEEDED, make_planning(), None, shared=SharedFacts(room=QuotaRoom(3), births=2)),
    Case(
        "no place left",
        R.QUOTA_EXCEEDED,
        make_planning(),
        {"quota": "open_runs", "limit": 10, "used": 10},
        shared=SharedFacts(room=QuotaRoom(3, Quota.OPEN_RUNS, 10, 7), births=3),
    ),
    Case("a workflow without a cycle", R.CYCLE_DETECTED, make_planning(workflow="w"), None),
    Case(
        "a workflow with a cycle",
        R.CYCLE_DETECTED,
        make_planning(workflow="w"),
        {"nodes": ["a", "b"]},
        Facts(cycle=("a", "b")),
    ),
    Case("a workflow of nobody, or of the schedule's owner", R.NOT_THE_OWNER, make_planning(workflow="w"), None),
    Case(
        "a workflow whose owner was asked when the schedule was written",
        R.NOT_THE_OWNER,
        make_planning(workflow="w", workflow_owner="ada"),
        None,
        Facts(workflow_owner="ada"),
    ),
    Case(
        "a workflow that has changed hands",
        R.NOT_THE_OWNER,
        make_planning(workflow="w", workflow_owner="ada"),
        {"workflow": "w", "owner": "eve"},
        Facts(workflow_owner="eve"),
    ),
    Case(
        "a workflow that somebody else stored after the schedule was written",
        R.NOT_THE_OWNER,
        make_planning(workflow="w"),
        {"workflow": "w", "owner": "eve"},
        Facts(workflow_owner="eve"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_guard_answers_what_its_row_says(case: Case) -> None:
    [guard] = [each for each in GUARDS if each.reason is case.reason]
    question = make_question(case.planning, case.facts, case.nominal, case.shared, **(case.position or {}))
    answer = guard.ask(question)
    if case.detail is None:
        assert answer is None
    else:
        assert answer is not None
        assert {key: answer[key] for key in case.detail} == case.detail


def test_every_guard_has_a_row_for_yes_and_one_for_no() -> None:
    for guard in GUARDS:
        rows = [case for case in CASES if case.reason is guard.reason]
        assert {case.detail is None for case in rows} == {True, False}, guard.reason


def test_the_order_of_the_guards_is_that_of_the_contract() -> None:
    assert [guard.reason for guard in GUARDS] == list(Reason)[: len(GUARDS)]
    assert len(GUARDS) == 11


@pytest.mark.parametrize("case", [case for case in CASES if case.detail is not None], ids=lambda case: case.name)
def test_a_guard_that_can_say_no_applies_to_the_schedule(case: Case) -> None:
    assert case.reason in [guard.reason for guard in guards_for(case.planning, Origin.SCHEDULED)]


def test_the_first_no_is_the_reason() -> None:
    planning = make_planning(
        spec=make_spec("* * * * *", end_at=NOON - 1),
        max_runs=0,
        calendars=("gone",),
        condition=PASSED,
        budget=Budget(0, 0),
        workflow="w",
        kind="prompt",
        assignee="ada",
    )
    facts = Facts(cycle=("a",), workflow_owner="eve", policies=workers(NATIVE))
    question = make_question(planning, facts, shared=SharedFacts(room=QuotaRoom(0)), status=Status.PAUSED)
    guards = guards_for(planning, Origin.SCHEDULED)
    assert len(guards) == len(GUARDS)
    refused = []
    while guards:
        refusal = first_refusal(guards, question)
        assert refusal is not None
        refused.append(refusal[0])
        guards = guards[1:]
    assert refused == [guard.reason for guard in GUARDS]


def test_no_guard_no_refusal() -> None:
    assert first_refusal((), make_question(make_planning())) is None


FULL = make_planning(
    spec=make_spec("* * * * *", start_at=NOON),
    max_runs=1,
    calendars=("c",),
    condition=PASSED,
    budget=Budget(1, 1),
    workflow="w",
    kind="prompt",
    assignee="ada",
)
ASKED = {
    Origin.SCHEDULED: set(Reason) & {guard.reason for guard in GUARDS},
    Origin.MANUAL: {
        R.STATUS_NOT_TRIGGERABLE,
        R.REMAINING_ACTIONS_EXHAUSTED,
        R.BUDGET_EXCEEDED,
        R.DAILY_LIMIT_REACHED,
        R.CYCLE_DETECTED,
        R.NOT_THE_OWNER,
        R.QUOTA_EXCEEDED,
    },
}


@pytest.mark.parametrize("origin", ASKED, ids=str)
def test_an_origin_is_asked_only_what_concerns_it(origin: Origin) -> None:
    assert {guard.reason for guard in guards_for(FULL, origin)} == ASKED[origin]


def test_a_backfill_asks_calendars_and_budget_but_no_condition() -> None:
    asked = {guard.reason for guard in guards_for(FULL, Origin.BACKFILL)}
    assert asked >= {R.OUTSIDE_WINDOW, R.REMAINING_ACTIONS_EXHAUSTED, R.CALENDAR, R.BUDGET_EXCEEDED}
    assert R.CONDITION_FAILED not in asked


GIVEN = {Fact.RUNS, Fact.SPENDING, Fact.DAILY_RUNS, Fact.POLICIES}
NEEDED: list[tuple[str, Planning, set[Fact]]] = [
    ("overlap skip", make_planning(), {Fact.RUNS}),
    ("allow_all", make_planning(overlap=OverlapPolicy.ALLOW_ALL), set()),
    ("allow_all up to two", make_planning(overlap=Overlap(OverlapPolicy.ALLOW_ALL, 2)), {Fact.RUNS}),
    ("a calendar", make_planning(calendars=("c",)), {Fact.RUNS, Fact.CALENDARS}),
    ("a condition", make_planning(condition=PASSED), {Fact.RUNS, Fact.CONTEXT}),
    ("credits", make_planning(budget=Budget(1)), {Fact.RUNS, Fact.SPENDING}),
    ("runs a day", make_planning(budget=Budget(None, 1)), {Fact.RUNS, Fact.DAILY_RUNS}),
    ("an assignee", make_planning(assignee="ada"), GIVEN),
    ("an assignment", make_planning(assignment="a"), GIVEN),
    ("a workflow", make_planning(workflow="w"), {Fact.RUNS, Fact.GRAPH}),
    ("a key", make_planning(concurrency_key="k"), {Fact.RUNS, Fact.KEYS}),
]


@pytest.mark.parametrize(("planning", "needed"), [row[1:] for row in NEEDED], ids=[row[0] for row in NEEDED])
def test_only_the_facts_that_a_schedule_needs_are_gathered(planning: Planning, needed: set[Fact]) -> None:
    assert facts_needed(planning, Origin.SCHEDULED) == needed | {Fact.QUOTA}


def test_every_fact_is_needed_by_some_schedule() -> None:
    assert set().union({Fact.QUOTA}, *(needed for _, _, needed in NEEDED)) == set(Fact)


def test_a_trigger_by_hand_gathers_no_calendar_and_no_context() -> None:
    assert facts_needed(FULL, Origin.MANUAL) == {
        Fact.POLICIES,
        Fact.RUNS,
        Fact.SPENDING,
        Fact.DAILY_RUNS,
        Fact.GRAPH,
        Fact.QUOTA,
    }


WHOLE = frozenset(ContextMember)


@pytest.mark.parametrize(
    ("condition", "needed"),
    [
        (None, set()),
        ({}, set()),
        ({"/elsewhere": {"eq": 1}}, set()),
        ({"/prior_run_result/status": {"eq": "completed"}}, {ContextMember.PRIOR_RUN_RESULT}),
        ({"/last_24h_stats": {"neq": None}}, {ContextMember.LAST_24H_STATS}),
        ({"/last_24h_stats_too/x": {"eq": 1}}, set()),
        ({"/signal_rpc_result": {"eq": None}}, {ContextMember.SIGNAL_RPC_RESULT}),
        (
            {"/prior_run_result/a/b": {"eq": 1}, "/last_24h_stats/failed": {"lt": 3}},
            {ContextMember.PRIOR_RUN_RESULT, ContextMember.LAST_24H_STATS},
        ),
        ({"": {"neq": {}}}, WHOLE),
    ],
    ids=["none", "empty", "elsewhere", "inside", "itself", "longer name", "signal", "two", "whole"],
)
def test_of_the_context_only_what_a_clause_can_see_is_needed(condition: Any, needed: set[ContextMember]) -> None:
    compiled = None if condition is None else compile_condition(condition)
    assert context_needed(make_planning(condition=compiled)) == needed
