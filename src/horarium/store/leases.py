"""Who is alive: heartbeats, and since when there has been one without a break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import SECOND, Instant
from horarium.store.database.json_text import from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.tables import leases


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """`until` is when the next beat is overdue."""

    name: str
    owner: str
    since: Instant
    beat_at: Instant
    until: Instant | None
    info: dict[str, Any]


_ROWS = TypedRows(LeaseRow, leases, info=from_text)

# A beat may arrive late or from a clock that is behind: it never moves the lease back.
_BEAT = sa.text(
    """
    INSERT INTO leases (name, owner, since, beat_at, until, info)
    VALUES (:name, :owner, :now, :now, :until, :info)
    ON CONFLICT (name) DO UPDATE SET
      owner = excluded.owner,
      info = excluded.info,
      since = CASE WHEN excluded.beat_at - leases.beat_at > :gap THEN excluded.since ELSE leases.since END,
      beat_at = CASE WHEN excluded.beat_at > leases.beat_at THEN excluded.beat_at ELSE leases.beat_at END,
      until = CASE WHEN excluded.beat_at > leases.beat_at THEN excluded.until ELSE leases.until END
    RETURNING since
    """
)


def beat(
    connection: Connection, name: str, owner: str, now: Instant, gap_seconds: float, info: Mapping[str, Any]
) -> Instant:
    """Since when the name has been alive: from now, if the beat before is older than the gap.

    Several owners may keep one name alive together, such as all the tickers.
    """
    gap = round(gap_seconds * SECOND)
    values = {"name": name, "owner": owner, "now": now, "until": now + gap, "gap": gap, "info": to_text(info)}
    return int(connection.execute(_BEAT, values).scalar_one())


def alive_since(connection: Connection, name: str) -> Instant | None:
    """As of its last beat; None = nobody has ever had the name."""
    return connection.execute(sa.select(leases.c.since).where(leases.c.name == name)).scalar_one_or_none()


def all_leases(connection: Connection) -> list[LeaseRow]:
    return _ROWS.all(connection, _ROWS.select.order_by(leases.c.name))


def forget(connection: Connection, name: str, owner: str) -> bool:
    """For a process that ends in order; whether the lease was its own."""
    statement = sa.delete(leases).where(leases.c.name == name, leases.c.owner == owner)
    return connection.execute(statement).rowcount == 1


def purge(connection: Connection, *, beat_before: Instant) -> int:
    """Removes those who have been silent for long; how many."""
    return connection.execute(sa.delete(leases).where(leases.c.beat_at < beat_before)).rowcount
