"""A past for a database: runs by the million with their history and events, as a service would have left them.

What ended more than a week ago lies in the archive, the rest in `runs`; each week has its tables. Rows are printed from
those of real runs (`past_forms.py`) and come in by COPY, and indexes are built when they are there. PostgreSQL only.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial

from ground import HERD, pattern, progress, rest, seed_each
from past_forms import NAMES, TABLES, Form, born, columns, make_forms
from sqlalchemy import Connection, text

from horarium.instant import DAY, MINUTE, Instant
from horarium.platform.database import Database, open_database, partition_upkeep, partitions
from horarium.platform.database.partitions import ARCHIVE, WEEK, Partition, Week, literal, week_of
from horarium.platform.ids import id_text

SPAN = 84 * DAY
"""How far it reaches: twelve weeks, less than runs are kept."""

# As it is shipped.
_ARCHIVED_AFTER = 7 * DAY
# One in so many ends badly.
_FAILED = 50
_AT_ONCE = 100_000
# While rows come in nobody waits for the disk.
_OFF = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum")
_LOG = "max_wal_size"

_ASKED = "SELECT schedule_uid, schedule_id FROM bench_asked JOIN positions USING (schedule_uid) ORDER BY schedule_uid"
_FIRED = """
UPDATE positions SET next_sequence = :runs + 1, runs_born = :runs, fires_count = :runs
WHERE schedule_uid IN (SELECT schedule_uid FROM bench_asked)
"""
_INDEXES = """
SELECT index.relname, pg_get_indexdef(indexrelid), conname, pg_get_constraintdef(pg_constraint.oid)
FROM pg_index JOIN pg_class index ON index.oid = indexrelid
LEFT JOIN pg_constraint ON conindid = indexrelid AND contype = 'p'
WHERE indrelid = %s::regclass
"""


@dataclass(frozen=True, slots=True)
class Past:
    """Of so many `schedules` those that are `asked` about have `runs` each, one every `step`, the last at `until`."""

    until: Instant
    step: Instant
    runs: int
    schedules: int
    asked: int

    @property
    def total(self) -> int:
        return self.runs * self.asked

    def nominal(self, number: int) -> Instant:
        """Of the run with this number, from 1."""
        return self.until - (self.runs - number) * self.step

    def numbers(self, week: Week) -> range:
        """Of the runs that were born in it."""
        newest = born(self.until)
        first = self.runs - (newest - week.start) // self.step
        last = self.runs - (newest - week.end) // self.step - 1
        return range(max(1, first), min(self.runs, last) + 1)


def step_for(runs: int) -> Instant:
    """So that as many of a schedule fit in, on whole minutes."""
    return max(1, SPAN // MINUTE // runs) * MINUTE


def read_past(connection: Connection) -> Past:
    """Of a database that was filled, now or some days ago."""
    names = ", ".join(each.name for each in fields(Past))
    return Past(*connection.execute(text(f"SELECT {names} FROM bench_past")).one())


def fill(opened: Database, past: Past) -> None:
    spec = {name: value for name, value in HERD.items() if name != "cron_expr"}
    spec |= {"intervals": [{"every": f"PT{past.step // MINUTE}M"}], "overlap_policy": "allow_all"}
    like, next_due = pattern(spec, now=past.until), past.until + past.step
    for prefix, count in (("herd", past.schedules), *((name, 1) for name in NAMES)):
        title = f"{count:,} schedules"
        seed_each(opened, count, lambda _: (like, next_due), now=past.until - SPAN, title=title, prefix=prefix)
    opened.write(partial(_keep, past))
    forms = make_forms(opened, next_due)
    with _without_waiting(opened):
        _load(opened, past, forms)
    opened.write(partial(_move_positions, past))
    rest(opened)


def _keep(past: Past, connection: Connection) -> None:
    """Which schedules are asked about, and what was made."""
    some = "SELECT schedule_uid FROM positions WHERE schedule_id LIKE 'herd-%' ORDER BY schedule_uid LIMIT :asked"
    connection.execute(text(f"CREATE TABLE bench_asked AS {some}"), {"asked": past.asked})
    values = {each.name: getattr(past, each.name) for each in fields(Past)}
    made = ", ".join(f"CAST(:{name} AS bigint) AS {name}" for name in values)
    connection.execute(text(f"CREATE TABLE bench_past AS SELECT {made}"), values)


def _move_positions(past: Past, connection: Connection) -> None:
    """As if all had been decided until now. The forms are due no more."""
    connection.execute(text("UPDATE positions SET decided_until = :until"), {"until": past.until})
    connection.execute(text(_FIRED), {"runs": past.runs})
    over = text("UPDATE positions SET next_due = NULL WHERE schedule_id = ANY(:names)")
    connection.execute(over, {"names": [f"{name}-0" for name in NAMES]})


# ── loading ──────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _without_waiting(opened: Database) -> Iterator[None]:
    """Whoever is measured later has what is shipped."""
    larger = f"ALTER SYSTEM SET {_LOG} = '4GB'"
    _configure(opened, [*(f"ALTER SYSTEM SET {name} = off" for name in _OFF), larger])
    yield
    _configure(opened, [f"ALTER SYSTEM RESET {name}" for name in (*_OFF, _LOG)])


def _configure(opened: Database, statements: Sequence[str]) -> None:
    with opened.engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.autocommit = True  # ALTER SYSTEM runs in no transaction
        for statement in (*statements, "SELECT pg_reload_conf()"):
            raw.execute(statement)
        raw.autocommit = False


def _load(opened: Database, past: Past, forms: Sequence[Form]) -> None:
    """By as many processes as there are processors, a week at a time."""
    last = week_of(past.until)
    weeks = [Week(start) for start in range(week_of(past.nominal(1)).start, last.end, WEEK)]
    _make_weeks(opened, [*weeks, *partitions.weeks_wanted(last.end)])
    own = {f"{table}_{week.name}" for week in weeks for table in (*TABLES, ARCHIVE)}
    parts = [part for part in opened.read(partition_upkeep.there) if part.name in own]
    made = opened.write(partial(_strip, parts))
    asked = opened.read(lambda connection: connection.execute(text(_ASKED)).all())
    names = tuple((uid.hex(), name) for uid, name in asked)
    with progress() as bars, ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        bar = bars.add_task(f"{past.total:,} runs", total=past.total)
        do = partial(_do, opened.url, past, tuple(forms), names, made)
        for done in as_completed(pool.submit(do, some) for some in _shares(past, weeks)):
            bars.advance(bar, done.result())
    opened.write(partial(_attach, parts))


def _shares(past: Past, weeks: Sequence[Week]) -> list[list[Week]]:
    """Those with runs that are not in the archive go together, and first: all of these are in one table."""
    young = [week for week in weeks if born(past.until - _ARCHIVED_AFTER) < week.end]
    return [young, *([week] for week in weeks if week not in young)]


def _do(
    url: str,
    past: Past,
    forms: Sequence[Form],
    names: Sequence[tuple[str, str]],
    made: Mapping[str, Sequence[str]],
    weeks: Sequence[Week],
) -> int:
    """One transaction in a process of its own; how many runs were written."""
    opened = open_database(url)
    own = [name for name in made for week in weeks if name.endswith(week.name)]
    with opened.engine.connect() as connection:
        connection.exec_driver_sql("SET maintenance_work_mem = '512MB'")
        tables = [*own, "runs"] if born(past.until - _ARCHIVED_AFTER) < weeks[-1].end else own
        # Rows of a table that this transaction has emptied may come in as if a vacuum had been there.
        connection.exec_driver_sql(f"TRUNCATE {', '.join(tables)}")
        printer = _Printer(connection, past, forms, names)
        births = sum(printer.print(week) for week in weeks)
        for statement in (statement for table in tables for statement in made[table]):
            connection.exec_driver_sql(statement.replace("%", "%%"))
        connection.commit()
    opened.close()
    return births


def _make_weeks(opened: Database, weeks: Sequence[Week]) -> None:
    there = opened.read(partition_upkeep.there)
    for table in partitions.TABLES:
        for new in partitions.missing_of(table, there, weeks):
            assert partition_upkeep.make(opened, new) is partition_upkeep.Outcome.DONE


class _Printer:
    """Writes the rows of a week in the order of their birth."""

    def __init__(
        self, connection: Connection, past: Past, forms: Sequence[Form], schedules: Sequence[tuple[str, str]]
    ) -> None:
        self._connection, self._past, self._forms, self._schedules = connection, past, forms, schedules
        self._columns = {table: columns(connection, table) for table in TABLES}
        self._chance = random.Random()

    def print(self, week: Week) -> int:
        pages: dict[str, list[str]] = {}
        numbers = self._past.numbers(week)
        for number in numbers:
            self._births(number, week, pages)
            if sum(map(len, pages.values())) >= _AT_ONCE:
                self._copy(pages)
                pages = {}
        self._copy(pages)
        return len(numbers) * len(self._schedules)

    def _births(self, number: int, week: Week, pages: dict[str, list[str]]) -> None:
        """One run of each schedule, all at one instant, as those of a batch are."""
        nominal = self._past.nominal(number)
        good, bad = (form.at(nominal, number) for form in self._forms)
        into = [(table, pages.setdefault(place, [])) for table, place in self._places(nominal, week).items()]
        begin = f"{born(nominal) // 1_000:012x}7"
        for place, (uid, name) in enumerate(self._schedules):
            run = f"{begin}{place:03x}8{self._chance.getrandbits(60):015x}"
            names = {"run": run, "text": id_text(bytes.fromhex(run)), "uid": uid, "name": name}
            lines = good if (number + place) % _FAILED else bad
            for table, page in into:
                page.append(lines[table] % names)

    def _places(self, nominal: Instant, week: Week) -> Mapping[str, str]:
        """Where the rows of each table go."""
        is_old = nominal < self._past.until - _ARCHIVED_AFTER
        names = {table: f"{table}_{week.name}" for table in TABLES}
        names["runs"] = f"{ARCHIVE}_{week.name}" if is_old else "runs"
        return {table: f"{name} ({self._columns[table]})" for table, name in names.items()}

    def _copy(self, pages: Mapping[str, Sequence[str]]) -> None:
        raw = self._connection.connection.dbapi_connection
        assert raw is not None
        for place, page in pages.items():
            with raw.cursor().copy(f"COPY {place} FROM STDIN (FREEZE)") as copy:
                copy.write("".join(page).encode())


def _strip(parts: Sequence[Partition], connection: Connection) -> dict[str, list[str]]:
    """Weeks become tables of their own without indexes, which `runs` loses too; how they are made again, by table."""
    for part in parts:
        connection.exec_driver_sql(f"ALTER TABLE {part.table} DETACH PARTITION {part.name}")
    return {name: _drop_indexes(connection, name) for name in (*(part.name for part in parts), "runs")}


def _attach(parts: Sequence[Partition], connection: Connection) -> None:
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    for part in parts:
        low, high = (literal(bound, otherwise="") for bound in (part.low, part.high))
        within = f"FOR VALUES FROM ({low}) TO ({high})"
        connection.exec_driver_sql(f"ALTER TABLE {part.table} ATTACH PARTITION {part.name} {within}")


def _drop_indexes(connection: Connection, table: str) -> list[str]:
    """How they are made again."""
    made = []
    for name, definition, key, key_definition in connection.exec_driver_sql(_INDEXES, (table,)).all():
        if key is None:
            connection.exec_driver_sql(f"DROP INDEX {name}")
            made.append(definition)
        else:
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {key}")
            made.append(f"ALTER TABLE {table} ADD CONSTRAINT {key} {key_definition}")
    return made
