"""How late a decision is: one schedule that fires every second, on an engine that has nothing else to do.

A real process (`horarium up`) runs on each database. Two latenesses are read from its own records:

- **decided**: `recorded_at` of the history minus the nominal time. It is the instant at which the decision
  is made; its commit follows;
- **taken up**: when the dispatcher has claimed the run to hand it out, minus the nominal time. The decision
  has been committed by then.

    python benchmarks/drift.py [--seconds 120] [--dialect sqlite] [--command worker]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence

from ground import DIALECTS, HERD, console, database, load, pattern, progress, seed_each
from process import service
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.instant import SECOND, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

# Every second a new run, whatever became of the last one.
EVERY_SECOND = {**HERD, "cron_expr": "* * * * * *", "overlap_policy": "allow_all"}
# The process is up and has settled by then.
LEAD_SECONDS = 10
TAIL_SECONDS = 2


def main() -> None:
    arguments = _arguments()
    table = Table(title=f"lateness of one schedule that fires each second, {arguments.seconds} s; target: p99 < 50 ms")
    for heading in ("database", "what"):
        table.add_column(heading)
    for heading in ("occurrences", "p50, ms", "p99, ms", "worst, ms", "load average"):
        table.add_column(heading, justify="right")
    for dialect in arguments.dialect or DIALECTS:
        decided, taken = _measure(dialect, arguments.seconds, arguments.command)
        busy = load()
        for what, late in (("decided", decided), ("taken up", taken)):
            figures = [f"{_rank(late, share):.1f}" for share in (0.5, 0.99, 1)]
            table.add_row(dialect, what, f"{len(late)}", *figures, busy)
    console.print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--command", choices=["up", "worker"], default="up")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    return parser.parse_args()


def _measure(dialect: str, seconds: int, command: str) -> tuple[list[float], list[float]]:
    clock = SystemClock()
    now = clock.now()
    first = now // SECOND * SECOND + LEAD_SECONDS * SECOND
    last = first + (seconds - 1) * SECOND
    like = pattern(EVERY_SECOND, now=now)
    with database(dialect) as opened:
        seed_each(opened, 1, lambda _: (like, first), now=now, title=f"{dialect}: seeding")
        with service(opened, command), progress() as bars:
            bar = bars.add_task(f"{dialect}: {command}", total=seconds)
            while (at := clock.now()) < last + TAIL_SECONDS * SECOND:
                bars.update(bar, completed=max(0, min(seconds, (at - first) // SECOND + 1)))
                time.sleep(0.5)
        return _latenesses(opened, first, last)


def _latenesses(opened: Database, first: Instant, last: Instant) -> tuple[list[float], list[float]]:
    """In milliseconds. A second without its decision, or with two, is no figure but a defect."""
    window = {"first": first, "last": last}

    def read(connection: Connection) -> tuple[list[tuple[Instant, Instant]], list[tuple[Instant, Instant]]]:
        decided = connection.execute(text(_DECIDED), window).all()
        taken = connection.execute(text(_TAKEN), window).all()
        return [(row[0], row[1]) for row in decided], [(row[0], row[1]) for row in taken]

    decided, taken = opened.read(read)
    wanted = list(range(first, last + 1, SECOND))
    for found in (decided, taken):
        assert [nominal for nominal, _ in found] == wanted, "every second must have one decision and one run"
    return _milliseconds(decided), _milliseconds(taken)


_DECIDED = "SELECT nominal, recorded_at FROM history WHERE nominal BETWEEN :first AND :last ORDER BY nominal, sequence"
# The deadline counts from the first claim.
_TAKEN = f"""
SELECT nominal, deadline - timeout_seconds * CAST({SECOND} AS BIGINT) FROM runs
WHERE nominal BETWEEN :first AND :last ORDER BY nominal
"""


def _milliseconds(rows: Sequence[tuple[Instant, Instant]]) -> list[float]:
    return sorted((at - nominal) / 1_000 for nominal, at in rows)


def _rank(ordered: Sequence[float], share: float) -> float:
    """The nearest rank, so every figure is one that was measured."""
    return ordered[math.ceil(share * len(ordered)) - 1]


if __name__ == "__main__":
    main()
