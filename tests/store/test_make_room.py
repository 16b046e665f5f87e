"""The end of a run: written once, counted once, and whatever waited for it goes on in the same transaction."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from endings import Asked, end_run, end_runs
from engine.builders import START, World
from sqlalchemy import Connection

from horarium.core.document.states import FINAL, RunState, final_event
from horarium.core.lifecycle.outcome import End, UsedResources
from horarium.features.runs import release_rows
from horarium.features.schedules.write_rows import lock_position
from horarium.instant import DAY, MINUTE
from horarium.platform.database import Database, statements
from horarium.platform.database.tables import positions, runs, schedules

TODAY = START // DAY
DONE = End(RunState.SUCCEEDED)
KEY = ("key", "key:default k", 0)


def end(world: World, run_id: bytes, how: End = DONE) -> bool:
    return world.write(lambda c: end_run(c, run_id, how, now=world.clock.now()))


def end_all(world: World, *asked: Asked) -> list[bytes]:
    return world.write(lambda c: end_runs(c, asked, now=world.clock.now()))


def fire(world: World, minutes: int = 1) -> None:
    for _ in range(minutes):
        world.clock.move(60)
        world.tick()


def started(database: Database, **fields: Any) -> tuple[World, bytes, Any]:
    """A world with one schedule that has fired once."""
    world = World(database)
    uid = world.add(**fields)
    fire(world)
    return world, uid, world.runs(uid)[0]


# ── the run itself ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(FINAL))
def test_every_end_is_written_with_its_event(database: Database, state: RunState) -> None:
    world, uid, run = started(database)
    how = End(state, {"n": 2**70}, "why\x00", "timeout", "cause", UsedResources(5, 6, 7), detail={"x": 1})
    assert end(world, run.run_id, how)
    row = world.run(run.run_id)
    assert (row.state, row.finished_at, row.lease_epoch) == (state.value, world.clock.now(), run.lease_epoch + 1)
    assert (json.loads(row.result), row.error, row.error_class, row.cause) == (
        {"n": 2**70},
        "why�",
        "timeout",
        "cause",
    )
    assert (row.cost, row.tokens, row.tool_calls) == (5, 6, 7)
    assert world.events(run.run_id) == [final_event(state, is_step=False).value]
    assert world.position(uid).active == 0
    world.account()


def test_a_run_ends_once(database: Database) -> None:
    world, uid, run = started(database)
    assert end(world, run.run_id)
    after = (world.run(run.run_id), world.position(uid))
    assert not end(world, run.run_id, End(RunState.FAILED))
    assert (world.run(run.run_id), world.position(uid)) == after


def test_an_unknown_run_cannot_end(database: Database) -> None:
    assert not end(World(database), b"?" * 16)


def test_the_fence_keeps_out_whoever_lost_the_lease(database: Database) -> None:
    world, _, run = started(database)
    assert end_all(world, Asked(run.run_id, DONE, run.lease_epoch + 1)) == []
    assert world.run(run.run_id).state == "ready"
    assert end_all(world, Asked(run.run_id, DONE, run.lease_epoch))


def test_the_schedule_remembers_its_last_end(database: Database) -> None:
    world, uid, run = started(database)
    world.clock.move(7)
    end(world, run.run_id)
    row = world.position(uid)
    assert (row.last_completed_at, row.last_completed_run_id) == (world.clock.now(), run.run_id)


def test_a_step_ends_without_touching_the_schedule(database: Database) -> None:
    world, uid, run = started(database)
    world.write(lambda c: c.execute(sa.update(runs).values(parent_run_id=b"p" * 16, root_run_id=b"p" * 16)))
    before = world.position(uid)
    assert end(world, run.run_id)
    assert world.position(uid) == before
    assert world.events(run.run_id) == ["node.completed"]


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────


def test_failures_are_counted_and_a_success_begins_anew(database: Database) -> None:
    world, uid, run = started(database)
    end(world, run.run_id, End(RunState.FAILED, error="boom"))
    row = world.position(uid)
    assert (row.failures_count, row.failures_in_a_row, row.last_error, row.last_error_at) == (
        1,
        1,
        "boom",
        world.clock.now(),
    )
    fire(world)
    end(world, world.runs(uid)[-1].run_id)
    assert (world.position(uid).failures_count, world.position(uid).failures_in_a_row) == (1, 0)


def test_empty_answers_are_counted_until_the_agent_gives_another(database: Database) -> None:
    world, uid, _ = started(database)
    empty = End(RunState.FAILED, error="the answer is empty", error_class="empty_response")
    for number, (ending, expected) in enumerate(
        [(empty, 1), (End(RunState.CANCELLED), 1), (empty, 2), (End(RunState.TIMED_OUT), 2), (empty, 3), (DONE, 0)]
    ):
        if number:
            fire(world)
        end(world, world.runs(uid)[-1].run_id, ending)
        row = world.position(uid)
        assert (row.empty_in_a_row, row.last_state) == (expected, ending.state)


def test_a_failed_launch_shows_in_the_dispatch_status(database: Database) -> None:
    world, uid, run = started(database)
    end(world, run.run_id, End(RunState.LAUNCH_FAILED, error="no such host"))
    assert world.position(uid).last_dispatch_status == "dispatch_failed"


def test_enough_failures_in_a_row_pause_the_schedule(database: Database) -> None:
    world, uid, _ = started(database, pause_on_failure=2, overlap_policy="buffer_all")
    fire(world, 3)
    end(world, world.runs(uid)[0].run_id, End(RunState.FAILED))
    assert world.position(uid).status == "active"
    end(world, world.runs(uid)[1].run_id, End(RunState.TIMED_OUT))
    row = world.position(uid)
    assert (row.status, row.paused_at, row.failures_in_a_row) == ("paused", world.clock.now(), 2)
    assert "2 failed runs in a row" in row.pause_reason
    assert world.history(uid)[-1].event_type == "SchedulePaused"
    # What waits in the buffer stays there while paused.
    assert world.states(uid)[2:] == ["held", "held"]
    version = world.database.read(lambda c: c.execute(sa.select(schedules.c.version)).scalar_one())
    assert version == 2
    world.account()


def test_a_pause_accounts_for_what_was_due_and_undecided(database: Database) -> None:
    world, uid, run = started(database, pause_on_failure=1)
    world.clock.move(150)
    end(world, run.run_id, End(RunState.FAILED))
    missed, paused = world.history(uid)[-2:]
    assert (missed.event_type, missed.nominal, missed.nominal_last) == (
        "ScheduleMissed",
        START + 2 * MINUTE,
        START + 3 * MINUTE,
    )
    assert paused.event_type == "SchedulePaused"
    world.account()


# ── counters ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_run_cost_takes_the_place_of_its_reserve(database: Database) -> None:
    world, uid, run = started(database, budget={"spending_limit_credits": 10}, limits={"cost": 2})
    counter = ("spent", statements.schedule_owner(uid), TODAY)
    assert world.counters()[counter] == 2_000_000
    world.clock.move(2 * 86_400)  # the day of its birth is charged, whenever it ends
    end(world, run.run_id, End(RunState.SUCCEEDED, used=UsedResources(500_000, 0, 0)))
    assert world.counters()[counter] == 500_000


def test_the_assignee_is_charged_too(database: Database) -> None:
    world, _, run = started(
        database, assignee_type="agent", assignee_id="ada", approval_policy={"requires_approval": False}
    )
    end(world, run.run_id, End(RunState.SUCCEEDED, used=UsedResources(700_000, 0, 0)))
    assert world.counters()["spent", "assignee:default ada", TODAY] == 700_000


def test_the_end_of_a_held_run_frees_no_key(database: Database) -> None:
    world, uid, _ = started(database, overlap_policy="buffer_all", concurrency_key="k")
    fire(world)
    end(world, world.runs(uid)[1].run_id, End(RunState.CANCELLED))
    assert world.counters()[KEY] == 1
    assert (world.position(uid).active, world.position(uid).held) == (1, 0)
    world.account()


# ── release ──────────────────────────────────────────────────────────────────────────────────────────


def test_held_runs_are_released_in_nominal_order(database: Database) -> None:
    world, uid, _ = started(database, overlap_policy="buffer_all")
    fire(world, 2)
    order = []
    for _ in range(3):
        (ready,) = [run for run in world.runs(uid) if run.state == "ready"]
        order.append(ready.nominal)
        end(world, ready.run_id)
    assert order == [START + MINUTE, START + 2 * MINUTE, START + 3 * MINUTE]
    world.account()


def test_a_release_adds_a_linked_event_and_moves_the_count_of_fires(database: Database) -> None:
    world, uid, first = started(database, overlap_policy="buffer_all")
    fire(world)
    assert world.position(uid).fires_count == 1
    world.clock.move(5)
    end(world, first.run_id)
    row = world.runs(uid)[1]
    assert (row.state, row.trigger_number, row.ready_at) == ("ready", 2, world.clock.now())
    assert (world.position(uid).fires_count, world.position(uid).last_fired_at) == (2, world.clock.now())
    event = world.history(uid)[-1]
    payload = json.loads(event.payload)
    assert (event.event_type, event.run_id, event.nominal) == ("ScheduleTriggered", row.run_id, row.nominal)
    assert (payload["from_buffer"], payload["outcome"], payload["trigger_number"]) == (True, "drained", 2)
    assert world.events(row.run_id) == ["run.released"]
    world.account()


def test_nothing_is_released_while_paused(database: Database) -> None:
    world, uid, first = started(database, overlap_policy="buffer_all")
    fire(world)
    world.write(lambda c: c.execute(sa.update(positions).values(status="paused")))
    end(world, first.run_id)
    assert world.states(uid) == ["succeeded", "held"]


def test_as_many_are_released_as_there_is_room(database: Database) -> None:
    world, uid, first = started(database, overlap_policy="buffer_all", max_concurrency=2)
    fire(world, 4)
    assert world.states(uid) == ["ready", "ready", "held", "held", "held"]
    end(world, first.run_id)
    assert world.states(uid) == ["succeeded", "ready", "ready", "held", "held"]
    world.account()


def test_a_broken_planning_keeps_no_run_from_ending(database: Database) -> None:
    world, uid, first = started(database, overlap_policy="buffer_all")
    fire(world)
    world.write(lambda c: c.execute(sa.update(positions).values(planning=b"?" * 16)))
    assert end(world, first.run_id)
    assert world.states(uid) == ["succeeded", "held"]


def test_an_edit_cannot_let_a_held_run_slip_past_its_approval(database: Database) -> None:
    """Nor can its end be refused because of it: the CHECK constraint would undo the whole transaction."""
    world = World(database)
    fields = {"overlap_policy": "buffer_all", "assignee_type": "agent", "assignee_id": "ada"}
    uid = world.add(needs_approval=True, **fields)
    other = world.add("without", approval_policy={"requires_approval": False}, **fields)
    fire(world, 2)
    planning = world.position(other).planning
    world.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(planning=planning))
    )
    assert end(world, world.runs(uid)[0].run_id, End(RunState.REJECTED))
    assert world.states(uid) == ["rejected", "awaiting_approval"]


# ── keys across schedules ────────────────────────────────────────────────────────────────────────────


def test_the_end_of_one_releases_the_run_of_another_that_waited_for_its_key(database: Database) -> None:
    world = World(database)
    first, second = world.add("a", concurrency_key="k"), world.add("b", concurrency_key="k")
    fire(world)
    (running,) = [run for run in world.runs() if run.state == "ready"]
    (waiting,) = [run for run in world.runs() if run.state == "held"]
    assert {running.schedule_uid, waiting.schedule_uid} == {first, second}
    end(world, running.run_id)
    assert world.run(waiting.run_id).state == "ready"
    assert world.counters()[KEY] == 1
    end(world, waiting.run_id)
    assert world.counters()[KEY] == 0
    world.account()


def test_whoever_has_waited_longest_is_next_whichever_schedule_it_is(database: Database) -> None:
    world = World(database)
    fields = {"concurrency_key": "k", "overlap_policy": "buffer_all"}
    greedy = world.add("greedy", **fields)
    fire(world)
    patient = world.add("patient", cron_expressions=["2 0 * * *"], **fields)
    fire(world, 4)
    running = next(run for run in world.runs() if run.state == "ready")
    end(world, running.run_id)
    order = []
    while ready := [run for run in world.runs() if run.state == "ready"]:
        assert len(ready) == 1
        order.append((ready[0].nominal, ready[0].schedule_uid == patient))
        end(world, ready[0].run_id)
    assert [nominal for nominal, _ in order] == sorted(nominal for nominal, _ in order)
    assert any(is_patient for _, is_patient in order)
    assert len(world.runs(greedy)) == 5
    assert world.counters()[KEY] == 0
    world.account()


def test_one_free_place_lets_one_run_go(database: Database) -> None:
    world = World(database)
    for number in range(5):
        world.add(f"s{number}", concurrency_key="k", concurrency_limit=2)
    fire(world)
    assert sorted(world.states()) == ["held"] * 3 + ["ready"] * 2
    end(world, next(run.run_id for run in world.runs() if run.state == "ready"))
    assert sorted(world.states()) == ["held"] * 2 + ["ready"] * 2 + ["succeeded"]
    assert world.counters()[KEY] == 2
    world.account()


def test_a_key_is_not_given_across_namespaces_nor_to_the_paused(database: Database) -> None:
    world = World(database)
    world.add("a", concurrency_key="k")
    fire(world)
    paused = world.add("paused", concurrency_key="k")
    elsewhere = world.add("b", namespace="other", concurrency_key="k", overlap_policy="buffer_all")
    fire(world, 2)
    world.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == paused).values(status="paused"))
    )
    before = (world.states(paused), world.states(elsewhere))
    assert before == (["held"], ["ready", "held"])
    end(world, world.runs()[0].run_id)
    assert (world.states(paused), world.states(elsewhere)) == before


def test_a_key_that_an_edit_took_away_is_still_given_back_once(database: Database) -> None:
    world = World(database)
    fields = {"overlap_policy": "buffer_all"}
    uid, plain = world.add("keyed", concurrency_key="k", **fields), world.add("plain", **fields)
    fire(world, 2)
    planning = world.position(plain).planning
    world.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(planning=planning))
    )
    for run in world.runs(uid):
        end(world, run.run_id)
    assert world.states(uid) == ["succeeded", "succeeded"]
    assert world.counters()[KEY] == 0
    world.account()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_schedule_that_somebody_holds_is_left_to_the_janitor(
    database: Database, open_another: Callable[[], Database]
) -> None:
    world, other = World(database), open_another()
    world.add("a", concurrency_key="k")
    fire(world)
    second = world.add("b", concurrency_key="k")
    fire(world)
    locked, done = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        lock_position(connection, second)
        locked.set()
        assert done.wait(60)

    holder = threading.Thread(target=lambda: other.write(hold))
    holder.start()
    assert locked.wait(60)
    try:
        assert end(world, world.runs()[0].run_id)
    finally:
        done.set()
        holder.join()
    assert world.states(second) == ["held"]
    assert world.tidy().released == 1
    assert world.states(second) == ["ready"]
    world.account()


# ── making room ──────────────────────────────────────────────────────────────────────────────────────


def test_after_its_grace_a_run_that_would_not_stop_is_terminated_and_the_next_goes(database: Database) -> None:
    world, uid, first = started(database, overlap_policy="cancel_other", concurrency_key="k")
    world.write(lambda c: c.execute(sa.update(runs).values(state="running", lease_until=world.clock.now() + DAY)))
    fire(world)
    assert world.states(uid) == ["running", "held"]
    world.clock.move(29)
    world.tidy()
    assert world.states(uid) == ["running", "held"]
    world.clock.move(1)
    world.tidy()
    old, new = world.runs(uid)
    assert (old.run_id, old.state, old.cause) == (first.run_id, "terminated", "cancel_other")
    assert (new.state, world.counters()[KEY]) == ("ready", 1)
    world.account()


def test_those_that_wait_are_looked_at_in_pages(database: Database) -> None:
    world = World(database)
    uids = sorted(world.add(f"s{number}", overlap_policy="buffer_all") for number in range(5))
    fire(world, 2)
    now = world.clock.now()

    def page(after: bytes) -> list[bytes]:
        return world.database.read(lambda c: release_rows.waiting_schedules(c, now, 2, after=after))

    assert (page(b""), page(uids[1]), page(uids[3]), page(uids[4])) == (uids[:2], uids[2:4], uids[4:], [])


def test_a_spread_run_is_not_looked_at_before_its_time(database: Database) -> None:
    world, uid, _ = started(database, overlap_policy="buffer_all")
    fire(world)
    later = world.clock.now() + MINUTE
    world.write(lambda c: c.execute(sa.update(runs).where(runs.c.state == "held").values(ready_at=later)))
    assert world.database.read(lambda c: release_rows.waiting_schedules(c, later - 1, 10)) == []
    assert world.database.read(lambda c: release_rows.waiting_schedules(c, later, 10)) == [uid]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_ends_of_many_schedules_at_once_never_deadlock(
    database: Database, open_another: Callable[[], Database]
) -> None:
    """Each answer takes a position and the one counter; the order is the same for all."""
    world = World(database)
    uids = [world.add(f"s{n}", concurrency_key="k", concurrency_limit=100) for n in range(20)]
    fire(world)
    tries: list[int] = []
    by_uid = {run.schedule_uid: run.run_id for run in world.runs()}

    def settle(one: Database, order: list[bytes]) -> None:
        def work(connection: Connection) -> None:
            tries.append(1)
            end_runs(connection, [Asked(by_uid[uid], DONE) for uid in order], now=START)

        one.write(work)

    threads = [
        threading.Thread(target=settle, args=(open_another(), order))
        for order in (uids, uids[::-1], uids[5:], uids[:9])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tries) == 4
    assert world.counters()[KEY] == 0
    world.account()


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────


def test_ends_of_one_schedule_are_counted_in_turn(database: Database) -> None:
    world, uid, _ = started(database, overlap_policy="allow_all", pause_on_failure=2)
    fire(world, 3)
    one, two, three = (End(RunState.FAILED, error=text) for text in ("one", "two", "three"))
    asked = [Asked(run.run_id, each) for run, each in zip(world.runs(uid), (one, DONE, two, three), strict=True)]
    assert end_all(world, *asked) == [each.run_id for each in asked]
    found = world.position(uid)
    assert (found.active, found.failures_count, found.failures_in_a_row, found.status) == (0, 3, 2, "paused")
    assert (found.last_error, found.last_completed_run_id) == ("three", asked[-1].run_id)
    world.account()


def test_of_two_answers_for_one_run_the_holder_of_the_lease_is_heard(database: Database) -> None:
    world, uid, run = started(database)
    late = Asked(run.run_id, End(RunState.FAILED, error="late"), run.lease_epoch - 1)
    valid = Asked(run.run_id, DONE, run.lease_epoch)
    assert end_all(world, late, valid, valid) == [run.run_id]
    assert world.states(uid) == ["succeeded"]
    world.account()


def test_every_end_lets_one_go_that_waited(database: Database) -> None:
    world = World(database)
    uids = [world.add(f"s{n}", overlap_policy="buffer_all") for n in range(3)]
    fire(world, 3)
    active = [next(run for run in world.runs(uid) if run.state == "ready") for uid in uids]
    assert len(end_all(world, *(Asked(run.run_id, DONE) for run in active))) == 3
    assert {tuple(world.states(uid)) for uid in uids} == {("succeeded", "ready", "held")}
    world.account()


def test_nothing_to_end_is_no_error(database: Database) -> None:
    assert end_all(World(database)) == []


def test_no_cost_keeps_a_run_from_ending(database: Database) -> None:
    """Ten runs that say they cost all the money there is: the sum of the day is full, and they end."""
    world, uid, _ = started(database, overlap_policy="allow_all", budget={"spending_limit_credits": 10})
    fire(world, 12)
    for run in world.runs(uid):
        assert end(world, run.run_id, End(RunState.SUCCEEDED, used=UsedResources(10**18, 0, 0)))
    counted = world.counters()["spent", statements.schedule_owner(uid), TODAY]
    assert isinstance(counted, int)
    assert counted == 2**61
    world.account()
