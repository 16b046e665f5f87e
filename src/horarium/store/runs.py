"""How a run is handed out and comes back: claimed under a lease, settled under its fence.

`lease_epoch` moves with every claim. Whoever answers for an older epoch has lost his lease, and his
answer changes nothing. A run that awaits approval is not `ready`, so no claim can see it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, TextClause, bindparam, select, text, update

from horarium.instant import SECOND, Instant
from horarium.schedule.event import RunEventType
from horarium.schedule.run import RunState
from horarium.store.jsontext import kept_text
from horarium.store.record import encode
from horarium.store.tables import approvals, run_events, runs

_WORK = (
    "run_id, namespace, schedule_uid, revision, workflow, kind, origin, state, nominal, due, attempt, launches, "
    "busy_since, lease_epoch, deadline, timeout_seconds, queue, delivery, rotation_index, trigger_number, inputs, "
    "reference, stop_requested_at, created_at, started_at, root_run_id, node_id"
)


# Of what a target said, characters.
MAX_ERROR = 4_000
_IN_HAND = (RunState.LAUNCHING.value, RunState.RUNNING.value)


@dataclass(frozen=True, slots=True)
class Work:
    """A run in somebody's hands: what a launcher needs, and the fence."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    workflow: str | None
    kind: str
    origin: str
    state: str
    nominal: Instant
    due: Instant
    attempt: int
    launches: int
    busy_since: Instant | None
    lease_epoch: int
    deadline: Instant | None
    timeout_seconds: int
    queue: str | None
    delivery: str
    rotation_index: int | None
    trigger_number: int | None
    inputs: str | None
    reference: str | None
    stop_requested_at: Instant | None
    created_at: Instant
    started_at: Instant | None
    root_run_id: bytes | None
    node_id: str | None


# MATERIALIZED: picked once. As a plain subquery PostgreSQL may run it again for each row, beyond the limit.
_CLAIM = f"""
WITH picked AS MATERIALIZED (
  SELECT run_id FROM runs
  WHERE state = 'ready' AND ready_at <= :now AND kind NOT IN :full AND stop_requested_at IS NULL
  ORDER BY priority DESC, ready_at, run_id LIMIT :limit LOCK
)
UPDATE runs SET state = 'launching', lease_epoch = lease_epoch + 1, lease_owner = :owner, lease_until = :until,
  launches = launches + 1, deadline = COALESCE(deadline, :now + timeout_seconds * CAST({SECOND} AS BIGINT))
WHERE run_id IN (SELECT run_id FROM picked) AND state = 'ready'
RETURNING {_WORK}
"""


def claim_ready(
    connection: Connection,
    *,
    owner: str,
    now: Instant,
    lease_seconds: int,
    limit: int,
    full: Collection[str] = (),
) -> list[Work]:
    """Up to `limit` runs whose time has come and that nobody wants stopped; the deadline starts here.

    Kinds in `full` have no hand free.
    """
    until = now + lease_seconds * SECOND
    # An empty list is no SQL; no kind has an empty name.
    values = {"owner": owner, "until": until, "now": now, "limit": limit, "full": sorted(full) or [""]}
    return _works(connection, _CLAIM, values)


_QUEUE_CLAIM = f"""
WITH picked AS MATERIALIZED (
  SELECT run_id FROM runs
  WHERE namespace = :namespace AND queue = :queue AND state = 'queued' AND deadline > :now
    AND stop_requested_at IS NULL
  ORDER BY run_id LIMIT :limit LOCK
)
UPDATE runs SET state = 'running', lease_epoch = lease_epoch + 1, lease_owner = :owner, lease_until = :until,
  started_at = COALESCE(started_at, :now)
WHERE run_id IN (SELECT run_id FROM picked) AND state = 'queued'
RETURNING {_WORK}
"""


def claim_queued(
    connection: Connection,
    *,
    namespace: str,
    queue: str,
    owner: str,
    now: Instant,
    lease_seconds: int,
    limit: int,
) -> list[Work]:
    """What waits on a pull queue, for a worker outside; the oldest first."""
    until = now + lease_seconds * SECOND
    values = {"owner": owner, "until": until, "now": now, "namespace": namespace, "queue": queue, "limit": limit}
    return _works(connection, _QUEUE_CLAIM, values)


def mark_running(connection: Connection, works: Sequence[Work], now: Instant) -> None:
    """Work that is done in this process begins with its claim, in whose transaction this is; the lease goes on."""
    if works:
        connection.execute(
            update(runs)
            .where(runs.c.run_id.in_([work.run_id for work in works]), runs.c.state == RunState.LAUNCHING.value)
            .values(state=RunState.RUNNING.value, started_at=now)
        )


def wait_for_reports(
    connection: Connection, taken: Sequence[tuple[Work, str | None, bool]], now: Instant
) -> list[Work]:
    """Targets have taken them, each with its reference and whether it is queued: leases are over, deadlines are not.

    That counts, too, if the lease ran out meanwhile and nobody else has begun: a second delivery is spared.
    """
    if not taken:
        return []
    open_states = (*_IN_HAND, RunState.READY.value)
    ids = [work.run_id for work, _, _ in taken]
    held = select(runs.c.run_id, runs.c.lease_epoch).where(runs.c.run_id.in_(ids), runs.c.state.in_(open_states))
    epochs = {row.run_id: row.lease_epoch for row in connection.execute(held.order_by(runs.c.run_id).with_for_update())}
    ours = [each for each in taken if epochs.get(each[0].run_id) == each[0].lease_epoch]
    if ours:
        connection.execute(_WAIT, [_waiting(work, reference, queued, now) for work, reference, queued in ours])
    return [work for work, _, _ in ours]


_WAIT = (
    update(runs)
    .where(runs.c.run_id == bindparam("id"))
    .values(
        state=bindparam("new_state"),
        reference=bindparam("new_reference"),
        lease_owner=None,
        lease_until=None,
        started_at=bindparam("new_started_at"),
        queue=bindparam("new_queue"),
    )
)


def _waiting(work: Work, reference: str | None, queued: bool, now: Instant) -> dict[str, Any]:
    return {
        "id": work.run_id,
        "new_state": (RunState.QUEUED if queued else RunState.RUNNING).value,
        "new_reference": reference,
        "new_started_at": None if queued else now,
        "new_queue": work.queue if work.queue is not None or not queued else reference,
    }


def try_again(
    connection: Connection,
    work: Work,
    *,
    ready_at: Instant,
    attempt: int,
    launches: int,
    busy_since: Instant | None,
    error: str | None,
) -> bool:
    """Back to ready: a launch that did not arrive, a target that was busy, or a retry after a failure."""
    done = connection.execute(
        update(runs)
        .where(*_mine(work), runs.c.state.in_(_IN_HAND))
        .values(
            state=RunState.READY.value,
            ready_at=ready_at,
            attempt=attempt,
            launches=launches,
            busy_since=busy_since,
            error=None if error is None else kept_text(error, MAX_ERROR),
            lease_owner=None,
            lease_until=None,
            reference=None,
        )
    )
    return done.rowcount == 1


@dataclass(frozen=True, slots=True)
class Renewed:
    stop_requested: bool


def renew(connection: Connection, works: Sequence[Work], until: Instant) -> dict[bytes, Renewed]:
    """Leases that are still ours live on; those that are not are missing from the answer."""
    by_epoch: dict[int, list[bytes]] = defaultdict(list)
    for work in works:
        by_epoch[work.lease_epoch].append(work.run_id)
    kept: dict[bytes, Renewed] = {}
    for epoch, run_ids in sorted(by_epoch.items()):
        done = connection.execute(
            update(runs)
            .where(runs.c.run_id.in_(run_ids), runs.c.lease_epoch == epoch, runs.c.lease_until.is_not(None))
            .values(lease_until=until)
            .returning(runs.c.run_id, runs.c.stop_requested_at)
        )
        kept |= {row.run_id: Renewed(row.stop_requested_at is not None) for row in done}
    return kept


def release_leases(connection: Connection, works: Sequence[Work]) -> None:
    """What was claimed and not begun goes back as if nobody had touched it."""
    back = {"state": RunState.READY.value, "lease_owner": None, "lease_until": None, "started_at": None}
    for work in works:
        connection.execute(
            update(runs).where(*_mine(work), runs.c.state.in_(_IN_HAND)).values(launches=runs.c.launches - 1, **back)
        )


# The next three do not lock: whoever ends a run locks its position first and then asks again whether it is so.


def lost_leases(connection: Connection, now: Instant, limit: int) -> list[Work]:
    """Runs whose holder has not been heard of: nobody knows what became of them."""
    return _select(connection, "lease_until < :now ORDER BY lease_until LIMIT :limit", {"now": now, "limit": limit})


def has_lost_lease(connection: Connection, work: Work, now: Instant) -> bool:
    """Whether it is still so, under lock: the holder may have renewed it since it was found."""
    lost = select(runs.c.run_id).where(*_mine(work), runs.c.lease_until < now)
    return connection.execute(lost.with_for_update()).one_or_none() is not None


def past_deadline(connection: Connection, now: Instant, limit: int) -> list[Work]:
    return _select(
        connection,
        "state IN ('launching', 'queued', 'running') AND deadline <= :now ORDER BY deadline LIMIT :limit",
        {"now": now, "limit": limit},
    )


def asked_to_stop(connection: Connection, limit: int) -> list[Work]:
    """Not yet started, and no longer wanted."""
    return _select(
        connection,
        "stop_requested_at IS NOT NULL AND state IN ('held', 'awaiting_approval', 'ready') "
        "ORDER BY run_id LIMIT :limit",
        {"limit": limit},
    )


def taken_and_unwanted(connection: Connection, limit: int) -> list[Work]:
    """In a target's hands, not in ours, and asked to stop."""
    return _select(
        connection,
        "stop_requested_at IS NOT NULL AND state IN ('queued', 'running') AND lease_until IS NULL "
        "ORDER BY run_id LIMIT :limit",
        {"limit": limit},
    )


@dataclass(frozen=True, slots=True)
class Unanswered:
    approval_id: bytes
    run_id: bytes


def unanswered_approvals(connection: Connection, now: Instant, limit: int) -> list[Unanswered]:
    """Requests that nobody answered in time."""
    late = (
        select(approvals.c.approval_id, approvals.c.run_id)
        .where(approvals.c.decision == "pending", approvals.c.expires_at <= now)
        .order_by(approvals.c.expires_at)
        .limit(limit)
    )
    return [Unanswered(row.approval_id, row.run_id) for row in connection.execute(late)]


def expire_approval(connection: Connection, approval_id: bytes, now: Instant) -> bool:
    """False if somebody has decided meanwhile."""
    closed = connection.execute(
        update(approvals)
        .where(approvals.c.approval_id == approval_id, approvals.c.decision == "pending")
        .values(decision="expired", decided_at=now)
    )
    return closed.rowcount == 1


def to_follow(connection: Connection, kinds: Collection[str], now: Instant, limit: int) -> list[Work]:
    """Accepted by a target that can be asked how it goes; `ready_at` says when to ask next."""
    if not kinds:
        return []
    return _select(
        connection,
        "state = 'running' AND lease_until IS NULL AND kind IN :kinds AND ready_at <= :now "
        "ORDER BY ready_at LIMIT :limit LOCK",
        {"kinds": sorted(kinds), "now": now, "limit": limit},
    )


def ask_later(connection: Connection, work: Work, at: Instant) -> None:
    connection.execute(update(runs).where(runs.c.run_id == work.run_id).values(ready_at=at))


def add_event(
    connection: Connection, run_id: bytes, event_type: RunEventType, now: Instant, payload: dict[str, Any]
) -> None:
    """The run's own row hands out the numbers, so its stream has no gap."""
    number = connection.execute(_NUMBER, {"id": run_id}).scalar_one()
    connection.execute(
        run_events.insert().values(
            run_id=run_id, sequence=number, event_type=event_type.value, recorded_at=now, payload=encode(payload)
        )
    )


_NUMBER = (
    update(runs)
    .where(runs.c.run_id == bindparam("id"))
    .values(next_event=runs.c.next_event + 1)
    .returning(runs.c.next_event - 1)
)


def find_work(connection: Connection, run_id: bytes, *, lock: bool = False) -> Work | None:
    tail = "run_id = :id LOCK" if lock else "run_id = :id"
    found = _select(connection, tail, {"id": run_id})
    return found[0] if found else None


def _mine(work: Work) -> tuple[Any, ...]:
    """The fence: only the holder of the newest lease may change the run."""
    return runs.c.run_id == work.run_id, runs.c.lease_epoch == work.lease_epoch


def _select(connection: Connection, where: str, values: Mapping[str, Any]) -> list[Work]:
    return _works(connection, f"SELECT {_WORK} FROM runs WHERE {where}", values)


def _works(connection: Connection, sql: str, values: Mapping[str, Any]) -> list[Work]:
    lists = tuple(name for name, value in values.items() if isinstance(value, list))
    return [Work(*row) for row in connection.execute(_statement(sql, connection.dialect.name, lists), values)]


@lru_cache(maxsize=64)
def _statement(sql: str, dialect: str, lists: tuple[str, ...]) -> TextClause:
    """LOCK is what each database has for it: rows of others are passed over, or there are no others."""
    locked = sql.replace(" LOCK", " FOR UPDATE SKIP LOCKED" if dialect == "postgresql" else "")
    return text(locked).bindparams(*(bindparam(name, expanding=True) for name in lists))


def current_state(connection: Connection, run_id: bytes) -> str | None:
    state: str | None = connection.execute(select(runs.c.state).where(runs.c.run_id == run_id)).scalar_one_or_none()
    return state
