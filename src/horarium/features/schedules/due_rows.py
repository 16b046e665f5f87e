"""SQL that claims due schedules: in one statement, locked until the transaction that decides them ends.

On PostgreSQL several tickers share the work (`SKIP LOCKED`); SQLite has one writer. A claim reads `positions` only:
planning texts are compiled once and cached by their hash.

When more is due than one batch holds, every namespace gets its part, new ones beside old ones. A namespace that follows
the last one served comes first, so a batch need not look at all of them. If a claim knows that a namespace has more,
the next few claims take it without looking again: a herd of one namespace costs what it would cost without turns. A
claim may leave space in a batch although more is due, and says so; it never waits for another ticker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from horarium.core.decision.record import Counts
from horarium.core.decision.tick import RECENT, Due, DueLane, old_shares, recent_shares, shares_of_the_rest
from horarium.core.document.planning import Planning, compile_planning
from horarium.core.document.states import Position, Status
from horarium.instant import Instant
from horarium.platform.database.tables import plannings, positions

_NAMED = ("schedule_uid", "namespace", "schedule_id", "revision", "planning")
COLUMNS = ", ".join((*_NAMED, *Position._fields, *Counts._fields))
# Where the parts of a row begin.
_PLANNING, _POSITION = _NAMED.index("planning"), len(_NAMED)
_NEXT_DUE = _POSITION + Position._fields.index("next_due")
_STATUS, _COUNTS = _POSITION + Position._fields.index("status"), _POSITION + len(Position._fields)
_CLAIM_SQLITE = f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND next_due <= ? ORDER BY next_due LIMIT ?"
_CLAIM_POSTGRES = (
    f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND next_due <= %s ORDER BY next_due LIMIT %s "
    "FOR UPDATE SKIP LOCKED"
)
_AGAIN_POSTGRES = (
    f"SELECT {COLUMNS} FROM positions WHERE schedule_uid = ANY(%s) AND status = 'active' AND next_due <= %s "
    "ORDER BY next_due FOR UPDATE SKIP LOCKED"
)
_MAX_REMEMBERED = 65_536


class Claim(NamedTuple):
    """A due schedule under lock. `planning` is what could not be compiled, where it could not."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    revision: int
    next_due: Instant
    position: Position
    counts: Counts
    planning: Planning | Exception

    def due(self) -> Due:
        if isinstance(self.planning, Exception):
            raise self.planning
        return Due(self.schedule_uid, self.planning, self.position)


class Plannings:
    """Compiled planning texts by hash; a process meets each text once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Planning | Exception] = {}

    def load(self, connection: Connection, hashes: Iterable[bytes]) -> dict[bytes, Planning | Exception]:
        wanted = set(hashes)
        # What was found is kept apart: another thread may empty the memory meanwhile.
        found = {each: known for each in wanted if (known := self._known.get(each)) is not None}
        unknown = [each for each in wanted if each not in found]
        if len(self._known) + len(unknown) > _MAX_REMEMBERED:
            self._known.clear()
        for start in range(0, len(unknown), 500):
            chunk = unknown[start : start + 500]
            for planning, text in connection.execute(_TEXTS, {"hashes": chunk}):
                found[planning] = self._known[planning] = _compiled(text)
        missing = LookupError("the compiled definition of this revision does not exist any more")
        return {each: found.get(each, missing) for each in wanted}


_TEXTS = select(plannings.c.planning, plannings.c.text).where(
    plannings.c.planning.in_(bindparam("hashes", expanding=True))
)


def claim(connection: Connection, known: Plannings, now: Instant, limit: int) -> list[Claim]:
    """The most overdue first."""
    statement = _CLAIM_SQLITE if connection.dialect.name == "sqlite" else _CLAIM_POSTGRES
    rows = connection.exec_driver_sql(statement, (now, limit)).fetchall()
    return to_claims(connection, known, rows)


def claim_again(connection: Connection, known: Plannings, uids: Collection[bytes], now: Instant) -> list[Claim]:
    """The same schedules once more, after their batch failed; those that another process took are left out."""
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(uids))
        statement = (
            f"SELECT {COLUMNS} FROM positions WHERE schedule_uid IN ({marks}) AND status = 'active' "
            "AND next_due <= ? ORDER BY next_due"
        )
        rows = connection.exec_driver_sql(statement, (*uids, now)).fetchall()
    else:
        rows = connection.exec_driver_sql(_AGAIN_POSTGRES, (list(uids), now)).fetchall()
    return to_claims(connection, known, rows)


def earliest_due(connection: Connection) -> Instant | None:
    """When there will be work, or since when there has been: the age of the oldest undecided occurrence."""
    earliest: Instant | None = connection.execute(
        select(func.min(positions.c.next_due)).where(positions.c.status == Status.ACTIVE.value)
    ).scalar_one()
    return earliest


def to_claims(connection: Connection, known: Plannings, rows: Sequence[Sequence[Any]]) -> list[Claim]:
    """Convert rows with the columns of COLUMNS."""
    compiled = known.load(connection, (row[_PLANNING] for row in rows))
    return [_claim(row, compiled) for row in rows]


def _claim(row: Sequence[Any], compiled: dict[bytes, Planning | Exception]) -> Claim:
    uid, namespace, schedule_id, revision, planning = row[:_POSITION]
    position = Position._make((*row[_POSITION:_STATUS], Status.ACTIVE, *row[_STATUS + 1 : _COUNTS]))
    counts = Counts._make(row[_COUNTS:])
    return Claim(uid, namespace, schedule_id, revision, row[_NEXT_DUE], position, counts, compiled[planning])


def _compiled(text: str) -> Planning | Exception:
    try:
        return compile_planning(text)
    except Exception as wrong:  # a corrupt text is one schedule's trouble, told when that schedule is due
        return wrong


# Namespaces that are looked at for one batch: most may have nothing due.
_LOOKS = 1_000
# How often what is left of a batch is given to those who have more.
_ROUNDS = 2
# Batches that may follow a look at all namespaces before the next one: so long, at most, somebody new waits.
_BATCHES_A_LOOK = 8
_LONG_AGO: Instant = -(2**62)
_UID, _NAMESPACE, _DUE_COLUMN = (COLUMNS.split(", ").index(name) for name in ("schedule_uid", "namespace", "next_due"))


class ClaimTurn(NamedTuple):
    """`more`: something due may be left. The rest is for the next claim: the last namespace that was served, the lanes
    that may have more, and how many batches have been filled from them since all were looked at.
    """

    claims: list[Claim]
    more: bool
    after: str = ""
    lanes: tuple[DueLane, ...] = ()
    batches: int = 0


def claim_in_turn(connection: Connection, known: Plannings, now: Instant, limit: int, before: ClaimTurn) -> ClaimTurn:
    """At most `limit`; those that have just come due first. `before` is the claim before this one."""
    if not before.lanes or before.batches >= _BATCHES_A_LOOK:
        return _look_and_claim(connection, known, now, limit, before.after)
    batch = _Batch(connection, now, before.lanes)
    batch.take_the_rest(limit)
    is_full = len(batch.rows) == limit
    lanes = tuple(batch.unfinished) if is_full else ()
    return ClaimTurn(batch.claims(known), True, before.after, lanes, before.batches + 1)


def _look_and_claim(connection: Connection, known: Plannings, now: Instant, limit: int, after: str) -> ClaimTurn:
    names, following = _next_namespaces(connection, now, after, limit)
    if not names:
        # What is due may belong to the namespaces beyond those that were looked at.
        claims = claim(connection, known, now, limit)
        return ClaimTurn(claims, len(claims) == limit, following)
    batch = _Batch(connection, now, [DueLane(name, is_recent) for name in names for is_recent in (False, True)])
    batch.take(old_shares(names, limit))
    batch.take(recent_shares(names, batch.taken, limit))
    batch.take_the_rest(limit)
    more = bool(batch.unfinished) or following != ""
    # Where others have not had their turn yet, they come next.
    lanes = () if following else tuple(batch.unfinished)
    return ClaimTurn(batch.claims(known), more, following, lanes)


class _Batch:
    """Rows that have been claimed so far, by their uid; `unfinished` are the lanes that may have more."""

    def __init__(self, connection: Connection, now: Instant, lanes: Sequence[DueLane]) -> None:
        self._connection, self._now = connection, now
        self.rows: dict[bytes, Sequence[Any]] = {}
        self.taken: dict[str, int] = {}
        self.unfinished = list(lanes)

    def take(self, shares: Mapping[DueLane, int]) -> None:
        if not shares:
            return
        edge = self._now - RECENT
        rows = self._claim(shares)
        self.rows.update((row[_UID], row) for row in rows)
        got = Counter((row[_NAMESPACE], row[_DUE_COLUMN] > edge) for row in rows)
        for lane, share in shares.items():
            count = got[lane]  # a lane is such a pair
            self.taken[lane.namespace] = self.taken.get(lane.namespace, 0) + count
            if count < share:
                self.unfinished.remove(lane)

    def take_the_rest(self, limit: int) -> None:
        for _ in range(_ROUNDS):
            self.take(shares_of_the_rest(self.unfinished, self.taken, limit))

    def claims(self, known: Plannings) -> list[Claim]:
        edge = self._now - RECENT
        rows = sorted(self.rows.values(), key=lambda row: (row[_DUE_COLUMN] <= edge, row[_DUE_COLUMN]))
        return to_claims(self._connection, known, rows)

    def _claim(self, shares: Mapping[DueLane, int]) -> Sequence[Sequence[Any]]:
        edge = self._now - RECENT
        bounds = [(edge, self._now) if lane.is_recent else (_LONG_AGO, edge) for lane in shares]
        names, counts, mine = [lane.namespace for lane in shares], list(shares.values()), list(self.rows)
        if self._connection.dialect.name == "postgresql":
            lows, highs = (list(each) for each in zip(*bounds, strict=True))
            arguments = (names, lows, highs, counts, mine)
            return self._connection.exec_driver_sql(_TURN_POSTGRES, arguments).fetchall()
        rows: list[Sequence[Any]] = []
        statement = _TURN_SQLITE.format(marks=", ".join("?" * len(mine)))
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
_TURN_SQLITE = (
    f"SELECT {COLUMNS} FROM positions WHERE status = 'active' AND namespace = ? AND next_due > ? AND next_due <= ? "
    "AND schedule_uid NOT IN ({marks}) ORDER BY next_due LIMIT ?"
)
# A transaction does not skip its own locks: what it has already is left out by name.
_TURN_POSTGRES = f"""
SELECT {", ".join(f"due.{name}" for name in COLUMNS.split(", "))}
FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::int[]) AS lane (name, low, high, share)
CROSS JOIN LATERAL (
  SELECT {COLUMNS} FROM positions
  WHERE status = 'active' AND (namespace, next_due) > (lane.name, lane.low)
    AND (namespace, next_due) <= (lane.name, lane.high) AND schedule_uid <> ALL (%s::bytea[])
  ORDER BY namespace, next_due LIMIT lane.share FOR UPDATE SKIP LOCKED
) AS due
"""
