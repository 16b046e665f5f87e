"""What one fire costs from end to end when few come at a time: the CPU of a whole service, beside a bare client.

150 schedules on SQLite make 20 HTTP fires a second in sum, spread over the second so that no batch helps. The service
is `horarium up` with its default settings, in a process of its own. Its CPU time (user and system, all threads, from
outside) over the watch is divided by the runs that ended meanwhile: each was decided, delivered and ended.

The **bare loop** is a process, too: an asyncio program that does the same at the same pace. It writes the rows of the
decision (run, history, position), claims the run, calls the same target with httpx, and writes the rows of the end
(run, event, position), each of the three as a transaction of its own, with the same pragmas. The target is at most
twice its CPU. What both cost with nothing to do stands beside it and is not subtracted.

    python benchmarks/trickle.py [--seconds 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from ground import add_json_option, console, database, load, progress, seed_ready, write_figures
from process import cpu_seconds, resident_megabytes, talking, up
from rich.table import Table
from sqlalchemy import Connection, text
from targets import answering

from horarium.client.client import Client
from horarium.instant import SECOND, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.ids import new_id

SCHEDULES, PERIOD_SECONDS, FIRES_A_SECOND = 150, 15, 20
MOST_TIMES_BARE = 2.0
IDLE_SECONDS = 10
_LEAD_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Watched:
    fires: int
    cpu_seconds: float
    begin_megabytes: float
    end_megabytes: float
    idle_percent: float
    load: str

    @property
    def milliseconds(self) -> float:
        return 1_000 * self.cpu_seconds / self.fires


def main() -> None:
    if sys.argv[1:2] == ["--bare"]:
        asyncio.run(_Bare(*sys.argv[2:]).run())
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    add_json_option(parser)
    arguments = parser.parse_args()
    bare, ours = _watch_bare(arguments.seconds), _watch_horarium(arguments.seconds)
    title = f"{SCHEDULES} schedules, {FIRES_A_SECOND} fires a second for {arguments.seconds} s on SQLite"
    table = Table(title=f"CPU of {title}\ntarget: at most {MOST_TIMES_BARE:.0f} times the bare loop")
    for heading in ("party", "fires", "ms a fire", "of the bare loop", "memory, MB", "idle, %", "load"):
        table.add_column(heading, justify="left" if heading == "party" else "right")
    for party, watched in (("bare loop", bare), ("horarium", ours)):
        table.add_row(
            party,
            f"{watched.fires:,}",
            f"{watched.milliseconds:.2f}",
            f"{watched.milliseconds / bare.milliseconds:.2f}",
            f"{watched.begin_megabytes:.0f} → {watched.end_megabytes:.0f}",
            f"{watched.idle_percent:.2f}",
            watched.load,
        )
    console.print(table)
    figures = {"bare loop · ms a fire": bare.milliseconds, "horarium · ms a fire": ours.milliseconds}
    write_figures(arguments.json, figures)


# ── the watch ────────────────────────────────────────────────────────────────────────────────────────


def _idle_percent(pid: int) -> float:
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    return 100 * (cpu_seconds(pid) - before) / IDLE_SECONDS


def _watch(opened: Database, pid: int, idle: float, seconds: int, title: str) -> Watched:
    """From a moment at which the pace has been reached."""
    clock = SystemClock()
    time.sleep(_LEAD_SECONDS)
    first, cpu, megabytes = clock.now(), cpu_seconds(pid), resident_megabytes(pid)
    with progress() as bars:
        bar = bars.add_task(title, total=seconds)
        for _ in range(seconds):
            time.sleep(1)
            bars.advance(bar)
    used, last = cpu_seconds(pid) - cpu, clock.now()
    ended = opened.read(lambda connection: _ended(connection, first, last))
    wanted = FIRES_A_SECOND * (last - first) / SECOND
    assert ended > 0.9 * wanted, f"figures of work that was not done are worth nothing: {ended} of {wanted:.0f} fires"
    return Watched(ended, used, megabytes, resident_megabytes(pid), idle, load())


def _ended(connection: Connection, first: Instant, last: Instant) -> int:
    query = text(
        "SELECT count(*) FROM runs WHERE state = 'succeeded' AND finished_at > :first AND finished_at <= :last"
    )
    ended: int = connection.execute(query, {"first": first, "last": last}).scalar_one()
    return ended


@contextmanager
def _ground() -> Iterator[tuple[Database, str, str]]:
    """A database, a folder, and the URL of a target."""
    with (
        tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder,
        answering(folder) as url,
        database("sqlite") as opened,
    ):
        yield opened, folder, f"{url}/hook"


# ── the service ──────────────────────────────────────────────────────────────────────────────────────


def _watch_horarium(seconds: int) -> Watched:
    with _ground() as (opened, folder, url), up(opened, folder) as service:
        time.sleep(_LEAD_SECONDS)
        idle = _idle_percent(service.pid)
        with Client(service.address, token=service.token) as client:
            for number in range(SCHEDULES):
                client.create_schedule(**_schedule(number, url))
        return _watch(opened, service.pid, idle, seconds, "horarium up")


def _schedule(number: int, url: str) -> dict[str, Any]:
    """Twice in a period, each at its own second, and by its jitter at its own moment of the second."""
    offsets = (number % PERIOD_SECONDS, (number + PERIOD_SECONDS // 2) % PERIOD_SECONDS)
    return {
        "schedule_id": f"trickle-{number}",
        "intervals": [{"every": f"PT{PERIOD_SECONDS}S", "offset": f"PT{offset}S"} for offset in offsets],
        "jitter_seconds": 1,
        "action": {"kind": "http", "url": url, "input": {"region": "eu", "size": 3}},
        "overlap_policy": "allow_all",
    }


# ── the bare loop ────────────────────────────────────────────────────────────────────────────────────


def _watch_bare(seconds: int) -> Watched:
    with _ground() as (opened, folder, url):
        action = _schedule(0, url)["action"]
        # One run of each has been born: later ones are like it.
        seed_ready(opened, SCHEDULES, lambda number: action, title="seeding for the bare loop")
        words = [str(Path(__file__).absolute()), "--bare", opened.url.removeprefix("sqlite:///"), url]
        with talking(words, folder) as child:
            idle = _idle_percent(child.pid)
            os.kill(child.pid, signal.SIGUSR1)
            return _watch(opened, child.pid, idle, seconds, "bare loop")


_DECIDE = """
UPDATE positions SET next_due = :now + 7000000, decided_until = :now, next_sequence = next_sequence + 1,
  active = active + 1, runs_born = runs_born + 1, fires_count = fires_count + 1, last_fired_at = :now,
  last_run_id = :run, last_dispatch_status = 'dispatched'
WHERE schedule_uid = :schedule RETURNING next_sequence - 1
"""
_CLAIM = """
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = 'bare', lease_until = :now + 30000000,
  launches = launches + 1, deadline = :now + 3600000000
WHERE run_id = (SELECT run_id FROM runs WHERE state = 'ready' AND run_id = :run)
"""
_END = """
UPDATE runs SET state = 'succeeded', lease_epoch = lease_epoch + 1, lease_owner = NULL, lease_until = NULL,
  started_at = :now, finished_at = :now, result = :result, next_event = next_event + 1
WHERE run_id = :run
"""
_EVENT = """
INSERT INTO run_events (run_id, sequence, event_type, recorded_at, payload)
SELECT run_id, next_event - 1, 'run.completed', :now, '{}' FROM runs WHERE run_id = :run
"""
_COMPLETE = """
UPDATE positions SET active = active - 1, last_completed_at = :now, last_completed_run_id = :run,
  failures_in_a_row = 0
WHERE schedule_uid = :schedule
"""


class _Bare:
    """Rows are copies of those that a tick made of the same schedule, so they are as wide as ours."""

    def __init__(self, path: str, url: str) -> None:
        self._url, self._clock = url, SystemClock()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "journal_size_limit = 67108864",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        self._runs = [dict(row) for row in self._connection.execute("SELECT * FROM runs")]
        query = "SELECT * FROM history WHERE run_id IS NOT NULL AND sequence IS NOT NULL"
        self._events = {row["run_id"]: dict(row) for row in self._connection.execute(query)}

    async def run(self) -> None:
        go, stop, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, go.set)
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, trust_env=False) as client, asyncio.TaskGroup() as tasks:
            print("ready", flush=True)
            await go.wait()
            began, number = loop.time(), 0
            while not stop.is_set():
                tasks.create_task(self._fire(client, self._runs[number % len(self._runs)]))
                number += 1
                await asyncio.sleep(max(0, began + number / FIRES_A_SECOND - loop.time()))

    async def _fire(self, client: httpx.AsyncClient, like: dict[str, Any]) -> None:
        run = new_id()
        body = self._decide(like, run, self._clock.now())
        self._write((_CLAIM,), run=run, now=self._clock.now())
        answer = await client.post(self._url, json=body, headers={"idempotency-key": run.hex()})
        answer.raise_for_status()
        end = {"run": run, "schedule": like["schedule_uid"], "now": self._clock.now(), "result": answer.text}
        self._write((_END, _EVENT, _COMPLETE), **end)

    def _decide(self, like: dict[str, Any], run: bytes, now: Instant) -> dict[str, Any]:
        """What the target is sent."""
        event = self._events[like["run_id"]]
        payload = {**json.loads(event["payload"]), "workflow_run_id": run.hex()}
        with self._transaction():
            values = {"run": run, "schedule": like["schedule_uid"], "now": now}
            [(sequence,)] = self._connection.execute(_DECIDE, values).fetchall()
            self._insert(
                "runs", {**like, "run_id": run, "nominal": now, "due": now, "ready_at": now, "created_at": now}
            )
            self._insert(
                "history",
                {**event, "feed_id": None, "sequence": sequence, "recorded_at": now, "run_id": run, "nominal": now}
                | {"nominal_last": now, "payload": json.dumps(payload)},
            )
        return {"id": run.hex(), "type": "bare", "time": now, "data": payload}

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", row)

    def _write(self, statements: tuple[str, ...], **values: Any) -> None:
        with self._transaction():
            for statement in statements:
                self._connection.execute(statement, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        yield
        self._connection.execute("COMMIT")


if __name__ == "__main__":
    main()
