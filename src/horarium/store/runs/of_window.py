"""Which occurrences of a schedule have had a run: those whose run is there, and those that only history remembers.

Retention deletes runs, and may delete the decisions about them too. An occurrence whose run is gone must
not be run again by a backfill; where history is gone as well nobody knows, and nothing is run.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import DAY, Instant
from horarium.schedule.event import EventType
from horarium.store.retention import LIFECYCLE
from horarium.store.runs import open_runs
from horarium.store.tables import checkpoints, history

_BIRTHS = (EventType.TRIGGERED.value, EventType.BUFFERED.value)
_LIFECYCLE = sorted(kind.value for kind in LIFECYCLE)


@dataclass(frozen=True, slots=True)
class PastRuns:
    """`nominals` have had a run; up to `forgotten_until` others may have had one. None = nothing is forgotten."""

    nominals: frozenset[Instant]
    forgotten_until: Instant | None = None

    def union(self, other: PastRuns) -> PastRuns:
        bounds = [each.forgotten_until for each in (self, other) if each.forgotten_until is not None]
        return PastRuns(self.nominals | other.nominals, max(bounds, default=None))


def look(connection: Connection, uid: bytes, first: Instant, last: Instant, *, since_sequence: int = 1) -> PastRuns:
    """Read past runs from `first` to `last`; `since_sequence` leaves out history that was read before."""
    # No index leads to the events of an occurrence: a long history is read outside of the writer.
    told = sa.select(history.c.nominal).where(
        history.c.schedule_uid == uid,
        history.c.sequence >= since_sequence,
        history.c.event_type.in_(_BIRTHS),
        history.c.nominal.between(first, last),
        history.c.run_id.is_not(None),
    )
    nominals = open_runs.taken(connection, uid, first, last).union(connection.execute(told).scalars())
    return PastRuns(frozenset(nominals), _forgotten_until(connection, uid))


def _forgotten_until(connection: Connection, uid: bytes) -> Instant | None:
    """No decision about a later occurrence has been deleted.

    A checkpoint says up to where decisions may be gone. It is also set where none is (new zone rules), so
    the numbers tell: what was done to a schedule stays, and before its first decision nothing else was.
    A decision comes after its occurrence, so none about a time after the oldest that is left is missing -
    by more than a clock may have been set back.
    """
    mark = connection.execute(
        sa.select(checkpoints.c.sequence, checkpoints.c.decided_until).where(checkpoints.c.schedule_uid == uid)
    ).one_or_none()
    if mark is None:
        return None
    mine = sa.and_(history.c.schedule_uid == uid, history.c.sequence.is_not(None))
    oldest = connection.execute(
        sa.select(history.c.sequence, history.c.recorded_at)
        .where(mine, history.c.event_type.not_in(_LIFECYCLE))
        .order_by(history.c.sequence)
        .limit(1)
    ).one_or_none()
    begins = mark.sequence if oldest is None else oldest.sequence
    before = sa.select(sa.func.count()).where(mine, history.c.sequence < begins)
    if connection.execute(before).scalar_one() == begins - 1:
        return None
    decided: Instant = mark.decided_until
    return decided if oldest is None else min(decided, oldest.recorded_at + DAY)
