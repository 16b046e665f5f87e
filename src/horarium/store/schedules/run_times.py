"""The open runs of many schedules and how long their last runs took: one statement for all of them.

Only forecasts ask this, and only about schedules on which it makes a difference; a tick never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from statistics import median_low
from typing import Any, Final

from sqlalchemy import Connection

from horarium.decision.facts import OpenRun, RunTimes
from horarium.ids import id_text
from horarium.instant import Instant
from horarium.schedule.run import Origin, RunState
from horarium.store.runs import everywhere
from horarium.store.runs.states import OPEN_ROOT

HISTORY: Final = 30
"""Durations that the median is taken of."""
_MOST_OPEN: Final = 100
# Runs of one schedule among which the last durations are looked for. Among the newest are the steps of workflows, which
# may be all of them; the newest occurrences have root runs alone.
_LOOKED_AT: Final = 300
_OCCURRENCES: Final = 2 * HISTORY
# Older SQLites take 999 variables in one statement.
_AT_ONCE: Final = 900
_COLUMNS = (
    "schedule_uid, run_id, state, origin, nominal, ready_at, created_at, started_at, finished_at, stop_requested_at"
)
# As the index of occurrences has it.
_OF_OCCURRENCES: Final = f"origin IN ('{Origin.SCHEDULED.value}', '{Origin.BACKFILL.value}')"
_FINISHED = "parent_run_id IS NULL AND finished_at IS NOT NULL AND started_at IS NOT NULL"
# Of the run itself or of its steps: it goes on after the last of them.
_EXPIRES = (
    "(SELECT max(a.expires_at) FROM approvals a WHERE a.schedule_uid = r.schedule_uid AND a.decision = 'pending'"
    " AND (a.run_id = r.run_id OR a.root_run_id = r.run_id))"
)


def run_times(connection: Connection, uids: Sequence[bytes], now: Instant) -> dict[bytes, RunTimes]:
    """By schedule; those without open and finished runs are left out."""
    found: dict[bytes, RunTimes] = {}
    for start in range(0, len(uids), _AT_ONCE):
        rows = _read(connection, uids[start : start + _AT_ONCE])
        for uid, mine in groupby(sorted(rows, key=itemgetter(0)), itemgetter(0)):
            found[bytes(uid)] = _times(list(mine), now)
    return found


def _read(connection: Connection, uids: Sequence[bytes]) -> Sequence[Any]:
    if connection.dialect.name == "postgresql":
        statement = _postgres(has_archive=everywhere.has_archive(connection))
        return connection.exec_driver_sql(statement, {"uids": list(uids)}).all()
    marks = ", ".join("?" * len(uids))
    return connection.exec_driver_sql(_SQLITE.replace("UIDS", marks), tuple(uids)).all()


def _times(rows: Sequence[Any], now: Instant) -> RunTimes:
    durations = [max(0, row.finished_at - row.started_at) for row in rows if row.finished_at is not None]
    open_runs = sorted((row for row in rows if row.finished_at is None), key=lambda row: bytes(row.run_id))
    return RunTimes(tuple(_open(row, now) for row in open_runs), median_low(durations) if durations else None)


def _open(row: Any, now: Instant) -> OpenRun:
    is_held = row.state == RunState.HELD.value
    return OpenRun(
        run_id=id_text(bytes(row.run_id)),
        since=row.created_at if row.started_at is None else row.started_at,
        nominal=row.nominal,
        is_held=is_held,
        is_waiting=row.state == RunState.AWAITING_APPROVAL.value,
        backfilled=row.origin == Origin.BACKFILL.value,
        release_at=row.ready_at if is_held and row.ready_at > now else None,
        expires_at=row.expires_at,
        stop_at=row.stop_requested_at,
    )


def _newest(table: str, uid: str) -> str:
    """The last finished root runs of a schedule, among the newest of its runs and of its occurrences."""
    mine = f"SELECT {_COLUMNS}, parent_run_id FROM {table} WHERE schedule_uid = {uid}"
    return f"""SELECT * FROM (
    SELECT * FROM ({mine} ORDER BY run_id DESC LIMIT {_LOOKED_AT}) newest
    UNION
    SELECT * FROM ({mine} AND {_OF_OCCURRENCES} ORDER BY nominal DESC LIMIT {_OCCURRENCES}) occurrences
  ) looked_at WHERE {_FINISHED} ORDER BY run_id DESC LIMIT {HISTORY}"""


_OPEN = f"schedule_uid = p.schedule_uid AND {OPEN_ROOT} ORDER BY run_id LIMIT {_MOST_OPEN}"
_SQLITE = f"""
SELECT {", ".join(f"r.{each}" for each in _COLUMNS.split(", "))}, {_EXPIRES} AS expires_at
FROM positions p CROSS JOIN runs r
WHERE p.schedule_uid IN (UIDS) AND r.run_id IN (
  SELECT run_id FROM (SELECT run_id FROM runs WHERE {_OPEN})
  UNION ALL SELECT run_id FROM ({_newest("runs", "p.schedule_uid")})
)
"""


@lru_cache(maxsize=2)
def _postgres(*, has_archive: bool) -> str:
    tables = ("runs", "runs_archive") if has_archive else ("runs",)
    pieces = " UNION ALL ".join(f"({_newest(table, 'p.schedule_uid')})" for table in tables)
    names = ", ".join(f"r.{each}" for each in _COLUMNS.split(", "))
    return f"""
SELECT {names}, CASE WHEN r.finished_at IS NULL THEN {_EXPIRES} END AS expires_at
FROM positions p CROSS JOIN LATERAL (
  (SELECT {_COLUMNS} FROM runs WHERE {_OPEN})
  UNION ALL
  (SELECT {_COLUMNS} FROM ({pieces}) ended ORDER BY run_id DESC LIMIT {HISTORY})
) r
WHERE p.schedule_uid = ANY(%(uids)s::bytea[])
"""
