"""One process of a crowd: tickers, dispatchers and janitors in threads, until all the work is done."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection
from world import FakeClock

from horarium.core.document.states import FINAL
from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.engine.capacity import Limits
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.dispatcher import Dispatcher
from horarium.engine.janitor import Janitor
from horarium.engine.ticker import Ticker, TickerOptions
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.registry import Registry
from horarium.platform.database import Database, open_database
from horarium.platform.database.tables import positions, runs
from horarium.serve.preparers import preparers_with

_OPEN = [state.value for state in type(next(iter(FINAL))) if state not in FINAL]


class ExclusiveLauncher(Launcher):
    """Holds a file while it works: whoever finds it there works on the same run at the same time."""

    kind = "http"
    honours_key = False
    concurrency = 100
    can_poll = False

    def __init__(self, home: Path, name: str) -> None:
        self._home = home
        self._log = home / f"deliveries-{name}"

    async def launch(self, request: LaunchRequest) -> Outcome:
        held = self._home / "held" / request.key
        try:
            os.close(os.open(held, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            (self._home / "overlaps").open("a").write(f"{request.key}\n")
        await asyncio.sleep(0.001)
        with self._log.open("a") as file:
            file.write(f"{request.key}\n")
        held.unlink(missing_ok=True)
        return Finished()


def work(url: str, now: int, home: str, name: str, threads: int) -> None:
    """`threads` of each kind."""
    database = open_database(url, pool_size=threads * 3)
    clock = FakeClock(now)
    bodies: list[Callable[[], None]] = []
    for number in range(threads):
        who = f"{name}-{number}"
        ticker = Ticker(database, clock, who, TickerOptions(batch=17, max_catchup_per_tick=7))
        registry = Registry([ExclusiveLauncher(Path(home), who)])
        dispatcher = Dispatcher(
            database, clock, registry, who, DispatcherOptions(Limits(process=50, target=50)), preparers=preparers_with()
        )
        janitor = Janitor(database, clock)
        bodies += [
            lambda ticker=ticker: _until_done(database, now, lambda: ticker.step().claimed),
            lambda dispatcher=dispatcher: _until_done(database, now, lambda: asyncio.run(dispatcher.step())),
            lambda janitor=janitor: _until_done(database, now, lambda: _tidy(janitor)),
        ]
    started = [threading.Thread(target=body) for body in bodies]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    database.close()


def _tidy(janitor: Janitor) -> int:
    """Its work is never urgent: others do most of it."""
    janitor.step()
    time.sleep(1)
    return 0


def _until_done(database: Database, now: int, step: Callable[[], int]) -> None:
    while True:
        if step():
            continue
        if database.read(lambda connection: _is_done(connection, now)):
            return
        time.sleep(0.2)


def _is_done(connection: Connection, now: int) -> bool:
    due = sa.select(positions.c.schedule_uid).where(positions.c.status == "active", positions.c.next_due <= now)
    if connection.execute(due.limit(1)).first() is not None:
        return False
    open_runs = sa.select(runs.c.run_id).where(runs.c.state.in_(_OPEN))
    return connection.execute(open_runs.limit(1)).first() is None
