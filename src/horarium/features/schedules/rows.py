"""SQL that reads schedules, their positions and revisions.

A change of a schedule takes the lock of its position first (`lock=True`), so that a tick and an edit never interleave.
On SQLite the write transaction is that lock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.record import Counts
from horarium.core.decision.statuses import LastStatus, last_status
from horarium.core.document.states import Position, Status
from horarium.instant import Instant
from horarium.platform.database.statements import TypedRows, object_from_text
from horarium.platform.database.tables import plannings, positions, schedule_revisions, schedules


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
    paused_until: Instant | None
    paused_by: str | None
    note: str | None
    bundle: str | None = None
    created_by: str | None = None
    edited_by: str | None = None
    workspace: str | None = None
    empty_in_a_row: int = 0
    last_state: str | None = None

    @property
    def last_status(self) -> LastStatus:
        return last_status(
            last_state=self.last_state,
            last_completed_at=self.last_completed_at,
            last_skipped_at=self.last_skipped_at,
            failures_in_a_row=self.failures_in_a_row,
            empty_in_a_row=self.empty_in_a_row,
        )

    def position(self) -> Position:
        return Position(*(getattr(self, name) for name in Position._fields))

    def counts(self) -> Counts:
        return Counts(*(getattr(self, name) for name in Counts._fields))


@dataclass(frozen=True, slots=True)
class RevisionRow:
    revision: int
    generation: int
    planning: bytes
    document: dict[str, Any]
    created_at: Instant


class LockedPosition(NamedTuple):
    """A position under lock, as those see it who count runs, let them go or set the schedule aside."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    status: str
    generation: int
    planning: bytes
    next_due: Instant | None
    decided_until: Instant
    next_sequence: int
    active: int
    held: int
    fires_count: int
    failures_count: int
    failures_in_a_row: int
    last_fired_at: Instant | None
    last_run_id: bytes | None
    last_dispatch_status: str | None
    last_error: str | None
    last_error_at: Instant | None
    last_completed_at: Instant | None
    last_completed_run_id: bytes | None
    paused_at: Instant | None
    pause_reason: str | None
    empty_in_a_row: int
    last_state: str | None


class PositionChange(TypedDict, total=False):
    """Columns of a position that one who holds its lock may set."""

    status: Status
    next_due: Instant | None
    decided_until: Instant
    generation: int
    revision: int
    planning: bytes
    next_sequence: int
    active: int
    held: int
    fires_count: int
    failures_in_a_row: int
    empty_in_a_row: int
    rotation_index: int
    last_fired_at: Instant | None
    last_run_id: bytes | None
    last_dispatch_status: str | None
    last_error: str | None
    last_error_at: Instant | None
    paused_at: Instant | None
    pause_reason: str | None
    paused_until: Instant | None
    paused_by: str | None


# Of variables in one statement SQLite takes 32,766, and older ones 999.
_IDS_AT_ONCE = 900

# The positions' columns win: they are the ones that the lock protects.
ROWS = TypedRows(ScheduleRow, schedules, positions, key="schedule_id", status=Status)
SELECT_ROWS = ROWS.select.join_from(schedules, positions, schedules.c.schedule_uid == positions.c.schedule_uid)
REVISIONS = TypedRows(RevisionRow, schedule_revisions, document=object_from_text)
SELECT_WITH_DOCUMENT = SELECT_ROWS.add_columns(schedule_revisions.c.document).join(
    schedule_revisions,
    sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    ),
)
_LIVE_WITH_DOCUMENT = SELECT_WITH_DOCUMENT.where(
    schedules.c.namespace == sa.bindparam("namespace"),
    schedules.c.schedule_id == sa.bindparam("schedule_id"),
    schedules.c.deleted_at.is_(None),
)


def find_with_document(
    connection: Connection, namespace: str, schedule_id: str
) -> tuple[ScheduleRow, dict[str, Any]] | None:
    """The live schedule of that id and its newest revision, by one question."""
    asked = {"namespace": namespace, "schedule_id": schedule_id}
    found = connection.execute(_LIVE_WITH_DOCUMENT, asked).one_or_none()
    return None if found is None else with_document(found)


def with_document(values: Sequence[Any]) -> tuple[ScheduleRow, dict[str, Any]]:
    """Convert columns of `SELECT_WITH_DOCUMENT`."""
    return ROWS.read(values[:-1]), object_from_text(values[-1])


def listed_with_document(values: Sequence[Any]) -> tuple[ScheduleRow, dict[str, Any]]:
    """Convert as `with_document` does; a row that cannot be read is marked."""
    return ROWS.listed(values[:-1]), object_from_text(values[-1])


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


def lock_live(connection: Connection, namespace: str, ids: Collection[str]) -> dict[str, tuple[ScheduleRow, Any]]:
    """The live schedules of these ids with their newest documents, by id, all locked; in one order, by whoever asks."""
    live = (schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    found: dict[str, tuple[ScheduleRow, Any]] = {}
    wanted = sorted(ids)
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        own = (*live, schedules.c.schedule_id.in_(wanted[start : start + _IDS_AT_ONCE]))
        if connection.dialect.name == "postgresql":
            uids = sa.select(schedules.c.schedule_uid).where(*own)
            locked = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid.in_(uids))
            connection.execute(locked.order_by(positions.c.schedule_uid).with_for_update())
        # Read after the wait: what was deleted meanwhile is not there any more.
        rows = map(with_document, connection.execute(SELECT_WITH_DOCUMENT.where(*own)))
        found |= {row.schedule_id: (row, document) for row, document in rows}
    return found


def deleted_ids(connection: Connection, namespace: str, ids: Collection[str]) -> set[str]:
    """The ids among these that a deleted schedule had."""
    gone = (schedules.c.namespace == namespace, schedules.c.deleted_at.is_not(None))
    wanted, found = sorted(ids), set[str]()
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        own = schedules.c.schedule_id.in_(wanted[start : start + _IDS_AT_ONCE])
        found |= set(connection.execute(sa.select(schedules.c.schedule_id).where(*gone, own).distinct()).scalars())
    return found


def named_in_workspaces(
    connection: Connection, namespace: str, named: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """The ids of live schedules by workspace and name, of those that are asked for."""
    key = (schedules.c.workspace, schedules.c.name)
    live = (schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None))
    found: dict[tuple[str, str], str] = {}
    for start in range(0, len(named), _IDS_AT_ONCE // 2):
        own = sa.tuple_(*key).in_(list(named[start : start + _IDS_AT_ONCE // 2]))
        for workspace, name, schedule_id in connection.execute(
            sa.select(*key, schedules.c.schedule_id).where(*live, own)
        ):
            found[workspace, name] = schedule_id
    return found


def ids_of_bundle(connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
    """Ids of the bundle's live schedules, in order."""
    own = (schedules.c.namespace == namespace, schedules.c.bundle == bundle, schedules.c.deleted_at.is_(None))
    statement = sa.select(schedules.c.schedule_id).where(*own).order_by(schedules.c.schedule_id).limit(most)
    return list(connection.execute(statement).scalars())


def namespaces_of_bundle(connection: Connection, bundle: str) -> list[str]:
    """Where it has live schedules."""
    own = (schedules.c.bundle == bundle, schedules.c.deleted_at.is_(None))
    return sorted(connection.execute(sa.select(schedules.c.namespace).where(*own).distinct()).scalars())


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


def find_then(connection: Connection, namespace: str, schedule_id: str, moment: Instant) -> ScheduleRow | None:
    """The schedule that had this id at a moment; it may have been deleted since."""
    existed = (
        schedules.c.created_at <= moment,
        sa.or_(schedules.c.deleted_at.is_(None), schedules.c.deleted_at >= moment),
    )
    uid = (
        sa.select(schedules.c.schedule_uid)
        .where(schedules.c.namespace == namespace, schedules.c.schedule_id == schedule_id, *existed)
        .order_by(schedules.c.schedule_uid.desc())
        .limit(1)
    )
    return _one(connection, schedules.c.schedule_uid == uid.scalar_subquery())


def find_revision(connection: Connection, uid: bytes, revision: int) -> RevisionRow | None:
    mine = (schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.revision == revision)
    return REVISIONS.one(connection, REVISIONS.select.where(*mine))


def planning_at(connection: Connection, uid: bytes, moment: Instant) -> bytes | None:
    """The hash of the planning text that was in force then; None before the first revision."""
    statement = (
        sa.select(schedule_revisions.c.planning)
        .where(schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.created_at <= moment)
        .order_by(schedule_revisions.c.revision.desc())
        .limit(1)
    )
    found: bytes | None = connection.execute(statement).scalar()
    return found


def all_revisions(connection: Connection, uid: bytes) -> list[RevisionRow]:
    """Oldest first."""
    mine = REVISIONS.select.where(schedule_revisions.c.schedule_uid == uid)
    return REVISIONS.all(connection, mine.order_by(schedule_revisions.c.revision))


def planning_text(connection: Connection, planning: bytes) -> str | None:
    statement = sa.select(plannings.c.text).where(plannings.c.planning == planning)
    return connection.execute(statement).scalar_one_or_none()


def _one(connection: Connection, *conditions: sa.ColumnElement[bool]) -> ScheduleRow | None:
    return ROWS.one(connection, SELECT_ROWS.where(*conditions))


def _lock(connection: Connection, uid: bytes) -> None:
    """A statement of its own: what is read next must be read after the wait, not before it."""
    if connection.dialect.name == "postgresql":
        statement = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid == uid)
        connection.execute(statement.with_for_update())
