"""A ticker that finds more than it can take serves everybody in turn, and no transaction of it is a long one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import World, insert_all, new_schedule, reasons
from world import FakeClock

from horarium.engine import ticker
from horarium.engine.ticker import Tick, Ticker, TickerOptions
from horarium.platform.database import Database
from horarium.platform.database.tables import calendars

pytestmark = pytest.mark.both_databases


def add_many(world: World, count: int, *, namespace: str = "default", **fields: Any) -> list[bytes]:
    now = world.clock.now()
    news = [new_schedule(f"{namespace}-{n}", now=now, namespace=namespace, **fields) for n in range(count)]
    return insert_all(world.database, news, now=now)


def namespaces(tick: Tick) -> set[str]:
    return {decided.namespace for decided in tick.decided}


def test_a_herd_of_one_tenant_keeps_nobody_waiting(database: Database) -> None:
    world = World(database, ticker=TickerOptions(batch=6))
    add_many(world, 30, namespace="crowd")
    add_many(world, 2, namespace="small", at=["2026-03-02T00:01:02Z"])
    world.clock.move(65)
    first, second = world.ticker.step(), world.ticker.step()
    assert (first.claimed, first.more) == (6, True)
    assert namespaces(second) == {"crowd", "small"}
    assert sum(tick.claimed for tick in world.tick()) == 20
    assert world.states() == ["ready"] * 32
    world.account()


def test_where_a_herd_returns_the_quiet_are_first(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "_FIRST_OF_A_CROWD", 4)
    world = World(database, ticker=TickerOptions(batch=20))
    add_many(world, 30, namespace="crowd", overlap_policy="allow_all")
    add_many(world, 1, namespace="quiet", overlap_policy="allow_all")
    world.clock.move(60)
    world.tick()
    world.clock.move(60)
    first = world.ticker.step()
    assert namespaces(first) == {"crowd", "quiet"}
    assert (first.claimed, first.more) == (4, True)
    assert [tick.claimed for tick in world.tick()][:2] == [20, 7]
    world.account()


def test_a_backlog_does_not_hold_up_what_has_just_come_due(database: Database) -> None:
    world = World(database, ticker=TickerOptions(batch=4, max_catchup_per_tick=10))
    backlog: dict[str, Any] = {"intervals": [{"every": "PT1S"}], "catchup_policy": "fire_all", "max_catchup": 400}
    late = add_many(world, 8, overlap_policy="allow_all", **backlog)
    world.stay_away(600)
    punctual = world.add("punctual", intervals=[{"every": "PT30S"}])
    world.clock.move(30)
    steps = [world.ticker.step() for _ in range(2)]
    assert all(tick.more for tick in steps)
    assert len(world.runs(punctual)) == 1
    world.tick()
    assert {len(world.runs(uid)) for uid in late} == {400 + 61}
    world.account()


def test_one_transaction_decides_a_bounded_number(database: Database) -> None:
    world = World(database, ticker=TickerOptions(max_decisions_per_batch=50))
    backlog: dict[str, Any] = {
        "intervals": [{"every": "PT1S"}],
        "catchup_policy": "fire_all",
        "overlap_policy": "allow_all",
    }
    uids = [*add_many(world, 10, namespace="a", **backlog), *add_many(world, 2, namespace="b", **backlog)]
    world.stay_away(120)
    ticks = world.tick()
    # Beside those that are asked about, each schedule has one row for what is beyond its cap.
    assert max(sum(len(each.decisions) for each in tick.decided) for tick in ticks) <= 50 + 12 + 12
    assert {len(world.runs(uid)) for uid in uids} == {120}
    first = {namespace: sum(len(each.decisions) for each in ticks[0].decided if each.namespace == namespace)
             for namespace in ("a", "b")}  # fmt: skip
    # Each namespace has its part of the work: half, a decision for each of the first one's schedules, and the rest.
    assert first == {"a": 25 + 9, "b": 50 - 34 + 1}
    world.account()


def test_a_year_of_seconds_that_a_calendar_forbids_is_a_few_rows(database: Database) -> None:
    world = World(database)
    uid = world.add(intervals=[{"every": "PT1S"}], calendars=["closed"], catchup_policy="fire_once")
    document = '{"name": "closed", "kind": "only_dates", "timezone": "Europe/Istanbul", "dates": []}'
    row = {"namespace": "default", "name": "closed", "document": document}
    numbers = dict.fromkeys(("version", "created_at", "updated_at"), 1)
    world.write(lambda c: c.execute(sa.insert(calendars).values(**row, **numbers)))
    world.stay_away(365 * 86_400)
    ticks = world.tick()
    events = world.history(uid)
    assert [event.event_type for event in events[:2]] == ["ScheduleMissed", "ScheduleTriggerSkipped"]
    assert (len(events), len(ticks)) == (62, 1)
    assert set(reasons(events)) == {"calendar"}
    position = world.position(uid)
    assert (position.skipped_count, position.last_skip_reason) == (365 * 86_400, "calendar")


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_two_threads_share_a_crowd_without_taking_the_same(database: Database) -> None:
    clock = FakeClock()
    world = World(database, clock)
    for name in ("a", "b", "c"):
        add_many(world, 40, namespace=name)
    clock.move(60)
    ticker = Ticker(database, clock, "shared", TickerOptions(batch=10))
    failed: list[Exception] = []

    def work() -> None:
        try:
            while ticker.step().more:
                pass
        except Exception as wrong:  # a thread cannot raise into the test
            failed.append(wrong)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    world.tick()
    assert len(world.runs()) == 120
    world.account()


def test_when_the_crowd_is_gone_one_statement_is_enough(database: Database) -> None:
    world = World(database, ticker=TickerOptions(batch=5))
    add_many(world, 12)
    world.clock.move(60)
    world.tick()
    world.clock.move(62)  # a crowd that comes each minute would be back by now
    world.ticker.next_due()
    statements = _count(world, world.ticker.step)
    assert statements == 1


def _count(world: World, work: Callable[[], object]) -> int:
    seen: list[str] = []

    def listen(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "FROM positions" in statement:
            seen.append(statement)

    sa.event.listen(world.database.engine, "before_cursor_execute", listen)
    try:
        work()
    finally:
        sa.event.remove(world.database.engine, "before_cursor_execute", listen)
    return len(seen)
