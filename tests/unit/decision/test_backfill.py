"""A backfill runs what the clock has passed: nominal times, once each, by explicit request."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import NOON, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.decide import MAX_OCCURRENCES, BackfillPlan, occurrences_to_fill, plan_backfill, remark
from horarium.core.decision.facts import NO_FACTS, Facts, Fire, Hold, SharedFacts, Skip
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason, Status
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.core.recurrence.parts import CronSchedule
from horarium.core.recurrence.spec import compile_spec
from horarium.errors import BackfillTooLarge, InvalidSpec
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant

P, R = OverlapPolicy, Reason
HOURS = [clock(f"{hour:02}:00") for hour in range(9, 12)]
FREE = make_planning("0 * * * *", overlap=P.ALLOW_ALL)


def fill(
    planning: Planning = FREE, facts: Facts = NO_FACTS, shared: SharedFacts | None = None, **rest: Any
) -> BackfillPlan:
    options = {"taken": (), **rest}
    position = options.pop("position", make_position(NOON))
    shared = SharedFacts() if shared is None else shared
    return plan_backfill(planning, position, facts, shared, options.pop("occurrences", HOURS), **options)


def words(plan: BackfillPlan) -> list[str]:
    return [each.reason.value if isinstance(each, Skip) else type(each).__name__ for each in plan.decisions]


# ── which occurrences ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (clock("09:00"), clock("11:00"), HOURS[:2]),
        (clock("09:00"), clock("11:00") + 1, HOURS),
        (clock("09:00") + 1, clock("11:30"), HOURS[1:]),
        (clock("09:10"), clock("09:50"), []),
        (clock("09:00"), clock("23:00"), [*HOURS, NOON]),
        (clock("13:00"), clock("23:00"), []),
    ],
    ids=["end is exclusive", "just past it", "start is inclusive", "none inside", "cut at the position", "all ahead"],
)
def test_the_window_holds_what_the_clock_has_passed(start: Instant, end: Instant, expected: list[Instant]) -> None:
    assert occurrences_to_fill(FREE, make_position(NOON), start, end) == expected


def test_the_window_ends_when_the_spec_does() -> None:
    once = make_planning(spec=compile_spec(at=["2026-05-04T09:00:00Z"]))
    assert occurrences_to_fill(once, make_position(NOON), NOON - DAY, NOON) == HOURS[:1]


@pytest.mark.parametrize("end", [NOON, NOON - 1])
def test_a_window_that_holds_no_time_is_refused(end: Instant) -> None:
    with pytest.raises(InvalidSpec, match="end_time") as refused:
        occurrences_to_fill(FREE, make_position(NOON), NOON, end)
    assert refused.value.field == "end_time"


def test_a_thousand_fit_and_one_more_is_refused_with_the_count() -> None:
    seconds = make_planning("* * * * * *")
    start = NOON - 1_000 * SECOND
    assert len(occurrences_to_fill(seconds, make_position(NOON), start, NOON)) == MAX_OCCURRENCES == 1_000
    with pytest.raises(BackfillTooLarge) as refused:
        occurrences_to_fill(seconds, make_position(NOON), start - SECOND, NOON)
    assert (refused.value.count, refused.value.limit) == (1_001, 1_000)


def test_a_century_is_refused_without_being_walked() -> None:
    with pytest.raises(BackfillTooLarge) as refused:
        occurrences_to_fill(make_planning("* * * * * *"), make_position(NOON), NOON - 36_500 * DAY, NOON)
    assert refused.value.count == 36_500 * 86_400


def test_a_century_of_several_parts_is_refused_after_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    real = CronSchedule.next_after

    def counted(part: CronSchedule, t: int) -> int | None:
        nonlocal steps
        steps += 1
        return real(part, t)

    monkeypatch.setattr(CronSchedule, "next_after", counted)
    seconds = make_planning("*/2 * * * * *", "*/3 * * * * *")
    with pytest.raises(BackfillTooLarge, match="more than 1000") as refused:
        occurrences_to_fill(seconds, make_position(NOON), NOON - 36_500 * DAY, NOON)
    assert refused.value.count is None
    assert steps <= 2_100


def test_a_window_may_begin_before_there_were_schedules() -> None:
    yearly = make_planning("0 0 1 1 *")
    found = occurrences_to_fill(yearly, make_position(NOON), -(10**17), NOON)
    assert (len(found), found[-1]) == (126, clock("00:00", "2026-01-01"))


# ── what becomes of them ──────────────────────────────────────────────────────────────────────────


def test_the_oldest_come_first_with_their_own_nominal_times() -> None:
    plan = fill(occurrences=[HOURS[2], HOURS[0], HOURS[1]])
    assert plan.decisions == tuple(Fire(nominal, nominal) for nominal in HOURS)


def test_in_reverse_the_newest_come_first() -> None:
    assert [each.nominal for each in fill(reverse=True).decisions] == HOURS[::-1]


def test_what_has_a_run_already_is_left_alone() -> None:
    plan = fill(taken={HOURS[1]})
    assert plan.decisions[1] == Skip(HOURS[1], R.ALREADY_EXISTS)
    assert words(plan) == ["Fire", "already_exists", "Fire"]
    assert plan.position.runs_born == 2


def test_a_repeated_request_is_harmless() -> None:
    first = fill()
    again = fill(taken={each.nominal for each in first.decisions}, position=first.position)
    assert words(again) == ["already_exists"] * 3
    assert again.position == first.position


def test_only_births_move_the_position_and_nothing_moves_the_clock() -> None:
    before = make_position(NOON, runs_born=4, rotation_index=1)
    plan = fill(make_planning("0 * * * *", overlap=P.ALLOW_ALL, rotation=2), position=before, taken=HOURS[:1])
    after = plan.position
    assert (after.runs_born, after.rotation_index) == (6, 3)
    assert (after.decided_until, after.next_due, after.status) == (NOON, before.next_due, Status.ACTIVE)
    assert [each.rotation_index for each in plan.decisions if isinstance(each, Fire)] == [1, 0]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (P.SKIP, ["Hold"] * 3),
        (P.BUFFER_ONE, ["Fire"] * 3),
        (P.BUFFER_ALL, ["Fire"] * 3),
        (P.ALLOW_ALL, ["Fire"] * 3),
        (P.CANCEL_OTHER, ["Hold"] * 3),
        (P.TERMINATE_OTHER, ["Fire"] * 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("chosen", [False, True], ids=["the schedule's", "the caller's"])
def test_buffers_count_as_allow_all(policy: OverlapPolicy, expected: list[str], chosen: bool) -> None:
    busy = Facts(active=1)
    own = make_planning("0 * * * *", overlap=P.ALLOW_ALL if chosen else policy)
    assert words(fill(own, busy, overlap_policy=policy if chosen else None)) == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        (Overlap(P.SKIP), ["Fire", "Hold", "Hold"]),
        (Overlap(P.SKIP, max_concurrency=2), ["Fire", "Fire", "Hold"]),
        (Overlap(P.SKIP, max_buffered=0), ["Fire", "Hold", "Hold"]),
    ],
    ids=["one", "two at a time", "a buffer of none"],
)
def test_skip_is_one_after_the_other(overlap: Overlap, expected: list[str]) -> None:
    assert words(fill(make_planning("0 * * * *", overlap=overlap))) == expected


@pytest.mark.parametrize(
    ("start", "end", "found", "said"),
    [
        (clock("09:00"), clock("12:00"), HOURS, None),
        (clock("09:00"), NOON + 1, [*HOURS, NOON], None),
        (clock("09:10"), clock("09:50"), [], "The window contains no occurrences."),
        (clock("23:10"), clock("23:50"), [], "The window contains no occurrences."),
        (clock("13:00"), clock("23:00"), [], "the first is 2026-05-04T13:00:00Z."),
        (
            clock("09:00"),
            clock("23:00"),
            [*HOURS, NOON],
            "occurrences from 2026-05-04T13:00:00Z on run as scheduled",
        ),
    ],
    ids=["all of it", "to the end", "empty", "empty and ahead", "ahead", "partly ahead"],
)
def test_a_window_that_brings_less_than_one_may_think_says_so(
    start: Instant, end: Instant, found: list[Instant], said: str | None
) -> None:
    assert occurrences_to_fill(FREE, make_position(NOON), start, end) == found
    told = remark(FREE, start, end, found)
    assert told is None if said is None else told is not None and said in told


def test_the_limit_of_runs_at_once_is_kept() -> None:
    planning = make_planning("0 * * * *", overlap=Overlap(P.ALLOW_ALL, max_concurrency=2))
    assert words(fill(planning)) == ["Fire", "Fire", "max_concurrent_reached"]


def test_a_run_without_a_free_key_is_held() -> None:
    planning = make_planning("0 * * * *", overlap=P.ALLOW_ALL, concurrency_key="k")
    assert fill(planning).decisions[1] == Hold(HOURS[1], HOURS[1])


def test_calendars_and_budget_apply_and_conditions_do_not() -> None:
    planning = make_planning(
        "0 * * * *",
        overlap=P.ALLOW_ALL,
        calendars=("c",),
        condition=compile_condition({"/x": {"eq": 1}}),
        budget=Budget(1),
        reserve=Decimal(1),
    )
    calendar = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 3)}))
    plan = fill(planning, Facts(calendars={"c": calendar}), occurrences=[HOURS[0] - DAY, *HOURS])
    assert words(plan) == ["calendar", "Fire", "budget_exceeded", "budget_exceeded"]


def test_an_occurrence_outside_the_window_is_refused() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", start_at=clock("10:00")), overlap=P.ALLOW_ALL)
    assert words(fill(planning)) == ["outside_window", "Fire", "Fire"]


def test_the_last_run_ends_the_list_and_the_schedule() -> None:
    planning = make_planning("0 * * * *", overlap=P.ALLOW_ALL, max_runs=5)
    plan = fill(planning, position=make_position(NOON, runs_born=3))
    assert words(plan) == ["Fire", "Fire"]
    assert (plan.position.status, plan.position.next_due) == (Status.DELETED, None)


def test_a_schedule_with_runs_left_lives_on() -> None:
    assert fill(make_planning("0 * * * *", overlap=P.ALLOW_ALL, max_runs=4)).position.status is Status.ACTIVE


def test_a_paused_schedule_is_filled_and_stays_paused() -> None:
    plan = fill(position=make_position(NOON, status=Status.PAUSED))
    assert words(plan) == ["Fire"] * 3
    assert plan.position.status is Status.PAUSED


@pytest.mark.parametrize("status", [Status.DELETED, Status.BROKEN])
def test_a_schedule_that_is_gone_or_broken_is_not_filled(status: Status) -> None:
    plan = fill(position=make_position(NOON, status=status))
    assert words(plan) == ["status_not_triggerable"] * 3


def test_nothing_to_fill_is_no_error() -> None:
    assert fill(occurrences=[]) == BackfillPlan((), make_position(NOON))
    assert occurrences_to_fill(FREE, make_position(NOON), NOON + HOUR, NOON + HOUR + MINUTE) == []
