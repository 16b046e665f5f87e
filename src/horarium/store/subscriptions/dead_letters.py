"""What could not be delivered: kept with the last answer, listed, and sent again when somebody asks for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.store.database.typed_rows import TypedRows
from horarium.store.tables import dead_letters

KEPT = 1_000
"""Of one subscription; the oldest go first."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`status` is that of the last answer, None = there was none; `redeliver_at` when it was asked for once more."""

    dead_letter_id: bytes
    namespace: str
    subscription_id: bytes
    entry: str
    kind: str
    body: str
    attempts: int
    status: int | None
    error: str
    failed_at: Instant
    redeliver_at: Instant | None


_ROWS = TypedRows(DeadLetter, dead_letters)


def insert(connection: Connection, letter: DeadLetter) -> None:
    connection.execute(sa.insert(dead_letters).values(**{name: getattr(letter, name) for name in letter.__slots__}))
    of_one = dead_letters.c.subscription_id == letter.subscription_id
    newest_first = sa.select(dead_letters.c.dead_letter_id).where(of_one).order_by(dead_letters.c.dead_letter_id.desc())
    first_too_many = connection.execute(newest_first.offset(KEPT).limit(1)).scalar_one_or_none()
    if first_too_many is not None:
        old = (of_one, dead_letters.c.dead_letter_id <= first_too_many)
        connection.execute(sa.delete(dead_letters).where(*old))


def page(connection: Connection, subscription_id: bytes, *, before: bytes | None, limit: int) -> list[DeadLetter]:
    """Newest first."""
    mine = dead_letters.c.subscription_id == subscription_id
    older = sa.true() if before is None else dead_letters.c.dead_letter_id < before
    statement = _ROWS.select.where(mine, older).order_by(dead_letters.c.dead_letter_id.desc()).limit(limit)
    return _ROWS.all_listed(connection, statement)


def count(connection: Connection, subscription_ids: Collection[bytes]) -> dict[bytes, int]:
    """Count dead letters by subscription that has any."""
    statement = (
        sa.select(dead_letters.c.subscription_id, sa.func.count())
        .where(dead_letters.c.subscription_id.in_(list(subscription_ids)))
        .group_by(dead_letters.c.subscription_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def ask_for(connection: Connection, subscription_id: bytes, ids: Collection[bytes] | None, now: Instant) -> int:
    """To be sent once more, None = all; how many."""
    mine = sa.update(dead_letters).where(dead_letters.c.subscription_id == subscription_id)
    if ids is not None:
        mine = mine.where(dead_letters.c.dead_letter_id.in_(list(ids)))
    return connection.execute(mine.values(redeliver_at=now)).rowcount


def asked_for(connection: Connection, subscription_id: bytes, limit: int) -> list[DeadLetter]:
    """Read them oldest first; one that cannot be read is marked."""
    mine = (dead_letters.c.subscription_id == subscription_id, dead_letters.c.redeliver_at.is_not(None))
    return _ROWS.all_listed(connection, _ROWS.select.where(*mine).order_by(dead_letters.c.dead_letter_id).limit(limit))


def delete(connection: Connection, dead_letter_id: bytes) -> None:
    connection.execute(sa.delete(dead_letters).where(dead_letters.c.dead_letter_id == dead_letter_id))


def put_aside(connection: Connection, dead_letter_id: bytes) -> None:
    """Keep it, and do not send it again until somebody asks."""
    mine = sa.update(dead_letters).where(dead_letters.c.dead_letter_id == dead_letter_id)
    connection.execute(mine.values(redeliver_at=None))


def failed_again(connection: Connection, letter: DeadLetter, status: int | None, error: str, now: Instant) -> None:
    """It stays, and is not sent again until somebody asks."""
    connection.execute(
        sa.update(dead_letters)
        .where(dead_letters.c.dead_letter_id == letter.dead_letter_id)
        .values(attempts=letter.attempts + 1, status=status, error=error, failed_at=now, redeliver_at=None)
    )
