"""A worker that can be killed at any point of the walk of a fire: a process of its own for the tests.

Each statement, each commit and each launch is a point. The worker writes the names of the points that it
passes to a log and, when it comes to the one it was told, kills itself without a word.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import event
from world import FakeClock

from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.engine.dispatcher import Dispatcher, LaunchAnswer
from horarium.engine.ticker import Ticker
from horarium.launchers.launcher import Launcher, LaunchRequest
from horarium.launchers.registry import Registry
from horarium.platform.database import Database, open_database, statements
from horarium.platform.database import transactions as database_module
from horarium.platform.database.postgres import copy_rows
from horarium.serve.preparers import preparers_with


class FileLauncher(Launcher):
    """Its target is a file: one line for each delivery, whatever the key."""

    kind = "http"
    honours_key = False
    concurrency = 100
    can_poll = False

    def __init__(self, path: Path, point: Callable[[str], None] = lambda name: None) -> None:
        self._path = path
        self._point = point

    async def launch(self, request: LaunchRequest) -> Outcome:
        self._point("before")
        with self._path.open("a") as file:
            file.write(f"{request.run_id} {request.key}\n")
        self._point("after")
        return Finished()


class Points:
    def __init__(self, log: Path, kill_at: str | int | None) -> None:
        self._log = log
        self._kill_at = kill_at
        self._passed = 0
        self.stage = "start"

    def __call__(self, name: str) -> None:
        self._passed += 1
        named = f"{self.stage}: {name}"
        with self._log.open("a") as file:
            file.write(f"{named}\n")
        if self._kill_at in (self._passed, named):
            os.kill(os.getpid(), signal.SIGKILL)


def watch(database: Database, points: Points) -> None:
    """Every statement and every commit is a point."""

    @event.listens_for(database.engine, "after_cursor_execute")
    def after(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        words = statement.split()
        points(f"after {words[0]} {'positions' if 'positions' in words else ''}".strip())

    commit = database_module._commit

    def counted_commit(transaction: Any) -> None:
        points("before commit")
        commit(transaction)
        points("after commit")

    def counted_copy(*args: Any) -> None:
        copy_rows(*args)
        points("after copy")

    database_module._commit = counted_commit
    setattr(statements, "copy_rows", counted_copy)  # noqa: B010 - the name that `set_wise` imported, which is not exported


def work(url: str, now: int, home: str, kill_at: str | int | None) -> None:
    """Tick, hand out and settle, until nothing is left; killed on the way, or not."""
    points = Points(Path(home) / "points", kill_at)
    database = open_database(url)
    watch(database, points)
    clock = FakeClock(now)
    registry = Registry([FileLauncher(Path(home) / "deliveries", points)])
    ticker, dispatcher = (
        Ticker(database, clock, "worker"),
        Dispatcher(database, clock, registry, "worker", preparers=preparers_with()),
    )
    ticker.beat()
    points.stage = "tick"
    while ticker.step().more:
        pass
    asyncio.run(_deliver(dispatcher, points))
    database.close()


async def _deliver(dispatcher: Dispatcher, points: Points) -> None:
    while True:
        points.stage = "claim"
        works = (await dispatcher.claim()).taken
        if not works:
            return
        points.stage = "launch"
        answers = [LaunchAnswer(each, await dispatcher._deliver(each)) for each in works]
        points.stage = "settle"
        await dispatcher.settle(answers)
