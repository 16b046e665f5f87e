"""What the last occurrences of many schedules came to: one statement, whatever their number.

Each schedule's history is read backwards along its own index, and only its newest numbers: what else was written about
a schedule, by somebody who edits it all day, is not waded through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby, starmap
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection

from horarium.decision.recent import HAPPENED, MOST_RECENT, Happened, Recent
from horarium.instant import DAY, Instant
from horarium.schedule.event import EventType
from horarium.schedule.run import Origin, RunState
from horarium.store.runs import everywhere

MOST_LOOKED_AT: Final = 3 * MOST_RECENT
"""Of the numbers of a schedule's history, the newest ones."""

# PostgreSQL keeps history by weeks. Most schedules have had enough occurrences in the first of these spans, and no
# week before it is looked at for them.
_SPANS: Final = (8 * DAY, 36 * DAY)
# Enough for the members that stand before any that somebody else may fill.
_SAID = 400
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
  CASE WHEN h.event_type NOT IN {_BIRTHS} THEN substr(h.payload, 1, {_SAID}) END,
  r.state, r.origin, r.due, r.started_at, r.finished_at, r.covers_count
FROM positions p CROSS JOIN history h ON h.schedule_uid = p.schedule_uid AND h.sequence >= coalesce((
  SELECT sequence FROM history
  WHERE schedule_uid = p.schedule_uid AND sequence >= p.next_sequence - {MOST_LOOKED_AT} AND {_DECISIONS}
  ORDER BY sequence DESC LIMIT 1 OFFSET {MOST_RECENT - 1}), p.next_sequence - {MOST_LOOKED_AT})
LEFT JOIN runs r ON r.run_id = h.run_id
WHERE p.schedule_uid IN (UIDS) AND {_DECISIONS.replace("event_type", "h.event_type").replace("payload", "h.payload")}
"""


def newest(connection: Connection, uids: Sequence[bytes], now: Instant) -> dict[bytes, list[Recent]]:
    """At most `MOST_RECENT` runs of each schedule that has any, in no order."""
    if not uids:
        return {}
    if connection.dialect.name == "postgresql":
        marks = {f"span{place}": now - span for place, span in enumerate(_SPANS)}
        statement = _postgres(has_archive=everywhere.has_archive(connection))
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
  CASE WHEN h.event_type NOT IN {_BIRTHS} THEN substr(h.payload, 1, {_SAID}) END, {_RUN}
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
