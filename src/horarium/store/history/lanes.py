"""The decided occurrences of some schedules in a window of time, counted by buckets or read one by one.

A schedule may have millions of events. Each is read along its own history, from the first event that can lie in the
window, so that the cost grows with the window and not with what is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.agenda import MISSED_REASONS, Grid, LaneCounts
from horarium.instant import LAST, Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import UNSUCCESSFUL, Origin, RunState
from horarium.store.history.events import told_from
from horarium.store.history.occurrences import OccurrenceEvent, events_of, window
from horarium.store.runs import everywhere
from horarium.store.tables import history, runs

_SHORT: Final = 2_000
"""Histories up to this length are read whole."""

_DID_RUN: Final = f"h.event_type IN ('{EventType.TRIGGERED.value}', '{EventType.BUFFERED.value}')"
# As the index of occurrences has it.
_OF_OCCURRENCES: Final = sa.text(f"origin IN ('{Origin.SCHEDULED.value}', '{Origin.BACKFILL.value}')")


class Stored(NamedTuple):
    """A schedule whose events are read from the number `first` on."""

    schedule_uid: bytes
    first: int


Place = tuple[bytes, int]
"""A schedule and the number of a bucket."""


def first_events(connection: Connection, next_sequences: Mapping[bytes, int], start: Instant) -> list[Stored]:
    """Find the first event of each schedule that can be about an occurrence of `start` or later.

    Numbers and times rise together, so a long history is searched by halves; all schedules take one step at a time.
    """
    since = told_from(start)
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
    return [Stored(uid, first) for uid, first in found.items()]


def newest(connection: Connection, uid: bytes, next_sequence: int, most: int) -> tuple[Stored, Instant | None]:
    """The last events of a schedule, and since when they are whole; None = from its creation on."""
    lane = Stored(uid, max(1, next_sequence - most))
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
    found = _execute(connection, [Stored(uid, number) for uid, number in numbers.items()], text)
    return {bytes(uid): at for uid, at in found if at is not None}


def count(
    connection: Connection, lanes: Sequence[Stored], may_have_failed: Collection[bytes], grid: Grid
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
    connection: Connection, lane: Stored, after: Instant, size: Instant
) -> list[tuple[Instant, str | None, int]]:
    """Count the decided occurrences of a schedule after an instant by bucket and reason, in order; None = it ran."""
    text = (
        f"SELECT o.nominal / {size}, CASE WHEN o.ran = 0 THEN coalesce(o.missed_for, o.reason) END, sum(o.many) FROM ("
        f"SELECT h.nominal AS nominal, max(CASE WHEN {_DID_RUN} THEN 1 ELSE 0 END) AS ran, "
        f"max(CASE WHEN {_missed(connection)} THEN {_reason(connection)} END) AS missed_for, "
        f"max({_reason(connection)}) AS reason, max(CASE WHEN {_DID_RUN} THEN 1 ELSE {_many(connection)} END) AS many "
        f"{_events(connection)} WHERE h.nominal > {after} AND h.recorded_at >= {told_from(after)} "
        "GROUP BY h.nominal) o GROUP BY 1, 2"
    )
    found = _execute(connection, [lane], text)
    return sorted(((int(place) * size, reason, int(many)) for place, reason, many in found), key=itemgetter(0))


def read(connection: Connection, lanes: Sequence[Stored], start: Instant, end: Instant) -> list[OccurrenceEvent]:
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
        f"AND h.recorded_at >= {told_from(grid.start)} GROUP BY h.schedule_uid, h.nominal) o GROUP BY 1, 2"
    )


# SQLite takes the tables of a CROSS JOIN in the order in which they stand.
_CROSS: Final = {"sqlite": "CROSS JOIN", "postgresql": "JOIN"}


def _execute(connection: Connection, lanes: Sequence[Stored], text: str) -> Iterable[Sequence[Any]]:
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
    place = (runs.c.nominal - grid.start) // sa.literal_column(str(grid.size), sa.BigInteger)
    asked = (
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
    for uid, number, many in everywhere.every(connection, asked):
        key = (bytes(uid), int(number))
        found[key] = found.get(key, 0) + many
    return found
