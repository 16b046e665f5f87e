"""What holds whatever happens: one decision for each occurrence, no limit exceeded, and no step back."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from unit.decision.builders import (
    NOON,
    UID,
    World,
    enumerate_spec,
    expand,
    make_planning,
    make_position,
    make_spec,
    tick,
)

from horarium.core.decision.facts import Facts, Fire, Hold, Missed, Plan, SharedFacts, Skip
from horarium.core.decision.tick import Due, PlanTime, plan_batch
from horarium.core.document.planning import Planning
from horarium.core.document.states import Status
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Catchup, CatchupPolicy, Overlap, OverlapPolicy
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import HOUR, MINUTE, SECOND

stable = settings(derandomize=True, deadline=None, max_examples=150)

SPECS: list[Spec] = [
    make_spec("* * * * *"),
    make_spec("*/7 * * * *", jitter_ms=200_000),
    make_spec("*/20 * * * * *"),
    make_spec("* * * * *", jitter_ms=90_000),
    make_spec("0,30 * * * *", "5 13 * * *", start_at=NOON + HOUR),
    make_spec("*/3 * * * *", end_at=NOON + 90 * MINUTE),
    compile_spec(intervals=[{"every": "PT97S"}, {"every": "PT5M", "offset": "PT11S"}]),
    compile_spec(cron_expressions=["*/10 * * * *"], at=["2026-05-04T12:34:56Z", "2026-05-04T14:00:00Z"]),
]
catchups = st.builds(
    Catchup,
    policy=st.sampled_from(CatchupPolicy),
    max_catchup=st.sampled_from([0, 1, 5, 100]),
    catchup_window_seconds=st.sampled_from([None, 0, 30, 600, 3_600]),
    catchup_spread_seconds=st.sampled_from([0, 60, 600]),
    misfire_grace_seconds=st.sampled_from([0, 1, 60, 600]),
)
overlaps = st.builds(
    Overlap,
    policy=st.sampled_from(OverlapPolicy),
    max_concurrency=st.sampled_from([None, 1, 2, 3]),
    max_buffered=st.sampled_from([None, 0, 1, 4]),
    cancel_grace_seconds=st.sampled_from([0, 30]),
)
plannings = st.builds(
    Planning,
    spec=st.sampled_from(SPECS),
    overlap=overlaps,
    catchup=catchups,
    rotation=st.sampled_from([0, 3]),
    budget=st.builds(Budget, st.sampled_from([None, 0, 7]), st.sampled_from([None, 0, 4])),
    reserve=st.sampled_from([Decimal(0), Decimal(2)]),
    max_runs=st.sampled_from([None, None, 1, 9]),
    concurrency_key=st.sampled_from([None, "k"]),
    concurrency_limit=st.sampled_from([1, 2]),
)
# What happens next, and how many seconds it takes.
steps = st.lists(
    st.tuples(
        st.sampled_from(["poll", "poll", "poll", "outage", "pause", "resume", "edit", "touch"]),
        st.sampled_from([0, 1, 13, 59, 60, 61, 300, 1_800]),
        st.sampled_from(SPECS),
    ),
    max_size=25,
)


def act(world: World, name: str, seconds: int, spec: Spec) -> None:
    world.now += seconds * SECOND
    status = world.position.status
    match name:
        case "poll":
            world.poll(world.now)
        case "outage":
            world.outage(world.now)
        case "pause" if status is Status.ACTIVE:
            world.pause()
        case "resume" if status is Status.PAUSED:
            world.resume()
        case "edit" if status in (Status.ACTIVE, Status.PAUSED, Status.FINISHED):
            world.edit(replace(world.planning, spec=spec))
        case "touch" if status is not Status.DELETED:
            world.edit(replace(world.planning, max_runs=world.planning.max_runs), spec_changed=False)


@stable
@given(plannings, steps, st.sampled_from([1, 3, 100]), st.booleans(), st.sampled_from([1, 70, 1_000]))
def test_every_occurrence_gets_one_decision_and_no_limit_is_exceeded(
    planning: Planning, script: list[tuple[str, int, Spec]], limit: int, keep_alive: bool, duration: int
) -> None:
    world = World(planning, NOON - SECOND, duration=duration * SECOND, limit=limit, keep_alive=keep_alive)
    for name, seconds, spec in script:
        before = world.position
        act(world, name, seconds, spec)
        assert world.position.decided_until >= before.decided_until
        assert world.position.generation >= before.generation
        if world.position.status is Status.ACTIVE:
            assert world.position.next_due is not None
            assert world.position.next_due > world.position.decided_until
    if world.position.status is Status.ACTIVE:
        world.poll(world.now + SECOND)
    world.check_every_occurrence_has_one_decision()
    check_limits(world, planning)
    births = [each for each in world.decisions() if isinstance(each, Fire | Hold)]
    assert world.position.runs_born == len(births) == len(world.runs)
    if planning.rotation:
        assert [each.rotation_index for each in births] == [n % 3 for n in range(len(births))]
        assert world.position.rotation_index == len(births)


def check_limits(world: World, planning: Planning) -> None:
    """The world begins at noon and lasts less than twelve hours: one UTC day."""
    born = len(world.runs)
    if planning.max_runs is not None:
        assert born <= planning.max_runs
    if planning.budget.max_daily_runs is not None:
        assert born <= planning.budget.max_daily_runs
    if planning.budget.spending_limit_credits is not None:
        assert born * planning.reserve <= planning.budget.spending_limit_credits
    if planning.overlap.capacity is not None:
        assert world.peak_active <= planning.overlap.capacity
    if planning.concurrency_key is not None:
        assert world.peak_active <= planning.concurrency_limit
    for plan in world.plans:
        # Three more may be ranges that nobody is asked about: too old, beyond the cap, after the last run.
        assert len(plan.decisions) <= world.limit + 3


@stable
@given(
    st.sampled_from(SPECS[:4]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([CatchupPolicy.FIRE_ALL, CatchupPolicy.FIRE_ONCE, CatchupPolicy.SKIP]),
    st.lists(st.integers(1, 900), min_size=1, max_size=20),
)
def test_a_buffer_never_holds_more_than_it_may(spec: Spec, most: int, catchup: CatchupPolicy, gaps: list[int]) -> None:
    overlap = Overlap(OverlapPolicy.BUFFER_ALL, max_buffered=most)
    world = World(Planning(spec=spec, overlap=overlap, catchup=Catchup(catchup)), NOON, duration=200 * SECOND)
    for gap in gaps:
        world.outage(world.now + gap * SECOND)
        world.poll(world.now)
    assert world.peak_held <= most


@stable
@given(plannings, st.integers(0, 7_200), st.integers(1, 7_200), st.sampled_from([1, 10, 100]))
def test_a_plan_is_a_function_of_what_it_is_given(planning: Planning, decided: int, later: int, limit: int) -> None:
    position: dict[str, Any] = {
        "decided_until": NOON + decided * SECOND,
        "now": NOON + (decided + later) * SECOND,
        "limit": limit,
    }
    first, second = tick(planning, **position), tick(planning, **position)
    assert first == second


@stable
@given(plannings, st.integers(1, 20_000), st.sampled_from([1, 10, 100]))
def test_the_position_stands_after_the_last_decision(planning: Planning, later: int, limit: int) -> None:
    before, now = NOON - 1, NOON + later * SECOND
    plan = tick(planning, before, now, limit=limit)
    decided = expand(plan.decisions, planning.spec)
    until = plan.position.decided_until
    assert decided == enumerate_spec(planning.spec, before, until)
    assert until == (decided[-1] if decided else before)
    following = planning.spec.next_after(until)
    if plan.position.status is Status.ACTIVE:
        assert following is not None
        assert plan.position.next_due == planning.spec.due(UID, following)
        assert plan.more is (planning.spec.due(UID, following) <= now)
    elif plan.position.status is Status.FINISHED:
        assert following is None


@stable
@given(plannings, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3_000))
def test_only_births_move_what_is_counted(planning: Planning, active: int, held: int, later: int) -> None:
    shared = SharedFacts(active_by_key={"k": 0})
    facts = Facts(active=active, held=held)
    plan = tick(planning, now=NOON + later * SECOND, facts=facts, shared=shared, runs_born=2, rotation_index=2)
    births = [each for each in plan.decisions if isinstance(each, Fire | Hold)]
    fired = [each for each in births if isinstance(each, Fire)]
    assert plan.position.runs_born == 2 + len(births)
    assert plan.position.rotation_index == 2 + (len(births) if planning.rotation else 0)
    if not any(each.terminate_active for each in fired):
        assert shared.active_by_key == {"k": len(fired) if planning.concurrency_key else 0}


@stable
@given(st.lists(plannings, min_size=1, max_size=6), st.integers(0, 600))
def test_schedules_that_share_a_key_stay_below_its_limit(several: list[Planning], later: int) -> None:
    sharing = [replace(each, concurrency_key="k", concurrency_limit=3, spec=SPECS[0]) for each in several]
    assume(all(each.overlap.policy is not OverlapPolicy.TERMINATE_OTHER for each in sharing))
    dues = [Due(bytes([n]), each, make_position()) for n, each in enumerate(sharing)]
    shared = SharedFacts(active_by_key={"k": 1})
    answers = list(plan_batch(dues, {}, shared, PlanTime(NOON + later * SECOND)))
    plans = [plan for _, plan in answers if isinstance(plan, Plan)]
    assert len(plans) == len(dues)
    fired = sum(isinstance(each, Fire) for plan in plans for each in plan.decisions)
    assert 1 + fired == shared.active_by_key["k"] <= 3


@stable
@given(st.lists(st.sampled_from(["ada", "bob"]), min_size=1, max_size=8), st.integers(0, 9), st.integers(0, 5))
def test_schedules_that_share_an_assignee_stay_within_its_budget(who: list[str], credits: int, runs: int) -> None:
    dues = [
        Due(bytes([n]), make_planning(assignee=name, reserve=Decimal(2)), make_position()) for n, name in enumerate(who)
    ]
    facts = {due.uid: Facts(assignee_budget=Budget(credits, runs)) for due in dues}
    shared = SharedFacts()
    born: dict[str, int] = {"ada": 0, "bob": 0}
    for due, plan in plan_batch(dues, facts, shared, PlanTime(NOON)):
        assert isinstance(plan, Plan)
        born[due.planning.assignee or ""] += isinstance(plan.decisions[0], Fire)
    for name, count in born.items():
        asked = who.count(name)
        allowed = min(asked, runs, credits // 2)
        assert count == allowed
        assert shared.spent_by_assignee.get(name, 0) == 2 * count


class Bad:
    """A spec that cannot be asked."""

    start_at = end_at = None

    def next_after(self, instant: int) -> Any:
        raise OverflowError("date value out of range")


@stable
@given(st.lists(st.booleans(), max_size=12))
def test_bad_rows_park_only_themselves(bad: list[bool]) -> None:
    good = make_planning()
    broken = replace(good, spec=Bad())  # type: ignore[arg-type]  # broken on purpose
    dues = [Due(bytes([n]), broken if each else good, make_position()) for n, each in enumerate(bad)]
    answers = list(plan_batch(dues, {}, SharedFacts(), PlanTime(NOON)))
    assert [not isinstance(plan, Plan) for _, plan in answers] == bad
    assert all(plan.decisions == (Fire(NOON, NOON),) for _, plan in answers if isinstance(plan, Plan))


@pytest.mark.parametrize("policy", CatchupPolicy)
def test_a_month_of_seconds_needs_few_questions_to_the_spec(
    policy: CatchupPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    real = Spec.next_after

    def counted(spec: Spec, instant: int) -> int | None:
        nonlocal asked
        asked += 1
        return real(spec, instant)

    monkeypatch.setattr(Spec, "next_after", counted)
    planning = make_planning("* * * * * *", overlap=OverlapPolicy.ALLOW_ALL, catchup=policy)
    plan = tick(planning, NOON - 30 * 24 * HOUR, NOON)
    assert len(plan.decisions) <= 102
    assert asked <= 500


@stable
@given(st.integers(0, 10**6), st.integers(1, 600), st.sampled_from(SPECS))
def test_polls_of_any_rhythm_come_to_the_same_fires(start: int, every: int, spec: Spec) -> None:
    """While a ticker is alive and overlap is allowed, how often it looks changes nothing but the delay."""
    begin = NOON + start % 3_600 * SECOND
    world = World(make_planning(spec=spec, overlap=OverlapPolicy.ALLOW_ALL), begin)
    world.poll_until(begin + 30 * MINUTE, every * SECOND)
    expected = [each for each in enumerate_spec(spec, begin, world.now) if spec.due(UID, each) <= world.now]
    assert [run.nominal for run in world.runs.values()] == expected
    assert not any(isinstance(each, Skip | Missed) for each in world.decisions())
