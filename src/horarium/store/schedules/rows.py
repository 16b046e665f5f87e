"""Schedules: what was written (immutable revisions) and how far the engine has got (the position), together.

Whoever changes a schedule takes its position's lock first (`lock=True`), so that a tick and an edit
never interleave. On SQLite the write transaction is that lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.decision.record import Counts
from horarium.instant import Instant
from horarium.schedule.position import Position, Status
from horarium.store.database.json_text import from_text, to_text
from horarium.store.errors import Conflict
from horarium.store.tables import plannings, positions, schedule_attributes, schedule_revisions, schedules

AttributeKind = Literal["label", "search_attribute", "field"]


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """A label, a search attribute or a field of its own that lists can be filtered by."""

    kind: AttributeKind
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Revision:
    """What a person wrote, and what the engine reads of it; `generation` counts the specs."""

    document: Mapping[str, Any]
    planning: str
    name: str
    workflow: str | None = None
    generation: int = 1
    attributes: frozenset[Attribute] = frozenset()


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
    next_sequence: int = 1


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """All columns of `schedules` and `positions`."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    revision: int
    version: int
    name: str
    workflow: str | None
    source: str
    owner: str | None
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None
    status: Status
    next_due: Instant | None
    decided_until: Instant
    generation: int
    planning: bytes
    next_sequence: int
    active: int
    held: int
    runs_born: int
    fires_count: int
    failures_count: int
    failures_in_a_row: int
    skipped_count: int
    rotation_index: int
    last_fired_at: Instant | None
    last_run_id: bytes | None
    last_skip_reason: str | None
    last_skipped_at: Instant | None
    last_dispatch_status: str | None
    last_error: str | None
    last_error_at: Instant | None
    last_completed_at: Instant | None
    last_completed_run_id: bytes | None
    paused_at: Instant | None
    pause_reason: str | None

    def position(self) -> Position:
        return Position(
            decided_until=self.decided_until,
            next_due=self.next_due,
            status=self.status,
            generation=self.generation,
            runs_born=self.runs_born,
            rotation_index=self.rotation_index,
        )

    def counts(self) -> Counts:
        return Counts(*(getattr(self, name) for name in Counts._fields))


@dataclass(frozen=True, slots=True)
class RevisionRow:
    revision: int
    generation: int
    planning: bytes
    document: dict[str, Any]
    created_at: Instant


# The positions' columns win: they are the ones that the lock protects.
_PLACES = {column.name: column for table in (schedules, positions) for column in table.columns}
ROW = [_PLACES[each.name] for each in fields(ScheduleRow)]
_CHANGEABLE = frozenset(column.name for column in positions.columns) - {"schedule_uid", "namespace", "schedule_id"}


def planning_hash(text: str) -> bytes:
    """The name of a planning text."""
    return blake2b(text.encode(), digest_size=16).digest()


def search_text(schedule_id: str, name: str) -> str:
    """Where a search for part of an id or of a name looks; no part of both is part of either."""
    return f"{schedule_id}\n{name}".casefold()


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


# Made once: to build a statement of so many columns takes longer than to run it.
SELECT_ROWS = sa.select(*ROW).join_from(schedules, positions, schedules.c.schedule_uid == positions.c.schedule_uid)
_STATUS = [each.name for each in fields(ScheduleRow)].index("status")
_LIVE_WITH_DOCUMENT = (
    SELECT_ROWS.add_columns(schedule_revisions.c.document)
    .join(
        schedule_revisions,
        sa.and_(
            schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
            schedule_revisions.c.revision == schedules.c.revision,
        ),
    )
    .where(
        schedules.c.namespace == sa.bindparam("namespace"),
        schedules.c.schedule_id == sa.bindparam("schedule_id"),
        schedules.c.deleted_at.is_(None),
    )
)


def to_row(values: Sequence[Any]) -> ScheduleRow:
    """Of the columns of SELECT_ROWS, in their order."""
    row = list(values)
    row[_STATUS] = Status(row[_STATUS])
    return ScheduleRow(*row)


def find_with_document(
    connection: Connection, namespace: str, schedule_id: str
) -> tuple[ScheduleRow, dict[str, Any]] | None:
    """The live schedule of that id and its newest revision, by one question."""
    asked = {"namespace": namespace, "schedule_id": schedule_id}
    found = connection.execute(_LIVE_WITH_DOCUMENT, asked).one_or_none()
    return None if found is None else (to_row(found[:-1]), from_text(found[-1]))


def find(connection: Connection, namespace: str, schedule_id: str, *, lock: bool = False) -> ScheduleRow | None:
    """The live schedule of that id."""
    live = (
        schedules.c.namespace == namespace,
        schedules.c.schedule_id == schedule_id,
        schedules.c.deleted_at.is_(None),
    )
    if not lock:
        return _one(connection, *live)
    # While we wait for the lock the schedule may be deleted, and even be made anew: then look again.
    while (uid := connection.execute(sa.select(schedules.c.schedule_uid).where(*live)).scalar()) is not None:
        _lock(connection, uid)
        found = _one(connection, *live, schedules.c.schedule_uid == uid)
        if found is not None:
            return found
    return None


def find_by_uid(connection: Connection, namespace: str, uid: bytes, *, lock: bool = False) -> ScheduleRow | None:
    """Deleted ones too."""
    if lock:
        _lock(connection, uid)
    return _one(connection, schedules.c.namespace == namespace, schedules.c.schedule_uid == uid)


def find_newest(connection: Connection, namespace: str, schedule_id: str) -> ScheduleRow | None:
    """The last schedule that had this id, live or deleted: the one that the id's history is about."""
    newest = (
        sa.select(schedules.c.schedule_uid)
        .where(schedules.c.namespace == namespace, schedules.c.schedule_id == schedule_id)
        .order_by(schedules.c.deleted_at.is_(None).desc(), schedules.c.schedule_uid.desc())
        .limit(1)
    )
    return _one(connection, schedules.c.schedule_uid == newest.scalar_subquery())


def find_revision(connection: Connection, uid: bytes, revision: int) -> RevisionRow | None:
    found = connection.execute(_revisions(uid).where(schedule_revisions.c.revision == revision)).one_or_none()
    return None if found is None else _to_revision(found)


def all_revisions(connection: Connection, uid: bytes) -> list[RevisionRow]:
    """Oldest first."""
    return [_to_revision(row) for row in connection.execute(_revisions(uid).order_by(schedule_revisions.c.revision))]


def planning_text(connection: Connection, planning: bytes) -> str | None:
    statement = sa.select(plannings.c.text).where(plannings.c.planning == planning)
    return connection.execute(statement).scalar_one_or_none()


def _one(connection: Connection, *conditions: sa.ColumnElement[bool]) -> ScheduleRow | None:
    found = connection.execute(SELECT_ROWS.where(*conditions)).one_or_none()
    return None if found is None else to_row(found)


def _lock(connection: Connection, uid: bytes) -> None:
    """A statement of its own: what is read next must be read after the wait, not before it."""
    if connection.dialect.name == "postgresql":
        statement = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid == uid)
        connection.execute(statement.with_for_update())


def _revisions(uid: bytes) -> sa.Select[Any]:
    columns = [schedule_revisions.c[each.name] for each in fields(RevisionRow)]
    return sa.select(*columns).where(schedule_revisions.c.schedule_uid == uid)


def _to_revision(values: sa.Row[Any]) -> RevisionRow:
    named = values._asdict()
    return RevisionRow(**(named | {"document": from_text(named["document"])}))


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


_INSERT_SCHEDULE, _INSERT_POSITION = sa.insert(schedules), sa.insert(positions)
_INSERT_REVISION, _INSERT_ATTRIBUTES = sa.insert(schedule_revisions), sa.insert(schedule_attributes)
_INSERT_PLANNING = {
    "postgresql": postgresql.insert(plannings).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(plannings).on_conflict_do_nothing(),
}
_ZEROS = dict.fromkeys(("active", "held", "fires_count", "failures_count", "failures_in_a_row", "skipped_count"), 0)


def insert(connection: Connection, new: NewSchedule, *, now: Instant) -> None:
    """Raises Conflict(`schedules_live_id`) if the id is taken by a schedule that is not deleted."""
    named = {"schedule_uid": new.schedule_uid, "namespace": new.namespace, "schedule_id": new.schedule_id}
    connection.execute(
        _INSERT_SCHEDULE,
        {
            **named,
            "revision": 1,
            "version": 1,
            "name": new.revision.name,
            "search_text": search_text(new.schedule_id, new.revision.name),
            "workflow": new.revision.workflow,
            "source": new.source,
            "owner": new.owner,
            "created_at": now,
            "updated_at": now,
        },
    )
    planning = insert_revision(connection, new.schedule_uid, 1, new.revision, now)
    connection.execute(
        _INSERT_POSITION,
        {
            **named,
            **_ZEROS,
            **_position_values(new.position),
            "revision": 1,
            "planning": planning,
            "next_sequence": new.next_sequence,
            "paused_at": new.paused_at,
            "pause_reason": new.pause_reason,
        },
    )
    _add_attributes(connection, new.schedule_uid, new.namespace, new.revision.attributes)


def add_revision(
    connection: Connection, row: ScheduleRow, revision: Revision, *, now: Instant, owner: str | None = None
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
        updated_at=now,
    )
    planning = insert_revision(connection, row.schedule_uid, number, revision, now)
    connection.execute(
        sa.update(positions)
        .where(positions.c.schedule_uid == row.schedule_uid)
        .values(revision=number, planning=planning, generation=revision.generation)
    )
    _remove_attributes(connection, row.schedule_uid)
    _add_attributes(connection, row.schedule_uid, row.namespace, revision.attributes)
    return number


def save_position(
    connection: Connection, uid: bytes, changes: Mapping[str, Any], *, expected_version: int, now: Instant
) -> int:
    """Writes columns of `positions`; the new version. Raises Conflict if the schedule has moved on since."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise ValueError(f"a position has no {', '.join(sorted(unknown))} to change")
    _advance(connection, uid, expected_version, updated_at=now)
    if changes:
        connection.execute(sa.update(positions).where(positions.c.schedule_uid == uid).values(_plain(changes)))
    return expected_version + 1


def mark_deleted(connection: Connection, row: ScheduleRow, *, now: Instant) -> None:
    """The id is free again; history, revisions and runs stay."""
    _advance(connection, row.schedule_uid, row.version, deleted_at=now, updated_at=now)
    connection.execute(
        sa.update(positions)
        .where(positions.c.schedule_uid == row.schedule_uid)
        .values(status=Status.DELETED.value, next_due=None)
    )
    _remove_attributes(connection, row.schedule_uid)


def _advance(connection: Connection, uid: bytes, expected_version: int, **values: Any) -> None:
    moved = connection.execute(
        sa.update(schedules)
        .where(schedules.c.schedule_uid == uid, schedules.c.version == expected_version)
        .values(version=expected_version + 1, **values)
    )
    if moved.rowcount != 1:
        raise Conflict("schedules.version")


def insert_revision(connection: Connection, uid: bytes, number: int, revision: Revision, now: Instant) -> bytes:
    """The document and its planning text; returns the hash that names the text."""
    planning = planning_hash(revision.planning)
    connection.execute(_INSERT_PLANNING[connection.dialect.name], {"planning": planning, "text": revision.planning})
    connection.execute(
        _INSERT_REVISION,
        {
            "schedule_uid": uid,
            "revision": number,
            "generation": revision.generation,
            "planning": planning,
            "document": to_text(revision.document),
            "created_at": now,
        },
    )
    return planning


def _add_attributes(connection: Connection, uid: bytes, namespace: str, attributes: Collection[Attribute]) -> None:
    rows = [
        {"schedule_uid": uid, "namespace": namespace, "kind": each.kind, "name": each.name, "value": each.value}
        for each in sorted(attributes)
    ]
    if rows:
        connection.execute(_INSERT_ATTRIBUTES, rows)


def _remove_attributes(connection: Connection, uid: bytes) -> None:
    connection.execute(sa.delete(schedule_attributes).where(schedule_attributes.c.schedule_uid == uid))


def _position_values(position: Position) -> dict[str, Any]:
    return _plain(position._asdict())


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drivers differ in what they make of an enum."""
    return {name: value.value if isinstance(value, Status) else value for name, value in values.items()}
