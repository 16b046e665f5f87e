"""What a tick claims when more is due than it can take: every namespace gets its part, new ones beside old ones.

A namespace that follows the last one served comes first, so a batch need not look at all of them. The
claim may leave room in a batch although more is due, and says so; it never waits for another ticker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from horarium.decision.turns import RECENT, Lane, old_shares, recent_shares, shares_of_the_rest
from horarium.instant import Instant
from horarium.store.due import COLUMNS, Claim, Plannings, claim, to_claims

# Namespaces that are looked at for one batch: most may have nothing due.
_LOOKS = 1_000
# How often what is left of a batch is given to those who have more.
_ROUNDS = 2
_LONG_AGO: Instant = -(2**62)
_UID, _NAMESPACE, _NEXT_DUE = (COLUMNS.split(", ").index(name) for name in ("schedule_uid", "namespace", "next_due"))


class Turn(NamedTuple):
    """`after` is the last namespace that was served, for the next claim; `more`: something due may be left."""

    claims: list[Claim]
    after: str
    more: bool


def claim_in_turn(connection: Connection, known: Plannings, now: Instant, limit: int, after: str) -> Turn:
    """At most `limit`; those that have just come due first."""
    names, following = _next_namespaces(connection, now, after, limit)
    if not names:
        # What is due may belong to the namespaces beyond those that were looked at.
        claims = claim(connection, known, now, limit)
        return Turn(claims, following, more=len(claims) == limit)
    batch = _Batch(connection, now, [Lane(name, is_recent) for name in names for is_recent in (False, True)])
    batch.take(old_shares(names, limit))
    batch.take(recent_shares(names, batch.taken, limit))
    for _ in range(_ROUNDS):
        batch.take(shares_of_the_rest(batch.unfinished, batch.taken, limit))
    rows = sorted(batch.rows.values(), key=lambda row: (row[_NEXT_DUE] <= now - RECENT, row[_NEXT_DUE]))
    more = bool(batch.unfinished) or following != ""
    return Turn(to_claims(connection, known, rows), following, more)


class _Batch:
    """Rows that have been claimed so far, by their uid; `unfinished` are the lanes that may have more."""

    def __init__(self, connection: Connection, now: Instant, lanes: Sequence[Lane]) -> None:
        self._connection, self._now = connection, now
        self.rows: dict[bytes, Sequence[Any]] = {}
        self.taken: dict[str, int] = {}
        self.unfinished = list(lanes)

    def take(self, shares: Mapping[Lane, int]) -> None:
        if not shares:
            return
        got = dict.fromkeys(shares, 0)
        for row in self._claim(shares):
            self.rows[row[_UID]] = row
            got[Lane(row[_NAMESPACE], row[_NEXT_DUE] > self._now - RECENT)] += 1
        for lane, count in got.items():
            self.taken[lane.namespace] = self.taken.get(lane.namespace, 0) + count
            if count < shares[lane]:
                self.unfinished.remove(lane)

    def _claim(self, shares: Mapping[Lane, int]) -> Sequence[Sequence[Any]]:
        edge = self._now - RECENT
        bounds = [(edge, self._now) if lane.is_recent else (_LONG_AGO, edge) for lane in shares]
        names, counts, mine = [lane.namespace for lane in shares], list(shares.values()), list(self.rows)
        if self._connection.dialect.name == "postgresql":
            lows, highs = (list(each) for each in zip(*bounds, strict=True))
            arguments = (names, lows, highs, counts, mine)
            return self._connection.exec_driver_sql(_CLAIM_POSTGRES, arguments).fetchall()
        rows: list[Sequence[Any]] = []
        statement = _CLAIM_SQLITE.format(marks=", ".join("?" * len(mine)))
        for name, (low, high), count in zip(names, bounds, counts, strict=True):
            rows += self._connection.exec_driver_sql(statement, (name, low, high, *mine, count)).fetchall()
        return rows


def _next_namespaces(connection: Connection, now: Instant, after: str, most: int) -> tuple[list[str], str]:
    """Namespaces with due schedules, those after a name first, and where to go on; "" = all have had their turn."""
    names, end = _look(connection, now, after, most)
    if end != "" or after == "":
        return names, end
    again, end = _look(connection, now, "", most)
    # Databases order names each in their own way: whoever is met a second time is where the round began.
    met = set(names)
    fresh = [name for name in again if name not in met]
    before = fresh[: most - len(names)]
    if len(before) < len(fresh):
        return [*names, *before], before[-1]
    return [*names, *before], "" if len(fresh) < len(again) else end


def _look(connection: Connection, now: Instant, after: str, most: int) -> tuple[list[str], str]:
    """The next namespaces with due schedules, and the last one that was looked at; "" = there are no more."""
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    rows = connection.exec_driver_sql(_NAMESPACES.format(mark=mark), (after, now, most)).fetchall()
    seen = sorted(rows, key=lambda row: row[1])
    is_cut = len(seen) == most or (bool(seen) and seen[-1][1] == _LOOKS)
    return [name for name, _, is_due in seen if is_due], seen[-1][0] if is_cut else ""


# ── the statements ───────────────────────────────────────────────────────────────────────────────────

# From one name to the next by the index, however many schedules each has. The last look is told even if
# nothing is due there: the next claim goes on from it. Here and below names and times are compared and
# ordered together: else PostgreSQL may choose the index of times, and read past all that is due elsewhere.
_NAMESPACES = f"""
WITH RECURSIVE names (name, number) AS (
  SELECT (
    SELECT namespace FROM positions WHERE status = 'active' AND namespace > {{mark}}
    ORDER BY namespace, next_due LIMIT 1
  ), 1
  UNION ALL
  SELECT (
    SELECT p.namespace FROM positions p WHERE p.status = 'active' AND p.namespace > name
    ORDER BY p.namespace, p.next_due LIMIT 1
  ), number + 1
  FROM names WHERE name IS NOT NULL AND number < {_LOOKS}
)
SELECT name, number, is_due FROM (
  SELECT name, number, (
    SELECT p.next_due FROM positions p WHERE p.status = 'active' AND (p.namespace, p.next_due) > (name, {_LONG_AGO})
    ORDER BY p.namespace, p.next_due LIMIT 1
  ) <= {{mark}} AS is_due FROM names WHERE name IS NOT NULL
) AS seen WHERE is_due OR number = {_LOOKS} LIMIT {{mark}}
"""
_CLAIM_SQLITE = (
    f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND namespace = ? AND next_due > ? AND next_due <= ? "
    "AND schedule_uid NOT IN ({marks}) ORDER BY next_due LIMIT ?"
)
# A transaction does not skip its own locks: what it has already is left out by name.
_CLAIM_POSTGRES = f"""
SELECT {", ".join(f"due.{name}" for name in COLUMNS.split(", "))}
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::int[]) AS lane (name, low, high, share)
CROSS JOIN LATERAL (
  SELECT {COLUMNS} FROM positions
  WHERE status = 'active' AND (namespace, next_due) > (lane.name, lane.low)
    AND (namespace, next_due) <= (lane.name, lane.high) AND schedule_uid <> ALL (%s::bytea[])
  ORDER BY namespace, next_due LIMIT lane.share FOR UPDATE SKIP LOCKED
) AS due
"""
