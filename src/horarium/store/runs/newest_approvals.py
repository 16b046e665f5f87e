"""What was asked about runs last, and what came of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.decision.health import Waiting
from horarium.instant import Instant
from horarium.policy.approval import AGENT_AUTH, AGENT_GATES, ApprovalDecision
from horarium.policy.replying import TOLD_QUESTION
from horarium.schedule.damage import UNREADABLE, known
from horarium.store.database.json_text import from_text, names_from_text, value_from_text
from horarium.store.tables import approvals, runs

# Of values that SQLite takes in one statement there may be far more; of those that PostgreSQL plans well, not.
_AT_ONCE = 500
# Steps of one run that wait at the same time; beyond that nobody counts.
_MOST_TOLD = 2_000
_GATES_OF = 10


@dataclass(frozen=True, slots=True)
class AskedApproval:
    approval_id: bytes
    status: str
    gates: tuple[str, ...]
    expires_at: Instant
    decided_by: str | None
    decided_at: Instant | None
    reason: str | None
    question: str | None = None


def _gates(text: str | None) -> tuple[str, ...]:
    """To be shown; of a damaged row none. Where they say what is secret, they are not read by this."""
    return () if text is None else known(names_from_text(text))


def newest_approvals(connection: Connection, run_ids: Collection[bytes]) -> dict[bytes, AskedApproval]:
    """By run; a run that nobody was asked about is not there. One that came to many gates has the last of them."""
    found: dict[bytes, AskedApproval] = {}
    wanted = list(run_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        for row in connection.execute(_NEWEST, {"run_ids": wanted[start : start + _AT_ONCE]}):
            found[bytes(row.run_id)] = AskedApproval(
                row.approval_id,
                row.decision,
                _gates(row.gates),
                row.expires_at,
                row.decider,
                row.decided_at,
                row.reason,
                row.question,
            )
    return found


_place = sa.func.row_number().over(
    partition_by=approvals.c.run_id, order_by=[approvals.c.requested_at.desc(), approvals.c.approval_id.desc()]
)
_asked = (
    sa.select(
        approvals.c.run_id,
        approvals.c.approval_id,
        approvals.c.decision,
        approvals.c.gates,
        approvals.c.expires_at,
        approvals.c.decider,
        approvals.c.decided_at,
        approvals.c.reason,
        sa.func.substr(approvals.c.question, 1, TOLD_QUESTION).label("question"),
        _place.label("place"),
    )
    .where(approvals.c.run_id.in_(sa.bindparam("run_ids", expanding=True)))
    .subquery()
)
_NEWEST = sa.select(_asked).where(_asked.c.place == 1)


def approved_gates(connection: Connection, run_ids: Collection[bytes]) -> dict[bytes, tuple[str, ...]]:
    """The gates at which somebody said yes, by run; of those that never came to one nothing."""
    found: dict[bytes, dict[str, None]] = {}
    wanted = list(run_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        for run_id, gates in connection.execute(_APPROVED, {"run_ids": wanted[start : start + _AT_ONCE]}):
            found.setdefault(bytes(run_id), {}).update(dict.fromkeys(_gates(gates)))
    return {run_id: tuple(sorted(gates)) for run_id, gates in found.items() if gates}


_YES = (ApprovalDecision.APPROVED.value, ApprovalDecision.MODIFIED.value)
_APPROVED = sa.select(approvals.c.run_id, approvals.c.gates).where(
    approvals.c.run_id.in_(sa.bindparam("run_ids", expanding=True)), approvals.c.decision.in_(_YES)
)


def replies(connection: Connection, approval_ids: Collection[bytes]) -> dict[bytes, str]:
    """Replies to agents' questions, by approval; an approval without a reply counts as the word "approved"."""
    found: dict[bytes, str] = {}
    wanted = list(approval_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        for row in connection.execute(_REPLIES, {"approval_ids": wanted[start : start + _AT_ONCE]}):
            if AGENT_GATES.isdisjoint(from_text(row.gates) or ()):
                continue
            said = from_text(row.modifications) if row.modifications is not None else None
            reply = said.get("reply") if isinstance(said, dict) else None
            found[bytes(row.approval_id)] = reply if isinstance(reply, str) else ApprovalDecision.APPROVED.value
    return found


_REPLIES = sa.select(approvals.c.approval_id, approvals.c.gates, approvals.c.modifications).where(
    approvals.c.approval_id.in_(sa.bindparam("approval_ids", expanding=True)), approvals.c.decision.in_(_YES)
)


def confided(connection: Connection, run_ids: Collection[bytes]) -> dict[bytes, tuple[str, ...]]:
    """Replies to agents' requests for credentials, by run: one may be a password, and later texts may repeat it."""
    found: dict[bytes, tuple[str, ...]] = {}
    wanted = list(run_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        for row in connection.execute(_CONFIDED, {"run_ids": wanted[start : start + _AT_ONCE]}):
            said, gates = value_from_text(row.modifications), names_from_text(row.gates)
            reply = said.get("reply") if isinstance(said, dict) else None
            if (AGENT_AUTH in gates or gates == UNREADABLE) and isinstance(reply, str):
                found[bytes(row.run_id)] = (*found.get(bytes(row.run_id), ()), reply)
    return found


_CONFIDED = sa.select(approvals.c.run_id, approvals.c.gates, approvals.c.modifications).where(
    approvals.c.run_id.in_(sa.bindparam("run_ids", expanding=True)), approvals.c.modifications.is_not(None)
)


def waiting_below(connection: Connection, run_id: bytes) -> tuple[Waiting | None, tuple[str, ...]]:
    """The open questions about a root run and its steps, and the gates that the oldest of them are about."""
    below = sa.select(runs.c.run_id).where(sa.text("root_run_id IS NOT NULL"), runs.c.root_run_id == run_id)
    asked = connection.execute(
        sa.select(approvals.c.run_id, approvals.c.requested_at, approvals.c.gates)
        .where(
            approvals.c.decision == ApprovalDecision.PENDING.value,
            sa.or_(approvals.c.run_id == run_id, approvals.c.run_id.in_(below)),
        )
        .order_by(approvals.c.requested_at)
        .limit(_MOST_TOLD)
    ).all()
    if not asked:
        return None, ()
    own = sum(bytes(row.run_id) == run_id for row in asked)
    gates = dict.fromkeys(gate for row in asked[:_GATES_OF] for gate in _gates(row.gates))
    return Waiting(own, asked[0].requested_at, len(asked) - own), tuple(gates)


def outcomes(connection: Connection, approval_ids: Collection[bytes]) -> dict[bytes, str]:
    """Decisions by approval: approved, modified …"""
    if not approval_ids:
        return {}
    statement = sa.select(approvals.c.approval_id, approvals.c.decision)
    rows = connection.execute(statement.where(approvals.c.approval_id.in_(list(approval_ids))))
    return {bytes(row.approval_id): row.decision for row in rows}
