"""Twenty ways in which schedulers go wrong, and what happens here instead.

Each row drives a small world on a fake clock and says what must have become of every occurrence. Rows
A to R are the scenarios of a review of a published scheduler design. Its S (a closure that captures the
last loop value) and T (a process without the leader's lock that scans all the same) do not concern the
core: decisions are values here, not timers, and no correctness hangs on a leader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from unit.decision.builders import NOON, UID, World, clock, make_planning, make_spec, tick

from horarium.core.decision.facts import Fire, Skip
from horarium.core.document.definition import Action
from horarium.core.document.planning import Planning
from horarium.core.document.reader import SHIPPED
from horarium.core.document.states import Status, occurrence_key
from horarium.core.policy.queue import Catchup, CatchupPolicy, OverlapPolicy
from horarium.instant import HOUR, MINUTE, SECOND

P, C = OverlapPolicy, CatchupPolicy
START, END = NOON - SECOND, NOON + HOUR  # one hour, every minute, both ends: 61 occurrences
ALLOWED = make_planning(overlap=P.ALLOW_ALL)


def caught(policy: CatchupPolicy, overlap: OverlapPolicy = P.ALLOW_ALL, **numbers: int) -> Planning:
    return make_planning(overlap=overlap, catchup=Catchup(policy, **numbers))


def hour(
    planning: Planning | None = None, *, duration: int = 5 * SECOND, every: int = SECOND, keep_alive: bool = True
) -> World:
    chosen = make_planning() if planning is None else planning
    return World(chosen, START, duration=duration, keep_alive=keep_alive).poll_until(END, every)


def interrupted(planning: Planning, down: str, up: str, *, duration: int = SECOND) -> World:
    """An hour with an outage."""
    world = World(planning, START, duration=duration).poll_until(clock(down))
    return world.outage(clock(up)).poll_until(END).drain()


def no_feedback() -> World:
    """A run that nobody reports about ends at its deadline; for a prompt that is five minutes."""
    return hour(duration=SHIPPED.timeout_of(Action("prompt")) * SECOND)


def redeployed() -> World:
    world = World(make_planning(), START)
    for minute in range(60):
        world.poll_until(NOON + minute * MINUTE + 30 * SECOND)
        world.edit(world.planning, spec_changed=False)
    return world.poll_until(END)


def ends_in_the_outage() -> World:
    spec = make_spec("* * * * *", end_at=clock("12:20"))
    return interrupted(replace(caught(C.FIRE_ALL), spec=spec), "12:10:30", "12:40:30")


def starts_on_a_tick() -> World:
    return hour(make_planning(spec=make_spec("* * * * *", start_at=clock("12:30"))))


def paused(at: str, until: str) -> World:
    world = World(caught(C.FIRE_ALL), START).poll_until(clock(at))
    world.pause()
    world.poll_until(clock(until))
    world.resume()
    return world.poll_until(END)


@dataclass(frozen=True)
class Scenario:
    """`became` counts occurrences by their fate; `at_once` is how many runs may have been active together."""

    letter: str
    name: str
    drive: Callable[[], World]
    became: dict[str, int]
    at_once: int = 1


SCENARIOS = [
    Scenario(
        "A", "no feedback: the deadline frees the next", no_feedback, {"started": 13, "overlap_policy_skip": 48}
    ),
    Scenario("B", "what does not overlap is not skipped", hour, {"started": 61}),
    Scenario(
        "B2",
        "skip never runs two at once",
        lambda: hour(duration=150 * SECOND),
        {"started": 21, "overlap_policy_skip": 40},
    ),
    Scenario("C", "a queue loses nothing", lambda: hour(make_planning(overlap=P.BUFFER_ALL)), {"started": 61}),
    Scenario(
        "D",
        "a queue of long runs loses nothing",
        lambda: hour(make_planning(overlap=P.BUFFER_ALL, max_runs=61), duration=90 * SECOND).drain(),
        {"started": 61},
    ),
    Scenario(
        "E",
        "without catch-up, a tick between two polls is on time",
        lambda: hour(caught(C.SKIP), keep_alive=False),
        {"started": 61},
    ),
    Scenario(
        "F",
        "a stall within the grace loses nothing",
        lambda: interrupted(caught(C.SKIP), "12:29:50", "12:30:10"),
        {"started": 61},
    ),
    Scenario(
        "G",
        "a restart over a tick loses nothing",
        lambda: interrupted(caught(C.SKIP), "12:29:59", "12:30:01"),
        {"started": 61},
    ),
    Scenario(
        "G2",
        "nor under fire_all",
        lambda: interrupted(caught(C.FIRE_ALL), "12:29:59", "12:30:01"),
        {"started": 61},
    ),
    Scenario("I", "an unchanged redeploy is a no-op", redeployed, {"started": 61}),
    Scenario(
        "J",
        "jitter delays each and loses none",
        lambda: hour(make_planning(spec=make_spec("* * * * *", jitter_ms=45_000, end_at=END - MINUTE))),
        {"started": 60},
    ),
    Scenario(
        "K",
        # Back at 12:40:30: 29 are missed and wait their turn; 12:40 is on time and meets a busy schedule.
        "a backlog is not skipped against itself",
        lambda: interrupted(caught(C.FIRE_ALL, P.SKIP), "12:10:30", "12:40:30"),
        {"started": 60, "overlap_policy_skip": 1},
    ),
    Scenario(
        "L",
        "a storm has a cap, and what is beyond it is recorded",
        lambda: interrupted(caught(C.FIRE_ALL, max_catchup=10), "12:10:30", "12:40:30"),
        {"started": 42, "catchup_cap": 19},
        at_once=11,
    ),
    Scenario(
        "M",
        "a spread moves the due time, never the name",
        lambda: interrupted(caught(C.SPREAD), "12:10:30", "12:40:30"),
        {"started": 61},
        at_once=3,
    ),
    Scenario("N", "what was due before the end is caught up after it", ends_in_the_outage, {"started": 21}, at_once=10),
    Scenario("O", "a start on a tick includes it", starts_on_a_tick, {"started": 31}),
    Scenario("P", "a pause is no downtime", lambda: paused("12:10:30", "12:40:30"), {"started": 31}),
    Scenario("Q", "a pause before the tick stops it", lambda: paused("12:29:50", "12:30:10"), {"started": 60}),
    Scenario(
        "R",
        "a slow ticker decides late, but decides",
        lambda: hour(caught(C.SKIP), every=95 * SECOND),
        {"started": 61},
        at_once=2,
    ),
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.letter}-{scenario.name}")
def test_a_scenario_ends_as_it_should(scenario: Scenario) -> None:
    world = scenario.drive()
    assert world.summary() == scenario.became
    assert world.peak_active <= scenario.at_once
    world.check_every_occurrence_has_one_decision()
    nominals = [run.nominal for run in world.runs.values()]
    assert len(nominals) == len(set(nominals))


def test_every_scenario_that_concerns_the_core_has_a_row_or_a_test() -> None:
    own_tests = {"H"}
    assert {scenario.letter[0] for scenario in SCENARIOS} | own_tests == set("ABCDEFGHIJKLMNOPQR")


def test_H_a_crash_before_the_commit_leads_to_the_same_decision_and_the_same_key() -> None:
    planning = make_planning(spec=make_spec("* * * * *", jitter_ms=10_000), rotation=3)
    before_the_crash, after = tick(planning, now=NOON + 20 * SECOND), tick(planning, now=NOON + 20 * SECOND)
    assert before_the_crash == after
    keys = {occurrence_key("uid", each.nominal) for plan in (before_the_crash, after) for each in plan.decisions
            if isinstance(each, Fire)}  # fmt: skip
    assert len(keys) == 1


def test_J_no_run_is_early_and_none_overtakes_another() -> None:
    spec = make_spec("* * * * *", jitter_ms=45_000)
    runs = list(hour(make_planning(spec=spec)).runs.values())
    assert all(run.born >= run.due == spec.due(UID, run.nominal) >= run.nominal for run in runs)
    assert [run.nominal for run in runs] == sorted(run.nominal for run in runs)


def test_M_every_run_of_a_spread_is_named_by_a_tick_and_starts_in_order() -> None:
    world = interrupted(caught(C.SPREAD), "12:10:30", "12:40:30")
    waited = [run for run in world.runs.values() if run.release_at is not None]
    assert len(waited) == 29
    assert all(run.nominal % MINUTE == 0 and run.due == run.nominal for run in waited)
    starts = [run.started for run in waited if run.started is not None]
    assert starts == sorted(starts)
    assert starts[-1] - starts[0] == MINUTE


def test_D_a_queue_runs_in_nominal_order() -> None:
    world = hour(make_planning(overlap=P.BUFFER_ALL, max_runs=20), duration=90 * SECOND).drain()
    starts = [run.started for run in world.runs.values() if run.started is not None]
    assert len(starts) == 20
    assert starts == sorted(starts)


def test_N_after_the_outage_the_schedule_is_finished() -> None:
    world = ends_in_the_outage()
    assert (world.position.status, world.position.next_due) == (Status.FINISHED, None)


def test_K_the_one_that_was_skipped_was_on_time() -> None:
    world = interrupted(caught(C.FIRE_ALL, P.SKIP), "12:10:30", "12:40:30")
    assert [each.nominal for each in world.decisions() if isinstance(each, Skip)] == [clock("12:40")]


def test_cancel_other_stops_the_old_run_after_its_grace_and_never_runs_two() -> None:
    world = hour(make_planning(overlap=P.CANCEL_OTHER), duration=10 * HOUR)
    ends = [run.ended - run.nominal for run in world.runs.values() if run.ended is not None]
    assert set(ends) == {90 * SECOND}
    assert world.peak_active == 1


def test_terminate_other_replaces_at_once() -> None:
    world = hour(make_planning(overlap=P.TERMINATE_OTHER), duration=10 * HOUR)
    assert world.summary() == {"started": 61}
    assert world.peak_active == 1


def test_an_edit_during_an_outage_fires_nothing_of_the_past() -> None:
    world = World(caught(C.FIRE_ALL), START).poll_until(clock("12:10:30")).outage(clock("12:20:30"))
    world.edit(replace(world.planning, spec=make_spec("*/5 * * * *")))
    world.poll_until(END)
    assert world.summary() == {"started": 11 + 8, "superseded": 10}
    world.check_every_occurrence_has_one_decision()


def test_a_clock_that_steps_forward_and_back_decides_nothing_twice() -> None:
    world = World(ALLOWED, START).poll_until(clock("12:10:30"))
    world.poll(clock("12:20:30"))
    world.poll(clock("12:10:31"))
    world.poll_until(END)
    assert world.summary() == {"started": 61}
    world.check_every_occurrence_has_one_decision()
