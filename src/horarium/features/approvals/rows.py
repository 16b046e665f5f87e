"""SQL of approval requests: close them, and find the newest request of each run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.health import AwaitingApprovals
from horarium.core.document.event import NoticeType
from horarium.core.document.json_values import UNREADABLE, known
from horarium.core.document.states import RunState
from horarium.core.lifecycle.event import Change, End
from horarium.core.policy.approval import AGENT_AUTH, AGENT_GATES, NEVER, TOLD_QUESTION, ApprovalDecision
from horarium.core.policy.votes import RUN_CANCELLED
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs.work_rows import RunWork
from horarium.instant import Instant, to_rfc3339
from horarium.platform.database.columns import from_text, names_from_text, value_from_text
from horarium.platform.database.statements import select_by_ids
from horarium.platform.database.tables import approvals, runs
from horarium.platform.ids import id_text


class NewApproval(NamedTuple):
    """A row of `approvals` that has just been made."""

    approval_id: bytes
    namespace: str
    run_id: bytes
    input_hash: str
    gates: str
    decision: str
    requested_at: Instant
    expires_at: Instant
    root_run_id: bytes | None
    schedule_uid: bytes | None
    workflow: str | None
    node_id: str | None
    revision: int | None
    approvals_required: int
    approvers: str
    allow_requester: bool
    requesters: str
    question: str | None = None


class Asked(Protocol):
    """Columns of `approvals` that are told."""

    @property
    def approval_id(self) -> bytes: ...
    @property
    def gates(self) -> str: ...
    @property
    def workflow(self) -> str | None: ...
    @property
    def node_id(self) -> str | None: ...
    @property
    def expires_at(self) -> Instant: ...
    @property
    def question(self) -> str | None: ...


def told_of(asked: Asked, origin: str, nominal: Instant) -> dict[str, object]:
    """Fields that every notice about an approval request has about it and its run."""
    told = {} if asked.question is None else {"question": asked.question[:TOLD_QUESTION]}
    return {
        **told,
        "approval_id": id_text(asked.approval_id),
        "gates": list(known(names_from_text(asked.gates))),
        "workflow": asked.workflow,
        "node_id": asked.node_id,
        "origin": origin,
        "occurrence_time": to_rfc3339(nominal),
        "expires_at": None if asked.expires_at >= NEVER else to_rfc3339(asked.expires_at),
    }


_TOLD = ("approval_id", "run_id", "namespace", "schedule_uid", "gates", "workflow", "node_id", "expires_at", "question")
_CLOSED_AT_ONCE = 900


def close_unanswered(connection: Connection, changed: Sequence[tuple[RunWork, Change]], now: Instant) -> None:
    """Close open approval requests of runs that ended while they waited. A decided request stays as it is."""
    by_reason: defaultdict[str | None, list[bytes]] = defaultdict(list)
    for run, change in changed:
        if isinstance(change, End) and run.state == RunState.AWAITING_APPROVAL:
            by_reason[_reason(change)].append(run.run_id)
    for reason, ended in by_reason.items():
        close_of_ended(connection, ended, now, reason)


def _reason(end: End) -> str | None:
    """A question that ran out of time has none; else why nobody can answer it any more."""
    return end.cause if end.state is RunState.EXPIRED else RUN_CANCELLED


def close_of_ended(
    connection: Connection, run_ids: Sequence[bytes], now: Instant, reason: str | None = RUN_CANCELLED
) -> None:
    """The feed tells of each that was open."""
    ids = sorted(run_ids)
    closed: list[Any] = []
    for start in range(0, len(ids), _CLOSED_AT_ONCE):
        open_ones = (approvals.c.run_id.in_(ids[start : start + _CLOSED_AT_ONCE]), approvals.c.decision == "pending")
        closing = sa.update(approvals).where(*open_ones).returning(*(approvals.c[name] for name in _TOLD))
        values = {"decision": ApprovalDecision.EXPIRED.value, "reason": reason, "decided_at": now}
        closed += connection.execute(closing.values(**values)).all()
    if not closed:
        return
    found = select_by_ids(connection, _RUNS_OF_APPROVALS, sorted({row.run_id for row in closed}))
    of_run = {run_id: (origin, nominal) for run_id, origin, nominal in found}
    told = [
        _notice_of_expiry(row, *of_run[row.run_id], reason)
        for row in sorted(closed, key=lambda row: bytes(row.approval_id))
    ]
    history_rows.append_notices(connection, told, now=now)


_RUNS_OF_APPROVALS = "SELECT run_id, origin, nominal FROM runs WHERE run_id"


def _notice_of_expiry(row: Any, origin: str, nominal: Instant, reason: str | None) -> Notice:
    values = {**told_of(row, origin, nominal), "reason": reason}
    return Notice(NoticeType.APPROVAL_EXPIRED, row.namespace, row.schedule_uid, row.run_id, values)


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


def waiting_below(connection: Connection, run_id: bytes) -> tuple[AwaitingApprovals | None, tuple[str, ...]]:
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
    return AwaitingApprovals(own, asked[0].requested_at, len(asked) - own), tuple(gates)


def outcomes(connection: Connection, approval_ids: Collection[bytes]) -> dict[bytes, str]:
    """Decisions by approval: approved, modified …"""
    if not approval_ids:
        return {}
    statement = sa.select(approvals.c.approval_id, approvals.c.decision)
    rows = connection.execute(statement.where(approvals.c.approval_id.in_(list(approval_ids))))
    return {bytes(row.approval_id): row.decision for row in rows}
