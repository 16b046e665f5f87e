"""How a schedule that cannot be planned or recorded is set aside: visible everywhere, in nobody's way."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, update

from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import EventType, make_payload
from horarium.schedule.position import Status
from horarium.schedule.reason import Obstacle, dispatch_status
from horarium.store.database.json_text import kept_text
from horarium.store.database.set_wise import encode
from horarium.store.tables import history, positions

_MAX_ERROR = 1_000


def park(connection: Connection, schedule_uid: bytes, *, error: str, error_class: str, now: Instant) -> bool:
    """`next_due` stays to be read; an edit or a resume plans anew. False if it is not active any more."""
    # The error may quote what broke the row: whatever a database cannot hold must not break it again.
    said = kept_text(error, _MAX_ERROR) or error_class
    row = connection.execute(
        select(positions.c.namespace, positions.c.next_sequence)
        .where(positions.c.schedule_uid == schedule_uid, positions.c.status == Status.ACTIVE.value)
        .with_for_update()
    ).one_or_none()
    if row is None:
        return False
    # What is wrong may be the number itself: then the stream says where it ends.
    last = connection.execute(select(func.max(history.c.sequence)).where(history.c.schedule_uid == schedule_uid))
    sequence = max(row.next_sequence, (last.scalar_one() or 0) + 1)
    payload = make_payload(EventType.BROKEN, error=said, error_class=error_class, broken_at=to_rfc3339(now))
    connection.execute(
        history.insert().values(
            schedule_uid=schedule_uid,
            sequence=sequence,
            namespace=row.namespace,
            event_type=EventType.BROKEN.value,
            recorded_at=now,
            payload=encode(payload),
        )
    )
    connection.execute(
        update(positions)
        .where(positions.c.schedule_uid == schedule_uid)
        .values(
            status=Status.BROKEN.value,
            next_sequence=sequence + 1,
            last_error=said,
            last_error_at=now,
            last_dispatch_status=dispatch_status(Obstacle.BROKEN),
        )
    )
    return True
