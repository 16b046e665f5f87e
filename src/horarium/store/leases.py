"""Who is alive: heartbeats, and since when there has been one without a break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.presence import Presence, join
from horarium.instant import SECOND, Instant
from horarium.store.database.json_text import object_from_text, to_text
from horarium.store.database.typed_rows import TypedRows
from horarium.store.tables import leases

TICKER = "ticker"
"""The name that all tickers keep alive together."""
AHEAD_UNTIL = "ahead_until"
"""In its info: the clock was set back, and occurrences until this instant are already decided."""
BREAKS = "breaks"
"""In its info: the short times of the last hour in which no ticker was there."""


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """`until` is when the next beat is overdue."""

    name: str
    owner: str
    since: Instant
    beat_at: Instant
    until: Instant | None
    info: dict[str, Any]


_ROWS = TypedRows(LeaseRow, leases, info=object_from_text)

_BEAT = sa.text(
    """
    INSERT INTO leases (name, owner, since, beat_at, until, info)
    VALUES (:name, :owner, :since, :beat_at, :until, :info)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, info = excluded.info, since = excluded.since,
      beat_at = excluded.beat_at, until = excluded.until
    """
)


@dataclass(frozen=True, slots=True)
class Beat:
    """The last beat of a name; `info` is empty where its text cannot be read."""

    since: Instant
    beat_at: Instant
    info: Mapping[str, Any]


def last_beat(connection: Connection, name: str, *, lock: bool = False) -> Beat | None:
    """Read the last beat; with `lock` no other process beats for this name before the transaction ends.

    A process that beats reads its clock after it has the lock: it may have waited long for it.
    """
    found = sa.select(leases.c.since, leases.c.beat_at, leases.c.info).where(leases.c.name == name)
    row = connection.execute(found.with_for_update() if lock else found).one_or_none()
    return None if row is None else Beat(row.since, row.beat_at, object_from_text(row.info))


def beat(
    connection: Connection,
    name: str,
    owner: str,
    now: Instant,
    gap_seconds: float,
    info: Mapping[str, Any],
    *,
    since: Instant | None = None,
) -> Instant:
    """Record that the owner is alive; return since when the name has been alive without a break.

    Several owners may keep one name alive together, such as all the tickers. `since`: the owner was alive from then on,
    although it could not write. A beat from a clock that is a little behind never moves the lease back.
    """
    before = last_beat(connection, name, lock=True)
    recorded = None if before is None else Presence(before.since, before.beat_at)
    joined = join(recorded, now, since, gap_seconds)
    until = joined.at + round(gap_seconds * SECOND)
    values = {"name": name, "owner": owner, "since": joined.since, "beat_at": joined.at, "until": until}
    connection.execute(_BEAT, {**values, "info": to_text(info)})
    return joined.since


def alive_since(connection: Connection, name: str) -> Instant | None:
    """As of its last beat; None = nobody has ever had the name."""
    return connection.execute(sa.select(leases.c.since).where(leases.c.name == name)).scalar_one_or_none()


def all_leases(connection: Connection) -> list[LeaseRow]:
    """Read all leases; one that cannot be read is marked, so that it keeps nobody from seeing the others."""
    return _ROWS.all_listed(connection, _ROWS.select.order_by(leases.c.name))


def forget(connection: Connection, name: str, owner: str) -> bool:
    """For a process that ends in order; whether the lease was its own."""
    statement = sa.delete(leases).where(leases.c.name == name, leases.c.owner == owner)
    return connection.execute(statement).rowcount == 1


def purge(connection: Connection, *, beat_before: Instant) -> int:
    """Removes those who have been silent for long; how many."""
    return connection.execute(sa.delete(leases).where(leases.c.beat_at < beat_before)).rowcount
