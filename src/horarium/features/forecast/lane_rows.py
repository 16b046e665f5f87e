"""SQL of decided occurrences of many schedules: counted by buckets, read one by one, or the newest of each.

A schedule may have millions of events. Each is read along its own history, from the first event that can lie in the
window, so that the cost grows with the window and not with what is stored. The newest are read backwards, one statement
for all schedules, and only some numbers back, so that frequent edits of a schedule cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, starmap
from operator import itemgetter
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.agenda import MISSED_REASONS, Grid, LaneCounts
from horarium.core.decision.statuses import HAPPENED, MOST_RECENT, Happened, Recent
from horarium.core.document.states import UNSUCCESSFUL, EventType, Origin, RunState
from horarium.features.forecast.rows import OccurrenceEvent, events_of, window
from horarium.features.history.rows import recorded_since
from horarium.instant import DAY, LAST, Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.tables import history

_SHORT: Final = 2_000
"""Histories up to this length are read whole."""

_DID_RUN: Final = f"h.event_type IN ('{EventType.TRIGGERED.value}', '{EventType.BUFFERED.value}')"
# As the index of occurrences has it.
_OF_OCCURRENCES: Final = sa.text(f"origin IN ('{Origin.SCHEDULED.value}', '{Origin.BACKFILL.value}')")


class StoredLane(NamedTuple):
    """A schedule whose events are read from the number `first` on."""

    schedule_uid: bytes
    first: int


Place = tuple[bytes, int]
"""A schedule and the number of a bucket."""


def first_events(connection: Connection, next_sequences: Mapping[bytes, int], start: Instant) -> list[StoredLane]:
    """Find the first event of each schedule that can be about an occurrence of `start` or later.

    Numbers and times rise together, so a long history is searched by halves; all schedules take one step at a time.
    """
    since = recorded_since(start)
    found = dict.fromkeys(next_sequences, 1)
    bounds = {uid: (1, following) for uid, following in next_sequences.items() if following > _SHORT}
    while bounds:
        middles = {uid: (low + high) // 2 for uid, (low, high) in bounds.items()}
        times = _recorded_at(connection, middles)
        for uid, middle in middles.items():
            low, high = bounds[uid]
            # Where retention has removed an event, the oldest one that is kept stands for it.
            low, high = (middle + 1, high) if times.get(uid, since) < since else (low, middle)
            found[uid] = low
            bounds[uid] = (low, high)
        bounds = {uid: (low, high) for uid, (low, high) in bounds.items() if high - low > _SHORT // 4}
    return [StoredLane(uid, first) for uid, first in found.items()]


def newest(connection: Connection, uid: bytes, next_sequence: int, most: int) -> tuple[StoredLane, Instant | None]:
    """The last events of a schedule, and since when they are whole; None = from its creation on."""
    lane = StoredLane(uid, max(1, next_sequence - most))
    found = connection.execute(
        sa.select(history.c.sequence, history.c.recorded_at)
        .where(history.c.schedule_uid == uid, history.c.sequence >= lane.first)
        .order_by(history.c.sequence)
        .limit(1)
    ).first()
    is_whole = found is not None and found.sequence == 1
    return lane, None if is_whole else LAST if found is None else found.recorded_at


def _recorded_at(connection: Connection, numbers: Mapping[bytes, int]) -> dict[bytes, Instant]:
    """Read when the event of a number was recorded, or the first one after it."""
    text = (
        "SELECT lane.uid, (SELECT h.recorded_at FROM history h WHERE h.schedule_uid = lane.uid "
        "AND h.sequence >= lane.first ORDER BY h.sequence LIMIT 1) FROM lane"
    )
    found = _execute(connection, [StoredLane(uid, number) for uid, number in numbers.items()], text)
    return {bytes(uid): at for uid, at in found if at is not None}


def count(
    connection: Connection, lanes: Sequence[StoredLane], may_have_failed: Collection[bytes], grid: Grid
) -> dict[Place, LaneCounts]:
    """Count what was decided, by schedule and bucket; an occurrence with several events counts once.

    A run comes before a skip: what was skipped and filled in later has run. A range of missed occurrences counts in
    the bucket in which it begins.
    """
    if not lanes:
        return {}
    found = {
        (bytes(uid), int(place)): LaneCounts(dispatched=int(ran), skipped=int(skipped), missed=int(missed))
        for uid, place, ran, skipped, missed in _execute(connection, lanes, _counting(connection, grid))
    }
    uids = [each.schedule_uid for each in lanes]
    for place, held in _count_runs(connection, uids, grid, (RunState.HELD,)).items():
        if place in found:
            found[place] = found[place]._replace(dispatched=found[place].dispatched - held, held=held)
    failing = [uid for uid in uids if uid in may_have_failed]
    for place, failed in _count_runs(connection, failing, grid, UNSUCCESSFUL).items():
        if place in found:
            found[place] = found[place]._replace(failed=failed)
    return found


def count_by_reason(
    connection: Connection, lane: StoredLane, after: Instant, size: Instant
) -> list[tuple[Instant, str | None, int]]:
    """Count the decided occurrences of a schedule after an instant by bucket and reason, in order; None = it ran."""
    text = (
        f"SELECT o.nominal / {size}, CASE WHEN o.ran = 0 THEN coalesce(o.missed_for, o.reason) END, sum(o.many) FROM ("
        f"SELECT h.nominal AS nominal, max(CASE WHEN {_DID_RUN} THEN 1 ELSE 0 END) AS ran, "
        f"max(CASE WHEN {_missed(connection)} THEN {_reason(connection)} END) AS missed_for, "
        f"max({_reason(connection)}) AS reason, max(CASE WHEN {_DID_RUN} THEN 1 ELSE {_many(connection)} END) AS many "
        f"{_events(connection)} WHERE h.nominal > {after} AND h.recorded_at >= {recorded_since(after)} "
        "GROUP BY h.nominal) o GROUP BY 1, 2"
    )
    found = _execute(connection, [lane], text)
    return sorted(((int(place) * size, reason, int(many)) for place, reason, many in found), key=itemgetter(0))


def read(connection: Connection, lanes: Sequence[StoredLane], start: Instant, end: Instant) -> list[OccurrenceEvent]:
    """Read all events about the occurrences of a window, the oldest occurrence first."""
    if not lanes:
        return []
    whole = [each.schedule_uid for each in lanes if each.first <= 1]
    parts = [sa.and_(history.c.schedule_uid == uid, history.c.sequence >= first) for uid, first in lanes if first > 1]
    mine = sa.or_(history.c.schedule_uid.in_(whole), *parts)
    rows = connection.execute(window(start, end).where(mine).order_by(history.c.nominal, history.c.feed_id)).all()
    return events_of(connection, rows)


def _many(connection: Connection) -> str:
    """Return the number of occurrences of an event."""
    number = (
        "CAST(substring(h.payload from '\"count\":([0-9]{1,15})') AS BIGINT)"
        if connection.dialect.name == "postgresql"
        else "CASE WHEN instr(h.payload, '\"count\":') > 0 "
        "THEN CAST(substr(h.payload, instr(h.payload, '\"count\":') + 8, 15) AS INTEGER) END"
    )
    return f"CASE WHEN h.event_type = '{EventType.MISSED.value}' THEN coalesce({number}, 1) ELSE 1 END"


def _reason(connection: Connection) -> str:
    """The first reason in a payload, which is its own: that of a command stands behind it."""
    if connection.dialect.name == "postgresql":
        return 'substring(h.payload from \'"reason":"([^"]*)"\')'
    value = 'substr(h.payload, instr(h.payload, \'"reason":"\') + 10)'
    return f"CASE WHEN instr(h.payload, '\"reason\":\"') > 0 THEN substr({value}, 1, instr({value}, '\"') - 1) END"


def _missed(connection: Connection) -> str:
    return f"{_reason(connection)} IN ({', '.join(repr(each.value) for each in sorted(MISSED_REASONS))})"


def _events(connection: Connection) -> str:
    return (
        f"FROM lane {_CROSS[connection.dialect.name]} history h "
        "ON h.schedule_uid = lane.uid AND h.sequence >= lane.first"
    )


def _counting(connection: Connection, grid: Grid) -> str:
    many = _many(connection)
    return (
        f"SELECT o.uid, (o.nominal - {grid.start}) / {grid.size}, sum(o.ran), "
        "sum(CASE WHEN o.ran = 0 AND o.missed = 0 THEN o.skipped ELSE 0 END), "
        "sum(CASE WHEN o.ran = 0 THEN o.missed ELSE 0 END) FROM ("
        "SELECT h.schedule_uid AS uid, h.nominal AS nominal, "
        f"max(CASE WHEN {_DID_RUN} THEN 1 ELSE 0 END) AS ran, "
        f"max(CASE WHEN {_DID_RUN} THEN 0 WHEN {_missed(connection)} THEN {many} ELSE 0 END) AS missed, "
        f"max(CASE WHEN {_DID_RUN} THEN 0 ELSE {many} END) AS skipped "
        f"{_events(connection)} "
        f"WHERE h.nominal IS NOT NULL AND h.nominal >= {grid.start} AND h.nominal < {grid.end} "
        f"AND h.recorded_at >= {recorded_since(grid.start)} GROUP BY h.schedule_uid, h.nominal) o GROUP BY 1, 2"
    )


# SQLite takes the tables of a CROSS JOIN in the order in which they stand.
_CROSS: Final = {"sqlite": "CROSS JOIN", "postgresql": "JOIN"}


def _execute(connection: Connection, lanes: Sequence[StoredLane], text: str) -> Iterable[Sequence[Any]]:
    """Run a query that reads from `lane (uid, first)`."""
    if connection.dialect.name == "postgresql":
        head = "WITH lane (uid, first) AS MATERIALIZED (SELECT * FROM unnest(%s::bytea[], %s::bigint[])) "
        return connection.exec_driver_sql(head + text, ([each[0] for each in lanes], [each[1] for each in lanes])).all()
    head = f"WITH lane (uid, first) AS (VALUES {', '.join(['(?, ?)'] * len(lanes))}) "
    return connection.exec_driver_sql(head + text, tuple(value for each in lanes for value in each)).all()


def _count_runs(
    connection: Connection, uids: Sequence[bytes], grid: Grid, states: Collection[RunState]
) -> dict[Place, int]:
    if not uids:
        return {}

    def asked(runs: RunsTable) -> sa.Select[Any]:
        place = (runs.c.nominal - grid.start) // sa.literal_column(str(grid.size), sa.BigInteger)
        return (
            sa.select(runs.c.schedule_uid, place, sa.func.count())
            .where(
                runs.c.schedule_uid.in_(uids),
                runs.c.nominal >= grid.start,
                runs.c.nominal < grid.end,
                runs.c.state.in_(sorted(state.value for state in states)),
                _OF_OCCURRENCES,
            )
            .group_by(sa.literal_column("1"), sa.literal_column("2"))
        )

    found: dict[Place, int] = {}
    for uid, number, many in run_archive.rows_everywhere(connection, asked):
        key = (bytes(uid), int(number))
        found[key] = found.get(key, 0) + many
    return found


MOST_LOOKED_AT: Final = 3 * MOST_RECENT
"""Of the numbers of a schedule's history, the newest ones."""

# PostgreSQL keeps history by weeks. Most schedules have had enough occurrences in the first of these spans, and no
# week before it is looked at for them.
_SPANS: Final = (8 * DAY, 36 * DAY)
# Enough for the members that stand before any that somebody else may fill.
_PAYLOAD_CHARS = 400
_REASON = re.compile(r'"reason":"([a-z_]{1,64})"')
_ORIGIN = re.compile(r'"origin":"([a-z_]{1,32})"')
_COUNT = re.compile(r'"count":([0-9]{1,18})[,}]')
_KINDS = ", ".join(f"'{kind.value}'" for kind in HAPPENED)
# The release of a run that was held is no decision: that was the hold.
_DECISIONS = f"""event_type IN ({_KINDS})
  AND (event_type <> '{EventType.TRIGGERED.value}' OR payload NOT LIKE '%"from_buffer":true%')"""
_RUN = "state, origin, due, started_at, finished_at, covers_count"
_BIRTHS = f"('{EventType.TRIGGERED.value}', '{EventType.BUFFERED.value}')"

# The lowest number that is wanted is found first, and then all from there on are read.
_SQLITE = f"""
SELECT p.schedule_uid, h.event_type, coalesce(h.nominal, h.recorded_at), h.run_id,
  CASE WHEN h.event_type NOT IN {_BIRTHS} THEN substr(h.payload, 1, {_PAYLOAD_CHARS}) END,
  r.state, r.origin, r.due, r.started_at, r.finished_at, r.covers_count
FROM positions p CROSS JOIN history h ON h.schedule_uid = p.schedule_uid AND h.sequence >= coalesce((
  SELECT sequence FROM history
  WHERE schedule_uid = p.schedule_uid AND sequence >= p.next_sequence - {MOST_LOOKED_AT} AND {_DECISIONS}
  ORDER BY sequence DESC LIMIT 1 OFFSET {MOST_RECENT - 1}), p.next_sequence - {MOST_LOOKED_AT})
LEFT JOIN runs r ON r.run_id = h.run_id
WHERE p.schedule_uid IN (UIDS) AND {_DECISIONS.replace("event_type", "h.event_type").replace("payload", "h.payload")}
"""


def newest_outcomes(connection: Connection, uids: Sequence[bytes], now: Instant) -> dict[bytes, list[Recent]]:
    """At most `MOST_RECENT` runs of each schedule that has any, in no order."""
    if not uids:
        return {}
    if connection.dialect.name == "postgresql":
        marks = {f"span{place}": now - span for place, span in enumerate(_SPANS)}
        statement = _postgres(has_archive=run_archive.has_archive(connection))
        rows = connection.exec_driver_sql(statement, {"uids": list(uids), **marks})
    else:
        rows = connection.exec_driver_sql(_SQLITE.replace("UIDS", ", ".join("?" * len(uids))), tuple(uids))
    found: dict[bytes, list[Recent]] = {}
    # A page has thousands of them: all are fetched at once, and told apart by their first column as they come.
    for uid, several in groupby(rows.all(), itemgetter(0)):
        found.setdefault(bytes(uid), []).extend(starmap(_recent, several))
    return found


_STATES: Mapping[str | None, RunState] = {state.value: state for state in RunState}
_ORIGINS: Mapping[str | None, Origin] = {origin.value: origin for origin in Origin}
_OUTCOMES: Mapping[str, Happened] = {kind.value: word for kind, word in HAPPENED.items()}


def _recent(
    _uid: bytes,
    kind: str,
    at: Instant,
    run_id: bytes | None,
    said: str | None,
    state: str | None,
    origin: str | None,
    due: Instant | None,
    started_at: Instant | None,
    finished_at: Instant | None,
    covers: int | None,
) -> Recent:
    outcome = _OUTCOMES[kind]
    if said is not None:
        return Recent(at, outcome, _first(_REASON, said), None, _skipped_by(said), covers=_count(outcome, said))
    known = _ORIGINS.get(origin, Origin.SCHEDULED)
    return Recent(at, outcome, None, run_id, known, _STATES.get(state), due, started_at, finished_at, covers or 1)


def _first(pattern: re.Pattern[str], said: str) -> str | None:
    found = pattern.search(said)
    return None if found is None else found[1]


def _skipped_by(said: str) -> Origin:
    return _ORIGINS.get(_first(_ORIGIN, said), Origin.SCHEDULED)


def _count(outcome: Happened, said: str) -> int:
    found = _first(_COUNT, said) if outcome is Happened.MISSED else None
    return 1 if found is None else int(found)


@lru_cache(maxsize=2)
def _postgres(*, has_archive: bool) -> str:
    edges = [None, *(f"%(span{place})s::bigint" for place in range(len(_SPANS))), None]
    pieces = " UNION ALL ".join(f"({_piece(*edges[place : place + 2])})" for place in range(len(_SPANS) + 1))
    own = f"SELECT {_RUN} FROM runs WHERE run_id = h.run_id"
    archived = f" UNION ALL SELECT {_RUN} FROM runs_archive WHERE run_id = h.run_id" if has_archive else ""
    return f"""
SELECT h.schedule_uid, h.event_type, coalesce(h.nominal, h.recorded_at), h.run_id,
  CASE WHEN h.event_type NOT IN {_BIRTHS} THEN substr(h.payload, 1, {_PAYLOAD_CHARS}) END, {_RUN}
FROM positions p
CROSS JOIN LATERAL (SELECT * FROM ({pieces}) spans LIMIT {MOST_RECENT}) h
LEFT JOIN LATERAL ({own}{archived} LIMIT 1) r ON true
WHERE p.schedule_uid = ANY(%(uids)s::bytea[])
"""


def _piece(before: str | None, since: str | None) -> str:
    """The decisions of one span, newest first; a look at the next span is had only where these are too few."""
    bounds = f"{f' AND recorded_at < {before}' if before else ''}{f' AND recorded_at >= {since}' if since else ''}"
    kinds = _DECISIONS.replace("%", "%%")
    return f"""SELECT schedule_uid, event_type, nominal, recorded_at, run_id, payload FROM history
  WHERE schedule_uid = p.schedule_uid AND sequence >= p.next_sequence - {MOST_LOOKED_AT} AND {kinds}{bounds}
  ORDER BY sequence DESC LIMIT {MOST_RECENT}"""
