"""How a schedule that cannot be planned or recorded is set aside: visible everywhere, in nobody's way."""

from __future__ import annotations

from sqlalchemy import Connection

from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import EventType
from horarium.schedule.position import Status
from horarium.schedule.reason import Obstacle, dispatch_status
from horarium.store.database.json_text import kept_text
from horarium.store.history.append import Journal
from horarium.store.history.events import last_sequence
from horarium.store.schedules import positions
from horarium.store.schedules.rows import PositionChange

_MAX_ERROR = 1_000


def park(connection: Connection, schedule_uid: bytes, *, error: str, error_class: str, now: Instant) -> bool:
    """`next_due` stays to be read; an edit or a resume plans anew. False if it is not active any more."""
    # The error may quote what broke the row: whatever a database cannot hold must not break it again.
    said = kept_text(error, _MAX_ERROR) or error_class
    position = positions.lock(connection, schedule_uid)
    if position is None or position.status != Status.ACTIVE:
        return False
    # What is wrong may be the number itself: then the stream says where it ends.
    journal = Journal(max(position.next_sequence, last_sequence(connection, schedule_uid) + 1), now)
    journal.add(EventType.BROKEN, error=said, error_class=error_class, broken_at=to_rfc3339(now))
    moved = _broken(said, now)
    moved["next_sequence"] = journal.write(connection, schedule_uid, position.namespace)
    positions.move(connection, schedule_uid, **moved)
    return True


def park_without_event(connection: Connection, schedule_uid: bytes, *, error: str, now: Instant) -> None:
    """Park a schedule whose row or stream lets no event be written: it must not stop the others."""
    positions.move(connection, schedule_uid, **_broken(kept_text(error, _MAX_ERROR), now))


def _broken(said: str | None, now: Instant) -> PositionChange:
    return {
        "status": Status.BROKEN,
        "last_error": said,
        "last_error_at": now,
        "last_dispatch_status": dispatch_status(Obstacle.BROKEN),
    }
