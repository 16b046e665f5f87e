"""What a tick makes of due occurrences: on time, missed, caught up, capped, spread, and never twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from unit.decision.builders import (
    NOON,
    UID,
    clock,
    enumerate_spec,
    expand,
    make_planning,
    make_position,
    make_spec,
    tick,
    tick_to_the_end,
)

from horarium.core.decision.facts import Covers, Decision, Facts, Fire, Hold, Missed, Plan, Skip
from horarium.core.decision.tick import MAX_CATCHUP_PER_TICK, PlanTime
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason, Status
from horarium.core.policy.queue import Catchup, CatchupPolicy, OverlapPolicy
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import DAY, MINUTE, SECOND, Instant

P, C = OverlapPolicy, CatchupPolicy


def fires(*times: str) -> tuple[Fire, ...]:
    return tuple(Fire(clock(time), clock(time)) for time in times)


def caught(**numbers: Any) -> Planning:
    """Every minute, overlap allowed: what is left to see is the catch-up."""
    return make_planning(overlap=P.ALLOW_ALL, catchup=Catchup(**numbers))


# ── on time ───────────────────────────────────────────────────────────────────────────────────────


def test_what_is_due_fires_and_the_position_moves_past_it() -> None:
    plan = tick(make_planning(), runs_born=3, generation=2)
    assert plan.decisions == (Fire(NOON, NOON),)
    moved = make_position(NOON, next_due=NOON + MINUTE, runs_born=4, generation=2)
    assert plan == Plan((Fire(NOON, NOON),), moved, more=False)


def test_what_is_not_due_yet_is_left_alone() -> None:
    plan = tick(make_planning(), now=NOON - 1)
    assert plan == Plan((), make_position(NOON - 1, next_due=NOON))


@pytest.mark.parametrize("status", [each for each in Status if each is not Status.ACTIVE])
def test_a_schedule_that_is_not_active_gets_no_decisions(status: Status) -> None:
    position = make_position(NOON - DAY, status=status)
    assert tick(make_planning(), NOON - DAY, status=status) == Plan((), position)


def test_a_clock_that_went_back_decides_nothing_twice() -> None:
    assert tick(make_planning(), decided_until=NOON, now=NOON - 10 * MINUTE).decisions == ()


def test_after_the_last_occurrence_the_schedule_is_finished() -> None:
    spec = compile_spec(at=["2026-05-04T12:00:00Z"])
    plan = tick(make_planning(spec=spec))
    assert plan.decisions == (Fire(NOON, NOON),)
    assert (plan.position.status, plan.position.next_due, plan.more) == (Status.FINISHED, None, False)


def test_an_occurrence_exactly_at_the_end_of_the_window_fires_even_if_looked_at_late() -> None:
    plan = tick(make_planning(spec=make_spec("* * * * *", end_at=NOON)), now=NOON + 30 * SECOND)
    assert plan.decisions == fires("12:00")
    assert plan.position.status is Status.FINISHED


def test_jitter_moves_the_due_time_and_never_the_name() -> None:
    planning = make_planning(spec=make_spec("* * * * *", jitter_ms=30_000))
    due = planning.spec.due(UID, NOON)
    assert NOON < due <= NOON + 30 * SECOND
    early = tick(planning, now=due - 1)
    assert early.decisions == ()
    assert early.position.next_due == due
    assert tick(planning, now=due).decisions == (Fire(NOON, due),)


def test_the_grace_is_counted_from_the_due_time() -> None:
    spec = make_spec("*/10 * * * *", jitter_ms=300_000)
    planning = make_planning(spec=spec, catchup=Catchup(C.SKIP, misfire_grace_seconds=60))
    due = spec.due(UID, NOON)
    assert due > NOON + 60 * SECOND  # otherwise this shows nothing
    assert tick(planning, now=due + 60 * SECOND).decisions == (Fire(NOON, due),)
    assert tick(planning, now=due + 60 * SECOND + 1).decisions == (Missed(NOON, NOON, 1, Reason.MISSED),)


def test_a_missed_stretch_ends_before_an_occurrence_whose_jitter_is_still_running() -> None:
    spec = make_spec("* * * * *", jitter_ms=59_000)
    planning = make_planning(spec=spec, catchup=Catchup(C.SKIP, misfire_grace_seconds=0))
    last = clock("12:05")
    now = spec.due(UID, last) - 1
    assert now > last
    [missed] = tick(planning, now=now).decisions
    assert missed == Missed(NOON, clock("12:04"), 5, Reason.MISSED)


# ── the edge of the grace, and whose fault it was ─────────────────────────────────────────────────


@pytest.mark.parametrize("policy", CatchupPolicy)
def test_exactly_at_the_grace_is_on_time_and_a_microsecond_later_is_missed(policy: CatchupPolicy) -> None:
    planning = make_planning("0 * * * *", catchup=Catchup(policy, misfire_grace_seconds=90))
    busy = Facts(active=1)  # what is on time is skipped, a backlog is held, what is missed is neither
    on_time, late = (tick(planning, now=NOON + 90 * SECOND + late, facts=busy).decisions[0] for late in (0, 1))
    assert isinstance(on_time, Skip)
    assert isinstance(late, Missed if policy is C.SKIP else Hold)


@pytest.mark.parametrize(
    ("alive_since", "missed"),
    [(None, 5), (clock("12:00"), 0), (clock("12:03"), 3), (clock("12:03") + 1, 4), (clock("12:09"), 5)],
    ids=["just started", "there all the time", "since 12:03", "just after 12:03", "less long than the grace"],
)
def test_slowness_of_a_ticker_that_was_there_is_no_downtime(alive_since: Instant | None, missed: int) -> None:
    planning = caught(policy=C.SKIP, misfire_grace_seconds=4 * 60)
    decisions = tick(planning, now=clock("12:08:30"), alive_since=alive_since).decisions
    lost = sum(each.count for each in decisions if isinstance(each, Missed))
    assert lost == missed
    assert sum(isinstance(each, Fire) for each in decisions) == 9 - missed


@pytest.mark.parametrize(
    ("breaks", "missed"),
    [
        ([], 0),
        ([("12:02", "12:06")], 0),
        ([("12:01", "12:06")], 5),
        ([("12:01", "12:06"), ("12:06", "12:07")], 5),
        ([("11:01", "11:31")], 0),
    ],
    ids=["none", "no longer than the grace", "longer", "a short one after it", "long over"],
)
def test_a_break_is_downtime_where_it_is_longer_than_the_grace(breaks: list[tuple[str, str]], missed: int) -> None:
    planning = caught(policy=C.SKIP, misfire_grace_seconds=4 * 60)
    instants = tuple((clock(begin), clock(end)) for begin, end in breaks)
    decisions = tick(planning, now=clock("12:08:30"), alive_since=NOON, breaks=instants).decisions
    assert sum(each.count for each in decisions if isinstance(each, Missed)) == missed


# ── catch-up, policy by policy ────────────────────────────────────────────────────────────────────

# Every minute from 12:00; looked at 12:05:30, with a grace of a minute: 12:00 to 12:04 are missed, 12:05 is on time.
FIVE: dict[str, Any] = {"now": clock("12:05:30")}
CATCHUP: dict[str, tuple[dict[str, Any], tuple[Decision, ...]]] = {
    "skip": (
        {"policy": C.SKIP},
        (Missed(clock("12:00"), clock("12:04"), 5, Reason.MISSED), *fires("12:05")),
    ),
    "fire_once": (
        {"policy": C.FIRE_ONCE},
        (
            Fire(NOON, NOON, covers=Covers(clock("12:00"), clock("12:04"), 5)),
            *fires("12:05"),
        ),
    ),
    "fire_all": ({"policy": C.FIRE_ALL}, fires("12:00", "12:01", "12:02", "12:03", "12:04", "12:05")),
    "fire_all, three at most": (
        {"policy": C.FIRE_ALL, "max_catchup": 3},
        (
            Missed(clock("12:00"), clock("12:01"), 2, Reason.CATCHUP_CAP),
            *fires("12:02", "12:03", "12:04", "12:05"),
        ),
    ),
    "fire_all, exactly as many as there are": (
        {"policy": C.FIRE_ALL, "max_catchup": 5},
        fires("12:00", "12:01", "12:02", "12:03", "12:04", "12:05"),
    ),
    "fire_all, none at most": (
        {"policy": C.FIRE_ALL, "max_catchup": 0},
        (Missed(clock("12:00"), clock("12:04"), 5, Reason.CATCHUP_CAP), *fires("12:05")),
    ),
    "spread": (
        {"policy": C.SPREAD, "catchup_spread_seconds": 40},
        (
            *(
                Hold(clock(f"12:0{n}"), clock(f"12:0{n}"), release_at=clock("12:05:30") + n * 10 * SECOND)
                for n in range(5)
            ),
            *fires("12:05"),
        ),
    ),
    "spread, two at most": (
        {"policy": C.SPREAD, "max_catchup": 2},
        (
            Missed(clock("12:00"), clock("12:02"), 3, Reason.CATCHUP_CAP),
            Hold(clock("12:03"), clock("12:03"), release_at=clock("12:05:30")),
            Hold(clock("12:04"), clock("12:04"), release_at=clock("12:06:30")),
            *fires("12:05"),
        ),
    ),
    "window": (
        {"policy": C.FIRE_ALL, "catchup_window_seconds": 150},
        (Missed(clock("12:00"), clock("12:02"), 3, Reason.MISSED), *fires("12:03", "12:04", "12:05")),
    ),
    "window and once": (
        {"policy": C.FIRE_ONCE, "catchup_window_seconds": 150},
        (
            Missed(clock("12:00"), clock("12:02"), 3, Reason.MISSED),
            Fire(clock("12:03"), clock("12:03"), covers=Covers(clock("12:03"), clock("12:04"), 2)),
            *fires("12:05"),
        ),
    ),
    "window and cap": (
        {"policy": C.FIRE_ALL, "catchup_window_seconds": 150, "max_catchup": 1},
        (
            Missed(clock("12:00"), clock("12:02"), 3, Reason.MISSED),
            Missed(clock("12:03"), clock("12:03"), 1, Reason.CATCHUP_CAP),
            *fires("12:04", "12:05"),
        ),
    ),
    "a window that nothing is older than": (
        {"policy": C.SKIP, "catchup_window_seconds": 330},
        (Missed(clock("12:00"), clock("12:04"), 5, Reason.MISSED), *fires("12:05")),
    ),
    "a window shorter than the grace": (
        {"policy": C.FIRE_ALL, "catchup_window_seconds": 0},
        (Missed(clock("12:00"), clock("12:04"), 5, Reason.MISSED), *fires("12:05")),
    ),
}


@pytest.mark.parametrize("name", CATCHUP)
def test_what_was_missed_goes_by_the_policy(name: str) -> None:
    numbers, decisions = CATCHUP[name]
    plan = tick(caught(**numbers), **FIVE)
    assert plan.decisions == decisions
    assert plan.position.decided_until == clock("12:05")
    assert plan.position.next_due == clock("12:06")
    assert not plan.more


def test_every_catchup_policy_has_a_row() -> None:
    assert {numbers["policy"] for numbers, _ in CATCHUP.values()} == set(CatchupPolicy)


def test_fire_once_takes_the_earliest_that_no_guard_refuses() -> None:
    planning = make_planning("0 */8 * * *", calendars=("c",))
    not_monday = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 4)}))
    now = clock("17:00", "2026-05-05")
    decisions = tick(planning, clock("07:00"), now, facts=Facts(calendars={"c": not_monday})).decisions
    first = clock("00:00", "2026-05-05")
    seen = {"calendar": "c", "date": "2026-05-04", "kind": "skip_dates", "text": "c skips 2026-05-04"}
    assert decisions == (
        Missed(clock("08:00"), clock("16:00"), 2, Reason.CALENDAR, seen),
        Fire(first, first, covers=Covers(first, clock("16:00", "2026-05-05"), 3)),
    )


# ── overlap, when idle, busy or holding, on time and caught up ────────────────────────────────────

WORLDS = {"idle": Facts(), "busy": Facts(active=1), "held": Facts(active=1, held=1)}
S, H, KILL, STOP = "fire", "hold", "terminate and fire", "cancel and hold"
FULL_BUFFER, SKIPPED = Reason.BUFFER_FULL.value, Reason.OVERLAP_POLICY_SKIP.value
# policy: (on time, caught up) for idle, busy and held
OVERLAP: dict[OverlapPolicy, dict[str, tuple[str, str]]] = {
    P.SKIP: {"idle": (S, S), "busy": (SKIPPED, H), "held": (SKIPPED, H)},
    P.BUFFER_ONE: {"idle": (S, S), "busy": (H, H), "held": (FULL_BUFFER, FULL_BUFFER)},
    P.BUFFER_ALL: {"idle": (S, S), "busy": (H, H), "held": (H, H)},
    P.ALLOW_ALL: {"idle": (S, S), "busy": (S, S), "held": (S, S)},
    P.CANCEL_OTHER: {"idle": (S, S), "busy": (STOP, STOP), "held": (STOP, STOP)},
    P.TERMINATE_OTHER: {"idle": (S, S), "busy": (KILL, KILL), "held": (KILL, KILL)},
}


def word(decision: Decision) -> str:
    match decision:
        case Fire():
            return KILL if decision.terminate_active else S
        case Hold():
            return STOP if decision.cancel_active else H
        case Skip() | Missed():
            return decision.reason.value


@pytest.mark.parametrize("caught_up", [False, True], ids=["on time", "caught up"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("policy", OVERLAP)
def test_overlap_decides_as_its_table_says(policy: OverlapPolicy, world: str, caught_up: bool) -> None:
    planning = make_planning("0 * * * *", overlap=policy, catchup=C.FIRE_ALL)
    [decision] = tick(planning, now=NOON + (10 * MINUTE if caught_up else 0), facts=WORLDS[world]).decisions
    assert word(decision) == OVERLAP[policy][world][caught_up]


def test_every_overlap_policy_has_a_row() -> None:
    assert set(OVERLAP) == set(OverlapPolicy)
    assert all(set(row) == set(WORLDS) for row in OVERLAP.values())


def test_a_backlog_is_not_skipped_against_itself() -> None:
    planning = make_planning(catchup=C.FIRE_ALL)
    assert [word(each) for each in tick(planning, **FIVE).decisions] == [S, H, H, H, H, SKIPPED]


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────


def test_the_work_of_one_plan_is_bounded_and_the_rest_follows() -> None:
    planning = caught(policy=C.FIRE_ALL, max_catchup=1_000)
    now, before = NOON + 250 * MINUTE, NOON - 1
    plans = tick_to_the_end(planning, before, now)
    assert [len(plan.decisions) for plan in plans] == [100, 100, 51]
    assert [plan.more for plan in plans] == [True, True, False]
    decided = [nominal for plan in plans for nominal in expand(plan.decisions, planning.spec)]
    assert decided == enumerate_spec(planning.spec, before, now)
    assert plans[0].position.next_due == NOON + 100 * MINUTE


def test_what_is_on_time_is_bounded_too() -> None:
    plans = tick_to_the_end(make_planning("* * * * * *", overlap=P.ALLOW_ALL), NOON - 1, NOON + 30 * SECOND, limit=7)
    assert [len(plan.decisions) for plan in plans] == [7, 7, 7, 7, 3]


@pytest.mark.parametrize(
    ("policy", "most"), [(C.SKIP, 100), (C.FIRE_ONCE, 100), (C.FIRE_ALL, 101), (C.SPREAD, 101)], ids=str
)
def test_a_month_of_seconds_is_decided_with_a_few_rows(policy: CatchupPolicy, most: int) -> None:
    planning = make_planning("* * * * * *", overlap=P.ALLOW_ALL, catchup=policy)
    plan = tick(planning, NOON - 30 * DAY, NOON)
    assert 1 <= len(plan.decisions) <= most
    counted = [each.count for each in plan.decisions if isinstance(each, Missed)]
    counted += [each.covers.count for each in plan.decisions if isinstance(each, Fire) and each.covers]
    assert 30 * 86_400 - 200 <= sum(counted) <= 30 * 86_400


def test_a_large_cap_does_not_make_every_plan_walk_the_whole_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    real = Spec.previous_before

    def counted(spec: Spec, instant: Instant) -> Instant | None:
        nonlocal steps
        steps += 1
        return real(spec, instant)

    monkeypatch.setattr(Spec, "previous_before", counted)
    planning = make_planning("* * * * * *", catchup=Catchup(C.FIRE_ALL, max_catchup=10**6))
    assert len(tick(planning, NOON - DAY, NOON).decisions) == 100
    assert steps <= 1_000


def test_the_default_bound_is_a_hundred() -> None:
    assert MAX_CATCHUP_PER_TICK == PlanTime(NOON).limit == 100


@pytest.mark.parametrize(
    ("max_catchup", "limit"), [(100, 100), (250, 100)], ids=["a cap row beside a full step", "several steps"]
)
def test_a_spread_stays_in_nominal_order_over_several_plans(max_catchup: int, limit: int) -> None:
    planning = caught(policy=C.SPREAD, max_catchup=max_catchup)
    plans = tick_to_the_end(planning, NOON - 1, NOON + 300 * MINUTE, limit=limit)
    held = [each for plan in plans for each in plan.decisions if isinstance(each, Hold)]
    assert len(held) == max_catchup
    times = [each.release_at for each in held if each.release_at is not None]
    assert times == sorted(times)
    assert times[-1] == NOON + 301 * MINUTE


# ── the last run ──────────────────────────────────────────────────────────────────────────────────


def test_the_last_run_deletes_the_schedule_and_accounts_for_what_is_due() -> None:
    plan = tick(replace(caught(policy=C.FIRE_ALL), max_runs=2), **FIVE)
    rest = Missed(clock("12:02"), clock("12:05"), 4, Reason.REMAINING_ACTIONS_EXHAUSTED)
    assert plan.decisions == (*fires("12:00", "12:01"), rest)
    assert (plan.position.status, plan.position.next_due, plan.more) == (Status.DELETED, None, False)
    assert plan.position.runs_born == 2


def test_the_last_run_on_time_leaves_nothing_to_account_for() -> None:
    plan = tick(make_planning(max_runs=1))
    assert plan.decisions == fires("12:00")
    assert plan.position.status is Status.DELETED


def test_fire_once_with_one_run_left_covers_the_backlog() -> None:
    plan = tick(replace(caught(policy=C.FIRE_ONCE), max_runs=1), **FIVE)
    assert plan.decisions == (
        Fire(NOON, NOON, covers=Covers(NOON, clock("12:04"), 5)),
        Missed(clock("12:05"), clock("12:05"), 1, Reason.REMAINING_ACTIONS_EXHAUSTED),
    )
