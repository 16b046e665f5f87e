"""Which runs time has overtaken: lost leases, passed deadlines, unanswered requests, and those to ask how they are.

Those that look do not lock: whoever changes a run locks its position first and judges it again under lock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select, tuple_, update

from horarium.instant import SECOND, Instant
from horarium.life.react import BUSY_SECONDS
from horarium.schedule.kinds import CELERY
from horarium.store.database.set_wise import Update
from horarium.store.runs.states import HANDED_OUT_LIST, IS_NOT_STARTED, PROMPT_BUSY
from horarium.store.runs.work import Work, select_works
from horarium.store.tables import approvals, runs

# The holder of a lease keeps the deadline itself, and knows better what became of the attempt.
_HOLDERS_GRACE = 2 * SECOND
# A holder that is gone loses its lease within that time, and somebody else finds out what became of a prompt.
_PROMPTS_GRACE = 30 * SECOND
# Until a run is ended that waits for a place: its own last try, if it has one, comes first.
_LAST_TRY = 5 * SECOND


class Place(NamedTuple):
    """Up to where a list was read; the next look goes on behind it."""

    at: Instant
    run_id: bytes


BEGIN = Place(-1, b"")


def lost_leases(connection: Connection, now: Instant, limit: int, after: Place = BEGIN) -> list[Work]:
    """Runs whose holder has not been heard of: nobody knows what became of them."""
    return select_works(
        connection,
        "lease_until < :now AND (lease_until, run_id) > (:at, :run_id) ORDER BY lease_until, run_id LIMIT :limit",
        {"now": now, "limit": limit, **after._asdict()},
    )


def past_deadline(
    connection: Connection, now: Instant, limit: int, after: Place = BEGIN, *, unheard: Instant = 0
) -> list[Work]:
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


def without_place(connection: Connection, now: Instant, limit: int, after: Place = BEGIN) -> list[Work]:
    """Prompts whose agents have had no place for them for as long as that is worth waiting for.

    What an agent may have already is not one of them, however long nobody holds it.
    """
    return select_works(
        connection,
        f"{PROMPT_BUSY} AND busy_since <= :since AND NOT heard AND ready_at <= :tried "
        "AND (busy_since, run_id) > (:at, :run_id) ORDER BY busy_since, run_id LIMIT :limit",
        {"since": now - BUSY_SECONDS * SECOND, "tried": now - _LAST_TRY, "limit": limit, **after._asdict()},
    )


def asked_to_stop(connection: Connection, limit: int, after: Place = BEGIN) -> list[Work]:
    """Not yet started, and no longer wanted."""
    return select_works(
        connection,
        f"stop_requested_at IS NOT NULL AND {IS_NOT_STARTED} AND run_id > :run_id ORDER BY run_id LIMIT :limit",
        {"limit": limit, "run_id": after.run_id},
    )


def taken_and_unwanted(connection: Connection, limit: int) -> list[Work]:
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


def unanswered_approvals(connection: Connection, now: Instant, limit: int, after: Place = BEGIN) -> list[Unanswered]:
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


def to_follow(connection: Connection, kinds: Collection[str], now: Instant, limit: int) -> list[Work]:
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


def ask_later(connection: Connection, asked: Sequence[tuple[Work, Instant]]) -> None:
    """Each at its own time."""
    _ASK_LATER.run(connection, [(work.run_id, at) for work, at in asked])


_ASK_LATER = Update(runs, ("run_id", "ready_at"))


def find_work(connection: Connection, run_id: bytes) -> Work | None:
    found = select_works(connection, "run_id = :id", {"id": run_id})
    return found[0] if found else None
