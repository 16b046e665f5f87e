"""What a check of the whole ledger reads: schedules in order, their specs by revision, runs without an event."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.database.typed_rows import TypedRows
from horarium.store.history import events as streams
from horarium.store.history.events import HistoryRow
from horarium.store.retention import LIFECYCLE
from horarium.store.runs import everywhere
from horarium.store.tables import checkpoints, history, positions, runs, schedule_revisions

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """History before `sequence` is gone, and was complete up to `decided_until`."""

    sequence: int
    decided_until: Instant
    made_at: Instant


_CHECKPOINTS = TypedRows(Checkpoint, checkpoints)


def schedule_uids(connection: Connection, namespace: str | None, after: bytes, limit: int) -> list[bytes]:
    """Deleted ones too, in the order of their ids; None = of all namespaces."""
    statement = sa.select(positions.c.schedule_uid).where(positions.c.schedule_uid > after)
    if namespace is not None:
        statement = statement.where(positions.c.namespace == namespace)
    return list(connection.execute(statement.order_by(positions.c.schedule_uid).limit(limit)).scalars())


def name_of(connection: Connection, uid: bytes) -> tuple[str, str]:
    """Return the namespace and the id of a schedule."""
    asked = sa.select(positions.c.namespace, positions.c.schedule_id).where(positions.c.schedule_uid == uid)
    namespace, schedule_id = connection.execute(asked).one()
    return namespace, schedule_id


def checkpoint(connection: Connection, uid: bytes) -> Checkpoint | None:
    return _CHECKPOINTS.one(connection, _CHECKPOINTS.select.where(checkpoints.c.schedule_uid == uid))


def life_before(connection: Connection, uid: bytes, sequence: int) -> list[HistoryRow]:
    """Lifecycle events of the schedule before an event, oldest first: retention does not delete them."""
    found: list[HistoryRow] = []
    after = 0
    while page := streams.read(connection, uid, after_sequence=after, limit=_PAGE):
        found += [event for event in page if event.sequence < sequence and event.event_type in LIFECYCLE]
        after = page[-1].sequence
        if after >= sequence:
            break
    return found


def plannings_by_revision(connection: Connection, uid: bytes) -> dict[int, bytes]:
    """The hash of the planning text of each revision."""
    rows = connection.execute(
        sa.select(schedule_revisions.c.revision, schedule_revisions.c.planning).where(
            schedule_revisions.c.schedule_uid == uid
        )
    )
    return {row.revision: row.planning for row in rows}


def runs_without_event(connection: Connection, uid: bytes, since: Instant, limit: int) -> list[tuple[bytes, Instant]]:
    """Root runs born at `since` or later that history does not know: their ids and nominal times."""
    # As a list and not row by row: SQLite then builds an index of it once.
    told = sa.select(history.c.run_id).where(
        history.c.schedule_uid == uid, history.c.sequence.is_not(None), history.c.run_id.is_not(None)
    )
    rows = everywhere.every(
        connection,
        sa.select(runs.c.run_id, runs.c.nominal)
        .where(
            runs.c.schedule_uid == uid,
            runs.c.parent_run_id.is_(None),
            runs.c.created_at >= since,
            runs.c.run_id.not_in(told),
        )
        .order_by(runs.c.run_id)
        .limit(limit),
    )
    return sorted((row.run_id, row.nominal) for row in rows)[:limit]
