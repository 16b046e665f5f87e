"""How the definitions that a schedule has had are read, the newest first, and who wrote each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.schedule.event import EventType
from horarium.store.database.json_text import object_from_text
from horarium.store.database.page_bytes import Row, page, sized
from horarium.store.schedules.rows import REVISIONS, RevisionRow
from horarium.store.tables import history, schedule_revisions

_SIZED = sized(REVISIONS.select, schedule_revisions.c.document)
# Events are found by their number alone: of a schedule that fires each second half a day, of others months.
_LOOKED_AT = 50_000
_WRITING = (EventType.CREATED.value, EventType.UPDATED.value)


class Author(NamedTuple):
    """Author and reason of a revision, as far as history has retained them."""

    principal: str | None = None
    reason: str | None = None


def read_page(connection: Connection, uid: bytes, *, before: int | None, limit: int) -> tuple[list[RevisionRow], bool]:
    """Newest first, as many as fit in a page; and whether there are older ones."""
    mine = [schedule_revisions.c.schedule_uid == uid]
    if before is not None:
        mine.append(schedule_revisions.c.revision < before)
    statement = _SIZED.where(*mine).order_by(schedule_revisions.c.revision.desc()).limit(limit + 1)
    place = REVISIONS.place_of("revision")

    def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
        by_number = {row[place]: row for row in rows}
        own = (schedule_revisions.c.schedule_uid == uid, schedule_revisions.c.revision.in_(list(by_number)))
        found = connection.execute(sa.select(schedule_revisions.c.revision, schedule_revisions.c.document).where(*own))
        return {by_number[number]: document for number, document in found}

    rows, more = page(connection.execute(statement).all(), limit, REVISIONS.place_of("document"), load)
    return [REVISIONS.read(row) for row in rows], more


def authors(
    connection: Connection, uid: bytes, revisions: Sequence[RevisionRow], *, next_sequence: int
) -> dict[int, Author]:
    """By revision, as far as the newest events tell. An edit and its event are of one instant; the creation is first.

    What is read of history is about as large as the definitions themselves.
    """
    moments = {each.created_at for each in revisions}
    lately = sa.and_(history.c.recorded_at.in_(sorted(moments)), history.c.sequence >= next_sequence - _LOOKED_AT)
    told = sa.or_(lately, history.c.sequence == 1)
    statement = (
        sa.select(history.c.payload)
        .where(history.c.schedule_uid == uid, history.c.event_type.in_(_WRITING), told)
        .order_by(history.c.sequence.desc())
    )
    found: dict[int, Author] = {}
    for text in connection.execute(statement).scalars():
        payload = object_from_text(text)
        said = payload.get("command_context") or {}
        # The first of several events is the one that made it; the others changed what is no part of a definition.
        if isinstance(number := payload.get("revision"), int):
            found[number] = Author(said.get("principal"), said.get("reason"))
    return found
