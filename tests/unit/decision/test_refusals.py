"""What was missed and refused is recorded in ranges, and says of each occurrence what asking it alone would say."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.decision.builders import NOON, UID, clock, enumerate_spec, expand, make_planning, make_position, make_question
from unit.decision.builders import make_spec as spec_of

from horarium.condition import Condition, compile_condition
from horarium.core.decision.decide import decide
from horarium.core.decision.facts import Decision, Facts, Fire, Hold, Missed, Plan, RunTally, SharedFacts, Skip
from horarium.core.decision.guards import GUARDS, GuardQuestion, first_refusal, guards_for, refusal_until
from horarium.core.decision.tick import Due, PlanTime, plan_batch, plan_tick
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin, Reason
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Catchup, CatchupPolicy, Overlap, OverlapPolicy
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_rfc3339

stable = settings(derandomize=True, deadline=None, max_examples=300)

# Around the night in which New York's clocks go back, and the one in which they go forward.
AUTUMN = from_rfc3339("2026-11-01T06:00:00Z")
SPRING = from_rfc3339("2026-03-08T07:00:00Z")
TRUE, FALSE = compile_condition({"/x": {"neq": 1}}), compile_condition({"/x": {"eq": 1}})

specs = st.sampled_from(
    [
        spec_of("*/10 * * * *", timezone="America/New_York"),
        spec_of("0 * * * *", timezone="America/New_York", jitter_ms=1_800_000),
        spec_of("15,45 1-3 * * *", "*/25 * * * *", timezone="America/New_York"),
        spec_of("*/7 * * * *", start_at=AUTUMN - 2 * HOUR, end_at=AUTUMN + 20 * HOUR),
        compile_spec(intervals=[{"every": "PT11M"}, {"every": "PT1H30M"}], at=["2026-11-01T07:07:07Z"]),
        spec_of("30 */5 * * *", timezone="Pacific/Auckland", jitter_ms=60_000),
    ]
)
days = st.frozensets(
    st.sampled_from([date(2026, 10, 30) + timedelta(days=n) for n in range(5)] + [date(2026, 3, 8)]), max_size=4
)
calendars = st.builds(
    CalendarDefinition,
    name=st.just("c"),
    kind=st.sampled_from(CalendarKind),
    timezone=st.sampled_from(
        ["UTC", "UTC", "America/New_York", "Pacific/Auckland", "Pacific/Auckland", "Mars/Olympus"]
    ),
    dates=days,
    rule=st.sampled_from([None, None, "weekends", "weekdays"]),
)
plannings = st.builds(
    Planning,
    spec=specs,
    overlap=st.builds(
        Overlap,
        policy=st.sampled_from(OverlapPolicy),
        max_concurrency=st.sampled_from([None, 2]),
        max_buffered=st.sampled_from([None, 1]),
    ),
    catchup=st.builds(
        Catchup,
        policy=st.sampled_from([CatchupPolicy.FIRE_ONCE, *CatchupPolicy]),
        max_catchup=st.sampled_from([0, 3, 20, 1_000, 1_000]),
        catchup_window_seconds=st.sampled_from([None, None, 40_000]),
    ),
    calendars=st.sampled_from([(), ("one",), ("one",), ("one", "two"), ("one", "gone")]),
    condition=st.sampled_from([None, TRUE, FALSE, FALSE]),
    budget=st.builds(Budget, st.sampled_from([None, None, 0, 5]), st.sampled_from([None, None, 0, 3])),
    reserve=st.just(Decimal(1)),
    max_runs=st.sampled_from([None, None, 4]),
)
words = dict[Instant, str]


def said(decisions: tuple[Decision, ...], spec: Spec) -> words:
    """What was decided about each occurrence; all that a run covers have its word."""
    found: words = {}
    for decision in decisions:
        word = decision.reason.value if isinstance(decision, Skip | Missed) else type(decision).__name__
        for nominal in expand([decision], spec):
            assert nominal not in found
            found[nominal] = word
    return found


class OneByOne:
    """The same policies, asked about every single occurrence."""

    def __init__(self, planning: Planning, facts: Facts, position: Any) -> None:
        self.planning, self.facts = planning, facts
        self.tally = RunTally(planning, position, facts, SharedFacts())
        self.guards = guards_for(planning, Origin.SCHEDULED)
        self.found: words = {}

    def ask(self, nominal: Instant, *, caught_up: bool, spread: bool = False) -> str:
        decision = decide(
            self.guards,
            GuardQuestion(self.planning, self.facts, self.tally, nominal),
            due=nominal,
            overlap=self.planning.overlap,
            caught_up=caught_up,
            release_at=nominal if spread else None,
        )
        word = decision.reason.value if isinstance(decision, Skip) else type(decision).__name__
        self.found[nominal] = word
        return word

    def exhausted(self) -> bool:
        return self.planning.max_runs is not None and self.tally.runs_born >= self.planning.max_runs

    def decide(self, due: list[Instant], missed: list[Instant], old: list[Instant]) -> words:
        self.found = dict.fromkeys(old, "missed")
        policy, most = self.planning.catchup.policy, self.planning.catchup.max_catchup
        left = [nominal for nominal in missed if nominal not in self.found]
        match policy:
            case CatchupPolicy.SKIP:
                self.found |= dict.fromkeys(left, "missed")
            case CatchupPolicy.FIRE_ONCE:
                for place, nominal in enumerate(left):
                    word = self.ask(nominal, caught_up=True)
                    if word in ("Fire", "Hold"):
                        self.found |= dict.fromkeys(left[place:], word)
                        break
            case CatchupPolicy.FIRE_ALL | CatchupPolicy.SPREAD:
                capped = left[: max(0, len(left) - most)]
                self.found |= dict.fromkeys(capped, "catchup_cap")
                for nominal in left[len(capped) :]:
                    if not self.exhausted():
                        self.ask(nominal, caught_up=True, spread=policy is CatchupPolicy.SPREAD)
        for nominal in due:
            if nominal not in self.found and not self.exhausted():
                self.ask(nominal, caught_up=False)
        if self.exhausted():
            for nominal in due:
                self.found.setdefault(nominal, "remaining_actions_exhausted")
        return self.found


@stable
@given(
    plannings,
    st.lists(calendars, min_size=2, max_size=2),
    st.sampled_from([AUTUMN, SPRING]),
    st.integers(0, 2 * DAY),
    st.one_of(st.integers(0, 4 * DAY), st.integers(3 * DAY, 4 * DAY)),
    st.sampled_from([Facts(), Facts(active=1), Facts(active=1, held=1)]),
)
def test_a_range_says_of_each_occurrence_what_it_would_be_told_alone(
    planning: Planning, two: list[CalendarDefinition], near: Instant, before: int, span: int, world: Facts
) -> None:
    after, now = near - before, near - before + span
    facts = world._replace(calendars=dict(zip(("one", "two"), two, strict=True)))
    position = make_position(after)
    plan = plan_tick(Due(UID, planning, position), facts, SharedFacts(), PlanTime(now, limit=10**9, batch_limit=10**9))
    spec, catchup = planning.spec, planning.catchup
    grace = now - catchup.misfire_grace_seconds * SECOND
    window = catchup.catchup_window_seconds
    due = [each for each in enumerate_spec(spec, after, now) if spec.due(UID, each) <= now]
    missed = [each for each in due if spec.due(UID, each) < grace]
    old = [] if window is None else [each for each in missed if spec.due(UID, each) < now - window * SECOND]
    assert said(plan.decisions, spec) == OneByOne(planning, facts, position).decide(due, missed, old)
    in_order = [each.first if isinstance(each, Missed) else each.nominal for each in plan.decisions]
    assert in_order == sorted(in_order)


@stable
@given(
    specs,
    st.lists(calendars, min_size=2, max_size=2),
    st.sampled_from([None, TRUE, FALSE]),
    st.sampled_from([AUTUMN, SPRING]),
    st.integers(-2 * DAY, 2 * DAY),
    st.integers(0, 3 * DAY),
)
def test_a_refusal_is_the_same_as_long_as_it_is_said_to_be(
    spec: Spec, two: list[CalendarDefinition], condition: Condition | None, near: Instant, shift: int, span: int
) -> None:
    planning = make_planning(spec=spec, calendars=("one", "two"), condition=condition)
    facts = Facts(calendars=dict(zip(("one", "two"), two, strict=True)))
    guards = guards_for(planning, Origin.SCHEDULED)
    nominal = spec.next_after(near + shift)
    if nominal is None:
        return
    last = nominal + span
    refusal = first_refusal(guards, make_question(planning, facts, nominal))
    if refusal is None:
        return
    until = refusal_until(guards, refusal[0], make_question(planning, facts, nominal), last)
    assert nominal <= until <= last
    for other in enumerate_spec(spec, nominal, until):
        again = first_refusal(guards, make_question(planning, facts, other))
        assert again is not None
        assert again[0] is refusal[0]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.reason.value)
def test_every_guard_says_how_long_its_answer_stays(guard: Any) -> None:
    """Most do not ask about the occurrence at all; the window and the calendar do."""
    spec = spec_of("* * * * *", start_at=NOON, end_at=NOON + HOUR)
    planning = make_planning(spec=spec, calendars=("c",), max_runs=1, condition=FALSE, assignee="ada", workflow="w")
    monday = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 4)}))
    question = make_question(planning, Facts(calendars={"c": monday}))
    last = NOON + 10 * DAY
    expected = {Reason.OUTSIDE_WINDOW: NOON + HOUR, Reason.CALENDAR: clock("00:00", "2026-05-05") - 1}
    assert guard.unchanged(question, last) == expected.get(guard.reason, last)


@pytest.mark.parametrize(
    ("nominal", "until"),
    [(NOON - HOUR, NOON - 1), (NOON, NOON + HOUR), (NOON + HOUR, NOON + HOUR), (NOON + HOUR + 1, NOON + DAY)],
    ids=["before it", "as it opens", "as it closes", "after it"],
)
def test_the_window_answers_alike_before_inside_and_after(nominal: Instant, until: Instant) -> None:
    (guard,) = [each for each in GUARDS if each.reason is Reason.OUTSIDE_WINDOW]
    planning = make_planning(spec=spec_of("* * * * *", start_at=NOON, end_at=NOON + HOUR))
    assert guard.unchanged(make_question(planning, nominal=nominal), NOON + DAY) == until


# ── a batch ───────────────────────────────────────────────────────────────────────────────────────


def plan_many(plannings_: list[Planning], moment: PlanTime, **position: Any) -> list[Plan]:
    dues = [Due(bytes([n // 256, n % 256]), each, make_position(**position)) for n, each in enumerate(plannings_)]
    plans = [plan for _, plan in plan_batch(dues, {}, SharedFacts(), moment)]
    assert all(isinstance(plan, Plan) for plan in plans)
    return [plan for plan in plans if isinstance(plan, Plan)]


def test_a_batch_decides_a_bounded_number_and_something_for_each() -> None:
    backlog = make_planning(overlap=OverlapPolicy.ALLOW_ALL, catchup=CatchupPolicy.FIRE_ALL)
    moment = PlanTime(NOON + 200 * MINUTE, limit=100, batch_limit=250)
    counts = [len(plan.decisions) for plan in plan_many([backlog] * 6, moment)]
    # A hundred of the range's beginning are beyond the cap, which is one row more for each.
    assert counts == [101, 101, 49, 2, 2, 2]
    assert sum(counts) <= 250 + 6 + 6


def test_what_a_batch_leaves_is_still_due() -> None:
    backlog = make_planning(overlap=OverlapPolicy.ALLOW_ALL, catchup=CatchupPolicy.FIRE_ALL)
    plans = plan_many([backlog] * 3, PlanTime(NOON + 20 * MINUTE, limit=100, batch_limit=10))
    assert [plan.more for plan in plans] == [True, True, True]
    for plan in plans:
        last = plan.decisions[-1]
        assert isinstance(last, Fire | Hold)
        assert plan.position.decided_until == last.nominal


def test_a_herd_on_time_is_decided_whole() -> None:
    plans = plan_many([make_planning()] * 500, PlanTime(NOON))
    assert {len(plan.decisions) for plan in plans} == {1}
    assert list(islice((plan.more for plan in plans), 500)) == [False] * 500
