"""How schedules are written: immutable revisions of what people say, with the attributes that lists filter by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.instant import Instant
from horarium.schedule.position import Position, Status
from horarium.schedule.workspace import workspace_of
from horarium.store.database.json_text import to_text
from horarium.store.database.set_wise import Insert
from horarium.store.errors import Conflict
from horarium.store.schedules import positions, workspaces
from horarium.store.schedules.rows import PositionChange, ScheduleRow
from horarium.store.tables import plannings, schedule_attributes, schedule_revisions, schedules
from horarium.store.tables import positions as positions_table

AttributeKind = Literal["label", "search_attribute", "field"]


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """A label, a search attribute or a field of its own that lists can be filtered by."""

    kind: AttributeKind
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A written document with the planning that the engine reads; `generation` counts the specs."""

    document: Mapping[str, Any]
    planning: str
    name: str
    workflow: str | None = None
    generation: int = 1
    attributes: frozenset[Attribute] = frozenset()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class NewSchedule:
    schedule_uid: bytes
    namespace: str
    schedule_id: str
    revision: Revision
    position: Position
    source: str
    owner: str | None = None
    paused_at: Instant | None = None
    pause_reason: str | None = None
    paused_by: str | None = None
    paused_until: Instant | None = None
    next_sequence: int = 1
    bundle: str | None = None
    deleted_at: Instant | None = None
    created_by: str | None = None


def planning_hash(text: str) -> bytes:
    """The name of a planning text."""
    return blake2b(text.encode(), digest_size=16).digest()


def search_text(schedule_id: str, name: str) -> str:
    """Where a search for part of an id or of a name looks; no part of both is part of either."""
    return f"{schedule_id}\n{name}".casefold()


_INSERT_REVISION, _INSERT_ATTRIBUTES = sa.insert(schedule_revisions), sa.insert(schedule_attributes)
_INSERT_PLANNING = {
    "postgresql": postgresql.insert(plannings).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(plannings).on_conflict_do_nothing(),
}


def insert_schedule(connection: Connection, new: NewSchedule, *, now: Instant) -> None:
    """Raises Conflict(`schedules_live_id`) if the id is taken by a schedule that is not deleted."""
    rows = _first_rows(new, now)
    if connection.dialect.name == "postgresql":
        connection.execute(*_together(rows))
    else:
        for table, row in rows.items():
            connection.execute(_INSERT_PLANNING["sqlite"] if table is plannings else sa.insert(table), row)
    _add_attributes(connection, new.schedule_uid, new.namespace, new.revision.attributes)


def insert_schedules(connection: Connection, many: Sequence[NewSchedule], *, now: Instant) -> None:
    """As `insert_schedule`, a table at a time."""
    if not many:
        return
    rows = [_first_rows(new, now) for new in many]
    texts = {row[plannings]["planning"]: row[plannings] for row in rows}
    connection.execute(_INSERT_PLANNING[connection.dialect.name], list(texts.values()))
    for table in (schedules, schedule_revisions, positions_table):
        _insert_all(table, tuple(rows[0][table])).run(connection, [tuple(row[table].values()) for row in rows])
    attributes = [(new.schedule_uid, new.namespace, each) for new in many for each in sorted(new.revision.attributes)]
    names = ("schedule_uid", "namespace", "kind", "name", "value")
    values = [(uid, namespace, each.kind, each.name, each.value) for uid, namespace, each in attributes]
    _insert_all(schedule_attributes, names).run(connection, values)


@cache  # one for each table
def _insert_all(table: sa.Table, names: tuple[str, ...]) -> Insert:
    return Insert(table, names)


def _first_rows(new: NewSchedule, now: Instant) -> dict[sa.Table, dict[str, Any]]:
    revision, planning = new.revision, planning_hash(new.revision.planning)
    named = {"schedule_uid": new.schedule_uid, "namespace": new.namespace, "schedule_id": new.schedule_id}
    schedule = {
        **named,
        "revision": 1,
        "version": 1,
        "name": revision.name,
        "search_text": search_text(new.schedule_id, revision.name),
        "workflow": revision.workflow,
        "source": new.source,
        "owner": new.owner,
        "note": revision.note,
        "bundle": new.bundle,
        "created_at": now,
        "updated_at": now,
        "deleted_at": new.deleted_at,
        "created_by": new.created_by,
        "edited_by": None,
        "workspace": workspace_of(revision.document),
        "written_by": workspaces.API,
    }
    change: PositionChange = {
        "planning": planning,
        "next_sequence": new.next_sequence,
        "paused_at": new.paused_at,
        "pause_reason": new.pause_reason,
        "paused_by": new.paused_by,
        "paused_until": new.paused_until,
    }
    return {
        schedules: schedule,
        plannings: {"planning": planning, "text": revision.planning},
        schedule_revisions: _revision_row(new.schedule_uid, 1, revision, planning, now),
        positions_table: positions.first_values(named, new.position, change),
    }


def _together(rows: Mapping[sa.Table, Mapping[str, Any]]) -> tuple[sa.Executable, dict[str, Any]]:
    """One statement that goes to the server once; a planning text that is there already is left alone."""
    statement = _together_of(tuple((table, tuple(row)) for table, row in rows.items()))
    return statement, {f"{table.name}_{name}": value for table, row in rows.items() for name, value in row.items()}


@cache  # one shape, whatever the schedule
def _together_of(shape: tuple[tuple[sa.Table, tuple[str, ...]], ...]) -> sa.Executable:
    *others, last = (_insert_into(table, names) for table, names in shape)
    return last.add_cte(*(each.cte(f"new_{number}") for number, each in enumerate(others)))


def _insert_into(table: sa.Table, names: tuple[str, ...]) -> postgresql.Insert:
    made = postgresql.insert(table).values({name: sa.bindparam(f"{table.name}_{name}") for name in names})
    return made.on_conflict_do_nothing() if table is plannings else made


def add_revision(
    connection: Connection,
    row: ScheduleRow,
    revision: Revision,
    *,
    now: Instant,
    owner: str | None = None,
    edited_by: str | None = None,
) -> int:
    """The number of the new revision; `row` was read in this transaction, and Conflict says that it is stale."""
    number = row.revision + 1
    _advance(
        connection,
        row.schedule_uid,
        row.version,
        revision=number,
        name=revision.name,
        search_text=search_text(row.schedule_id, revision.name),
        workflow=revision.workflow,
        owner=owner or row.owner,
        note=revision.note,
        updated_at=now,
        edited_by=edited_by,
        workspace=workspace_of(revision.document),
    )
    planning = insert_revision(connection, row.schedule_uid, number, revision, now)
    positions.move(connection, row.schedule_uid, revision=number, planning=planning, generation=revision.generation)
    _remove_attributes(connection, row.schedule_uid)
    _add_attributes(connection, row.schedule_uid, row.namespace, revision.attributes)
    return number


def save_position(
    connection: Connection, uid: bytes, change: PositionChange, *, expected_version: int, now: Instant
) -> int:
    """The new version. Raises Conflict if the schedule has moved on since."""
    _advance(connection, uid, expected_version, updated_at=now)
    positions.move(connection, uid, **change)
    return expected_version + 1


def set_note(connection: Connection, row: ScheduleRow, note: str | None, found_by: Attribute | None) -> None:
    """For whoever moves the version in the same transaction; `found_by` is what a query for the note looks for."""
    connection.execute(sa.update(schedules).where(schedules.c.schedule_uid == row.schedule_uid).values(note=note))
    mine = schedule_attributes.c
    connection.execute(
        sa.delete(schedule_attributes).where(
            mine.schedule_uid == row.schedule_uid, mine.kind == "field", mine.name == "Note"
        )
    )
    _add_attributes(connection, row.schedule_uid, row.namespace, () if found_by is None else (found_by,))


def set_bundle(connection: Connection, uid: bytes, bundle: str | None, source: str) -> None:
    """Change bundle and source. The caller moves the version in the same transaction."""
    own = sa.update(schedules).where(schedules.c.schedule_uid == uid)
    connection.execute(own.values(bundle=bundle, source=source))


def mark_deleted(connection: Connection, row: ScheduleRow, *, now: Instant) -> None:
    """The id is free again; history, revisions and runs stay."""
    _advance(connection, row.schedule_uid, row.version, deleted_at=now, updated_at=now)
    positions.move(connection, row.schedule_uid, status=Status.DELETED, next_due=None)
    _remove_attributes(connection, row.schedule_uid)


def _advance(connection: Connection, uid: bytes, expected_version: int, **values: Any) -> None:
    moved = connection.execute(
        sa.update(schedules)
        .where(schedules.c.schedule_uid == uid, schedules.c.version == expected_version)
        .values(version=expected_version + 1, **values)
    )
    if moved.rowcount != 1:
        raise Conflict("schedules.version")


def move_version(connection: Connection, uid: bytes, **values: Any) -> None:
    """For the engine, which changes what readers see whichever version that is."""
    own = sa.update(schedules).where(schedules.c.schedule_uid == uid)
    connection.execute(own.values(version=schedules.c.version + 1, **values))


def insert_revision(connection: Connection, uid: bytes, number: int, revision: Revision, now: Instant) -> bytes:
    """The document and its planning text; returns the hash that names the text."""
    planning = planning_hash(revision.planning)
    connection.execute(_INSERT_PLANNING[connection.dialect.name], {"planning": planning, "text": revision.planning})
    connection.execute(_INSERT_REVISION, _revision_row(uid, number, revision, planning, now))
    return planning


def _revision_row(uid: bytes, number: int, revision: Revision, planning: bytes, now: Instant) -> dict[str, Any]:
    return {
        "schedule_uid": uid,
        "revision": number,
        "generation": revision.generation,
        "planning": planning,
        "document": to_text(revision.document),
        "created_at": now,
    }


def _add_attributes(connection: Connection, uid: bytes, namespace: str, attributes: Collection[Attribute]) -> None:
    rows = [
        {"schedule_uid": uid, "namespace": namespace, "kind": each.kind, "name": each.name, "value": each.value}
        for each in sorted(attributes)
    ]
    if rows:
        connection.execute(_INSERT_ATTRIBUTES, rows)


def _remove_attributes(connection: Connection, uid: bytes) -> None:
    connection.execute(sa.delete(schedule_attributes).where(schedule_attributes.c.schedule_uid == uid))
