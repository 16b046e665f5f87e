"""What one fire costs PostgreSQL: statements, transactions, rows and bytes of its log, step by step.

500 runs for a pull queue are decided, handed over, claimed and reported, as the service does it: a batch at a time,
and then once more one run after the other, as it is when few are due. Statements are counted in the server's own log.
The bytes are those of the write-ahead log, without the whole pages that it takes after a checkpoint.

    python benchmarks/fire.py [--runs 500]
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ground import HERD, console, database, load, pattern, rest, seed_each
from inside import CALLER, Inside, inside
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.features.runs.model import MAX_REPORTS
from horarium.features.runs.report_batches import Carrier, report_many
from horarium.features.runs.reports import Claimed
from horarium.instant import MINUTE
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.ids import id_text

QUEUE = HERD["action"]["queue"]
_STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]*):\s+(?:/\*.*?\*/ *)?(\w+)")
_ENDS = frozenset({"COMMIT", "ROLLBACK"})
_FRAME = frozenset({"BEGIN", "DEALLOCATE", "SHOW", *_ENDS})
_COUNTED = """
SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables WHERE relname NOT LIKE 'bench%'
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the server has counted so far."""

    inserted: int
    updated: int
    deleted: int
    log_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    step: str
    runs: int
    transactions: int
    statements: int
    inserted: int
    updated: int
    deleted: int
    log_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    with database("postgresql") as opened:
        now = SystemClock().now() // MINUTE * MINUTE
        like = pattern({**HERD, "overlap_policy": "allow_all"}, now=now)
        seed_each(opened, runs, lambda _: (like, now), now=now - MINUTE, title=f"{runs} schedules")
        rest(opened)
        with inside(opened.url, now) as service:
            _configure(opened, "ALTER SYSTEM SET log_statement = 'all'")
            _steps(service, runs)  # what only the first of everything pays for
            costs = _steps(service, runs)
            for _ in range(2):
                alone = _one_by_one(service)
            console.print(_told(f"{runs} at a time, each figure for one run", costs))
            console.print(_told("one run alone", alone))


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────


def _steps(service: Inside, runs: int) -> list[Cost]:
    claimed: list[Claimed] = []

    def claim() -> None:
        while found := service.claim(QUEUE, 100):
            claimed.extend(found)

    def report() -> None:
        for begin in range(0, runs, MAX_REPORTS):
            said = [_said(each) for each in claimed[begin : begin + MAX_REPORTS]]
            report_many(service.resources, Carrier(CALLER), said)

    steps: dict[str, Callable[[], object]] = {
        "decide": lambda: [service.decide() for _ in range(-(-runs // 500))],
        "hand over": service.hand_over,
        "claim, 100 at a time": claim,
        f"report, {MAX_REPORTS} at a time": report,
    }
    costs = [_cost(service.database, name, runs, step) for name, step in steps.items()]
    assert len(claimed) == runs, len(claimed)
    service.clock.advance(60)
    return costs


def _one_by_one(service: Inside) -> list[Cost]:
    """Of one schedule, while the others are not due."""
    only = "UPDATE positions SET next_due = CASE WHEN schedule_id = 'herd-0' THEN CAST(:now AS bigint) END"
    service.clock.advance(60)
    service.database.write(lambda connection: connection.execute(text(only), {"now": service.clock.now()}))
    claimed: list[Claimed] = []
    steps: dict[str, Callable[[], object]] = {
        "decide": service.decide,
        "hand over": service.hand_over,
        "claim": lambda: claimed.extend(service.claim(QUEUE)),
        "report": lambda: service.report(claimed[0], result={"rows": 12}),
    }
    return [_cost(service.database, name, 1, step) for name, step in steps.items()]


def _said(claimed: Claimed) -> dict[str, object]:
    run_id = id_text(claimed.run.row.run_id)
    return {"run_id": run_id, "state": "succeeded", "lease_epoch": claimed.lease_epoch, "result": {"rows": 12}}


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────


def _cost(opened: Database, step: str, runs: int, work: Callable[[], object]) -> Cost:
    log = _log(opened)
    before = _seen(opened)
    begin = _size(log)
    work()
    words = _words(log, begin, _size(log))
    after = _seen(opened)
    return Cost(
        step,
        runs,
        sum(word in _ENDS for word in words),
        sum(word not in _FRAME for word in words),
        after.inserted - before.inserted,
        after.updated - before.updated,
        after.deleted - before.deleted,
        after.log_bytes - before.log_bytes,
    )


def _seen(opened: Database) -> Seen:
    opened.write(lambda connection: connection.exec_driver_sql("SELECT pg_stat_force_next_flush()"))
    counted = opened.read(lambda connection: connection.execute(text(_COUNTED)).one())
    place = opened.read(partial(_one, statement="SELECT pg_current_wal_insert_lsn() - '0/0'"))
    inserted, updated, deleted = (int(each or 0) for each in counted)
    return Seen(inserted, updated, deleted, int(str(place)))


def _size(log: Path) -> int:
    """When what was said is in it: a moment later."""
    time.sleep(0.2)
    return log.stat().st_size


def _words(log: Path, begin: int, end: int) -> list[str]:
    """With which each statement begins that was written to the log in between."""
    with log.open("rb") as file:
        file.seek(begin)
        said = file.read(end - begin).decode("utf-8", "replace")
    return [word.upper() for word in _STATEMENT.findall(said)]


def _log(opened: Database) -> Path:
    return Path(str(opened.read(partial(_one, statement="SHOW data_directory")))) / "log"


def _one(connection: Connection, statement: str) -> object:
    return connection.exec_driver_sql(statement).scalar_one()


def _configure(opened: Database, statement: str) -> None:
    with opened.engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.autocommit = True  # ALTER SYSTEM runs in no transaction
        raw.execute(statement)
        raw.execute("SELECT pg_reload_conf()")
        raw.autocommit = False
    time.sleep(0.5)


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


def _told(title: str, costs: Sequence[Cost]) -> Table:
    table = Table(title=f"{title}; load {load()}")
    for heading in ("step", "commits", "statements", "inserted", "updated", "deleted", "log, bytes"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for cost in costs:
        each = [cost.transactions, cost.statements, cost.inserted, cost.updated, cost.deleted]
        table.add_row(
            cost.step, *(f"{number / cost.runs:.3g}" for number in each), f"{cost.log_bytes / cost.runs:,.0f}"
        )
    total = [sum(getattr(cost, name) / cost.runs for cost in costs) for name in Cost.__slots__[2:]]
    table.add_row("together", *(f"{number:.3g}" for number in total[:-1]), f"{total[-1]:,.0f}")
    return table


if __name__ == "__main__":
    main()
