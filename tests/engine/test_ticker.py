"""The ticker decides what is due, batch by batch, and no row can keep it from the others."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from engine.builders import START, World, insert_all, new_schedule, poison, reasons

from horarium.engine import ticker as module
from horarium.engine.ticker import Ticker, TickerOptions
from horarium.features.schedules import due_rows
from horarium.instant import MINUTE, SECOND
from horarium.platform.database import Connection, Database, open_database, transactions
from horarium.platform.database import processes as database_processes
from horarium.platform.database import sqlite as sqlite_module
from horarium.platform.database.errors import CommitUnknown, SchemaMissing, StoreUnavailable
from horarium.platform.database.processes import About, Process
from horarium.platform.database.tables import calendars, history, plannings, positions, runs, schedule_revisions
from horarium.platform.database.wakeups import READY


def add_many(world: World, count: int, **fields: Any) -> list[bytes]:
    now = world.clock.now()
    return insert_all(world.database, [new_schedule(f"s{n}", now=now, **fields) for n in range(count)], now=now)


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_a_step_decides_one_batch_and_says_whether_there_is_more(database: Database) -> None:
    world = World(database, ticker=TickerOptions(batch=2))
    add_many(world, 3)
    world.clock.move(60)
    first, second = world.ticker.step(), world.ticker.step()
    assert (first.claimed, first.more) == (2, True)
    assert (second.claimed, second.more) == (1, False)
    assert world.ticker.step().claimed == 0
    assert world.states() == ["ready"] * 3
    world.account()


def test_a_tick_tells_what_it_decided(database: Database) -> None:
    world = World(database)
    uid = world.add("nightly")
    world.clock.move(61)
    (tick,) = world.tick()
    (decided,) = tick.decided
    assert (decided.namespace, decided.schedule_id, decided.schedule_uid) == ("default", "nightly", uid)
    assert (decided.lateness, len(decided.decisions), len(decided.entry.runs)) == (SECOND, 1, 1)
    assert tick.parked == ()


@pytest.mark.both_databases
def test_the_position_moves_only_past_what_was_decided(database: Database) -> None:
    world = World(database, ticker=TickerOptions(max_catchup_per_tick=10))
    uid = world.add(intervals=[{"every": "PT1S"}], overlap_policy="allow_all")
    world.ticker.beat()
    world.clock.move(25)
    first = world.ticker.step()
    assert (len(first.decided[0].decisions), first.more) == (10, True)
    assert world.position(uid).decided_until == START + 10 * SECOND
    world.tick()
    assert len(world.runs(uid)) == 25
    world.account()


def test_nothing_is_due_before_its_time(database: Database) -> None:
    world = World(database)
    world.add()
    world.clock.move(59)
    assert world.ticker.step().claimed == 0
    assert world.ticker.next_due() == START + MINUTE


@pytest.mark.both_databases
def test_births_wake_the_dispatchers_and_skips_do_not(database: Database) -> None:
    woken: list[str] = []
    world = World(database)
    world.add("a", calendars=["gone"])
    listener = database.listen([READY], woken.append)
    try:
        world.clock.move(60)
        world.tick()
        skipped = list(woken)
        world.add("b")
        world.clock.move(60)
        world.tick()
        _wait_for(lambda: bool(woken))
    finally:
        listener.close()
    assert (skipped, set(woken)) == ([], {READY})


def _wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(200):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


# ── being alive ──────────────────────────────────────────────────────────────────────────────────────


def test_what_came_due_while_no_ticker_was_there_was_missed(database: Database) -> None:
    world = World(database)
    uid = world.add(catchup_policy="skip")
    world.tick()
    world.stay_away(5 * 60)
    world.tick()
    events = [event.event_type for event in world.history(uid)]
    assert events == ["ScheduleMissed", "ScheduleTriggered", "ScheduleTriggerSkipped"]
    world.account()


def test_slowness_of_our_own_is_no_downtime(database: Database) -> None:
    """Some ticker was alive all the time, so what it was too slow for is decided as on time."""
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all")
    other = Ticker(database, world.clock, "another")
    for _ in range(60):
        world.clock.move(5)
        other.beat()
    world.tick()
    assert len(world.runs(uid)) == 5
    world.account()


@contextmanager
def starved(database: Database) -> Iterator[None]:
    """Everything that a ticker needs is taken: the whole pool, and on SQLite, by another process, the one lock."""
    with ExitStack() as taken:
        if database.dialect == "sqlite":
            other = taken.enter_context(closing(sqlite3.connect(database.url.removeprefix("sqlite:///"))))
            other.execute("BEGIN IMMEDIATE")
        else:
            for _ in range(database.engine.pool.size()):  # type: ignore[attr-defined]  # a QueuePool has one
                taken.enter_context(database.engine.connect())
        yield


@pytest.fixture
def impatient(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database that does not wait long for what others have taken."""
    monkeypatch.setattr(transactions, "_POOL_SECONDS", 0.01)
    monkeypatch.setattr(transactions, "_TRIES", 1)
    monkeypatch.setattr(sqlite_module, "_BUSY_SECONDS", 0.01)
    with closing(open_database(database_url, pool_size=2)) as opened:
        yield opened


def wait_in_vain(world: World, seconds: int) -> None:
    """The process lives, and nothing that it asks for is given."""
    for _ in range(0, seconds, 5):
        world.clock.move(5)
        world.ticker.observe()
        with pytest.raises(StoreUnavailable):
            world.tick()


@pytest.mark.both_databases
def test_a_ticker_that_gets_no_connection_was_there_and_misses_nothing(impatient: Database) -> None:
    world = World(impatient)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all")
    world.tick()
    with starved(impatient):
        wait_in_vain(world, 5 * 60)
    world.tick()
    kinds = Counter(event.event_type for event in world.history(uid))
    assert kinds == {"ScheduleTriggered": 5}
    world.account()


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_beat_needs_no_connection_of_the_pool(impatient: Database) -> None:
    world = World(impatient)
    with starved(impatient):
        world.ticker.beat()
    assert impatient.read(lambda c: database_processes.last_beat(c, "ticker")) is not None


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_lock_on_the_beats_themselves_is_no_downtime(impatient: Database) -> None:
    world = World(impatient)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all")
    world.tick()
    with impatient.engine.connect() as other, other.begin():
        other.exec_driver_sql("LOCK TABLE leases IN ACCESS EXCLUSIVE MODE")
        with impatient._backend.reserve.connect() as reserved:
            reserved.exec_driver_sql("SET lock_timeout = '10ms'")
            reserved.commit()
        wait_in_vain(world, 2 * 60)
    world.tick()
    assert [event.event_type for event in world.history(uid)] == ["ScheduleTriggered"] * 2


def test_the_outage_of_a_database_is_downtime(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all")
    world.tick()

    def away(_work: object) -> None:
        raise StoreUnavailable("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(database, "write_reserved", away)
        wait_in_vain(world, 5 * 60)
    world.tick()
    missed, *others = world.history(uid)
    assert missed.event_type == "ScheduleMissed"
    assert [event.event_type for event in others] == ["ScheduleTriggered"] * 2  # within the grace
    world.account()


@pytest.mark.parametrize(("grace", "event"), [(0, "ScheduleMissed"), (10, "ScheduleMissed"), (16, "ScheduleTriggered")])
def test_a_short_outage_is_downtime_where_the_grace_is_shorter(
    database: Database, monkeypatch: pytest.MonkeyPatch, grace: int, event: str
) -> None:
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=grace)
    world.clock.move(50)
    world.tick()

    def away(_work: object) -> None:
        raise StoreUnavailable("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(database, "write_reserved", away)
        wait_in_vain(world, 25)
    world.tick()
    assert [each.event_type for each in world.history(uid)] == [event]


def test_a_process_that_is_restarted_within_seconds_misses_what_is_older_than_the_grace(database: Database) -> None:
    """The process was killed: it could not say that it ends. Another one on the same database is a restart as well."""
    world = World(database)
    short = world.add("short", catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=5)
    long = world.add("long", catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=30)
    world.clock.move(50)
    world.tick()
    world.stay_away(18)
    ticker = Ticker(database, world.clock, "restarted")
    while ticker.step().more:
        pass
    assert [each.event_type for each in world.history(short)] == ["ScheduleMissed"]
    assert [each.event_type for each in world.history(long)] == ["ScheduleTriggered"]
    world.account()


def test_a_ticker_that_was_there_takes_back_the_break_that_a_new_process_saw(database: Database) -> None:
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=1)
    there = Ticker(database, world.clock, "there")
    there.beat()
    for _ in range(16):
        world.clock.move(4)
        there.observe()  # it has been there, and was too slow to decide
    new = Ticker(database, world.clock, "new")
    new.beat()
    there.beat()
    world.clock.move(5)
    new.step()
    assert [each.event_type for each in world.history(uid)] == ["ScheduleTriggered"]


def _process(world: World, owner: str, host: str, pid: int, *, draining: bool = False) -> None:
    process = Process(About(host, pid, ("ticker",)), draining=draining)
    now = world.clock.now()
    world.database.write(lambda connection: database_processes.beat_process(connection, owner, process, now))


@pytest.mark.parametrize(
    ("there", "event"),
    [
        ({"host": "another"}, "ScheduleTriggered"),
        ({"host": "another", "draining": True}, "ScheduleMissed"),
        ({"host": socket.gethostname(), "pid": os.getpid()}, "ScheduleMissed"),
        ({"host": socket.gethostname(), "pid": 2**22 + 1}, "ScheduleMissed"),
        ({"host": socket.gethostname(), "pid": os.getppid()}, "ScheduleTriggered"),
    ],
    ids=["on another host", "leaving", "before a restart in place", "killed on this host", "on this host"],
)
def test_a_new_process_misses_nothing_that_a_busy_one_has_yet_to_decide(
    database: Database, there: dict[str, Any], event: str
) -> None:
    """The new one joins four seconds after the last beat of the other."""
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=0)
    world.clock.move(59)
    Ticker(database, world.clock, "there").beat()
    _process(world, "there", **{"pid": 1, **there})
    world.clock.move(4)
    Ticker(database, world.clock, "new").step()
    assert [each.event_type for each in world.history(uid)] == [event]


@pytest.mark.parametrize(("works", "event"), [(True, "ScheduleTriggered"), (False, "ScheduleMissed")])
def test_a_process_that_was_busy_with_itself_was_there_and_a_stopped_one_was_not(
    database: Database, monkeypatch: pytest.MonkeyPatch, works: bool, event: str
) -> None:
    """Code that keeps the interpreter to itself looks like a stopped process, but for the processor time it takes."""
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all", misfire_grace_seconds=1)
    used = [0.0]
    monkeypatch.setattr(module, "process_time", lambda: used[0])
    world.clock.move(55)
    world.tick()
    world.clock.move(10)
    used[0] += 6.0 if works else 0.1
    world.tick()
    assert [each.event_type for each in world.history(uid)] == [event]


@pytest.mark.both_databases
def test_a_beat_that_waited_while_another_ticker_went_on_takes_nothing_from_it(database: Database) -> None:
    """It reads the clock when it has its turn, so that it cannot look like one from a clock that was set back."""
    world = World(database)
    uid = world.add(catchup_policy="skip", overlap_policy="allow_all")
    other, asked = Ticker(database, world.clock, "another"), list[int]()
    write = database.write_reserved

    def late(work: Callable[[Connection], Any]) -> Any:
        if not asked:
            asked.append(1)
            for _ in range(30):
                world.clock.move(5)
                other.beat()
        return write(work)

    database.write_reserved = late  # type: ignore[method-assign]  # for this test
    world.tick()
    assert len(world.runs(uid)) == 2
    assert [event.event_type for event in world.history(uid)] == ["ScheduleTriggered"] * 2


def test_schedules_fire_again_after_a_clock_that_was_an_hour_ahead(database: Database) -> None:
    """What was decided ahead is not decided twice; then all goes on, and a ticker that dies is missed at once."""
    world = World(database)
    uid = world.add(overlap_policy="allow_all", catchup_policy="fire_all")
    world.pass_time(120, step=5)
    world.clock.move(3_600)
    world.pass_time(120, step=5)
    ahead = len(world.runs(uid))
    world.clock.move(-3_600)
    world.pass_time(60, step=5)
    beat = database.read(lambda c: database_processes.last_beat(c, "ticker"))
    assert beat is not None
    assert world.clock.now() - beat.beat_at <= 5 * SECOND  # not the one from ahead
    until = START + (120 + 3_600 + 120) * SECOND
    assert until <= beat.info["ahead_until"] <= until + 5 * SECOND
    assert len(world.runs(uid)) == ahead
    world.pass_time(3_600, step=30)
    assert len(world.runs(uid)) == ahead + 1
    world.pass_time(600, step=5)
    assert len(world.runs(uid)) == ahead + 11
    beat = database.read(lambda c: database_processes.last_beat(c, "ticker"))
    assert beat is not None
    assert "ahead_until" not in beat.info
    world.account()


def test_slowness_after_a_clock_was_set_back_is_no_downtime_either(database: Database) -> None:
    world = World(database)
    world.pass_time(60, step=5)
    world.clock.move(3_600)
    world.pass_time(60, step=5)
    world.clock.move(-3_600)
    uid = world.add(overlap_policy="allow_all", catchup_policy="skip")
    other = Ticker(database, world.clock, "another")
    other.beat()
    for _ in range(60):
        world.clock.move(5)
        other.beat()
    world.tick()
    assert [event.event_type for event in world.history(uid)] == ["ScheduleTriggered"] * 5


def test_a_clock_that_is_set_back_decides_nothing_twice(database: Database) -> None:
    world = World(database)
    uid = world.add(overlap_policy="allow_all")
    world.pass_time(600, step=30)
    world.clock.move(-600)
    world.pass_time(1_200, step=30)
    assert len(world.runs(uid)) == 20
    world.account()


def test_a_clock_that_is_set_forward_misses_and_accounts(database: Database) -> None:
    """No ticker could decide what lies in between: it goes by the catch-up policy, as after a suspended machine."""
    world = World(database)
    uid = world.add(overlap_policy="allow_all", catchup_policy="fire_all")
    world.pass_time(120, step=30)
    world.clock.move(600)
    world.pass_time(120, step=30)
    assert len(world.runs(uid)) == 14
    world.account()


# ── poison ───────────────────────────────────────────────────────────────────────────────────────────


def _corrupt_text(world: World, uid: bytes) -> None:
    poison(world.database, uid, lambda _: "{")


def _missing_text(world: World, uid: bytes) -> None:
    _change(world, uid, planning=b"?" * 16)


def _overflow(world: World, uid: bytes) -> None:
    poison(world.database, uid, lambda text: _with(text, timeout=2**70))


def _surrogate(world: World, uid: bytes) -> None:
    poison(world.database, uid, lambda text: _with(text, queue="half \ud800"))


def _taken_sequence(world: World, uid: bytes) -> None:
    """Recorded when the tick is: PostgreSQL, which keeps history by weeks, knows a number by its time as well."""
    row = {"schedule_uid": uid, "sequence": 1, "namespace": "default", "event_type": "ScheduleCreated"}
    told = {**row, "recorded_at": world.clock.now() + MINUTE, "payload": "{}"}
    world.write(lambda c: c.execute(sa.insert(history).values(**told)))


def _taken_occurrence(world: World, uid: bytes) -> None:
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": uid, "schedule_uid": uid, "origin": "scheduled", "state": "succeeded", "nominal": START + MINUTE}
    world.write(lambda c: c.execute(sa.insert(runs).values(**row)))


def _corrupt_result(world: World, uid: bytes) -> None:
    """What a condition reads cannot be read."""
    condition = {"/prior_run_result/value": {"gt": 1}}
    poison(world.database, uid, lambda text: _with(text, condition=condition))
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": uid, "schedule_uid": uid, "namespace": "default", "state": "succeeded", "result": "{"}
    world.write(lambda c: c.execute(sa.insert(runs).values(**row)))


def _corrupt_document(world: World, uid: bytes) -> None:
    """Read at birth only where somebody must approve."""
    poison(world.database, uid, lambda text: _with(text, needs_approval=True))
    statement = sa.update(schedule_revisions).where(schedule_revisions.c.schedule_uid == uid).values(document="{}")
    world.write(lambda c: c.execute(statement))


def _negative_count(world: World, uid: bytes) -> None:
    _change(world, uid, active=-1)


def _with(text: str, **values: object) -> str:
    return json.dumps(json.loads(text) | values)


def _change(world: World, uid: bytes, **values: object) -> None:
    world.write(lambda c: c.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(**values)))


POISONS: dict[str, Callable[[World, bytes], None]] = {
    "corrupt text": _corrupt_text,
    "missing text": _missing_text,
    "integer overflow": _overflow,
    "surrogate": _surrogate,
    "taken sequence": _taken_sequence,
    "taken occurrence": _taken_occurrence,
    "exploding condition": _corrupt_result,
    "corrupt document": _corrupt_document,
    "negative count": _negative_count,
}


@pytest.mark.parametrize("kind", POISONS)
def test_a_poisoned_schedule_is_parked_and_the_others_fire(database: Database, kind: str) -> None:
    world = World(database, ticker=TickerOptions(batch=8))
    uids = add_many(world, 12)
    bad = uids[5]
    POISONS[kind](world, bad)
    world.clock.move(60)
    ticks = world.tick()
    row = world.position(bad)
    assert (row.status, row.last_dispatch_status) == ("broken", "validation_failed")
    assert row.last_error
    assert world.history(bad)[-1].event_type == "ScheduleBroken"
    assert [parked[:2] for tick in ticks for parked in tick.parked] == [("default", "s5")]
    assert {run.schedule_uid for run in world.runs() if run.state == "ready"} == set(uids) - {bad}
    world.clock.move(60)
    assert bad not in {decided.schedule_uid for tick in world.tick() for decided in tick.decided}


@pytest.mark.both_databases
def test_a_schedule_whose_events_cannot_be_written_is_parked_without_one_and_the_others_fire(
    database: Database,
) -> None:
    world = World(database, ticker=TickerOptions(batch=8))
    uids = add_many(world, 12)
    bad = uids[5]
    _change(world, bad, next_sequence=2**63 - 1)
    world.clock.move(60)
    world.tick()
    row = world.position(bad)
    assert (row.status, bool(row.last_error), row.last_dispatch_status) == ("broken", True, "validation_failed")
    assert {run.schedule_uid for run in world.runs() if run.state == "ready"} == set(uids) - {bad}


@pytest.mark.both_databases
def test_every_poison_at_once_among_a_thousand(database: Database) -> None:
    world = World(database)
    uids = add_many(world, 1_000)
    bad = uids[3 : 1_000 : 1_000 // len(POISONS)][: len(POISONS)]
    for uid, spoil in zip(bad, POISONS.values(), strict=True):
        spoil(world, uid)
    world.clock.move(60)
    world.tick()
    broken = sa.select(positions.c.schedule_uid).where(positions.c.status == "broken")
    assert set(world.database.read(lambda c: list(c.execute(broken).scalars()))) == set(bad)
    fired = {run.schedule_uid for run in world.runs() if run.state == "ready"}
    assert fired == set(uids) - set(bad)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_nul_that_postgresql_cannot_hold_is_one_schedules_trouble(database: Database) -> None:
    world = World(database)
    good, bad = world.add("good"), world.add("bad")
    poison(database, bad, lambda text: _with(text, queue="a\x00b"))
    world.clock.move(60)
    world.tick()
    assert (world.position(bad).status, world.states(good)) == ("broken", ["ready"])


@pytest.mark.parametrize("document", [None, "[", "{}"], ids=["gone", "no JSON", "no calendar"])
def test_a_calendar_that_cannot_be_read_skips_and_breaks_nothing(database: Database, document: str | None) -> None:
    world = World(database)
    uid = world.add(calendars=["bad"])
    if document is not None:
        row = {"namespace": "default", "name": "bad", "document": document}
        numbers = dict.fromkeys(("version", "created_at", "updated_at"), 1)
        world.write(lambda c: c.execute(sa.insert(calendars).values(**row, **numbers)))
    world.clock.move(60)
    world.tick()
    assert world.position(uid).status == "active"
    assert reasons(world.history(uid)) == ["calendar"]
    world.account()


@pytest.mark.both_databases
@pytest.mark.parametrize("value", ["1" + "0" * 30, '"half \\ud800 pair"'], ids=["big", "surrogate"])
def test_what_a_condition_saw_can_be_written_whatever_it_was(database: Database, value: str) -> None:
    world = World(database)
    uid = world.add(pre_dispatch_condition={"/prior_run_result/value": {"eq": "else"}})
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in runs.columns if not column.nullable}
    row |= {"run_id": uid, "schedule_uid": uid, "namespace": "default", "state": "succeeded", "result": value}
    world.write(lambda c: c.execute(sa.insert(runs).values(**row)))
    world.clock.move(60)
    world.tick()
    assert (world.position(uid).status, reasons(world.history(uid))) == ("active", ["condition_failed"])
    assert "half" in world.history(uid)[0].payload or "0" * 30 in world.history(uid)[0].payload


@pytest.mark.both_databases
def test_a_hundred_budgets_and_more_fit_in_one_batch(database: Database) -> None:
    """Each needs its own counters; together they are more than SQLite takes in a chain of ORs."""
    world = World(database)
    add_many(world, 500, budget={"spending_limit_credits": 5, "max_daily_runs": 3}, limits={"cost": 1})
    world.clock.move(60)
    assert sum(tick.claimed for tick in world.tick()) == 500
    assert len(world.counters()) == 1_000


# ── trouble that no row brought about ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "trouble",
    [
        StoreUnavailable("down"),
        CommitUnknown("who knows"),
        SchemaMissing("no tables"),
        sa.exc.ProgrammingError("x", {}, Exception("bad SQL")),
        sa.exc.NoSuchColumnError("a KeyError, too"),
        psycopg.errors.IoError("the disk fails under a COPY"),
        psycopg.errors.UndefinedColumn("bad SQL in a COPY"),
        sqlite3.OperationalError("bad SQL past SQLAlchemy"),
        OSError("no file left to open"),
        MemoryError(),
        RuntimeError("the process is about to end"),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
def test_trouble_of_the_database_parks_nobody(
    database: Database, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    world = World(database)
    uid = world.add()
    world.clock.move(60)

    def fail(*_args: object) -> object:
        raise trouble

    monkeypatch.setattr(module, "decide_claims", fail)
    with pytest.raises(type(trouble)):
        world.ticker.step()
    monkeypatch.undo()
    assert world.position(uid).status == "active"
    world.tick()
    assert world.states(uid) == ["ready"]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_disk_that_fails_while_a_batch_is_written_parks_nobody(database: Database) -> None:
    world = World(database)
    uids = add_many(world, 40)
    world.clock.move(60)
    fail = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE USING ERRCODE = '58030'; END$$"
    world.write(lambda c: c.exec_driver_sql(fail))
    trigger = "CREATE TRIGGER fails BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION fail()"
    world.write(lambda c: c.exec_driver_sql(trigger))
    with pytest.raises(StoreUnavailable, match="58030"):
        world.ticker.step()
    assert {world.position(uid).status for uid in uids} == {"active"}
    world.write(lambda c: c.exec_driver_sql("DROP TRIGGER fails ON runs"))
    world.tick()
    assert world.states() == ["ready"] * 40


def test_trouble_that_comes_while_a_batch_is_halved_parks_nobody(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database)
    uids = add_many(world, 4)
    world.clock.move(60)
    told: list[Exception] = [ValueError("a row"), psycopg.errors.IoError("the disk")]

    def fail(*_args: object) -> object:
        raise told[0] if len(told) == 1 else told.pop(0)

    monkeypatch.setattr(module, "decide_claims", fail)
    with pytest.raises(psycopg.errors.IoError):
        world.ticker.step()
    assert {world.position(uid).status for uid in uids} == {"active"}


def test_trouble_while_nothing_is_claimed_is_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(database)

    def fail(*_args: object) -> object:
        raise ValueError("before any row")

    monkeypatch.setattr(due_rows, "claim", fail)
    with pytest.raises(ValueError, match="before any row"):
        world.ticker.step()


@pytest.mark.both_databases
def test_whoever_was_paused_meanwhile_is_not_parked(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(database)
    uid = world.add()
    _overflow(world, uid)
    world.clock.move(60)
    halve = Ticker._halve

    def pause_first(self: Ticker, uids: Any, now: int, wrong: Exception) -> Any:
        _change(world, uid, status="paused")
        return halve(self, uids, now, wrong)

    monkeypatch.setattr(Ticker, "_halve", pause_first)
    tick = world.ticker.step()
    assert (world.position(uid).status, tick.parked) == ("paused", ())


@pytest.mark.both_databases
def test_a_mended_schedule_goes_on_from_there(database: Database) -> None:
    world = World(database)
    uid = world.add()
    sound = world.position(uid).planning
    _corrupt_text(world, uid)
    world.clock.move(60)
    world.tick()
    assert world.position(uid).status == "broken"
    _change(world, uid, status="active", planning=sound)
    world.tick()
    assert world.states(uid) == ["ready"]


@pytest.mark.both_databases
def test_a_batch_that_somebody_else_decided_meanwhile_is_let_go(
    database: Database, open_another: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database)
    uids = add_many(world, 4)
    _overflow(world, uids[0])
    world.clock.move(60)
    faster = Ticker(open_another(), world.clock, "faster")
    halve = Ticker._halve
    called: list[int] = []

    def others_first(self: Ticker, uids: Any, now: int, wrong: Exception) -> Any:
        if self is world.ticker and not called:
            called.append(1)
            while faster.step().more:
                pass
        return halve(self, uids, now, wrong)

    monkeypatch.setattr(Ticker, "_halve", others_first)
    world.ticker.step()
    assert len(world.runs()) == 3
    assert world.position(uids[0]).status == "broken"
    assert len(world.history(uids[0])) == 1


def test_a_planning_is_compiled_once_for_all_ticks(database: Database) -> None:
    world = World(database)
    world.add("a")
    world.add("b")
    world.clock.move(60)
    world.tick()
    world.write(lambda c: c.execute(sa.delete(plannings)))
    world.clock.move(60)
    assert sum(len(tick.decided) for tick in world.tick()) == 2
