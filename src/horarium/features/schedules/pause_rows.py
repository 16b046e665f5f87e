"""SQL that ends pauses, by request or at their instant with the same effect, and finds the next time of work."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision import decide
from horarium.core.document.states import OPEN, CommandContext, EventType, Position, Status
from horarium.features.history.rows import Journal
from horarium.features.runs import release_rows
from horarium.features.schedules import rows as schedules
from horarium.features.schedules import write_rows
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.write_rows import move_version, save_position
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.database.run_states import OPEN_ROOT, sql_list
from horarium.platform.database.statements import storable_text
from horarium.platform.database.tables import positions as table

_MAX_ERROR = 1_000
# As text: PostgreSQL takes a partial index only for a condition that it can read.
_ENDS = sa.text("status = 'paused' AND paused_until IS NOT NULL")
_EARLIEST = sa.text(
    "SELECT (SELECT min(next_due) FROM positions WHERE status = 'active'), "
    "(SELECT min(paused_until) FROM positions WHERE status = 'paused' AND paused_until IS NOT NULL)"
)


class Paused(NamedTuple):
    """A schedule whose pause is over."""

    namespace: str
    schedule_uid: bytes


class Earliest(NamedTuple):
    """When a ticker has something to do next: an occurrence is due, or a pause ends."""

    due: Instant | None
    pause_end: Instant | None

    @property
    def moment(self) -> Instant | None:
        return min((each for each in self if each is not None), default=None)


def earliest(connection: Connection) -> Earliest:
    return Earliest(*connection.execute(_EARLIEST).one())


def over(connection: Connection, now: Instant, limit: int) -> list[Paused]:
    """Those that have waited longest first."""
    ended = sa.select(table.c.namespace, table.c.schedule_uid).where(_ENDS, table.c.paused_until <= now)
    rows = connection.execute(ended.order_by(table.c.paused_until, table.c.schedule_uid).limit(limit))
    return [Paused(*row) for row in rows]


def end(connection: Connection, known: Plannings, paused: Paused, *, now: Instant) -> int | None:
    """End a pause and return the number of released runs.

    None if the schedule was resumed, paused again or deleted meanwhile.
    """
    uid = paused.schedule_uid
    row = schedules.find_by_uid(connection, paused.namespace, uid, lock=True)
    until = None if row is None else row.paused_until
    if row is None or row.status is not Status.PAUSED or until is None or until > now:
        return None
    planning = known.load(connection, [row.planning])[row.planning]
    if isinstance(planning, Exception):
        # Due at once: the tick that cannot plan it sets it aside, as it does with all of them.
        position = row.position()._replace(status=Status.ACTIVE, next_due=until)
    else:
        position = decide.end_pause(planning, uid, row.position(), until=until)
    journal = Journal(row.next_sequence, now, CommandContext(row.paused_by, source="engine", reason=row.pause_reason))
    journal.add(
        EventType.RESUMED,
        next_fire_at=rfc3339_or_none(position.next_due),
        generation=position.generation,
        resumed_at=to_rfc3339(until),
        detail="the pause ended at its set time",
    )
    return write_resumed(connection, known, row, position, journal, now=now)[1]


def write_resumed(
    connection: Connection, known: Plannings, row: ScheduleRow, position: Position, journal: Journal, *, now: Instant
) -> tuple[int, int]:
    """The new version, and how many held runs were let go; the caller holds the lock."""
    version = save_position(
        connection,
        row.schedule_uid,
        {
            "status": position.status,
            "decided_until": position.decided_until,
            "next_due": position.next_due,
            "paused_at": None,
            "pause_reason": None,
            "paused_until": None,
            "paused_by": None,
            "failures_in_a_row": 0,
            "empty_in_a_row": 0,
            "next_sequence": journal.write(connection, row.schedule_uid, row.namespace),
        },
        expected_version=row.version,
        now=now,
    )
    return version, release_rows.release(connection, known, row.schedule_uid, now=now) if row.held else 0


def keep_paused(connection: Connection, uid: bytes, error: str, *, now: Instant) -> None:
    """Leave a schedule paused that the database refuses to resume: a person must look, and others are not delayed."""
    said = storable_text(f"could not be resumed at the set time: {error}", _MAX_ERROR)
    write_rows.move_position(connection, uid, paused_until=None, pause_reason=said, last_error=said, last_error_at=now)
    move_version(connection, uid, updated_at=now)


# With the conditions of the indexes `runs_open` and `runs_steps`, which are nearly empty while nothing happens.
_LOOK = sa.text(
    f"""
SELECT EXISTS (SELECT 1 FROM runs WHERE {OPEN_ROOT})
  OR EXISTS (SELECT 1 FROM runs WHERE root_run_id IS NOT NULL AND state IN {sql_list(OPEN)})
  OR EXISTS (SELECT 1 FROM step_changes)
"""
)


class Outlook(NamedTuple):
    """`has_open_runs`: or one that has ended, and of which something is yet to be noted."""

    earliest: Earliest
    has_open_runs: bool

    @property
    def next_due(self) -> Instant | None:
        """When a schedule has to be decided or a pause to be ended next, or since when one has."""
        return self.earliest.moment

    def is_quiet(self, now: Instant) -> bool:
        """Nothing can happen by itself before `next_due`."""
        return not self.has_open_runs and (self.next_due is None or self.next_due > now)


def look_ahead(connection: Connection) -> Outlook:
    return Outlook(earliest(connection), bool(connection.execute(_LOOK).scalar_one()))
