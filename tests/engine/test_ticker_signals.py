"""A schedule that waits for its signal is decided when it comes; no lock and no other schedule waits with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World

from horarium.engine.ticker import Ticker, TickerOptions
from horarium.launchers.signals import Signals
from horarium.platform.database import Database
from horarium.platform.database.tables import history, positions

pytestmark = pytest.mark.both_databases

SIGNALLED = {"pre_dispatch_condition": {"/signal_rpc_result/depth": {"lt": 5}}}


class Provider:
    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls: list[str] = []

    def __call__(self, namespace: str, schedule_id: str) -> Any:
        self.calls.append(schedule_id)
        self.go_on.wait(30)
        if schedule_id == "fails":
            raise LookupError("no such queue")
        return {"depth": 9 if schedule_id == "deep" else 1}


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.go_on.set()


def world_with(database: Database, provider: Provider, *, batch: int = 500) -> World:
    world = World(database)
    signals = Signals(provider, timeout_seconds=30)
    world.ticker = Ticker(database, world.clock, "test", TickerOptions(batch=batch), signals)
    return world


def skips(world: World) -> list[dict[str, Any]]:
    statement = sa.select(history.c.payload).where(history.c.event_type == "ScheduleTriggerSkipped")
    return [json.loads(row.payload) for row in world.database.read(lambda c: c.execute(statement).all())]


def test_others_are_decided_and_no_row_is_locked_meanwhile(database: Database, provider: Provider) -> None:
    world = world_with(database, provider, batch=1)
    for name in ("waits", "waits-too", "plain", "plain-too"):
        world.add(name, **(SIGNALLED if name.startswith("waits") else {}))
    world.clock.move(60)
    ticks = world.tick()
    assert sorted(each.schedule_id for tick in ticks for each in tick.decided) == ["plain", "plain-too"]
    assert (ticks[-1].waiting, ticks[-1].more) == (2, False)

    def lock(connection: Any) -> int:
        return len(connection.execute(sa.select(positions.c.schedule_uid).with_for_update(nowait=True)).all())

    assert world.database.write(lock) == 4
    provider.go_on.set()
    first, second = world.ticker.patient_step(), world.ticker.patient_step()
    assert sorted(each.schedule_id for tick in (first, second) for each in tick.decided) == ["waits", "waits-too"]
    assert (second.waiting, sorted(provider.calls)) == (0, ["waits", "waits-too"])
    assert world.states() == ["ready"] * 4
    world.account()


def test_a_skip_says_what_the_signal_was_or_why_there_is_none(database: Database, provider: Provider) -> None:
    provider.go_on.set()
    world = world_with(database, provider)
    for name in ("deep", "fails"):
        world.add(name, **SIGNALLED)
    world.clock.move(60)
    world.ticker.patient_step()
    details = [payload["detail"] for payload in skips(world)]
    assert sorted(str(each["clauses"][0]["value"]) for each in details) == ["9", "None"]
    assert [each["signal_error"] for each in details if "signal_error" in each] == ["LookupError: no such queue"]
    world.account()


def test_only_schedules_whose_condition_reads_it_are_asked_about(database: Database, provider: Provider) -> None:
    world = world_with(database, provider)
    world.add("plain")
    world.add("counts", pre_dispatch_condition={"/last_24h_stats/failed": {"lt": 3}})
    world.clock.move(60)
    world.tick()
    assert (world.states(), provider.calls) == (["ready"] * 2, [])
