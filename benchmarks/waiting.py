"""What open questions cost whoever does not ask about them: the first page of the inbox, and a tick beside them."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ground import HERD, database, load, pattern, rest, seed_each
from process import up
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.client.client import Client
from horarium.engine.ticker import Ticker
from horarium.instant import MINUTE, SECOND
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

# Milliseconds for a page, and how many times slower a tick may be.
PAGE_MS, TICK = 50.0, 1.1
_TIMES = 60
_PAGES: Mapping[str, Mapping[str, Any]] = {
    "first page": {"status": "pending"},
    "those that I may decide": {"status": "pending", "mine": True},
}
_HERD = 2_000
_TURNS = 5
_ASKING = {
    **HERD,
    "schedule_id": "asking",
    "approval_policy": {"requires_approval": True, "expires_after_seconds": 8_640_000},
}


def measured(count: int) -> Table:
    table = Table(title=f"{count:,} open questions, PostgreSQL, load average before {load()}")
    for heading in ("what", "without", "with them", "ratio", "target"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with database("postgresql") as alone, database("postgresql") as beside:
        _ask(beside, count)
        ticks = [(_tick(alone, turn), _tick(beside, turn)) for turn in range(_TURNS)]
        without, with_them = (statistics.median(times) * 1_000 for times in zip(*ticks, strict=True))
        ratio = statistics.median(late / early for early, late in ticks)
        table.add_row(
            f"tick of {_HERD:,}, ms", f"{without:,.0f}", f"{with_them:,.0f}", f"{ratio:.2f}", f"ratio ≤ {TICK}"
        )
        for name, few, many in zip(_PAGES, _pages(alone), _pages(beside), strict=True):
            table.add_row(f"{name}, p99 ms", f"{few:.1f}", f"{many:.1f}", f"{many / few:.2f}", f"< {PAGE_MS:.0f} ms")
    return table


def _ask(opened: Database, count: int) -> None:
    """As many schedules, each with a run that waits for a yes: decided as a tick does."""
    now = SystemClock().now()
    like = pattern(_ASKING, now=now, needs_approval=True)
    due = now - now % MINUTE
    seed_each(opened, count, lambda number: (like, due), now=due - SECOND, title="asking", prefix="asking")
    ticker = Ticker(opened, SystemClock(), "bench")
    while ticker.step().more:
        pass
    opened.write(lambda connection: connection.execute(text("UPDATE positions SET next_due = NULL")))
    found = opened.read(_questions)
    assert found == (count, count), found
    rest(opened)


def _questions(connection: Connection) -> tuple[int, int]:
    """Runs that wait, and what is asked about them."""
    waiting = connection.execute(text("SELECT count(*) FROM runs WHERE state = 'awaiting_approval'")).scalar_one()
    asked = connection.execute(text("SELECT count(*) FROM approvals WHERE decision = 'pending'")).scalar_one()
    return waiting, asked


def _tick(opened: Database, turn: int) -> float:
    """Seconds until a herd is decided that has nothing to do with the questions."""
    now = SystemClock().now()
    due = now - now % MINUTE
    like = pattern(HERD, now=now)
    seed_each(opened, _HERD, lambda number: (like, due), now=due - SECOND, title="a herd", prefix=f"herd-{turn}")
    ticker = Ticker(opened, SystemClock(), "bench")
    started = time.perf_counter()
    while ticker.step().more:
        pass
    seconds = time.perf_counter() - started
    opened.write(lambda connection: connection.execute(text("UPDATE positions SET next_due = NULL")))
    return seconds


def _pages(opened: Database) -> list[float]:
    """p99 of each in milliseconds, over loopback, of a real server."""
    with (
        tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder,
        up(opened, folder) as server,
        Client(server.address, token=server.token, namespace="default") as client,
    ):
        return [_p99(partial(client.list_approvals, **asked)) for asked in _PAGES.values()]


def _p99(ask: Callable[[], object]) -> float:
    ask()  # a process that has just started reads its statements first
    took = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        ask()
        took.append((time.perf_counter() - started) * 1_000)
    took.sort()
    return took[math.ceil(0.99 * len(took)) - 1]
