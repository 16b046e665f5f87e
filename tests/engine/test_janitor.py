"""The janitor finds what time has overtaken, and no row keeps it from the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import ACTION, START, World, poison
from world import FakeClock

from horarium.core.lifecycle.outcome import Accepted
from horarium.engine import janitor as module
from horarium.engine.janitor import Janitor, JanitorResult
from horarium.engine.requests import key_of
from horarium.features.runs import claim_rows, work_rows
from horarium.features.runs.transition_rows import record_events
from horarium.features.runs.work_rows import RunWork
from horarium.instant import SECOND
from horarium.launchers.recording import RecordingLauncher
from horarium.platform.database import Database
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.tables import runs

ONCE = {"action": ACTION | {"delivery": "at_most_once"}}


def claimed(database: Database, count: int = 1, **fields: Any) -> tuple[World, list[RunWork]]:
    """A world whose runs are in the hands of a process that will not be heard of again."""
    world = World(database)
    for number in range(count):
        world.add(f"s{number}", **fields)
    world.clock.move(60)
    world.tick()
    return world, [each.work for each in asyncio.run(world.dispatcher.claim()).taken]


def test_nothing_to_do_is_nothing_done(database: Database) -> None:
    assert World(database).tidy() == JanitorResult()


@pytest.mark.both_databases
@pytest.mark.parametrize(("fields", "state"), [({}, "ready"), (ONCE, "unknown")], ids=["at least once", "at most once"])
def test_a_lost_lease_is_an_unknown_outcome(database: Database, fields: Any, state: str) -> None:
    world, _ = claimed(database, **fields)
    world.clock.move(30)
    assert world.tidy().lost_leases == 0
    world.clock.move(1)
    tidied = world.tidy()
    assert (tidied.lost_leases, tidied.total, tidied.full) == (1, 1, False)
    assert world.states() == [state]
    assert world.tidy().total == 0
    world.account()


def test_a_lost_run_is_delivered_again_with_the_same_key(database: Database) -> None:
    world, (work,) = claimed(database)
    world.clock.move(31)
    world.tidy()
    world.clock.move(10)
    assert world.dispatch() == 1
    (request,) = world.launcher.deliveries
    assert request.key == key_of(work)
    assert world.states() == ["succeeded"]


def test_a_run_that_is_lost_again_and_again_ends(database: Database) -> None:
    world, _ = claimed(database)
    for _ in range(5):
        world.clock.move(100)
        world.tidy()
        world.clock.move(60)
        asyncio.run(world.dispatcher.claim())
    assert world.states() == ["unknown"]
    world.account()


@pytest.mark.both_databases
def test_a_deadline_ends_what_the_target_never_reported(database: Database) -> None:
    clock = FakeClock()
    world = World(database, clock, launcher=RecordingLauncher(clock, kind="http", otherwise=Accepted("ref")))
    action = ACTION | {"timeout_seconds": 100}
    uid = world.add(action=action, overlap_policy="buffer_all", retry_policy={"max_retries": 0})
    world.clock.move(60)
    world.tick()
    world.dispatch()
    world.clock.move(60)
    world.tick()
    assert world.states(uid) == ["running", "held"]
    world.clock.move(39)
    assert world.tidy().timed_out == 0
    world.clock.move(1)
    assert world.tidy().timed_out == 1
    run = world.runs(uid)[0]
    assert (run.state, run.error_class, run.cause) == ("timed_out", "timeout", None)
    # Nothing blocks for ever: the next one goes.
    assert world.states(uid) == ["timed_out", "ready"]
    world.account()


@pytest.mark.parametrize("state", ["held", "awaiting_approval", "ready"])
def test_what_has_not_started_is_cancelled_when_nobody_wants_it(database: Database, state: str) -> None:
    world = World(database)
    world.add()
    world.clock.move(60)
    world.tick()
    world.write(lambda c: c.execute(sa.update(runs).values(state=state, stop_requested_at=1)))
    if state == "held":
        world.write(lambda c: c.exec_driver_sql("UPDATE positions SET active = 0, held = 1"))
    assert world.tidy().cancelled == 1
    assert world.states() == ["cancelled"]
    world.account()


@pytest.mark.both_databases
def test_spread_runs_are_released_when_their_time_comes(database: Database) -> None:
    world = World(database)
    uid = world.add(catchup_policy="spread", catchup_spread_seconds=40, overlap_policy="allow_all")
    world.tick()
    world.stay_away(5 * 60 + 30)
    world.tick()
    world.tidy()
    released = [world.states(uid).count("ready")]
    for _ in range(4):
        world.clock.move(10)
        world.tidy()
        released.append(world.states(uid).count("ready"))
    assert released == sorted(released)
    assert (released[0], released[-1]) == (2, 5)  # one was on time
    assert "held" not in world.states(uid)
    world.account()


def test_spread_runs_are_released_at_their_very_times(database: Database) -> None:
    world = World(database)
    uid = world.add(catchup_policy="spread", catchup_spread_seconds=30, overlap_policy="allow_all")
    world.tick()
    world.stay_away(5 * 60 + 30)
    world.tick()
    begin = world.clock.now()
    after, times = begin - 1, []
    while True:
        released = world.janitor.release_due(after, world.clock.now())
        after = world.clock.now()
        times += [(after - begin) / SECOND] * released.runs
        if released.next_at is None:
            break
        world.clock.move((released.next_at - after) / SECOND)
    assert times == [0, 10, 20, 30]
    assert world.states(uid) == ["ready"] * 5  # one was on time
    world.account()


@pytest.mark.both_databases
def test_many_are_tidied_in_batches_and_a_full_one_asks_for_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    world, _ = claimed(database, 5)
    world.clock.move(31)
    steps = [world.tidy() for _ in range(3)]
    assert [(step.lost_leases, step.full) for step in steps] == [(2, True), (2, True), (1, False)]


@pytest.mark.both_databases
def test_those_that_must_wait_never_hide_the_others(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    world = World(database)
    uids = sorted(world.add(f"s{number}", overlap_policy="buffer_all") for number in range(5))
    for _ in range(2):
        world.clock.move(60)
        world.tick()
    last = uids[-1]
    # As if the transaction that ended it had passed its schedule over.
    done = sa.update(runs).where(runs.c.schedule_uid == last, runs.c.state == "ready").values(state="succeeded")
    world.write(lambda c: c.execute(done))
    world.write(lambda c: c.exec_driver_sql("UPDATE positions SET active = 0 WHERE active = 1 AND held = 1"))
    for _ in range(3):
        world.tidy()
    assert world.states(last) == ["succeeded", "ready"]


@pytest.mark.both_databases
def test_a_row_that_cannot_be_tidied_is_in_nobodys_way(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world, works = claimed(database, 3)
    poison(database, works[1].schedule_uid or b"", lambda _: "{")
    bad = works[0].run_id

    def explode(connection: Any, known: Any, happened: Any, **given: Any) -> Any:
        if any(each.run_id == bad for each in happened):
            raise ValueError("cannot be read")
        return record_events(connection, known, happened, **given)

    monkeypatch.setattr(module, "record_events", explode)
    world.clock.move(31)
    assert world.tidy().lost_leases == 2
    assert sorted(world.states()) == ["launching", "ready", "ready"]


def test_an_absent_database_ends_the_step(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = claimed(database)

    def fail(*_args: object, **_given: object) -> bool:
        raise StoreUnavailable("restarting")

    monkeypatch.setattr(module, "record_events", fail)
    world.clock.move(31)
    with pytest.raises(StoreUnavailable):
        world.tidy()


@pytest.mark.both_databases
def test_a_holder_who_was_only_late_keeps_the_lease(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world, works = claimed(database)
    world.clock.move(31)
    found = database.read(lambda c: work_rows.lost_leases(c, world.clock.now(), 10))
    until = world.clock.now() + 30 * SECOND
    database.write(lambda c: claim_rows.renew(c, works, until))
    monkeypatch.setattr(work_rows, "lost_leases", lambda *_args: found)
    assert world.tidy().lost_leases == 0
    assert world.states() == ["launching"]


@pytest.mark.both_databases
def test_what_a_worker_kept_on_file_is_waited_for_before_it_is_late(database: Database) -> None:
    """Its time was over while no process was here, so nobody can know how it ended before it says so."""
    clock = FakeClock(START)
    world = World(
        database, clock, launcher=RecordingLauncher(clock, kind="celery", otherwise=Accepted("ref", queued=True))
    )
    world.add(action={"kind": "celery", "task": "t"})
    clock.move(60)
    world.tick()
    world.dispatch()
    clock.move(24 * 3_600)
    world.janitor = Janitor(database, clock)
    for seconds in (0, 44):
        clock.move(seconds)
        assert world.tidy().timed_out == 0
    clock.move(1)
    assert (world.tidy().timed_out, world.states()) == (1, ["timed_out"])


@pytest.mark.both_databases
def test_two_janitors_do_not_do_the_same_twice(database: Database) -> None:
    world, _ = claimed(database, 4)
    other = Janitor(database, world.clock)
    world.clock.move(31)
    first, second = world.tidy(), other.step()
    assert (first.lost_leases, second.lost_leases) == (4, 0)


@pytest.mark.both_databases
def test_rows_that_cannot_be_tidied_do_not_hide_those_behind_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    world, works = claimed(database, 5)
    bad = {work.run_id for work in works[:3]}

    def explode(connection: Any, known: Any, happened: Any, **given: Any) -> Any:
        if any(each.run_id in bad for each in happened):
            raise ValueError("cannot be read")
        return record_events(connection, known, happened, **given)

    monkeypatch.setattr(module, "record_events", explode)
    world.clock.move(31)
    for _ in range(6):
        world.tidy()
    assert sorted(world.states()) == ["launching"] * 3 + ["ready"] * 2
