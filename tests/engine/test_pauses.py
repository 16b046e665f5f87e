"""Pauses end whatever else is wrong: a row that cannot be resumed is in nobody's way."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from engine.builders import START, World, insert_all, new_schedule, poison

from horarium.engine import ticker
from horarium.instant import HOUR, MINUTE, SECOND
from horarium.platform.database import Database
from horarium.platform.database.tables import history, positions

pytestmark = pytest.mark.both_databases


def _pause(world: World, *uids: bytes, until: int) -> None:
    paused = {"status": "paused", "paused_at": START, "paused_until": until}
    these = sa.update(positions).where(positions.c.schedule_uid.in_(uids))
    world.database.write(lambda c: c.execute(these.values(paused)))


def test_a_fleet_goes_on_together_and_the_ticker_wakes_for_it(database: Database) -> None:
    world = World(database)
    many = [new_schedule(f"s{number}", now=START) for number in range(ticker._BATCH + 5)]
    uids = insert_all(database, many, now=START)
    _pause(world, *uids, until=START + HOUR)
    assert world.ticker.next_due() == START + HOUR
    world.clock.move(3_600 - 1)
    world.tick()
    assert world.position(uids[0]).status == "paused"
    world.clock.move(1)
    world.tick()
    assert {world.position(uid).status for uid in uids} == {"active"}
    assert {world.position(uid).decided_until for uid in uids} == {START + HOUR}
    assert world.ticker.next_due() == START + HOUR + MINUTE


def test_what_cannot_be_resumed_waits_for_a_person(database: Database) -> None:
    world = World(database)
    taken, sound, unreadable = (world.add(name) for name in ("taken", "sound", "unreadable"))
    poison(database, unreadable, lambda _: "{")
    event = {"schedule_uid": taken, "sequence": 1, "namespace": "default", "event_type": "ScheduleCreated"}
    database.write(lambda c: c.execute(sa.insert(history).values(**event, recorded_at=START + SECOND, payload="{}")))
    _pause(world, taken, sound, unreadable, until=START + SECOND)
    world.clock.move(1)
    world.tick()
    assert [world.position(uid).status for uid in (taken, sound, unreadable)] == ["paused", "active", "broken"]
    kept = world.position(taken)
    assert kept.paused_until is None
    assert kept.pause_reason.startswith("could not be resumed at the set time")
