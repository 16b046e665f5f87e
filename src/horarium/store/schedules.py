"""Schedules: what was written (immutable revisions) and how far the engine has got (the position), together.

Whoever changes a schedule takes its position's lock first (`lock=True`), so that a tick and an edit
never interleave. On SQLite the write transaction is that lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from horarium.decision.ledger import Counts
from horarium.instant import Instant
from horarium.schedule.position import Position, Status
from horarium.store.errors import Conflict
from horarium.store.jsontext import from_text, to_text
from horarium.store.tables import plannings, positions, schedule_attributes, schedule_revisions, schedules

AttributeKind = Literal["label", "search_attribute"]


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """A label or search attribute that lists can be filtered by."""

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
        return Counts(**{each.name: getattr(self, each.name) for each in fields(Counts)})


@dataclass(frozen=True, slots=True)
class RevisionRow:
    revision: int
    generation: int
    planning: bytes
    document: dict[str, Any]
    created_at: Instant


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended."""

    created_at: Instant
    schedule_id: str


@dataclass(frozen=True, slots=True)
class Filter:
    """None = any. A schedule must have all the `attributes`."""

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    id_prefix: str | None = None
    attributes: Collection[Attribute] = field(default=())
    include_deleted: bool = False


_PLACES = {column.name: column for table in (positions, schedules) for column in table.columns}
_ROW = [_PLACES[each.name] for each in fields(ScheduleRow)]
_CHANGEABLE = frozenset(column.name for column in positions.columns) - {"schedule_uid", "namespace", "schedule_id"}


def planning_hash(text: str) -> bytes:
    """The name of a planning text."""
    return blake2b(text.encode(), digest_size=16).digest()


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


def insert_schedule(connection: Connection, new: NewSchedule, *, now: Instant) -> None:
    """Raises Conflict(`schedules_live_id`) if the id is taken by a schedule that is not deleted."""
    connection.execute(
        insert(schedules).values(
            schedule_uid=new.schedule_uid,
            namespace=new.namespace,
            schedule_id=new.schedule_id,
            revision=1,
            version=1,
            name=new.revision.name,
            workflow=new.revision.workflow,
            source=new.source,
            owner=new.owner,
            created_at=now,
            updated_at=now,
        )
    )
    planning = _add_revision_row(connection, new.schedule_uid, 1, new.revision, now)
    zeros = dict.fromkeys(
        ("active", "held", "fires_count", "failures_count", "failures_in_a_row", "skipped_count"), 0
    )
    connection.execute(
        insert(positions).values(
            schedule_uid=new.schedule_uid,
            namespace=new.namespace,
            schedule_id=new.schedule_id,
            revision=1,
            planning=planning,
            next_sequence=1,
            paused_at=new.paused_at,
            pause_reason=new.pause_reason,
            **_position_values(new.position),
            **zeros,
        )
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
        workflow=revision.workflow,
        owner=owner or row.owner,
        updated_at=now,
    )
    planning = _add_revision_row(connection, row.schedule_uid, number, revision, now)
    connection.execute(
        update(positions)
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
        connection.execute(update(positions).where(positions.c.schedule_uid == uid).values(**changes))
    return expected_version + 1


def mark_deleted(connection: Connection, row: ScheduleRow, *, now: Instant) -> None:
    """The id is free again; history, revisions and runs stay."""
    _advance(connection, row.schedule_uid, row.version, deleted_at=now, updated_at=now)
    connection.execute(
        update(positions)
        .where(positions.c.schedule_uid == row.schedule_uid)
        .values(status=Status.DELETED, next_due=None)
    )
    _remove_attributes(connection, row.schedule_uid)


def _advance(connection: Connection, uid: bytes, expected_version: int, **values: Any) -> None:
    moved = connection.execute(
        update(schedules)
        .where(schedules.c.schedule_uid == uid, schedules.c.version == expected_version)
        .values(version=expected_version + 1, **values)
    )
    if moved.rowcount != 1:
        raise Conflict("schedules.version")


def _add_revision_row(connection: Connection, uid: bytes, number: int, revision: Revision, now: Instant) -> bytes:
    planning = planning_hash(revision.planning)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(
        dialect.insert(plannings).values(planning=planning, text=revision.planning).on_conflict_do_nothing()
    )
    connection.execute(
        insert(schedule_revisions).values(
            schedule_uid=uid,
            revision=number,
            generation=revision.generation,
            planning=planning,
            document=to_text(revision.document),
            created_at=now,
        )
    )
    return planning


def _add_attributes(connection: Connection, uid: bytes, namespace: str, attributes: Collection[Attribute]) -> None:
    rows = [
        {"schedule_uid": uid, "namespace": namespace, "kind": each.kind, "name": each.name, "value": each.value}
        for each in sorted(attributes)
    ]
    if rows:
        connection.execute(insert(schedule_attributes), rows)


def _remove_attributes(connection: Connection, uid: bytes) -> None:
    connection.execute(delete(schedule_attributes).where(schedule_attributes.c.schedule_uid == uid))


def _position_values(position: Position) -> dict[str, Any]:
    return {each.name: getattr(position, each.name) for each in fields(Position)}
