"""How fast decided runs are delivered: from `ready` to the end of each on disk, by the real dispatcher.

The launchers do next to nothing, so that what is left is ours: claim, request, answer, settlement.

- **pull**: a run is done with when it lies on its queue, where a worker outside will find it;
- **python**: a task that returns at once, in a thread of this process, and its result is kept;
- **bare loop**: claims and ends the same runs in the same steps, 32 at a time, with no thought in between:
  its update of the run, its event, its update of the position. What no dispatcher can beat.

    python benchmarks/delivery.py [--runs 10000] [--dialect postgresql --dialect sqlite]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from ground import DIALECTS, HERD, console, database, load, pattern, progress, seed_each
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.clock import SystemClock
from horarium.engine.dispatcher import Dispatcher, DispatcherOptions
from horarium.engine.loop import Pulse
from horarium.engine.memory import settle_in
from horarium.engine.ticker import Ticker
from horarium.instant import SECOND
from horarium.launchers.pull import PullLauncher
from horarium.launchers.python import PythonLauncher
from horarium.launchers.registry import Registry
from horarium.launchers.tasks import TaskRegistry
from horarium.store.database import Database

KINDS = {
    "pull": HERD["action"],
    "python": {"kind": "python", "task": "nothing", "input": {"region": "eu", "size": 3}},
}
HANDS = DispatcherOptions().concurrency


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    arguments = parser.parse_args()
    settle_in()
    table = Table(title=f"{arguments.runs:,} runs, {HANDS} in hand, load average before {load()}")
    for heading in ("database", "party", "runs/s", "of the bare loop"):
        table.add_column(heading, justify="left" if heading in ("database", "party") else "right")
    for dialect in arguments.dialect or DIALECTS:
        bare = _measured(dialect, "pull", arguments.runs, "bare loop", _bare)
        for kind in KINDS:
            rate = _measured(dialect, kind, arguments.runs, kind, _dispatcher)
            table.add_row(dialect, kind, f"{rate:,.0f}", f"{rate / bare:.2f}")
        table.add_row(dialect, "bare loop", f"{bare:,.0f}", "1.00")
    console.print(table)


def _measured(dialect: str, kind: str, count: int, title: str, deliver: Callable[[Database, Any], None]) -> float:
    """Schedules fire beforehand; the clock runs for their delivery alone."""
    with database(dialect) as opened:
        _fire(opened, kind, count, f"{dialect}: seeding for {title}")
        with progress() as bars:
            bar = bars.add_task(f"{dialect}: {title} delivers", total=count)
            started = time.perf_counter()
            deliver(opened, lambda done: bars.update(bar, completed=done))
            seconds = time.perf_counter() - started
        left = opened.read(_left)
        assert left == 0, f"{left} runs were not delivered"
    return count / seconds


def _fire(opened: Database, kind: str, count: int, title: str) -> None:
    now = SystemClock().now()
    like = pattern({**HERD, "action": KINDS[kind], "timezone": "UTC"}, now=now)
    seed_each(opened, count, lambda number: (like, now - now % (60 * SECOND)), now=now - 120 * SECOND, title=title)
    ticker = Ticker(opened, SystemClock(), "bench")
    while ticker.step().more:
        pass


def _left(connection: Connection) -> int:
    left: int = connection.execute(text("SELECT count(*) FROM runs WHERE state IN ('ready', 'launching')")).scalar_one()
    return left


# ── the dispatcher ───────────────────────────────────────────────────────────────────────────────────


def _dispatcher(opened: Database, tell: Callable[[int], None]) -> None:
    clock, tasks = SystemClock(), TaskRegistry()
    tasks.add(_nothing, name="nothing")
    told = _Told(tell)
    registry = Registry([PullLauncher(clock), PythonLauncher(tasks, clock, concurrency=HANDS)])
    dispatcher = Dispatcher(opened, clock, registry, "bench", telling=told)
    total = opened.read(_left)

    async def deliver() -> None:
        stop, wake = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(dispatcher.run(stop, wake, 10, Pulse()))
        while told.count < total:
            await asyncio.sleep(0.02)
        stop.set()
        wake.set()
        await running

    asyncio.run(deliver())


def _nothing(region: str, size: int) -> int:
    return size


class _Told:
    def __init__(self, tell: Callable[[int], None]) -> None:
        self.count = 0
        self._tell = tell

    def settled(self, answers: Any, now: int) -> None:
        self.count += len(answers)
        self._tell(self.count)


# ── the bare loop ────────────────────────────────────────────────────────────────────────────────────

_CLAIM = """
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = 'bench', lease_until = 1,
  launches = launches + 1, deadline = 1
WHERE run_id IN (SELECT run_id FROM runs WHERE state = 'ready' ORDER BY priority DESC, ready_at, run_id LIMIT 32)
RETURNING run_id, schedule_uid
"""
_END = "UPDATE runs SET state = 'succeeded', lease_owner = NULL, lease_until = NULL, result = '3' WHERE run_id = :run"
_EVENT = (
    "INSERT INTO run_events (run_id, sequence, event_type, recorded_at, payload) "
    "VALUES (:run, 3, 'run.completed', 1, :payload)"
)
_POSITION = "UPDATE positions SET active = active - 1, last_completed_run_id = :run WHERE schedule_uid = :schedule"


def _bare(opened: Database, tell: Callable[[int], None]) -> None:
    done = 0
    while claimed := opened.write(lambda connection: connection.execute(text(_CLAIM)).all()):
        rows = [{"run": run, "schedule": schedule, "payload": json.dumps({})} for run, schedule in claimed]

        def settle(connection: Connection, rows: list[dict[str, Any]] = rows) -> None:
            for statement in (_END, _EVENT, _POSITION):
                connection.execute(text(statement), rows)

        opened.write(settle)
        done += len(rows)
        tell(done)


if __name__ == "__main__":
    main()
