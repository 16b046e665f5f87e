"""How fast a herd is decided: N schedules due at one instant, until each has its run and its event on disk.

Three parties take turns in one run, on the same databases with full durability:

- **horarium**: the real ticker (claim, facts, plan with guards and overlap, record) with as many hands as the
  engine gives it on that database, in one process; on PostgreSQL also with one hand, and as two processes;
- **bare loop**: what a program without any thought could do with the same driver: lock the same rows,
  write the very same rows of positions, runs and history in the same batches;
- **APScheduler 3.11** as its manual sets it up: its SQLAlchemy job store opened by a URL, its own thread pool;
  its jobs have the same cron expression in the same zone, a grace that loses none of them, and do nothing.

    python benchmarks/herd.py [--schedules 100000] [--peer-jobs 10000] [--dialect postgresql --dialect sqlite]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.synchronize import Barrier

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from ground import HERD, add_json_option, console, database, load, peer_url, progress, seed, write_figures
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.engine.loop import settle_in
from horarium.engine.ticker import TICK_THREADS, ParallelTicker, Ticker, TickerOptions
from horarium.features.schedules import due_rows
from horarium.features.schedules.decision_rows import ScheduleRecord, write_records
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import MINUTE, SECOND, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, Dialect, open_database

BATCH = 500
PROCESSES = 2


def main() -> None:
    arguments = _arguments()
    table = Table(title=f"herd of {arguments.schedules:,}, batches of {BATCH}, load average before {load()}")
    for heading in ("database", "party", "fires/s", "of the bare loop", "times APScheduler"):
        table.add_column(heading, justify="left" if heading in ("database", "party") else "right")
    figures: dict[str, float] = {}
    for dialect in arguments.dialect or ["postgresql", "sqlite"]:
        rates = _rates(dialect, arguments)
        figures |= {f"{dialect} · {party} · fires/s": rate for party, rate in rates.items()}
        for party, rate in rates.items():
            table.add_row(
                dialect,
                party,
                f"{rate:,.0f}",
                f"{rate / rates['bare loop']:.2f}",
                f"{rate / rates['APScheduler']:.1f}",
            )
    console.print(table)
    write_figures(arguments.json, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--peer-jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="the median of so many rounds is shown")
    parser.add_argument("--dialect", action="append", choices=["postgresql", "sqlite"])
    add_json_option(parser)
    return parser.parse_args()


def _rates(dialect: Dialect, arguments: argparse.Namespace) -> dict[str, float]:
    count, hands = arguments.schedules, TICK_THREADS[dialect]
    parties: dict[str, Callable[[], float]] = {"horarium": partial(_horarium, dialect, count, hands)}
    if hands > 1:
        parties["… one hand"] = partial(_horarium, dialect, count, 1)
        parties[f"… {PROCESSES} processes"] = partial(_processes, dialect, count)
    parties["bare loop"] = partial(_bare, dialect, count)
    rates = {party: _median(measure, arguments.rounds) for party, measure in parties.items()}
    return {**rates, "APScheduler": _apscheduler(dialect, arguments.peer_jobs)}


def _median(measure: Callable[[], float], rounds: int) -> float:
    return statistics.median(measure() for _ in range(rounds))


def _this_minute(clock: SystemClock) -> Instant:
    """Not more than a minute ago, so the herd is on time and takes the ordinary path."""
    return clock.now() // MINUTE * MINUTE


# ── horarium ─────────────────────────────────────────────────────────────────────────────────────────


def _horarium(dialect: Dialect, count: int, hands: int) -> float:
    clock = _Frozen()
    settle_in()
    with database(dialect) as opened:
        seed(opened, count, next_due=clock.now(), now=clock.now() - SECOND, title=f"{dialect}: seeding for horarium")
        ticker = Ticker(opened, clock, "bench", TickerOptions(batch=BATCH))
        ticker.beat()
        with progress() as bars:
            bar = bars.add_task(f"{dialect}: horarium decides", total=count)
            started = time.perf_counter()
            asyncio.run(_tick(ParallelTicker(ticker, hands), lambda decided: bars.advance(bar, decided)))
            seconds = time.perf_counter() - started
        _check(opened, count)
    return count / seconds


class _Frozen(SystemClock):
    """Time stands still on the minute while the herd is decided, so that nobody is due twice."""

    def __init__(self, now: Instant | None = None) -> None:
        self._now = _this_minute(SystemClock()) if now is None else now

    def now(self) -> Instant:
        return self._now


async def _tick(hands: ParallelTicker, advance: Callable[[int], None]) -> None:
    """As the engine does, until nothing is due."""
    while decided := sum(tick.claimed for share in await hands.step() for tick in share.ticks):
        advance(decided)


def _check(opened: Database, count: int) -> None:
    """A figure for work that was not done is worth nothing."""

    def counted(connection: Connection) -> tuple[int, int, int]:
        runs = connection.execute(text("SELECT count(*) FROM runs")).scalar_one()
        events = connection.execute(text("SELECT count(*) FROM history WHERE sequence IS NOT NULL")).scalar_one()
        left = connection.execute(text("SELECT count(*) FROM positions WHERE fires_count <> 1")).scalar_one()
        return runs, events, left

    assert opened.read(counted) == (count, count, 0), "every schedule must have one run and one event"


def _processes(dialect: Dialect, count: int) -> float:
    """Several processes share the herd, as those of a team do; the clock runs when all have started."""
    now, spawn = _Frozen().now(), multiprocessing.get_context("spawn")
    with database(dialect) as opened:
        seed(opened, count, next_due=now, now=now - SECOND, title=f"{dialect}: seeding for {PROCESSES} processes")
        ready = spawn.Barrier(PROCESSES + 1)
        crowd = [
            spawn.Process(target=_process, args=(opened.url, now, ready, TICK_THREADS[dialect]))
            for _ in range(PROCESSES)
        ]
        for each in crowd:
            each.start()
        ready.wait(60)
        started = time.perf_counter()
        for each in crowd:
            each.join()
        seconds = time.perf_counter() - started
        _check(opened, count)
    return count / seconds


def _process(url: str, now: Instant, ready: Barrier, hands: int) -> None:
    settle_in()
    opened = open_database(url)
    ticker = Ticker(opened, _Frozen(now), f"bench-{os.getpid()}", TickerOptions(batch=BATCH))
    ticker.beat()
    ready.wait(60)
    asyncio.run(_tick(ParallelTicker(ticker, hands), lambda decided: None))
    opened.close()


# ── the bare loop ────────────────────────────────────────────────────────────────────────────────────


def _bare(dialect: Dialect, count: int) -> float:
    """The rows are made beforehand by the real planner; the clock runs for locking and writing alone."""
    clock = _Frozen()
    now = clock.now()
    with database(dialect) as opened:
        seed(opened, count, next_due=now, now=now - SECOND, title=f"{dialect}: seeding for the bare loop")
        records = _records(opened, count, now)
        with progress() as bars:
            bar = bars.add_task(f"{dialect}: bare loop writes", total=count)
            started = time.perf_counter()
            done = 0
            while done < count:
                done += opened.write(lambda connection: _write(connection, records, now))
                bars.update(bar, completed=done)
            seconds = time.perf_counter() - started
        _check(opened, count)
    return count / seconds


def _records(opened: Database, count: int, now: Instant) -> dict[bytes, ScheduleRecord]:
    """What the planner would write, computed without writing it."""
    from horarium.core.decision.facts import NO_FACTS, SharedFacts
    from horarium.core.decision.record import ScheduleSubject, record_decisions
    from horarium.core.decision.tick import PlanTime, plan_tick
    from horarium.core.document.states import Origin
    from horarium.features.runs.end_rows import new_ids

    known, ids = Plannings(), new_ids()
    claims = opened.write(lambda connection: due_rows.claim(connection, known, now, count))
    records = {}
    for claim in claims:
        asked = claim.due()
        plan = plan_tick(asked, NO_FACTS, SharedFacts(), PlanTime(now, now))
        named = ScheduleSubject(claim.schedule_id, claim.revision, asked.planning)
        entry = record_decisions(
            named, claim.counts, plan.decisions, plan.position, now=now, origin=Origin.SCHEDULED, ids=ids
        )
        page = ScheduleRecord(claim.schedule_uid, claim.namespace, claim.revision, asked.planning, entry)
        records[claim.schedule_uid] = page
    return records


def _write(connection: Connection, records: dict[bytes, ScheduleRecord], now: Instant) -> int:
    lock = "" if connection.dialect.name == "sqlite" else " FOR UPDATE SKIP LOCKED"
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    rows = connection.exec_driver_sql(
        "SELECT schedule_uid FROM positions WHERE status = 'active' AND next_due <= "
        f"{mark} ORDER BY next_due LIMIT {BATCH}{lock}",
        (now,),
    ).fetchall()
    write_records(connection, [records[row[0]] for row in rows], now=now)
    return len(rows)


# ── APScheduler ──────────────────────────────────────────────────────────────────────────────────────


_fired = 0


def job() -> None:
    """What every job of the peer does: nothing but be counted."""
    global _fired
    _fired += 1


def _apscheduler(dialect: Dialect, count: int) -> float:
    with database(dialect) as opened:
        scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=peer_url(opened))},
            job_defaults={"misfire_grace_time": 3_600, "coalesce": True, "max_instances": 1},
            timezone=UTC,
        )
        global _fired
        _fired = 0
        start = datetime.now(UTC)
        scheduler.start(paused=True)
        with progress() as bars:
            bar = bars.add_task(f"{dialect}: adding APScheduler jobs", total=count)
            for number in range(count):
                trigger = CronTrigger.from_crontab(HERD["cron_expr"], timezone=HERD["timezone"])
                scheduler.add_job(job, trigger, id=str(number), next_run_time=start - timedelta(seconds=1))
                bars.advance(bar)
            bar = bars.add_task(f"{dialect}: APScheduler fires", total=count)
            started = time.perf_counter()
            scheduler.resume()
            while _fired < count:
                time.sleep(0.02)
                bars.update(bar, completed=_fired)
            seconds = time.perf_counter() - started
        scheduler.shutdown(wait=False)
    return count / seconds


if __name__ == "__main__":
    main()
