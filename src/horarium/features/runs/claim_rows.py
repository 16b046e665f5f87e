"""SQL that claims ready runs and renews their leases.

A claim has three steps. Ready runs are looked up by namespace and target, through an index that is skipped from
one pair to the next, so that ten thousand runs for one target cost as much as one. Of each pair as many candidates
are locked as there is capacity. The dispatcher takes some of them: `lease_epoch` moves with every claim, and an answer
for an older epoch has lost its lease. A run that awaits approval is not `ready`, so no claim can see it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, TextClause, text, update

from horarium.core.document.reader import CELERY
from horarium.core.document.states import RunEventType, RunState
from horarium.features.runs import update_rows
from horarium.features.runs.work_rows import COLUMNS, ClaimCandidate, ReadyTarget, RunWork, as_works, run_works
from horarium.instant import MILLISECOND, SECOND, Instant
from horarium.platform.database import run_archive
from horarium.platform.database.statements import event_text
from horarium.platform.database.tables import runs

# ── looking ──────────────────────────────────────────────────────────────────────────────────────────

_NEXT_NAMESPACE = "SELECT namespace FROM runs WHERE state = 'ready' AND namespace > {after} ORDER BY namespace LIMIT 1"
_NEXT_TARGET = (
    "SELECT target FROM runs WHERE state = 'ready' AND namespace = {namespace} AND target > {after} "
    "ORDER BY target LIMIT 1"
)
_NAMESPACES_POSTGRES = text(f"""
WITH RECURSIVE found AS (
  ({_NEXT_NAMESPACE.format(after=":after")})
  UNION ALL
  SELECT more.namespace FROM found CROSS JOIN LATERAL ({_NEXT_NAMESPACE.format(after="found.namespace")}) AS more
)
SELECT namespace FROM found LIMIT :limit
""")
_TARGETS_POSTGRES = text(f"""
SELECT asked.namespace, ready.target
FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, after text)
CROSS JOIN LATERAL (
  WITH RECURSIVE found AS (
    ({_NEXT_TARGET.format(namespace="asked.namespace", after="asked.after")})
    UNION ALL
    SELECT more.target FROM found
    CROSS JOIN LATERAL ({_NEXT_TARGET.format(namespace="asked.namespace", after="found.target")}) AS more
  )
  SELECT target FROM found LIMIT :limit
) AS ready
""")


def ready_namespaces(connection: Connection, *, after: str, limit: int) -> list[str]:
    """Those with ready runs, in order, from `after` on and round to the beginning."""
    later = _namespaces(connection, after, limit)
    if not after or len(later) == limit:
        return later
    earlier = [namespace for namespace in _namespaces(connection, "", limit) if namespace <= after]
    return [*later, *earlier][:limit]


def _namespaces(connection: Connection, after: str, limit: int) -> list[str]:
    if connection.dialect.name == "postgresql":
        return list(connection.execute(_NAMESPACES_POSTGRES, {"after": after, "limit": limit}).scalars())
    return _jumps(connection, _NEXT_NAMESPACE.format(after="?"), (), after, limit)


def ready_targets(connection: Connection, asked: Mapping[str, str], limit: int) -> list[ReadyTarget]:
    """Up to `limit` targets of each namespace, starting with the one that it is mapped to."""
    if connection.dialect.name == "postgresql":
        document = event_text([{"namespace": namespace, "after": after} for namespace, after in asked.items()])
        rows = connection.execute(_TARGETS_POSTGRES, {"asked": document, "limit": limit})
        return [ReadyTarget(*row) for row in rows]
    statement = _NEXT_TARGET.format(namespace="?", after="?")
    return [
        ReadyTarget(namespace, target)
        for namespace, after in asked.items()
        for target in _jumps(connection, statement, (namespace,), after, limit)
    ]


def _jumps(connection: Connection, statement: str, first: tuple[str, ...], after: str, limit: int) -> list[str]:
    """SQLite is in this process: a seek costs less than the recursion that would do it in one statement."""
    found: list[str] = []
    cursor = connection.connection.cursor()
    try:
        while len(found) < limit:
            row = cursor.execute(statement, (*first, after)).fetchone()
            if row is None:
                break
            after = row[0]
            found.append(after)
    finally:
        cursor.close()
    return found


def put_off(connection: Connection, run_id: bytes, until: Instant) -> None:
    """Keep a run that cannot be taken out of the way of the others until then."""
    connection.execute(update(runs).where(runs.c.run_id == run_id, runs.c.state == "ready").values(ready_at=until))


# ── taking ───────────────────────────────────────────────────────────────────────────────────────────

_OF_ONE = """
  SELECT namespace, target, -priority, ready_at, run_id, heard FROM runs
  WHERE state = 'ready' AND namespace = {namespace} AND target = {target} AND ready_at <= {now}
    AND stop_requested_at IS NULL
  ORDER BY priority DESC, ready_at, run_id LIMIT {places}
"""
_CANDIDATES_POSTGRES = text(f"""
SELECT ready.* FROM json_to_recordset(CAST(:asked AS json)) AS asked(namespace text, target text, places int)
CROSS JOIN LATERAL (
  {_OF_ONE.format(namespace="asked.namespace", target="asked.target", now=":now", places="asked.places")}
  FOR UPDATE SKIP LOCKED
) AS ready
""")
_CANDIDATES_SQLITE = _OF_ONE.format(namespace="?", target="?", now="?", places="?")


def candidates(connection: Connection, places: Sequence[tuple[ReadyTarget, int]], now: Instant) -> list[ClaimCandidate]:
    """Lock candidates until the transaction ends, for each target as many as it has places for."""
    if not places:
        return []
    if connection.dialect.name == "postgresql":
        document = event_text([{**target._asdict(), "places": most} for target, most in places])
        rows = connection.execute(_CANDIDATES_POSTGRES, {"asked": document, "now": now})
        return [ClaimCandidate(*row) for row in rows]
    return [
        ClaimCandidate(*row)
        for target, most in places
        for row in connection.exec_driver_sql(_CANDIDATES_SQLITE, (*target, now, most))
    ]


# The time of an attempt begins here, and ends with the time of the whole run if that comes first. What was begun before
# and is only followed has the time that it had, and so has what waits for its broker.
_WHOLE = f"COALESCE(ends_by, {{now}} + {{runtime}} * CAST({SECOND} AS BIGINT))"
_ATTEMPT = f"{{now}} + COALESCE(attempt_ms, timeout_seconds * CAST(1000 AS BIGINT)) * {MILLISECOND}"
_TAKE = f"""
UPDATE runs SET state = {{state}}, lease_epoch = lease_epoch + 1, lease_owner = {{owner}}, lease_until = {{until}},
  claimed_by = NULL, launches = launches + 1, started_at = COALESCE(started_at, {{now}}), ends_by = {_WHOLE},
  deadline = CASE WHEN deadline IS NOT NULL AND (reference IS NOT NULL OR kind = '{CELERY.name}') THEN deadline
    WHEN {_WHOLE} < {_ATTEMPT} THEN {_WHOLE} ELSE {_ATTEMPT} END, next_event = next_event + {{told}}
WHERE state = 'ready' AND run_id {{ids}}
RETURNING {COLUMNS}
"""


def _runtime(cap: int | None) -> str:
    """Seconds that all attempts together may take: as the run says, and not more than everybody may."""
    if cap is None:
        return "runtime_seconds"
    return f"CASE WHEN runtime_seconds < {cap:d} THEN runtime_seconds ELSE {cap:d} END"


@lru_cache(maxsize=4)
def _take_postgres(cap: int | None) -> TextClause:
    return text(
        _TAKE.format(
            state="CASE WHEN run_id = ANY(:here) THEN 'running' ELSE 'launching' END",
            owner=":owner",
            until=":until",
            now=":now",
            runtime=_runtime(cap),
            told="CASE WHEN parent_run_id IS NOT NULL AND run_id = ANY(:here) THEN 1 ELSE 0 END",
            ids="= ANY(:ids)",
        )
    )


# A step that runs from now on says so in its stream.
_IS_STEP = "CASE WHEN parent_run_id IS NULL THEN 0 ELSE 1 END"
# How often the moment stands in the statement.
_TIMES = _TAKE.count("{now}")


@lru_cache(maxsize=1_024)
def _take_sqlite(state: str, count: int, cap: int | None) -> str:
    ids = f"IN ({', '.join('?' * count)})"
    told = _IS_STEP if state == RunState.RUNNING else "0"
    return _TAKE.format(state=f"'{state}'", owner="?", until="?", now="?", runtime=_runtime(cap), told=told, ids=ids)


def take(
    connection: Connection,
    chosen: Collection[bytes],
    *,
    here: Collection[bytes] = (),
    owner: str,
    now: Instant,
    lease_seconds: int,
    runtime_cap: int | None = None,
) -> list[RunWork]:
    """Chosen candidates are ours until their leases end. Those in `here` are worked on by this process: they run.

    No run may take more than `runtime_cap` seconds with all its attempts.
    """
    if not chosen:
        return []
    until = now + lease_seconds * SECOND
    if connection.dialect.name == "postgresql":
        values = {"ids": list(chosen), "here": list(here), "owner": owner, "until": until, "now": now}
        return _begun(connection, as_works(connection.execute(_take_postgres(runtime_cap), values)), now)
    works: list[RunWork] = []
    for state, ids in (("running", [*here]), ("launching", [each for each in chosen if each not in here])):
        if ids:
            times = (now,) * _TIMES
            statement = _take_sqlite(state, len(ids), runtime_cap)
            works += as_works(connection.exec_driver_sql(statement, (owner, until, *times, *ids)))
    return _begun(connection, works, now)


def _begun(connection: Connection, works: list[RunWork], now: Instant, worker: str | None = None) -> list[RunWork]:
    """Steps that run from now on have taken a number for that; `worker` is who claimed them."""
    started = [work for work in works if work.parent_run_id is not None and work.state == RunState.RUNNING]
    by = {} if worker is None else {"worker": worker}
    said = [({"node_id": work.node_id, "attempt": work.attempt, **by}, work) for work in started]
    told = [(work.run_id, work.next_event - 1, RunEventType.NODE_STARTED, values) for values, work in said]
    update_rows.append_events(connection, told, now=now)
    return works


_TAKE_QUEUED = f"""
UPDATE runs SET state = 'running', lease_epoch = lease_epoch + 1, lease_owner = :owner, lease_until = :until,
  claimed_by = :claimed_by, started_at = COALESCE(started_at, :now), next_event = next_event + {_IS_STEP}
WHERE run_id IN (SELECT run_id FROM picked) AND state = 'queued'
RETURNING {COLUMNS}
"""
# What is assigned to somebody is nobody else's to take, and what a team was given is for the member whose turn it is;
# whoever may read everything takes for all.
_FOR_WHOM = (
    "(CAST(:agent AS TEXT) IS NULL OR assignee IS NULL OR member = :agent"
    " OR (assignee = :agent AND COALESCE(assignee_type, 'agent') <> 'team'))"
)
# What a broker has is for the workers of that broker, whatever its queue is called there.
_OF_OURS = f"kind <> '{CELERY.name}'"
_QUEUE_CLAIM = f"""
WITH picked AS MATERIALIZED (
  SELECT run_id FROM runs
  WHERE namespace = :namespace AND queue = :queue AND state = 'queued' AND deadline > :now
    AND stop_requested_at IS NULL AND {_OF_OURS} AND {_FOR_WHOM}
  ORDER BY priority DESC, run_id LIMIT :limit LOCK
)
{_TAKE_QUEUED}
"""
_OF_ONE_TYPE = f"""
  SELECT run_id, -priority AS rank FROM runs
  WHERE namespace = :namespace AND queue = :queue AND state = 'queued' AND workflow = {{workflow}} AND deadline > :now
    AND stop_requested_at IS NULL AND {_OF_OURS} AND {_FOR_WHOM}
  ORDER BY priority DESC, run_id LIMIT :limit
"""
# Of each type as many as are wanted are locked, and the best are taken. Who claims at the same moment passes over
# the others, too, and finds them with its next claim: the lock ends with this statement's transaction.
_QUEUE_CLAIM_BY_TYPE = f"""
WITH picked AS MATERIALIZED (
  SELECT waiting.run_id FROM json_array_elements_text(CAST(:types AS json)) AS asked(workflow)
  CROSS JOIN LATERAL ({_OF_ONE_TYPE.format(workflow="asked.workflow")} LOCK) AS waiting
  ORDER BY waiting.rank, waiting.run_id LIMIT :limit
)
{_TAKE_QUEUED}
"""
_QUEUE_CLAIM_BY_ID = f"WITH picked AS (SELECT run_id FROM runs WHERE run_id IN :ids) {_TAKE_QUEUED}"


def claim_queued(
    connection: Connection,
    *,
    namespace: str,
    queue: str,
    owner: str,
    now: Instant,
    lease_seconds: int,
    limit: int,
    types: Sequence[str] | None = None,
    claimed_by: str | None = None,
    agent: str | None = None,
) -> list[RunWork]:
    """Claim runs of a pull queue for an external worker: the highest priority first, then the oldest.

    `types` are the workflow types that the worker supports, None = any; runs of other types stay queued. `claimed_by`
    is the principal whose reports are accepted. An `agent` receives unassigned runs and its own.
    """
    held = {"owner": owner, "claimed_by": claimed_by, "until": now + lease_seconds * SECOND, "now": now}
    where = {"namespace": namespace, "queue": queue, "limit": limit, "agent": agent}
    if types is None:
        return _begun(connection, run_works(connection, _QUEUE_CLAIM, {**held, **where}), now, owner)
    if connection.dialect.name == "postgresql":
        asked = {**held, **where, "types": event_text(list(types))}
        return _begun(connection, run_works(connection, _QUEUE_CLAIM_BY_TYPE, asked), now, owner)
    ids = _best_of_types(connection, types, {**where, "now": now})
    taken = run_works(connection, _QUEUE_CLAIM_BY_ID, {**held, "ids": ids}) if ids else []
    return _begun(connection, taken, now, owner)


def _best_of_types(connection: Connection, types: Sequence[str], where: Mapping[str, object]) -> list[bytes]:
    """SQLite has no lateral join, and nobody else writes meanwhile: a seek for each type does the same."""
    statement = text(_OF_ONE_TYPE.format(workflow=":workflow"))
    waiting = (row for each in types for row in connection.execute(statement, {**where, "workflow": each}))
    best = heapq.nsmallest(int(str(where["limit"])), ((row.rank, row.run_id) for row in waiting))
    return [run_id for _, run_id in best]


def note_worker(connection: Connection, run_id: bytes, principal: str) -> None:
    """Somebody who was handed the run by its target and works on it, unless somebody claimed it."""
    for table in run_archive.tables(connection):
        nobody = update(table).where(table.c.run_id == run_id, table.c.claimed_by.is_(None))
        connection.execute(nobody.values(claimed_by=principal))


# ── keeping ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Renewed:
    stop_requested: bool


def renew(connection: Connection, works: Sequence[RunWork], until: Instant) -> dict[tuple[bytes, int], Renewed]:
    """By run and epoch. Leases that are still ours live on; those that are not are missing from the answer."""
    by_epoch: dict[int, list[bytes]] = defaultdict(list)
    for work in works:
        by_epoch[work.lease_epoch].append(work.run_id)
    kept: dict[tuple[bytes, int], Renewed] = {}
    for epoch, run_ids in sorted(by_epoch.items()):
        done = connection.execute(
            update(runs)
            .where(runs.c.run_id.in_(run_ids), runs.c.lease_epoch == epoch, runs.c.lease_until.is_not(None))
            .values(lease_until=until)
            .returning(runs.c.run_id, runs.c.stop_requested_at)
        )
        kept |= {(row.run_id, epoch): Renewed(row.stop_requested_at is not None) for row in done}
    return kept
