"""How credentials that an earlier version stored in plain are moved into secrets: once, a few rows a transaction.

They stand in revisions and in definitions of runs, and in what was told of them: history, and letters that could not be
delivered. Every row is rewritten with names in their place. Values are kept of what can still be launched; of several
revisions of a schedule the newest has its way. How far it has come stands in the database, so that it goes on
after a crash, and whoever starts at the same time takes the next rows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.clock import Clock
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.schedule.credentials import hosts_of, moved, of_run, of_schedule
from horarium.schedule.definition import Action
from horarium.store import secrets
from horarium.store.database import Database
from horarium.store.database.json_text import from_text, to_text
from horarium.store.runs import open_runs
from horarium.store.runs.states import FINAL_NAMES
from horarium.store.sealing import Sealer
from horarium.store.tables import (
    dead_letters,
    history,
    installation,
    namespaces,
    run_definitions,
    runs,
    schedule_revisions,
    schedules,
)

# Each may have a megabyte.
_BATCH = 50
_NAME: Final = "plain_credentials"
_HAS_HEADERS = '%"headers"%'


@dataclass(frozen=True, slots=True)
class _Stage:
    """A column that holds actions; `path` is where in it."""

    table: sa.Table
    column: str
    path: tuple[str, ...]

    @property
    def key(self) -> list[sa.Column[Any]]:
        return list(self.table.primary_key.columns)


_STAGES: Final = (
    _Stage(schedule_revisions, "document", ("action",)),
    _Stage(run_definitions, "document", ("action",)),
    _Stage(history, "payload", ("action",)),
    _Stage(dead_letters, "body", ("data", "payload", "action")),
)


@dataclass(frozen=True, slots=True)
class _Progress:
    """`after` is the key of the last row that was looked at; `rewritten` rows held something in plain so far."""

    stage: int = 0
    after: tuple[Any, ...] | None = None
    rewritten: int = 0
    is_done: bool = False

    def text(self) -> str:
        after = self.after and [f"x{each.hex()}" if isinstance(each, bytes) else each for each in self.after]
        return json.dumps([self.stage, after, self.rewritten, self.is_done])


def _read_progress(text: str | None) -> _Progress:
    if text is None:
        return _Progress()
    stage, after, rewritten, is_done = json.loads(text)
    key = after and tuple(bytes.fromhex(each[1:]) if isinstance(each, str) else each for each in after)
    return _Progress(stage, key, rewritten, is_done)


def are_moved(database: Database) -> bool:
    """Whether nothing is left to do."""
    return _read_progress(database.glance(_find)).is_done


def set_moved(connection: Connection) -> None:
    """For a new database, which never held any."""
    _save(connection, _Progress(is_done=True))


def move(database: Database, sealer: Sealer, clock: Clock) -> int:
    """How many rows held credentials; 0 as well where all of it was done before."""
    progress = _read_progress(database.glance(_find))
    if progress.is_done:
        return 0
    while progress.stage < len(_STAGES) and not progress.is_done:
        progress = database.write(lambda connection: _step(connection, sealer, clock.now()))
    if progress.rewritten and not progress.is_done and not _forget_freed_pages(database):
        return progress.rewritten  # the next start tries again
    database.write(lambda connection: _save(connection, replace(progress, is_done=True)))
    return progress.rewritten


def _step(connection: Connection, sealer: Sealer, now: Instant) -> _Progress:
    """The next few rows. The row of the progress is the lock."""
    _save_if_new(connection)
    progress = _read_progress(_find(connection, lock=True))
    if progress.is_done or progress.stage >= len(_STAGES):
        return progress
    stage = _STAGES[progress.stage]
    column = stage.table.c[stage.column]
    select = sa.select(*stage.key, column).where(column.like(_HAS_HEADERS))
    if progress.after is not None:
        select = select.where(sa.tuple_(*stage.key) > sa.tuple_(*map(sa.literal, progress.after)))
    rows = connection.execute(select.order_by(*stage.key).limit(_BATCH)).all()
    rewritten = sum(_rewrite(connection, sealer, stage, tuple(row[:-1]), row[-1], now) for row in rows)
    if len(rows) < _BATCH:
        after: tuple[Any, ...] | None = None
    else:
        after = tuple(rows[-1][:-1])
    next_stage = progress.stage + (after is None)
    progress = _Progress(next_stage, after, progress.rewritten + rewritten)
    _save(connection, progress)
    return progress


def _rewrite(
    connection: Connection, sealer: Sealer, stage: _Stage, key: Sequence[Any], text: str, now: Instant
) -> bool:
    """Whether it held any; what was damaged holds nothing that could be read."""
    document = _parsed(text)
    action = _at(document, stage.path)
    if not isinstance(action, Mapping) or not moved(Action(str(action.get("kind")), action), "")[1]:
        return False
    owner = _owner(connection, stage, key[0], document)
    kept, found = moved(Action(str(action.get("kind")), action), owner.name)
    if owner.namespace is not None:
        for name, value in found.items():
            secrets.put(connection, sealer, owner.namespace, name, value, hosts_of(kept), True, now)
    mine = [column == value for column, value in zip(stage.key, key, strict=True)]
    changed = to_text(_with(document, stage.path, dict(kept.target)))
    connection.execute(sa.update(stage.table).where(*mine).values({stage.column: changed}))
    return True


@dataclass(frozen=True, slots=True)
class _Owner:
    """`namespace` None = nothing of it can be launched any more, and no value is kept."""

    name: str
    namespace: str | None = None


def _owner(connection: Connection, stage: _Stage, key: Any, document: Mapping[str, Any]) -> _Owner:
    if stage.table is schedule_revisions:
        return _Owner(of_schedule(str(document.get("schedule_id"))), _launchable(connection, key))
    if stage.table is run_definitions:
        return _Owner(of_run(id_text(key)), _open_run(connection, key))
    if stage.table is history:
        uid = sa.select(history.c.schedule_uid).where(history.c.feed_id == key).scalar_subquery()
        named = sa.select(schedules.c.schedule_id).where(schedules.c.schedule_uid == uid)
        return _Owner(of_schedule(connection.execute(named).scalar_one_or_none() or "gone"))
    return _Owner(of_schedule(document["data"].get("schedule_id") or "gone"))


def _launchable(connection: Connection, uid: bytes) -> str | None:
    """The namespace of a schedule that is alive, or of which a run is."""
    found = connection.execute(
        sa.select(schedules.c.namespace, schedules.c.deleted_at)
        .join(namespaces, namespaces.c.namespace == schedules.c.namespace)
        .where(schedules.c.schedule_uid == uid, namespaces.c.deleted_at.is_(None))
    ).one_or_none()
    if found is None or (found.deleted_at is not None and not open_runs.open_run_ids(connection, uid, 1)):
        return None
    return str(found.namespace)


def _open_run(connection: Connection, run_id: bytes) -> str | None:
    mine = sa.select(runs.c.namespace).where(runs.c.run_id == run_id, runs.c.state.not_in(FINAL_NAMES))
    return connection.execute(mine).scalar_one_or_none()


def _parsed(text: str) -> Any:
    try:
        return from_text(text)
    except ValueError:
        return None


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _with(document: Mapping[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    first, *rest = path
    return {**document, first: _with(document[first], tuple(rest), value) if rest else value}


# ── how far it has come ──────────────────────────────────────────────────────────────────────────────


def _find(connection: Connection, *, lock: bool = False) -> str | None:
    statement = sa.select(installation.c.value).where(installation.c.name == _NAME)
    return connection.execute(statement.with_for_update() if lock else statement).scalar_one_or_none()


def _save_if_new(connection: Connection) -> None:
    connection.execute(_row(connection, _Progress()).on_conflict_do_nothing())


def _save(connection: Connection, progress: _Progress) -> None:
    row = _row(connection, progress)
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": progress.text()}))


def _row(connection: Connection, progress: _Progress) -> sqlite.Insert | postgresql.Insert:
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(installation).values(name=_NAME, value=progress.text())


def _forget_freed_pages(database: Database) -> bool:
    """SQLite leaves what was overwritten in free pages and in its log; the vacuum of PostgreSQL comes by itself."""
    if database.dialect != "sqlite":
        return True
    raw = database.engine.raw_connection()
    try:
        assert raw.driver_connection is not None
        raw.driver_connection.execute("VACUUM")
        busy, *_ = raw.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    except sqlite3.OperationalError:  # another process reads or writes
        return False
    finally:
        raw.close()
