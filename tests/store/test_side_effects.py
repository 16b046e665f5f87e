"""What a birth brings with it: counters, requests for approval, and room that others make."""

from __future__ import annotations

from typing import Any

import pytest
from engine.builders import START, World

from horarium.features.runs.end_rows import new_ids
from horarium.instant import DAY, MINUTE
from horarium.platform.database import Database, statements

TODAY = START // DAY
ASSIGNED = {"assignee_type": "agent", "assignee_id": "ada"}


def fire(world: World, minutes: int = 1) -> None:
    for _ in range(minutes):
        world.clock.move(60)
        world.tick()


def test_ids_are_new_and_in_order() -> None:
    ids = new_ids()
    first, second = next(ids), next(ids)
    assert first.value < second.value
    assert first.text < second.text


def test_births_are_counted_where_somebody_counts_them(database: Database) -> None:
    world = World(database)
    uid = world.add(
        budget={"spending_limit_credits": 100, "max_daily_runs": 10},
        limits={"cost": 1.5},
        concurrency_key="agent-1",
        concurrency_limit=5,
        overlap_policy="allow_all",
        approval_policy={"requires_approval": False},
        **ASSIGNED,
    )
    fire(world, 2)
    own, theirs = statements.schedule_owner(uid), statements.assignee_owner("default", "ada")
    assert world.counters() == {
        ("spent", own, TODAY): 3_000_000,
        ("spent", theirs, TODAY): 3_000_000,
        ("runs", own, TODAY): 2,
        ("runs", theirs, TODAY): 2,
        ("key", "key:default agent-1", 0): 2,
    }
    assert [row.reserved for row in world.runs(uid)] == [1_500_000] * 2


def test_a_plain_birth_touches_no_counter(database: Database) -> None:
    world = World(database)
    world.add()
    fire(world)
    assert (len(world.runs()), world.counters()) == (1, {})


def test_a_held_run_takes_no_place_of_a_key(database: Database) -> None:
    world = World(database)
    world.add(concurrency_key="agent-1", overlap_policy="buffer_all")
    fire(world, 3)
    assert world.states() == ["ready", "held", "held"]
    assert world.counters() == {("key", "key:default agent-1", 0): 1}


def test_the_last_place_of_a_key_goes_to_one_schedule_of_a_batch(database: Database) -> None:
    world = World(database)
    first, second = world.add("a", concurrency_key="k"), world.add("b", concurrency_key="k")
    fire(world)
    assert sorted(world.states(first) + world.states(second)) == ["held", "ready"]
    world.account()


# ── terminate_other, cancel_other ────────────────────────────────────────────────────────────────────


def test_the_active_run_makes_room_in_the_same_transaction(database: Database) -> None:
    world = World(database)
    uid = world.add(overlap_policy="terminate_other", concurrency_key="k")
    fire(world)
    claimed = world.write(lambda c: statements.lock_counters(c, [("key", "key:default k", 0)]))
    assert list(claimed.values()) == [1]
    fire(world)
    old, new = world.runs(uid)
    assert (old.state, old.cause, old.lease_epoch) == ("cancelled", "terminate_other", 1)
    assert new.state == "ready"
    assert world.counters() == {("key", "key:default k", 0): 1}
    world.account()


def test_of_several_that_replace_each_other_at_once_the_last_stays(database: Database) -> None:
    world = World(database)
    uid = world.add(overlap_policy="terminate_other", catchup_policy="fire_all")
    world.ticker.beat()
    world.clock.move(5 * 60)
    world.tick()
    assert world.states(uid) == ["cancelled"] * 4 + ["ready"]
    assert world.position(uid).active == 1
    world.account()


def test_the_active_runs_are_asked_to_stop_once(database: Database) -> None:
    world = World(database)
    uid = world.add(overlap_policy="cancel_other")
    fire(world)
    fire(world)
    first = world.runs(uid)[0].stop_requested_at
    fire(world)
    assert first == START + 2 * MINUTE
    assert [row.stop_requested_at for row in world.runs(uid)] == [first, None, None]
    assert world.states(uid) == ["ready", "held", "held"]
    world.account()


# ── approvals ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("fields", "asked"), [({}, 1), ({"overlap_policy": "allow_all"}, 3)], ids=["skip", "all"])
def test_what_waits_for_approval_has_its_request(database: Database, fields: dict[str, Any], asked: int) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, **ASSIGNED, **fields)
    fire(world, 3)
    assert world.states(uid) == ["awaiting_approval"] * asked
    rows = world.database.read(lambda c: c.exec_driver_sql("SELECT run_id, decision FROM approvals").all())
    assert sorted((bytes(row[0]), row[1]) for row in rows) == sorted((run.run_id, "pending") for run in world.runs(uid))


def test_a_run_that_was_replaced_at_birth_asks_nobody(database: Database) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, overlap_policy="terminate_other", **ASSIGNED)
    world.clock.move(120)
    world.tick()
    assert world.states(uid) == ["cancelled", "awaiting_approval"]
    rows = world.database.read(lambda c: c.exec_driver_sql("SELECT run_id FROM approvals").all())
    assert [bytes(row[0]) for row in rows] == [world.runs(uid)[-1].run_id]
