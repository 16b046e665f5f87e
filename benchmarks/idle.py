"""What a service costs that has nothing to do: a million schedules stored, none due.

A real process (`horarium up`: API and engine) is started on each database and watched from outside:

- **ready**: from the start of the process until it has said so and has looked once at what is due;
- **CPU**: of the process over the watch, in percent of one core, beginning a few seconds after the start. The
  engine goes slowly through all positions meanwhile, to mend what a crash may have left;
- **memory**: resident, at the begin and at the end of the watch: it should stay as it is;
- **CPU of the database**: of all processes of PostgreSQL; SQLite works inside ours.

    python benchmarks/idle.py [--schedules 1000000] [--seconds 60] [--dialect sqlite] [--command worker] [--peer]

With `--peer` APScheduler 3 is watched the same way with 100,000 jobs.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from ground import DIALECTS, HERD, console, database, load, pattern, progress, rest, seed_each
from process import Living, cpu_seconds, resident_megabytes, server_cpu_seconds, service, talking
from rich.table import Table
from sqlalchemy import Connection, make_url

from horarium.instant import DAY
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

SETTLE_SECONDS = 5
PEER_JOBS = 100_000
_PEER_CHUNK = 5_000
# A program of its own, which imports nothing of ours: its memory is its own too.
_PEER = """
import signal, sys
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
scheduler = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(sys.argv[1])}, timezone="UTC")
scheduler.start()
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
scheduler.shutdown()
"""


@dataclass(frozen=True, slots=True)
class Watched:
    ready_seconds: float
    percent: float
    begin_megabytes: float
    end_megabytes: float
    database_percent: float | None
    load: str


def main() -> None:
    arguments = _arguments()
    table = Table(title=f"idle for {arguments.seconds} s; the second line of a heading is the target")
    for heading in ("database", "party"):
        table.add_column(heading)
    for heading in (
        "stored",
        "ready, s\n< 3",
        "CPU, %\n< 1",
        "memory, MB\n< 150",
        "database CPU, %",
        "load average",
    ):
        table.add_column(heading, justify="right")
    for dialect in arguments.dialect or DIALECTS:
        watched = _horarium(dialect, arguments.schedules, arguments.seconds, arguments.command)
        _add(table, dialect, f"horarium {arguments.command}", arguments.schedules, watched)
        if arguments.peer:
            _add(table, dialect, "APScheduler 3", PEER_JOBS, _apscheduler(dialect, arguments.seconds))
    console.print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--command", choices=["up", "worker"], default="up")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    parser.add_argument("--peer", action="store_true", help=f"also APScheduler 3 with {PEER_JOBS:,} jobs")
    return parser.parse_args()


def _add(table: Table, dialect: str, party: str, stored: int, watched: Watched) -> None:
    table.add_row(
        dialect,
        party,
        f"{stored:,}",
        f"{watched.ready_seconds:.2f}",
        f"{watched.percent:.2f}",
        f"{watched.begin_megabytes:.0f} → {watched.end_megabytes:.0f}",
        "–" if watched.database_percent is None else f"{watched.database_percent:.2f}",
        watched.load,
    )


# ── the watch ────────────────────────────────────────────────────────────────────────────────────────


def _watch(opened: Database, living: Living, seconds: int, title: str) -> Watched:
    with progress() as bars:
        bar = bars.add_task(title, total=SETTLE_SECONDS + seconds)
        _wait(SETTLE_SECONDS, lambda: bars.advance(bar))
        megabytes = resident_megabytes(living.pid)
        ours, theirs = _percents(opened, living.pid, seconds, lambda: bars.advance(bar))
    return Watched(
        living.ready_seconds,
        ours,
        megabytes,
        resident_megabytes(living.pid),
        theirs if opened.dialect == "postgresql" else None,
        load(),
    )


def _percents(opened: Database, pid: int, seconds: int, advance: Callable[[], None]) -> tuple[float, float]:
    """Of one core, ours and the server's."""
    began, before = time.perf_counter(), _used(opened, pid)
    _wait(seconds, advance)
    took, after = time.perf_counter() - began, _used(opened, pid)
    ours, theirs = (100 * (end - begin) / took for begin, end in zip(before, after, strict=True))
    return ours, theirs


def _used(opened: Database, pid: int) -> tuple[float, float]:
    """Seconds of CPU, ours and the server's."""
    return cpu_seconds(pid), server_cpu_seconds(opened) if opened.dialect == "postgresql" else 0.0


def _wait(seconds: int, advance: Callable[[], None]) -> None:
    for _ in range(seconds):
        time.sleep(1)
        advance()


# ── the parties ──────────────────────────────────────────────────────────────────────────────────────


def _horarium(dialect: str, count: int, seconds: int, command: str) -> Watched:
    now = SystemClock().now()
    like = pattern(HERD, now=now)
    with database(dialect) as opened:
        # From tomorrow on, evenly over a day: the index has as many entries as a real one.
        seed_each(opened, count, lambda n: (like, now + DAY + n * DAY // count), now=now, title=f"{dialect}: seeding")
        rest(opened)
        with service(opened, command) as living:
            return _watch(opened, living, seconds, f"{dialect}: horarium {command}")


def _apscheduler(dialect: str, seconds: int) -> Watched:
    with database(dialect) as opened, tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        _seed_peer(opened, f"{dialect}: seeding for APScheduler")
        rest(opened)
        url = make_url(opened.url)
        if dialect == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        words = ["-c", _PEER, url.render_as_string(hide_password=False)]
        started = time.perf_counter()
        with talking(words, folder) as child:
            living = Living(child.pid, time.perf_counter() - started)
            return _watch(opened, living, seconds, f"{dialect}: APScheduler")


def _seed_peer(opened: Database, title: str) -> None:
    """One job made by the library itself, then copies under other names: added one by one they would take minutes."""
    store = SQLAlchemyJobStore(engine=opened.engine)
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
    scheduler.start(paused=True)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    job = scheduler.add_job("time:sleep", "interval", days=1, args=[0], next_run_time=tomorrow)
    state = job.__getstate__()
    job.remove()
    scheduler.shutdown()
    with progress() as bars:
        bar = bars.add_task(title, total=PEER_JOBS)
        for start in range(0, PEER_JOBS, _PEER_CHUNK):
            rows = [
                {
                    "id": str(number),
                    "next_run_time": tomorrow.timestamp() + number,
                    "job_state": pickle.dumps({**state, "id": str(number)}),
                }
                for number in range(start, start + _PEER_CHUNK)
            ]
            opened.write(partial(_copies, table=store.jobs_t, rows=rows))
            bars.advance(bar, _PEER_CHUNK)


def _copies(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    connection.execute(table.insert(), rows)


if __name__ == "__main__":
    main()
