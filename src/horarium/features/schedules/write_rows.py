"""SQL that writes schedules: immutable revisions, the attributes that lists filter by, and positions.

No other module writes to the table `positions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Literal, Unpack

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.decision.record import Counts
from horarium.core.document.reader import workspace_of
from horarium.core.document.states import Position, Status
from horarium.features.schedules import lookup_rows
from horarium.features.schedules.rows import LockedPosition, PositionChange, ScheduleRow
from horarium.instant import Instant
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.statements import RowInsert, RowUpdate, select_by_ids, to_text
from horarium.platform.database.tables import plannings, positions, schedule_attributes, schedule_revisions, schedules
from horarium.platform.database.tables import positions as positions_table

_LOCKED = f"SELECT {', '.join(LockedPosition._fields)} FROM positions WHERE schedule_uid"
# What a decision moves: the generation stays, and the status is written by its name.
_MOVED = tuple(name for name in Position._fields if name not in ("status", "generation"))
_DECIDED = RowUpdate(positions, ("schedule_uid", "status", *_MOVED, *Counts._fields))
_moved_values = attrgetter(*_MOVED)
_COUNTED = RowUpdate(
    positions,
    (
        "schedule_uid", "active", "held", "last_completed_at", "last_completed_run_id", "failures_in_a_row",
        "failures_count", "last_error", "last_error_at", "last_dispatch_status", "status", "paused_at", "pause_reason",
        "next_sequence", "decided_until", "empty_in_a_row", "last_state",
    ),
)  # fmt: skip
_counted_values = attrgetter(*_COUNTED.columns)
_ZEROS = dict.fromkeys(("active", "held", "fires_count", "failures_count", "failures_in_a_row", "skipped_count"), 0)


# ── locking ──────────────────────────────────────────────────────────────────────────────────────────


def lock_positions(connection: Connection, uids: Collection[bytes]) -> dict[bytes, LockedPosition]:
    """In sorted order, so that two transactions never wait for each other."""
    tail = "ORDER BY schedule_uid FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    found = map(LockedPosition._make, select_by_ids(connection, _LOCKED, sorted(uids), tail))
    return {position.schedule_uid: position for position in found}


def lock_position(connection: Connection, uid: bytes) -> LockedPosition | None:
    """Ours until the transaction ends."""
    return lock_positions(connection, [uid]).get(uid)


def try_lock_position(connection: Connection, uid: bytes) -> bool:
    """False if another transaction has it, or if it is gone: who has a counter's lock may not wait for a position."""
    free = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid == uid)
    return connection.execute(free.with_for_update(skip_locked=True)).one_or_none() is not None


# ── moving ───────────────────────────────────────────────────────────────────────────────────────────


def first_position(named: Mapping[str, Any], position: Position, change: PositionChange) -> dict[str, Any]:
    """The row of a schedule that begins; `named` are its uid, namespace and id."""
    return _plain({**_ZEROS, "revision": 1, **named, **position._asdict(), **change})


def move_position(connection: Connection, uid: bytes, **change: Unpack[PositionChange]) -> None:
    """The version of the schedule stays: whoever moves it, too, says so elsewhere."""
    if change:
        own = sa.update(positions).where(positions.c.schedule_uid == uid)
        connection.execute(own.values(_plain(change)))


def stop_positions(connection: Connection, namespace: str, limit: int) -> int:
    """Nothing of a namespace that is being removed fires any more; how many were stopped, `limit` at most."""
    uid = positions.c.schedule_uid
    going = sa.select(uid).where(positions.c.namespace == namespace, positions.c.status != Status.DELETED.value)
    uids = list(connection.execute(going.order_by(uid).limit(limit).with_for_update()).scalars())
    if uids:
        stopped = sa.update(positions).where(uid.in_(uids))
        connection.execute(stopped.values(status=Status.DELETED.value, next_due=None, paused_until=None))
    return len(uids)


def save_decided(connection: Connection, decided: Iterable[tuple[bytes, Position, Counts]]) -> None:
    """After decisions, for a whole batch together."""
    rows = [(uid, position.status.value, *_moved_values(position), *counts) for uid, position, counts in decided]
    _DECIDED.run(connection, rows)


def save_counted(connection: Connection, counted: Iterable[LockedPosition]) -> None:
    """After ends of runs, for all of their schedules together."""
    _COUNTED.run(connection, [_counted_values(position) for position in counted])


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drivers differ in what they make of an enum."""
    return {**values, "status": values["status"].value} if "status" in values else {**values}


AttributeKind = Literal["label", "search_attribute", "field"]


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """A label, a search attribute or a field of its own that lists can be filtered by."""

    kind: AttributeKind
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class NewRevision:
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
    revision: NewRevision
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
def _insert_all(table: sa.Table, names: tuple[str, ...]) -> RowInsert:
    return RowInsert(table, names)


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
        "written_by": lookup_rows.API,
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
        positions_table: first_position(named, new.position, change),
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
    revision: NewRevision,
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
    move_position(connection, row.schedule_uid, revision=number, planning=planning, generation=revision.generation)
    _remove_attributes(connection, row.schedule_uid)
    _add_attributes(connection, row.schedule_uid, row.namespace, revision.attributes)
    return number


def save_position(
    connection: Connection, uid: bytes, change: PositionChange, *, expected_version: int, now: Instant
) -> int:
    """The new version. Raises Conflict if the schedule has moved on since."""
    _advance(connection, uid, expected_version, updated_at=now)
    move_position(connection, uid, **change)
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
    move_position(connection, row.schedule_uid, status=Status.DELETED, next_due=None)
    _remove_attributes(connection, row.schedule_uid)


def _advance(connection: Connection, uid: bytes, expected_version: int, **values: Any) -> None:
    moved = connection.execute(
        sa.update(schedules)
        .where(schedules.c.schedule_uid == uid, schedules.c.version == expected_version)
        .values(version=expected_version + 1, **values)
    )
    if moved.rowcount != 1:
        raise UniqueConflict("schedules.version")


def move_version(connection: Connection, uid: bytes, **values: Any) -> None:
    """For the engine, which changes what readers see whichever version that is."""
    own = sa.update(schedules).where(schedules.c.schedule_uid == uid)
    connection.execute(own.values(version=schedules.c.version + 1, **values))


def insert_revision(connection: Connection, uid: bytes, number: int, revision: NewRevision, now: Instant) -> bytes:
    """The document and its planning text; returns the hash that names the text."""
    planning = planning_hash(revision.planning)
    connection.execute(_INSERT_PLANNING[connection.dialect.name], {"planning": planning, "text": revision.planning})
    connection.execute(_INSERT_REVISION, _revision_row(uid, number, revision, planning, now))
    return planning


def _revision_row(uid: bytes, number: int, revision: NewRevision, planning: bytes, now: Instant) -> dict[str, Any]:
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
