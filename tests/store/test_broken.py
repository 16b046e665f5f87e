"""A schedule that cannot go on is set aside, visibly, and never twice."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from engine.builders import START, World

from horarium.core.document.states import Status
from horarium.features.schedules.decision_rows import park
from horarium.platform.database import Database
from horarium.platform.database.tables import history, positions


def set_aside(world: World, uid: bytes, error: str = "no such zone") -> bool:
    return world.write(lambda c: park(c, uid, error=error, error_class="InvalidSpec", now=START + 7))


def test_a_parked_schedule_says_what_is_wrong_and_leaves_the_queue(database: Database) -> None:
    world = World(database)
    uid = world.add()
    before = world.position(uid)
    assert set_aside(world, uid)
    after = world.position(uid)
    assert (after.status, after.last_error, after.last_error_at) == ("broken", "no such zone", START + 7)
    assert after.last_dispatch_status == "validation_failed"
    assert (after.next_due, after.decided_until) == (before.next_due, before.decided_until)
    (event,) = world.history(uid)
    assert (event.event_type, event.sequence, event.recorded_at) == ("ScheduleBroken", 1, START + 7)
    assert json.loads(event.payload)["error_class"] == "InvalidSpec"
    assert after.next_sequence == 2
    world.clock.move(3_600)
    assert world.tick()[0].claimed == 0


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.ACTIVE])
def test_only_an_active_schedule_is_parked(database: Database, status: Status) -> None:
    """Whoever paused or deleted it meanwhile has the last word."""
    world = World(database)
    uid = world.add()
    world.write(lambda c: c.execute(sa.update(positions).values(status=status.value)))
    assert not set_aside(world, uid)
    assert world.position(uid).status == status.value
    assert world.history(uid) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("a\x00b", "a�b"),
        ("half \ud800 pair", "half ? pair"),
        ("x" * 5_000, "x" * 1_000),
        ("", "InvalidSpec"),
    ],
    ids=["nul", "surrogate", "long", "empty"],
)
def test_whatever_the_error_quotes_can_be_kept(database: Database, error: str, said: str) -> None:
    world = World(database)
    uid = world.add()
    assert set_aside(world, uid, error)
    assert world.position(uid).last_error == said


def test_a_wrong_sequence_cannot_keep_a_schedule_from_being_parked(database: Database) -> None:
    world = World(database)
    uid = world.add()
    row = {"schedule_uid": uid, "namespace": "default", "event_type": "ScheduleCreated", "recorded_at": 1}
    world.write(lambda c: c.execute(sa.insert(history), [row | {"sequence": n, "payload": "{}"} for n in (1, 2)]))
    assert set_aside(world, uid)
    assert [event.sequence for event in world.history(uid)] == [1, 2, 3]
    assert world.position(uid).next_sequence == 4
