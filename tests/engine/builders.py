"""A small world for tests of the engine: a clock that moves when told, schedules, hands, and an accountant."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection
from world import FakeClock

from horarium.core.decision.decide import begin_position
from horarium.core.document.canonical import to_document
from horarium.core.document.document import parse_definition
from horarium.core.document.planning import compile_planning, planning_text
from horarium.core.document.states import FINAL, RunState
from horarium.engine.advancer import Advancer
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.dispatcher import Dispatcher
from horarium.engine.follower import Follower
from horarium.engine.janitor import Janitor, JanitorResult
from horarium.engine.ticker import Tick, Ticker, TickerOptions
from horarium.features.schedules.write_rows import NewRevision, NewSchedule, insert_schedule
from horarium.instant import SECOND, Instant, from_rfc3339
from horarium.launchers.recording import RecordingLauncher
from horarium.launchers.registry import Registry
from horarium.platform.database import Database
from horarium.platform.database.tables import counters, history, plannings, positions, run_events, runs
from horarium.platform.database.tables import schedules as schedules_table
from horarium.platform.ids import new_id
from horarium.serve.preparers import preparers_with

T = TypeVar("T")

START = from_rfc3339("2026-03-02T00:00:00Z")
MINUTELY = {"cron_expressions": ["* * * * *"]}
ACTION = {"kind": "http", "url": "http://target.test/hook"}
_DECISIONS = ("ScheduleTriggered", "ScheduleBuffered", "ScheduleTriggerSkipped", "ScheduleMissed")


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────


def new_schedule(
    schedule_id: str, *, now: Instant, namespace: str = "default", needs_approval: bool = False, **fields: Any
) -> NewSchedule:
    document = {"schedule_id": schedule_id, **MINUTELY, "action": ACTION, **fields}
    if {"intervals", "at", "spec"} & fields.keys():
        document.pop("cron_expressions")
    definition = parse_definition(document, now=now, namespace=namespace).definition
    text = planning_text(definition, needs_approval=needs_approval)
    uid = new_id()
    return NewSchedule(
        schedule_uid=uid,
        namespace=namespace,
        schedule_id=schedule_id,
        revision=NewRevision(to_document(definition), text, schedule_id, definition.action.workflow),
        position=begin_position(compile_planning(text), uid, now=now),
        source="runtime",
    )


def insert_all(database: Database, news: Iterable[NewSchedule], *, now: Instant) -> list[bytes]:
    listed = list(news)

    def work(connection: Connection) -> None:
        for new in listed:
            insert_schedule(connection, new, now=now)

    database.write(work)
    return [new.schedule_uid for new in listed]


def poison(database: Database, uid: bytes, change: Callable[[str], str]) -> None:
    """Give a schedule a planning text of its own, changed as no door would allow it."""

    def work(connection: Connection) -> None:
        old = connection.execute(sa.select(positions.c.planning).where(positions.c.schedule_uid == uid)).scalar_one()
        text = connection.execute(sa.select(plannings.c.text).where(plannings.c.planning == old)).scalar_one()
        connection.execute(sa.insert(plannings).values(planning=uid, text=change(text)))
        connection.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(planning=uid))

    database.write(work)


def multiply(database: Database, run_id: bytes, count: int) -> None:
    """That many more runs like one that is held or active, a microsecond apart, counted by their schedule."""
    on_postgres = database.dialect == "postgresql"
    numbers = f"generate_series(1, {count})" if on_postgres else "json_each(:places)"
    number = "CAST(n AS bigint)" if on_postgres else "(n.key + 1)"
    new = {
        "run_id": "decode(md5(n || encode(run_id, 'hex')), 'hex')" if on_postgres else "randomblob(16)",
        "nominal": f"nominal + {number}",
        "due": f"due + {number}",
    }
    names = [column.name for column in runs.columns]
    values = ", ".join(new.get(name, name) for name in names)
    statement = f"INSERT INTO runs ({', '.join(names)}) SELECT {values} FROM runs, {numbers} AS n WHERE run_id = :id"
    parameters = {"id": run_id} | ({} if on_postgres else {"places": json.dumps([0] * count)})

    def work(connection: Connection) -> None:
        row = connection.execute(sa.select(runs.c.schedule_uid, runs.c.state).where(runs.c.run_id == run_id)).one()
        connection.execute(sa.text(statement), parameters)
        counted = positions.c.held if row.state == "held" else positions.c.active
        more = {counted: counted + count, positions.c.runs_born: positions.c.runs_born + count}
        connection.execute(sa.update(positions).where(positions.c.schedule_uid == row.schedule_uid).values(more))

    database.write(work)


# ── the world ────────────────────────────────────────────────────────────────────────────────────────


class World:
    """One process's engine on a database, moved step by step."""

    def __init__(
        self,
        database: Database,
        clock: FakeClock | None = None,
        *,
        launcher: RecordingLauncher | None = None,
        ticker: TickerOptions | None = None,
        dispatcher: DispatcherOptions | None = None,
    ) -> None:
        self.database = database
        self.clock = clock or FakeClock(START)
        self.launcher = launcher or RecordingLauncher(self.clock, kind="http")
        self.registry = Registry([self.launcher])
        self.ticker = Ticker(database, self.clock, "test", ticker)
        self.dispatcher = Dispatcher(
            database, self.clock, self.registry, "test", dispatcher, preparers=preparers_with()
        )
        self.janitor = Janitor(database, self.clock)
        self.follower = Follower(database, self.clock, self.registry)
        self.advancer = Advancer(database, self.clock)

    def add(self, schedule_id: str = "s", **fields: Any) -> bytes:
        new = new_schedule(schedule_id, now=self.clock.now(), **fields)
        return insert_all(self.database, [new], now=self.clock.now())[0]

    def tick(self) -> list[Tick]:
        """Step until nothing is due."""
        ticks = [self.ticker.step()]
        while ticks[-1].more:
            ticks.append(self.ticker.step())
            assert len(ticks) < 1_000, "the ticker never rests"
        return ticks

    def dispatch(self) -> int:
        return asyncio.run(self.dispatcher.step())

    def advance(self) -> int:
        """Workflows, until nothing is noted of them."""
        done = 0
        while more := self.advancer.step().total:
            done += more
        return done

    def tidy(self) -> JanitorResult:
        return self.janitor.step()

    def follow(self) -> int:
        return asyncio.run(self.follower.step())

    def pass_time(self, seconds: float, *, step: float = 1.0) -> None:
        """Let the loops live for a while: at each step tick, hand out, follow and tidy."""
        until = self.clock.now() + round(seconds * SECOND)
        while self.clock.now() < until:
            self.clock.move(min(step, (until - self.clock.now()) / SECOND))
            self.tick()
            self.dispatch()
            self.advance()
            self.follow()
            self.tidy()

    def stay_away(self, seconds: float) -> None:
        """As if every process had been down."""
        self.clock.move(seconds)

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    def position(self, uid: bytes) -> Any:
        statement = sa.select(positions).where(positions.c.schedule_uid == uid)
        return self.database.read(lambda connection: connection.execute(statement).one())

    def runs(self, uid: bytes | None = None) -> list[Any]:
        """In the order of their nominal times."""
        statement = sa.select(runs).order_by(runs.c.nominal, runs.c.run_id)
        if uid is not None:
            statement = statement.where(runs.c.schedule_uid == uid)
        return self.database.read(lambda connection: list(connection.execute(statement)))

    def run(self, run_id: bytes) -> Any:
        statement = sa.select(runs).where(runs.c.run_id == run_id)
        return self.database.read(lambda connection: connection.execute(statement).one())

    def states(self, uid: bytes | None = None) -> list[str]:
        return [row.state for row in self.runs(uid)]

    def history(self, uid: bytes) -> list[Any]:
        """Its audit stream."""
        mine = (history.c.schedule_uid == uid, history.c.sequence.is_not(None))
        statement = sa.select(history).where(*mine).order_by(history.c.sequence)
        return self.database.read(lambda connection: list(connection.execute(statement)))

    def events(self, run_id: bytes) -> list[str]:
        statement = sa.select(run_events.c.event_type).where(run_events.c.run_id == run_id)
        ordered = statement.order_by(run_events.c.sequence)
        return self.database.read(lambda connection: list(connection.execute(ordered).scalars()))

    def counters(self) -> dict[tuple[str, str, int], int]:
        statement = sa.select(counters)
        rows = self.database.read(lambda connection: list(connection.execute(statement)))
        return {(row.kind, row.owner, row.day): row.value for row in rows}

    def write(self, work: Callable[[Connection], T]) -> T:
        return self.database.write(work)

    def account(self) -> None:
        account(self.database)


# ── the accountant ───────────────────────────────────────────────────────────────────────────────────


def account(database: Database) -> None:
    """Every schedule's books: no occurrence without a decision, none with two, and counts that are true."""
    found = database.read(problems)
    assert not found, "\n".join(found[:20])


def problems(connection: Connection) -> list[str]:
    """What is wrong with the books, for all schedules that have only ever been active."""
    by_uid: dict[bytes, list[Any]] = {}
    streams = sa.select(history).where(history.c.sequence.is_not(None))
    for event in connection.execute(streams.order_by(history.c.schedule_uid, history.c.sequence)):
        by_uid.setdefault(event.schedule_uid, []).append(event)
    runs_of: dict[bytes, list[Any]] = {}
    columns = (runs.c.schedule_uid, runs.c.run_id, runs.c.state, runs.c.nominal, runs.c.origin, runs.c.covers_count)
    for run in connection.execute(sa.select(*columns).where(runs.c.parent_run_id.is_(None))):
        runs_of.setdefault(run.schedule_uid, []).append(run)
    texts = {row.planning: row.text for row in connection.execute(sa.select(plannings))}
    made = sa.select(schedules_table.c.schedule_uid, schedules_table.c.created_at)
    created = {row.schedule_uid: row.created_at for row in connection.execute(made)}
    found: list[str] = []
    for position in connection.execute(sa.select(positions)):
        uid = position.schedule_uid
        found += _of_one(position, by_uid.get(uid, []), runs_of.get(uid, []), texts[position.planning], created[uid])
    return found


def _of_one(position: Any, events: list[Any], born: list[Any], text: str, created: Instant) -> list[str]:
    name, found = position.schedule_id, []
    if [event.sequence for event in events] != list(range(1, len(events) + 1)):
        found.append(f"{name}: the stream has gaps or doubles")
    if position.next_sequence != len(events) + 1:
        found.append(f"{name}: the next sequence is {position.next_sequence} after {len(events)} events")
    open_states = Counter(run.state for run in born if RunState(run.state) not in FINAL)
    held = open_states.pop("held", 0)
    if (position.active, position.held) != (open_states.total(), held):
        found.append(
            f"{name}: counts {position.active} active and {position.held} held, has {open_states.total()} and {held}"
        )
    if position.runs_born != len(born):
        found.append(f"{name}: {position.runs_born} runs counted, {len(born)} born")
    twice = [nominal for nominal, count in Counter(run.nominal for run in born).items() if count > 1]
    if twice:
        found.append(f"{name}: {len(twice)} occurrences with two runs")
    try:
        spec = compile_planning(text).spec
    except Exception:
        return found  # poisoned on purpose
    return found + _undecided_or_twice(name, spec, events, created, position.decided_until)


def _undecided_or_twice(name: str, spec: Any, events: list[Any], after: Instant, until: Instant) -> list[str]:
    decided: Counter[Instant] = Counter()
    for event in events:
        if event.event_type in _DECISIONS and event.nominal is not None and '"from_buffer":true' not in event.payload:
            for nominal in spec.occurrences(event.nominal - 1):
                if nominal > event.nominal_last:
                    break
                decided[nominal] += 1
    found = [f"{name}: {nominal} was decided {count} times" for nominal, count in decided.items() if count != 1]
    for nominal in spec.occurrences(after):
        if nominal > until:
            break
        if nominal not in decided:
            found.append(f"{name}: {nominal} was never decided")
    return found


def reasons(events: Iterable[Any]) -> list[str]:
    """Of skips and misses, in order."""
    payloads: list[Mapping[str, Any]] = [json.loads(event.payload) for event in events]
    return [str(payload["reason"]) for payload in payloads if "reason" in payload]
