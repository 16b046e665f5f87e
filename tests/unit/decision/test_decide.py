"""One occurrence, one decision: guards, then overlap, then the concurrency key; and every reason is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import (
    NOON,
    clock,
    make_planning,
    make_position,
    make_question,
    make_spec,
    tick,
)

from horarium.condition import compile_condition
from horarium.core.decision import decide as decision_decide
from horarium.core.decision.decide import covering, decide, decide_trigger, key_is_free, plan_backfill
from horarium.core.decision.facts import NO_FACTS, Covers, Facts, Fire, Hold, Missed, RunTally, SharedFacts, Skip
from horarium.core.decision.guards import guards_for
from horarium.core.decision.run_policies import CreationPolicies, PolicyBundle
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Reason, Status
from horarium.core.policy.limits import Budget, QuotaRoom
from horarium.core.policy.queue import Catchup, CatchupPolicy, Overlap, OverlapPolicy
from horarium.instant import MINUTE

P = OverlapPolicy


def ask(
    planning: Planning, facts: Facts = NO_FACTS, shared: SharedFacts | None = None, **rest: Any
) -> Fire | Hold | Skip:
    question = make_question(planning, facts, shared=shared)
    guards = guards_for(planning, Origin.SCHEDULED)
    return decide(guards, question, due=NOON + 7, overlap=planning.overlap, **rest)


def counts(tally: RunTally) -> dict[str, Any]:
    names = ("active", "held", "spent", "runs_today", "runs_born", "rotation_index")
    seen: dict[str, Any] = {name: getattr(tally, name) for name in names}
    shared = tally.shared
    return seen | {
        "keys": dict(shared.active_by_key),
        "spent_by": dict(shared.spent_by_assignee),
        "runs_by": dict(shared.runs_by_assignee),
    }


RICH = make_planning(rotation=3, reserve=Decimal(2), assignee="ada", concurrency_key="k", concurrency_limit=2)


def test_a_fire_is_counted_wherever_a_guard_will_look() -> None:
    question = make_question(RICH, rotation_index=4, runs_born=7)
    fired = decide((), question, due=NOON, overlap=RICH.overlap)
    assert fired == Fire(NOON, NOON, rotation_index=1)
    assert counts(question.tally) == {
        "active": 1,
        "held": 0,
        "spent": Decimal(2),
        "runs_today": 1,
        "runs_born": 8,
        "rotation_index": 5,
        "keys": {"k": 1},
        "spent_by": {"ada": Decimal(2)},
        "runs_by": {"ada": 1},
    }


def test_a_hold_is_a_birth_that_takes_no_concurrency_key() -> None:
    question = make_question(RICH, shared=SharedFacts(active_by_key={"k": 2}))
    assert decide((), question, due=NOON, overlap=RICH.overlap) == Hold(NOON, NOON, rotation_index=0)
    seen = counts(question.tally)
    assert (seen["active"], seen["held"], seen["runs_born"], seen["rotation_index"]) == (0, 1, 1, 1)
    assert seen["keys"] == {"k": 2}
    assert seen["spent_by"] == {"ada": Decimal(2)}


SKIPS: list[tuple[str, Planning, Facts]] = [
    ("by a guard", replace(RICH, budget=Budget(0)), NO_FACTS),
    ("by overlap", RICH, Facts(active=1)),
    ("by a full buffer", replace(RICH, overlap=Overlap(P.BUFFER_ONE)), Facts(active=1, held=1)),
    ("by concurrency", replace(RICH, overlap=Overlap(P.ALLOW_ALL, 1)), Facts(active=1)),
]


@pytest.mark.parametrize(("planning", "facts"), [row[1:] for row in SKIPS], ids=[row[0] for row in SKIPS])
def test_a_skip_leaves_the_tally_as_it_was(planning: Planning, facts: Facts) -> None:
    question = make_question(planning, facts, rotation_index=1)
    before = counts(question.tally)
    guards = guards_for(planning, Origin.SCHEDULED)
    assert isinstance(decide(guards, question, due=NOON, overlap=planning.overlap), Skip)
    assert counts(question.tally) == before


def test_a_skip_by_overlap_says_how_many_are_busy() -> None:
    skipped = ask(make_planning(), Facts(active=1, held=2))
    assert skipped == Skip(NOON, Reason.OVERLAP_POLICY_SKIP, {"active": 1, "held": 2})


def test_a_guard_is_asked_before_overlap() -> None:
    skipped = ask(make_planning(budget=Budget(0)), Facts(active=1))
    assert isinstance(skipped, Skip)
    assert skipped.reason is Reason.BUDGET_EXCEEDED


def test_the_due_time_is_kept_beside_the_nominal_time() -> None:
    assert ask(make_planning()) == Fire(NOON, NOON + 7)


def test_a_run_with_a_time_to_wait_for_is_held_whatever_is_busy() -> None:
    for policy in OverlapPolicy:
        held = ask(make_planning(overlap=policy), Facts(active=5), caught_up=True, release_at=NOON + MINUTE)
        assert held == Hold(NOON, NOON + 7, release_at=NOON + MINUTE)


def test_a_guard_refuses_a_run_with_a_time_to_wait_for_as_well() -> None:
    assert isinstance(ask(make_planning(max_runs=0), release_at=NOON), Skip)


# ── the concurrency key ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("key", "limit", "taken", "free"),
    [(None, 1, 9, True), ("k", 1, 0, True), ("k", 1, 1, False), ("k", 3, 2, True), ("k", 3, 4, False)],
    ids=["no key", "nobody", "one of one", "two of three", "more than allowed"],
)
def test_a_key_is_free_below_its_limit(key: str | None, limit: int, taken: int, free: bool) -> None:
    planning = make_planning(concurrency_key=key, concurrency_limit=limit)
    question = make_question(planning, shared=SharedFacts(active_by_key={"k": taken, "other": 99}))
    assert key_is_free(question.tally) is free


@pytest.mark.parametrize("policy", OverlapPolicy)
def test_a_run_without_a_free_key_is_held_whatever_the_policy(policy: OverlapPolicy) -> None:
    planning = make_planning(overlap=policy, concurrency_key="k")
    assert ask(planning, shared=SharedFacts(active_by_key={"k": 1})) == Hold(NOON, NOON + 7)


def test_terminated_runs_give_their_key_to_the_one_that_replaces_them() -> None:
    planning = make_planning(overlap=P.TERMINATE_OTHER, concurrency_key="k", concurrency_limit=1)
    fired = ask(planning, Facts(active=1), SharedFacts(active_by_key={"k": 1}))
    assert fired == Fire(NOON, NOON + 7, terminate_active=True)


def test_terminated_runs_no_longer_count_under_their_key() -> None:
    planning = make_planning(overlap=P.TERMINATE_OTHER, concurrency_key="k", concurrency_limit=3)
    shared = SharedFacts(active_by_key={"k": 2})  # one is ours, one another schedule's
    assert isinstance(ask(planning, Facts(active=1), shared), Fire)
    assert shared.active_by_key == {"k": 2}


# ── small things ──────────────────────────────────────────────────────────────────────────────────


def test_covering_changes_nothing_but_what_is_covered() -> None:
    covers = Covers(1, 3, 2)
    assert covering(Fire(1, 2, 3, None, True), covers) == Fire(1, 2, 3, covers, True)
    assert covering(Hold(1, 2, 3, None, True, 9), covers) == Hold(1, 2, 3, covers, True, 9)


def test_the_rotation_goes_round_and_never_moves_without_one() -> None:
    tally = make_question(make_planning(rotation=2), rotation_index=5).tally
    assert [tally.bear(held=False) for _ in range(3)] == [1, 0, 1]
    assert tally.rotation_index == 8
    plain = make_question(make_planning(), rotation_index=5).tally
    assert plain.bear(held=True) is None
    assert plain.rotation_index == 5


def test_a_new_day_restarts_what_counts_by_the_day() -> None:
    shared = SharedFacts(spent_by_assignee={"ada": Decimal(5), "bob": Decimal(6)}, runs_by_assignee={"ada": 7})
    tally = make_question(RICH, Facts(spent_today=Decimal(3), runs_today=4), shared=shared, runs_born=9).tally
    tally.new_day()
    assert (tally.spent, tally.runs_today, tally.runs_born) == (Decimal(0), 0, 9)
    assert shared.spent_by_assignee == {"ada": 0, "bob": Decimal(6)}
    assert shared.runs_by_assignee == {"ada": 0}
    alone = make_question(make_planning(), Facts(runs_today=4)).tally
    alone.new_day()
    assert alone.runs_today == 0


# ── every reason ──────────────────────────────────────────────────────────────────────────────────


def _reason_of(planning: Planning, facts: Facts = NO_FACTS, **rest: Any) -> Reason:
    [decision] = tick(planning, facts=facts, **rest).decisions
    assert isinstance(decision, Skip | Missed)
    return decision.reason


def _superseded() -> Reason:
    old, new = make_planning(), make_planning("0 * * * *")
    change = decision_decide.edit_position(old, new, b"u", make_position(), now=NOON, spec_changed=True)
    assert change.superseded is not None
    return change.superseded.reason


def _taken() -> Reason:
    [skipped] = plan_backfill(
        make_planning(), make_position(NOON), NO_FACTS, SharedFacts(), [NOON], taken=[NOON]
    ).decisions
    assert isinstance(skipped, Skip)
    return skipped.reason


def _paused() -> Reason:
    paused = make_position(status=Status.PAUSED)
    skipped = decide_trigger(make_planning(), paused, NO_FACTS, SharedFacts(), now=NOON)
    assert isinstance(skipped, Skip)
    return skipped.reason


def _no_room() -> Reason:
    skipped = decide_trigger(make_planning(), make_position(), NO_FACTS, SharedFacts(room=QuotaRoom(0)), now=NOON)
    assert isinstance(skipped, Skip)
    return skipped.reason


def _outside() -> Reason:
    planning = make_planning(spec=make_spec("* * * * *", end_at=NOON - MINUTE))
    plan = plan_backfill(planning, make_position(NOON), NO_FACTS, SharedFacts(), [NOON], taken=[])
    [skipped] = plan.decisions
    assert isinstance(skipped, Skip)
    return skipped.reason


LATE: dict[str, Any] = {"decided_until": clock("11:00") - 1, "now": clock("11:05")}
REACHED: dict[Reason, Callable[[], Reason]] = {
    Reason.STATUS_NOT_TRIGGERABLE: _paused,
    Reason.OUTSIDE_WINDOW: _outside,
    Reason.REMAINING_ACTIONS_EXHAUSTED: lambda: _reason_of(make_planning(max_runs=0)),
    Reason.NATIVE_SCHEDULER: lambda: _reason_of(
        make_planning(kind="prompt", assignee="ada"),
        Facts(
            policies=CreationPolicies(
                Assignee(AssigneeType.AGENT, "ada"), {None: PolicyBundle(None, None, native_scheduler=True)}
            )
        ),
    ),
    Reason.CALENDAR: lambda: _reason_of(make_planning(calendars=("gone",))),
    Reason.CONDITION_FAILED: lambda: _reason_of(make_planning(condition=compile_condition({"/a": {"eq": 1}}))),
    Reason.BUDGET_EXCEEDED: lambda: _reason_of(make_planning(budget=Budget(0))),
    Reason.DAILY_LIMIT_REACHED: lambda: _reason_of(make_planning(budget=Budget(None, 0))),
    Reason.CYCLE_DETECTED: lambda: _reason_of(make_planning(workflow="w"), Facts(cycle=("a",))),
    Reason.NOT_THE_OWNER: lambda: _reason_of(make_planning(workflow="w"), Facts(workflow_owner="eve")),
    Reason.QUOTA_EXCEEDED: _no_room,
    Reason.OVERLAP_POLICY_SKIP: lambda: _reason_of(make_planning(), Facts(active=1)),
    Reason.BUFFER_FULL: lambda: _reason_of(make_planning(overlap=P.BUFFER_ONE), Facts(active=1, held=1)),
    Reason.MAX_CONCURRENT_REACHED: lambda: _reason_of(
        make_planning(overlap=Overlap(P.ALLOW_ALL, max_concurrency=1)), Facts(active=1)
    ),
    Reason.SUPERSEDED: _superseded,
    Reason.MISSED: lambda: _reason_of(
        make_planning(catchup=Catchup(CatchupPolicy.SKIP, misfire_grace_seconds=0)), **LATE, limit=0
    ),
    Reason.CATCHUP_CAP: lambda: _reason_of(
        make_planning(catchup=Catchup(CatchupPolicy.FIRE_ALL, max_catchup=0, misfire_grace_seconds=0)), **LATE, limit=0
    ),
    Reason.ALREADY_EXISTS: _taken,
}


@pytest.mark.parametrize("reason", REACHED)
def test_a_reason_is_reached(reason: Reason) -> None:
    assert REACHED[reason]() is reason


def test_every_reason_is_reached_but_the_one_that_a_launch_gives() -> None:
    assert set(REACHED) == set(Reason) - {Reason.TARGET_BUSY}
