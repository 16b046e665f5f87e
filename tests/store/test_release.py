"""A release costs the same however many runs are held: it reads and changes a bounded number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from endings import end_run
from engine.builders import World, multiply
from sqlalchemy import event

from horarium.core.decision.decide import plan_release
from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import End
from horarium.features.runs import release_rows
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import DAY, MINUTE
from horarium.platform.database import Database
from horarium.platform.database.tables import positions, runs

MANY = 1_500


def crowded(database: Database, count: int = MANY, **fields: Any) -> tuple[World, bytes]:
    """A world in which one run is active and many are held."""
    world = World(database)
    uid = world.add(**{"overlap_policy": "buffer_all"} | fields)
    for _ in range(2):
        world.clock.move(60)
        world.tick()
    assert world.states(uid) == ["ready", "held"]
    multiply(database, world.runs(uid)[1].run_id, count - 1)
    return world, uid


def end_first(world: World, uid: bytes) -> None:
    ready = next(run.run_id for run in world.runs(uid) if run.state == "ready")
    end = End(RunState.SUCCEEDED)
    assert world.write(lambda c: end_run(c, ready, end, now=world.clock.now()))


def let_go(world: World, uid: bytes) -> int:
    return world.write(lambda c: release_rows.release(c, Plannings(), uid, now=world.clock.now()))


def change(world: World, *where: Any, **values: Any) -> None:
    world.write(lambda c: c.execute(sa.update(runs).where(*where).values(**values)))


def change_overlap(world: World, uid: bytes, **fields: Any) -> None:
    """As an edit does."""
    planning = world.position(world.add("other", **fields)).planning
    world.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(planning=planning))
    )


# ── how much is read ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many held and active runs each release was planned with."""
    seen: list[tuple[int, int]] = []
    plan = plan_release

    def spy(planning: Any, status: Any, held: Any, active: Any, *rest: Any) -> Any:
        seen.append((len(held), len(active)))
        return plan(planning, status, held, active, *rest)

    monkeypatch.setattr(release_rows, "plan_release", spy)
    return seen


def test_an_end_reads_no_more_held_runs_than_it_can_let_go(database: Database, read: list[tuple[int, int]]) -> None:
    world, uid = crowded(database)
    end_first(world, uid)
    assert read == [(1, 0)]
    assert (world.position(uid).active, world.position(uid).held) == (1, MANY - 1)
    assert [run.state for run in world.runs(uid)[:3]] == ["succeeded", "ready", "held"]
    world.account()


@contextmanager
def plans_of(database: Database) -> Iterator[list[str]]:
    """How SQLite goes about the statements that are executed meanwhile."""
    plans: list[str] = []

    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            rows = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            plans.extend(row[-1] for row in rows)

    engines = [database.engine, database._backend._readers]  # type: ignore[attr-defined]  # SQLite has readers
    for engine in engines:
        event.listen(engine, "before_cursor_execute", explain)
    try:
        yield plans
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", explain)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_every_look_at_runs_goes_through_the_index_made_for_it(database: Database) -> None:
    world, uid = crowded(database, 10, concurrency_key="k")
    ready = world.runs(uid)[0].run_id
    with plans_of(database) as plans:
        world.write(lambda c: end_run(c, ready, End(RunState.SUCCEEDED), now=world.clock.now()))
        world.database.read(lambda c: release_rows.waiting_schedules(c, world.clock.now(), 10))
    of_runs = [plan for plan in plans if " runs " in f"{plan} "]
    used = {word for plan in of_runs for word in plan.split() if word.startswith(("runs_", "sqlite_auto"))}
    wanted = {"runs_held", "runs_held_by_key", "runs_to_stop_by_schedule"}
    assert wanted <= used
    assert used <= wanted | {"sqlite_autoindex_runs_1"}
    assert not [plan for plan in of_runs if plan.startswith("SCAN runs") and "USING" not in plan]


# ── how much is changed ──────────────────────────────────────────────────────────────────────────────


def test_where_there_is_room_for_all_they_go_in_bounded_steps_and_in_order(database: Database) -> None:
    world, uid = crowded(database, 450)
    change_overlap(world, uid, overlap_policy="allow_all")
    before = world.position(uid)
    assert [let_go(world, uid) for _ in range(4)] == [200, 200, 50, 0]
    rows = world.runs(uid)
    assert {row.state for row in rows} == {"ready"}
    assert [row.trigger_number for row in rows] == list(range(1, 452))
    told = [event for event in world.history(uid) if event.sequence >= before.next_sequence]
    assert [event.run_id for event in told] == [row.run_id for row in rows[1:]]
    assert {world.events(row.run_id)[-1] for row in rows[1:4]} == {"run.released"}
    assert world.position(uid).last_run_id == rows[-1].run_id
    world.account()


def test_the_janitor_comes_again_at_once_while_there_is_more_to_let_go(database: Database) -> None:
    world, uid = crowded(database, 250)
    change_overlap(world, uid, overlap_policy="allow_all")
    first, second = world.tidy(), world.tidy()
    assert [(each.released, each.full) for each in (first, second)] == [(200, True), (50, False)]


def test_those_whose_time_has_not_come_do_not_hide_those_behind_them(database: Database) -> None:
    world, uid = crowded(database, 20)
    first, *_, last = [run for run in world.runs(uid) if run.state == "held"]
    change(world, runs.c.state == "held", runs.c.run_id != last.run_id, ready_at=world.clock.now() + MINUTE)
    end_first(world, uid)
    assert (world.run(first.run_id).state, world.run(last.run_id).state) == ("held", "ready")


def test_a_held_run_that_somebody_wants_stopped_is_not_let_go(database: Database) -> None:
    world, uid = crowded(database, 3)
    first, second, _ = [run for run in world.runs(uid) if run.state == "held"]
    change(world, runs.c.run_id == first.run_id, stop_requested_at=world.clock.now())
    end_first(world, uid)
    assert (world.run(first.run_id).state, world.run(second.run_id).state) == ("held", "ready")
    world.tidy()
    assert world.run(first.run_id).state == "cancelled"
    world.account()


def test_those_that_did_not_stop_in_time_are_terminated_in_bounded_steps(database: Database) -> None:
    world, uid = crowded(database, 1, overlap_policy="cancel_other")
    multiply(database, world.runs(uid)[0].run_id, 249)
    now = world.clock.now()
    change(world, runs.c.state == "ready", state="running", lease_until=now + DAY, stop_requested_at=now)
    world.clock.move(30)
    assert [let_go(world, uid), world.states(uid).count("terminated")] == [0, 200]
    assert [let_go(world, uid), world.states(uid).count("terminated")] == [1, 250]
    assert (world.position(uid).active, world.position(uid).held) == (1, 0)
    world.account()


# ── who is next ──────────────────────────────────────────────────────────────────────────────────────


def test_a_schedule_that_only_waits_for_one_to_stop_is_looked_at_too(database: Database) -> None:
    world, uid = crowded(database, 1)

    def waiting() -> list[bytes]:
        return world.database.read(lambda c: release_rows.waiting_schedules(c, world.clock.now(), 10))

    change(world, runs.c.state == "held", ready_at=world.clock.now() + DAY)
    assert waiting() == []
    change(world, runs.c.state == "ready", stop_requested_at=world.clock.now())
    assert waiting() == [uid]


def test_a_crowd_in_front_of_a_key_leaves_the_others_to_the_janitor(database: Database) -> None:
    """More held runs of a paused schedule than one look sees: nobody waits for ever."""
    world, uid = crowded(database, 1_100, concurrency_key="k")
    other = world.add("other", concurrency_key="k")
    world.clock.move(86_400)
    world.tick()
    world.write(
        lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(status="paused"))
    )
    end_first(world, uid)
    world.tidy()
    assert world.states(other)[0] == "ready"
    assert world.counters()["key", "key:default k", 0] == 1


def test_letting_go_asks_a_bounded_number_of_statements(database: Database) -> None:
    world, uid = crowded(database, 200)
    change_overlap(world, uid, overlap_policy="allow_all")
    statements: list[str] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", count)
    try:
        assert let_go(world, uid) == 200
    finally:
        event.remove(database.engine, "before_cursor_execute", count)
    assert len(statements) < 20
