"""Does a long past make anything slower? The same questions to a new database and to one with millions of runs.

Both are PostgreSQL with shipped settings and have the same schedules. The **new** one has a page of runs for each
schedule that is asked about, so that its answers are as long, and nothing else. The **old** one has twelve weeks of
runs of all of them, as the service would have left them (`past.py`): old runs in the archive, weeks in tables of their
own. The two take turns, question by question, inside one process, without HTTP around it.

    python benchmarks/flat.py [--runs 2000000] [--schedules 2000] [--times 40] [--folder PLACE]

With `--folder` the old database stays there, and is used again if it is there already. A long past takes space: the
program says how much, and does not begin where less would be left than 15 GB.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ground import console, database, load, postgres_in, rest
from inside import CALLER, Inside, Question, compared, inside, measured, milliseconds
from past import SPAN, Past, fill, read_past, step_for
from past_forms import QUEUE
from rich.table import Table
from sqlalchemy import Connection, text

from horarium.core.document.states import RunState
from horarium.features.forecast import service as forecast_service
from horarium.features.history import service as history_service
from horarium.features.runs import events
from horarium.features.runs import service as run_service
from horarium.features.runs.reports import Claimed
from horarium.features.runs.rows import RunFilter
from horarium.features.schedules import lists
from horarium.instant import DAY, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.ids import id_text

ASKED = 20
NEW = 120
"""Runs of each schedule that is asked about, in the new database: more than two pages."""

PAGE = 50
TICK = 500
_WARM_UP = 3
# So many wait on the queue before the first is claimed.
_CLAIMS = 500
# Of heap, indexes and log, measured; and what a machine is to keep.
BYTES_A_RUN = 2_300
KEPT_FREE = 15 * 10**9


def main() -> None:
    arguments = _arguments()
    with ExitStack() as stack:
        old = stack.enter_context(_old(arguments))
        past = old.read(read_past)
        new = stack.enter_context(database("postgresql"))
        fill(new, replace(past, runs=NEW, asked=ASKED))
        parties = [stack.enter_context(_party(opened)) for opened in (new, old)]
        before = load()
        new_took, old_took = measured(parties, arguments.times, title="asking", warm_up=_WARM_UP)
        title = f"PostgreSQL, {past.total:,} runs in {SPAN // DAY} days, load {before} → {load()}"
        console.print(compared(title, ("new", new_took), ("old", old_took)))
        console.print(_sizes(old, past))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2_000_000)
    parser.add_argument("--schedules", type=int, default=2_000, help=f"at least {TICK}, at most 4096")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    return parser.parse_args()


# ── the old database ─────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _old(arguments: argparse.Namespace) -> Iterator[Database]:
    if arguments.folder is not None and (arguments.folder / "postgres" / "PG_VERSION").exists():
        with postgres_in(arguments.folder, "stop") as opened:
            opened.write(_forget_open_runs)
            rest(opened)
            yield opened
        return
    each = max(NEW, arguments.runs // arguments.schedules)
    need = each * arguments.schedules * BYTES_A_RUN
    where = arguments.folder or Path(tempfile.gettempdir())
    where.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(where).free
    console.print(f"{each * arguments.schedules:,} runs need about {need / 1e9:.1f} GB; {free / 1e9:.0f} GB are free")
    if free - need < KEPT_FREE:
        sys.exit(f"less than {KEPT_FREE / 1e9:.0f} GB would be left")
    step = step_for(each)
    past = Past(SystemClock().now() // step * step, step, each, arguments.schedules, arguments.schedules)
    with database("postgresql") if arguments.folder is None else postgres_in(arguments.folder, "stop") as opened:
        fill(opened, past)
        yield opened


def _forget_open_runs(connection: Connection) -> None:
    """Those that an earlier measurement has left, and that the new database would not have."""
    connection.execute(text("DELETE FROM runs WHERE finished_at IS NULL"))
    connection.execute(text("UPDATE positions SET active = 0 WHERE active <> 0"))


# ── the questions ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Known:
    """Of each schedule that is asked about: its name, and a run in the middle of its past."""

    names: list[str]
    runs: list[str]
    nominals: list[Instant]


@contextmanager
def _party(opened: Database) -> Iterator[Mapping[str, Question]]:
    past = opened.read(read_past)
    with inside(opened.url, past.until + past.step // 2) as service:
        known = opened.read(partial(_known, past))
        asked = {name: partial(_timed, ask) for name, ask in _reads(service, known, past).items()}
        yield {**_writes(service), **asked}


def _known(past: Past, connection: Connection) -> _Known:
    middle = past.nominal(max(1, past.runs // 2))
    rows = connection.execute(
        text(
            "SELECT p.schedule_id, h.run_id FROM bench_asked JOIN positions p USING (schedule_uid) "
            "JOIN history h ON h.schedule_uid = p.schedule_uid AND h.nominal = :nominal AND h.namespace = p.namespace "
            "ORDER BY p.schedule_uid LIMIT :asked"
        ),
        {"nominal": middle, "asked": ASKED},
    ).all()
    assert len(rows) == ASKED
    return _Known([name for name, _ in rows], [id_text(run) for _, run in rows], [middle] * ASKED)


def _timed(ask: Callable[[int], object], number: int) -> float:
    try:
        return milliseconds(partial(ask, number % ASKED))
    except StoreUnavailable:  # it took longer than a statement may
        return math.inf


def _reads(service: Inside, known: _Known, past: Past) -> dict[str, Callable[[int], object]]:
    """Each gets the number of a schedule."""
    at, names = service.resources, known.names
    failed, late = (RunFilter(states=frozenset({state})) for state in (RunState.FAILED, RunState.TIMED_OUT))
    list_runs = partial(run_service.list_runs, at, CALLER, page_size=PAGE)
    return {
        "describe a schedule": lambda n: lists.describe(at, CALLER, names[n]),
        "list runs": lambda n: list_runs(),
        "list runs, from the middle of the past": lambda n: list_runs(next_page_token=known.runs[n]),
        "list runs that failed (2 %)": lambda n: list_runs(failed),
        "list runs that timed out (none)": lambda n: list_runs(late),
        "list runs of a schedule": lambda n: list_runs(schedule_id=names[n]),
        "… from the middle": lambda n: list_runs(schedule_id=names[n], next_page_token=known.runs[n]),
        "… that failed": lambda n: list_runs(failed, schedule_id=names[n]),
        "… that timed out (none)": lambda n: list_runs(late, schedule_id=names[n]),
        "a run, from the middle": lambda n: run_service.get(at, CALLER, known.runs[n]),
        "its events": lambda n: events.events(at, CALLER, known.runs[n]),
        "history, first page": lambda n: history_service.read_history(at, CALLER, names[n], limit=PAGE),
        "history, from the middle": lambda n: history_service.read_history(
            at, CALLER, names[n], limit=PAGE, after_sequence=past.runs // 2
        ),
        "feed, first page": lambda n: history_service.feed_rows(at, CALLER, limit=PAGE),
        "explain an occurrence of the middle": lambda n: forecast_service.explain(
            at, CALLER, names[n], known.nominals[n]
        ),
        "explain the next one": lambda n: forecast_service.explain(
            at, CALLER, names[n], past.until + 1_000 * past.step
        ),
        "preview": lambda n: forecast_service.preview(at, CALLER, names[n]),
    }


def _writes(service: Inside) -> dict[str, Question]:
    """The runs that a tick bears are claimed and reported by the questions that follow it."""
    claimed: list[Claimed] = []

    def tick(number: int) -> float:
        service.clock.set(max(service.clock.now(), service.database.read(_next_due)))
        service.service.engine.ticker.beat()  # a transaction of its own, every few seconds; not part of a tick
        births: list[int] = []
        took = milliseconds(lambda: births.append(service.decide()))
        assert births == [TICK], births
        return took

    def claim(number: int) -> float:
        if number == 0:
            service.hand_over(at_least=_CLAIMS)
        return milliseconds(lambda: claimed.extend(service.claim(QUEUE)))

    def report(number: int) -> float:
        if not claimed:
            claimed.extend(service.claim(QUEUE))
        return milliseconds(partial(service.report, claimed.pop(), result={"rows": number}))

    return {f"tick of {TICK} due": tick, "claim of one run": claim, "report of its end": report}


def _next_due(connection: Connection) -> Instant:
    found: Instant = connection.execute(text("SELECT min(next_due) FROM positions")).scalar_one()
    return found


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


_SIZES = """
SELECT coalesce(inhparent::regclass::text, relname), count(*), sum(pg_table_size(pg_class.oid)),
  sum(pg_indexes_size(pg_class.oid)), sum(greatest(reltuples, 0))
FROM pg_class LEFT JOIN pg_inherits ON inhrelid = pg_class.oid
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
GROUP BY 1 ORDER BY 3 DESC LIMIT 4
"""


def _sizes(old: Database, past: Past) -> Table:
    table = Table(title="what the past takes")
    for heading in ("table", "parts", "rows", "GB", "of that indexes", "bytes a run"):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    total = 0
    for name, parts, heap, indexes, rows in old.read(lambda connection: connection.execute(text(_SIZES)).all()):
        total += int(heap + indexes)
        size = f"{float(heap + indexes) / 1e9:.2f}"
        each = f"{float(heap + indexes) / past.total:,.0f}"
        table.add_row(name, str(parts), f"{rows:,.0f}", size, f"{float(indexes) / 1e9:.2f}", each)
    table.add_row("together", "", "", f"{total / 1e9:.2f}", "", f"{total / past.total:,.0f}")
    return table


if __name__ == "__main__":
    main()
