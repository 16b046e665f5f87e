"""SQL of runs for the engine: the columns that launches need, the lease fence, and overdue runs.

Overdue are lost leases, passed deadlines, unanswered requests, and runs whose target is to be polled. These queries do
not lock: a change of a run locks its position first and judges the run again under lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, bindparam, select, text, tuple_, update

from horarium.core.document.reader import CELERY
from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import UsedResources
from horarium.core.lifecycle.react import BUSY_SECONDS
from horarium.instant import SECOND, Instant
from horarium.platform.database.run_archive import lock_archived, rows_by_ids_everywhere, runs_text
from horarium.platform.database.run_states import HANDED_OUT_LIST, IS_NOT_STARTED, PROMPT_BUSY
from horarium.platform.database.statements import RowUpdate, select_by_ids
from horarium.platform.database.tables import approvals, runs


class ReadyTarget(NamedTuple):
    """Somebody's runs for one target, some of which may be ready now."""

    namespace: str
    target: str


class ClaimCandidate(NamedTuple):
    """A ready run that may be taken; the order of the fields after the target is the order of taking."""

    namespace: str
    target: str
    rank: int  # priority, turned round: the least comes first
    ready_at: Instant
    run_id: bytes
    heard: bool = False  # its target may have it already


class TargetPlaces(NamedTuple):
    """Places of a target for all processes together. `capacity` None = the target cannot be read: launches are refused.

    `out`: sent and not answered for good. `followed`: those of them that wait for a process that continues them.
    """

    capacity: int | None
    out: int = 0
    followed: int = 0

    @property
    def free(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self.out)


class RunWork(NamedTuple):
    """Columns of `runs` under their own names; amounts are millionths of a credit."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes | None
    revision: int | None
    workflow: str | None
    kind: str
    target: str
    origin: str
    state: str
    nominal: Instant
    due: Instant
    attempt: int
    launches: int
    busy_since: Instant | None
    lease_epoch: int
    claimed_by: str | None
    lease_until: Instant | None
    deadline: Instant | None
    ends_by: Instant | None
    timeout_seconds: int
    attempt_ms: int | None
    queue: str | None
    delivery: str
    rotation_index: int | None
    trigger_number: int | None
    inputs: str | None
    reference: str | None
    stop_requested_at: Instant | None
    created_at: Instant
    started_at: Instant | None
    parent_run_id: bytes | None
    root_run_id: bytes | None
    node_id: str | None
    concurrency_key: str | None
    assignee: str | None
    reserved: int
    cost: int
    tokens: int
    tool_calls: int
    earlier_cost: int
    earlier_tokens: int
    earlier_tool_calls: int
    next_event: int
    needs_approval: bool
    approval_id: bytes | None
    workflow_version: int | None
    of_workflow: str | None
    of_version: int | None
    node_path: str | None
    fallback: bool
    assignee_type: str | None
    member: str | None
    effective: str | None
    gates_passed: int
    heard: bool
    priority: int = 0

    @property
    def used(self) -> UsedResources:
        return UsedResources(self.cost, self.tokens, self.tool_calls)

    @property
    def earlier(self) -> UsedResources:
        return UsedResources(self.earlier_cost, self.earlier_tokens, self.earlier_tool_calls)

    @property
    def allowed_ms(self) -> int:
        """The time of one attempt."""
        return self.timeout_seconds * 1_000 if self.attempt_ms is None else self.attempt_ms


COLUMNS = ", ".join(RunWork._fields)
_BY_ID = runs_text(lambda runs: f"SELECT {COLUMNS} FROM {runs} WHERE run_id")
_STATES = runs_text(lambda runs: f"SELECT run_id, state FROM {runs} WHERE run_id")


def select_works(connection: Connection, where: str, values: Mapping[str, Any]) -> list[RunWork]:
    return run_works(connection, f"SELECT {COLUMNS} FROM runs WHERE {where}", values)


def find_works(connection: Connection, run_ids: Sequence[bytes]) -> list[RunWork]:
    """As they are now; whoever changes one of them locks it first, and judges it again."""
    return as_works(rows_by_ids_everywhere(connection, _BY_ID, run_ids)) if run_ids else []


def states_of(connection: Connection, run_ids: Sequence[bytes]) -> dict[bytes, RunState]:
    found = rows_by_ids_everywhere(connection, _STATES, run_ids) if run_ids else []
    return {run_id: RunState(state) for run_id, state in found}


def lock_works(connection: Connection, run_ids: Sequence[bytes]) -> list[RunWork]:
    """Ours until the transaction ends, in sorted order, so that two who want the same never wait for each other."""
    tail = "ORDER BY run_id FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    return as_works(select_by_ids(connection, _BY_ID.of_runs, run_ids, tail)) if run_ids else []


def lock_any_works(connection: Connection, run_ids: Sequence[bytes]) -> list[RunWork]:
    """Also those that are over, and have moved to the archive: somebody may have a word to say about them yet."""
    live = lock_works(connection, run_ids)
    known = {run.run_id for run in live}
    return [*live, *as_works(lock_archived(connection, _BY_ID, [each for each in run_ids if each not in known]))]


def run_works(connection: Connection, sql: str, values: Mapping[str, Any]) -> list[RunWork]:
    """A statement that answers with works. LOCK in it is what each database has for that; lists are for IN."""
    lists = tuple(name for name, value in values.items() if isinstance(value, list))
    return as_works(connection.execute(_statement(sql, connection.dialect.name, lists), values))


def as_works(rows: Iterable[Sequence[Any]]) -> list[RunWork]:
    return [RunWork._make(row) for row in rows]


@lru_cache(maxsize=64)
def _statement(sql: str, dialect: str, lists: tuple[str, ...]) -> TextClause:
    """Rows that others have locked are passed over; on SQLite there are no others."""
    locked = sql.replace(" LOCK", " FOR UPDATE SKIP LOCKED" if dialect == "postgresql" else "")
    return text(locked).bindparams(*(bindparam(name, expanding=True) for name in lists))


# The holder of a lease keeps the deadline itself, and knows better what became of the attempt.
_HOLDERS_GRACE = 2 * SECOND
# A holder that is gone loses its lease within that time, and somebody else finds out what became of a prompt.
_PROMPTS_GRACE = 30 * SECOND
# Until a run is ended that waits for a place: its own last try, if it has one, comes first.
_LAST_TRY = 5 * SECOND


class LookPosition(NamedTuple):
    """Up to where a list was read; the next look goes on behind it."""

    at: Instant
    run_id: bytes


BEGIN = LookPosition(-1, b"")


def lost_leases(connection: Connection, now: Instant, limit: int, after: LookPosition = BEGIN) -> list[RunWork]:
    """Runs whose holder has not been heard of: nobody knows what became of them."""
    return select_works(
        connection,
        "lease_until < :now AND (lease_until, run_id) > (:at, :run_id) ORDER BY lease_until, run_id LIMIT :limit",
        {"now": now, "limit": limit, **after._asdict()},
    )


def past_deadline(
    connection: Connection, now: Instant, limit: int, after: LookPosition = BEGIN, *, unheard: Instant = 0
) -> list[RunWork]:
    """`unheard`: until then nobody was there to hear of runs; workers behind a broker keep their reports on file."""
    return select_works(
        connection,
        f"state IN {HANDED_OUT_LIST} AND deadline <= :now "
        "AND (lease_until IS NULL OR deadline <= CASE WHEN kind = 'prompt' THEN :long_before ELSE :before END) "
        f"AND (deadline >= :unheard OR lease_until IS NOT NULL OR kind <> '{CELERY.name}') "
        "AND (deadline, run_id) > (:at, :run_id) ORDER BY deadline, run_id LIMIT :limit",
        {
            "now": now,
            "before": now - _HOLDERS_GRACE,
            "long_before": now - _PROMPTS_GRACE,
            "unheard": unheard,
            "limit": limit,
            **after._asdict(),
        },
    )


def without_place(connection: Connection, now: Instant, limit: int, after: LookPosition = BEGIN) -> list[RunWork]:
    """Prompts whose agents have had no place for them for as long as that is worth waiting for.

    What an agent may have already is not one of them, however long nobody holds it.
    """
    return select_works(
        connection,
        f"{PROMPT_BUSY} AND busy_since <= :since AND NOT heard AND ready_at <= :tried "
        "AND (busy_since, run_id) > (:at, :run_id) ORDER BY busy_since, run_id LIMIT :limit",
        {"since": now - BUSY_SECONDS * SECOND, "tried": now - _LAST_TRY, "limit": limit, **after._asdict()},
    )


def stop_requested(connection: Connection, limit: int, after: LookPosition = BEGIN) -> list[RunWork]:
    """Not yet started, and no longer wanted."""
    return select_works(
        connection,
        f"stop_requested_at IS NOT NULL AND {IS_NOT_STARTED} AND run_id > :run_id ORDER BY run_id LIMIT :limit",
        {"limit": limit, "run_id": after.run_id},
    )


def taken_and_unwanted(connection: Connection, limit: int) -> list[RunWork]:
    """In a target's hands, not in ours, and asked to stop; a workflow passes it on to its steps instead."""
    return select_works(
        connection,
        "stop_requested_at IS NOT NULL AND state IN ('queued', 'running') AND lease_until IS NULL "
        "AND workflow_version IS NULL "
        "ORDER BY run_id LIMIT :limit",
        {"limit": limit},
    )


@dataclass(frozen=True, slots=True)
class Unanswered:
    approval_id: bytes
    run_id: bytes
    expires_at: Instant


def unanswered_approvals(
    connection: Connection, now: Instant, limit: int, after: LookPosition = BEGIN
) -> list[Unanswered]:
    """Requests that nobody answered in time."""
    late = (
        select(approvals.c.approval_id, approvals.c.run_id, approvals.c.expires_at)
        .where(
            approvals.c.decision == "pending",
            approvals.c.expires_at <= now,
            tuple_(approvals.c.expires_at, approvals.c.run_id) > tuple_(after.at, after.run_id),
        )
        .order_by(approvals.c.expires_at, approvals.c.run_id)
        .limit(limit)
    )
    return [Unanswered(*row) for row in connection.execute(late)]


def expire_approval(connection: Connection, approval_id: bytes, now: Instant) -> bool:
    """False if somebody has decided meanwhile."""
    closed = connection.execute(
        update(approvals)
        .where(approvals.c.approval_id == approval_id, approvals.c.decision == "pending")
        .values(decision="expired", decided_at=now)
    )
    return closed.rowcount == 1


def to_follow(connection: Connection, kinds: Collection[str], now: Instant, limit: int) -> list[RunWork]:
    """Accepted by a target that can be asked how it goes; `ready_at` says when to ask next.

    Nobody says when a worker behind a broker has begun, unless it reports: what a broker has is asked for as well.
    """
    if not kinds:
        return []
    return select_works(
        connection,
        f"(state = 'running' OR (state = 'queued' AND kind = '{CELERY.name}')) "
        "AND lease_until IS NULL AND kind IN :kinds AND ready_at <= :now "
        "ORDER BY ready_at LIMIT :limit LOCK",
        {"kinds": sorted(kinds), "now": now, "limit": limit},
    )


def ask_later(connection: Connection, asked: Sequence[tuple[RunWork, Instant]]) -> None:
    """Each at its own time."""
    _ASK_LATER.run(connection, [(work.run_id, at) for work, at in asked])


_ASK_LATER = RowUpdate(runs, ("run_id", "ready_at"))


def find_work(connection: Connection, run_id: bytes) -> RunWork | None:
    found = select_works(connection, "run_id = :id", {"id": run_id})
    return found[0] if found else None
