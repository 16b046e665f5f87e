"""SQL of approval requests: list, vote, decide and close them, and find the newest of each run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from horarium.core.decision.health import AwaitingApprovals
from horarium.core.document.json_values import UNREADABLE, damage_of, known
from horarium.core.document.states import NoticeType, RunState
from horarium.core.lifecycle.outcome import Change, End
from horarium.core.policy.approval import AGENT_AUTH, AGENT_GATES, MAX_NOTICE_QUESTION, NEVER, ApprovalDecision
from horarium.core.policy.votes import RUN_CANCELLED, Decision, names_of
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs.work_rows import RunWork
from horarium.instant import Instant, to_rfc3339
from horarium.platform.database import run_archive
from horarium.platform.database.statements import (
    Scope,
    TypedRows,
    from_text,
    names_from_text,
    select_by_ids,
    to_text,
    value_from_text,
    within_scope,
)
from horarium.platform.database.tables import approval_votes, approvals, runs, schedules
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


class ApprovalColumns(Protocol):
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


def notice_fields(asked: ApprovalColumns, origin: str, nominal: Instant) -> dict[str, object]:
    """Fields that every notice about an approval request has about it and its run."""
    told = {} if asked.question is None else {"question": asked.question[:MAX_NOTICE_QUESTION]}
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


_NOTICE_COLUMNS = (
    "approval_id",
    "run_id",
    "namespace",
    "schedule_uid",
    "gates",
    "workflow",
    "node_id",
    "expires_at",
    "question",
)
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
        closing = sa.update(approvals).where(*open_ones).returning(*(approvals.c[name] for name in _NOTICE_COLUMNS))
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
    values = {**notice_fields(row, origin, nominal), "reason": reason}
    return Notice(NoticeType.APPROVAL_EXPIRED, row.namespace, row.schedule_uid, row.run_id, values)


# Of values that SQLite takes in one statement there may be far more; of those that PostgreSQL plans well, not.
_AT_ONCE = 500
# Steps of one run that wait at the same time; beyond that nobody counts.
_MAX_WAITING_STEPS = 2_000
_GATES_OF = 10


@dataclass(frozen=True, slots=True)
class NewestApproval:
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


def newest_approvals(connection: Connection, run_ids: Collection[bytes]) -> dict[bytes, NewestApproval]:
    """By run; a run that nobody was asked about is not there. One that came to many gates has the last of them."""
    found: dict[bytes, NewestApproval] = {}
    wanted = list(run_ids)
    for start in range(0, len(wanted), _AT_ONCE):
        for row in connection.execute(_NEWEST, {"run_ids": wanted[start : start + _AT_ONCE]}):
            found[bytes(row.run_id)] = NewestApproval(
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
_approval_columns = (
    sa.select(
        approvals.c.run_id,
        approvals.c.approval_id,
        approvals.c.decision,
        approvals.c.gates,
        approvals.c.expires_at,
        approvals.c.decider,
        approvals.c.decided_at,
        approvals.c.reason,
        sa.func.substr(approvals.c.question, 1, MAX_NOTICE_QUESTION).label("question"),
        _place.label("place"),
    )
    .where(approvals.c.run_id.in_(sa.bindparam("run_ids", expanding=True)))
    .subquery()
)
_NEWEST = sa.select(_approval_columns).where(_approval_columns.c.place == 1)


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
        .limit(_MAX_WAITING_STEPS)
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


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """All columns of `approvals`, and the id and the name of the schedule that its uid stands for, deleted or not.

    `modifications` are None until somebody modified; `proposed` may be null even then.
    """

    approval_id: bytes
    namespace: str
    run_id: bytes
    input_hash: str
    gates: str
    decision: ApprovalDecision
    modifications: Any
    decider: str | None
    reason: str | None
    requested_at: Instant
    expires_at: Instant
    decided_at: Instant | None
    root_run_id: bytes | None
    schedule_uid: bytes | None
    workflow: str | None
    node_id: str | None
    revision: int | None
    approvals_required: int
    approvers: tuple[str, ...]
    allow_requester: bool
    requesters: tuple[str, ...]
    proposed: Any
    standing_id: bytes | None
    question: str | None
    schedule_id: str | None
    schedule_name: str | None = None

    @property
    def damage(self) -> str | None:
        """Why it cannot be read, where somebody has damaged it: nobody decides such a question."""
        parts = {
            "gates": names_from_text(self.gates),
            "approvers": self.approvers,
            "requesters": self.requesters,
            "modifications": self.modifications,
            "proposed": self.proposed,
        }
        found = (f"{name}: {why}" for name, part in parts.items() if (why := damage_of(part)) is not None)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class VoteRow:
    approval_id: bytes
    principal: str
    input_hash: str
    decision: str
    reason: str | None
    voted_at: Instant


@dataclass(frozen=True, slots=True)
class Mine:
    """Questions that this caller may decide now; `permitted`: also those that name nobody."""

    principal: str
    role: str
    permitted: bool
    now: Instant


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """None = any."""

    status: ApprovalDecision | None = None
    schedule_uids: Collection[bytes] | None = None
    gate: str | None = None
    mine: Mine | None = None


_ROWS = TypedRows(
    QuestionRow,
    schedules,
    approvals,
    renamed={"schedule_name": schedules.c.name},
    decision=ApprovalDecision,
    approvers=names_from_text,
    requesters=names_from_text,
    modifications=value_from_text,
    proposed=value_from_text,
)
_SELECT = _ROWS.select.outerjoin_from(approvals, schedules, approvals.c.schedule_uid == schedules.c.schedule_uid)
_VOTES = TypedRows(VoteRow, approval_votes)


class holds_text(sa.sql.functions.FunctionElement[bool]):  # noqa: N801 - a function of SQL
    """Test whether a JSON array of texts, as Horarium writes it, has this one: a quoted text is always an item."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(holds_text)
def _position(element: holds_text, compiler: SQLCompiler, **given: Any) -> str:
    return f"(strpos({compiler.process(element.clauses, **given)}) > 0)"


@compiles(holds_text, "sqlite")
def _position_in_sqlite(element: holds_text, compiler: SQLCompiler, **given: Any) -> str:
    return f"(instr({compiler.process(element.clauses, **given)}) > 0)"


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


def find(connection: Connection, namespace: str, approval_id: bytes, *, lock: bool = False) -> QuestionRow | None:
    statement = _SELECT.where(approvals.c.namespace == namespace, approvals.c.approval_id == approval_id)
    return _ROWS.one(connection, statement.with_for_update(of=approvals) if lock else statement)


def newest_of_run(connection: Connection, namespace: str, run_id: bytes) -> QuestionRow | None:
    """The open one, where there is one: a run asks one question at a time."""
    mine = (approvals.c.namespace == namespace, approvals.c.run_id == run_id)
    return _ROWS.one(connection, _SELECT.where(*mine).order_by(approvals.c.approval_id.desc()).limit(1))


def page(
    connection: Connection, namespace: Scope, wanted: QuestionFilter, *, after: bytes | None, limit: int
) -> tuple[list[QuestionRow], bool]:
    """Oldest first; and whether there are more."""
    conditions: list[sa.ColumnElement[bool]] = [within_scope(approvals.c.namespace, namespace)]
    if wanted.status is not None:
        conditions.append(approvals.c.decision == wanted.status.value)
    if wanted.schedule_uids is not None:
        conditions.append(approvals.c.schedule_uid.in_(list(wanted.schedule_uids)))
    if wanted.gate is not None:
        conditions.append(holds_text(approvals.c.gates, _quoted(wanted.gate)))
    if after is not None:
        conditions.append(approvals.c.approval_id > after)
    if wanted.mine is not None:
        conditions += _mine(wanted.mine, run_archive.tables(connection))
    rows = _ROWS.all_listed(connection, _SELECT.where(*conditions).order_by(approvals.c.approval_id).limit(limit + 1))
    return rows[:limit], len(rows) > limit


def _mine(mine: Mine, places: Sequence[sa.Table]) -> list[sa.ColumnElement[bool]]:
    """As `may_decide` says it; a page of thousands is not read to show fifty."""
    named: list[sa.ColumnElement[bool]] = [
        holds_text(approvals.c.approvers, _quoted(name)) for name in names_of(mine.principal, mine.role)
    ]
    if mine.permitted:
        named.append(approvals.c.approvers == "[]")
    return [
        approvals.c.expires_at > mine.now,
        sa.or_(*named),
        sa.or_(approvals.c.allow_requester, sa.not_(holds_text(approvals.c.requesters, _quoted(mine.principal)))),
        # Who works on a run has no say in it.
        *(
            ~sa.exists().where(each.c.run_id == approvals.c.run_id, each.c.claimed_by == mine.principal)
            for each in places
        ),
    ]


def _quoted(text: str) -> sa.BindParameter[str]:
    return sa.bindparam(None, to_text(text), sa.Text(), unique=True)


def votes(connection: Connection, approval_ids: Sequence[bytes]) -> dict[bytes, list[VoteRow]]:
    """In the order in which they were cast."""
    mine = approval_votes.c.approval_id.in_(list(approval_ids))
    order = (approval_votes.c.voted_at, approval_votes.c.principal)
    found: dict[bytes, list[VoteRow]] = {approval_id: [] for approval_id in approval_ids}
    for row in _VOTES.all(connection, _VOTES.select.where(mine).order_by(*order)):
        found[row.approval_id].append(row)
    return found


# ── deciding ─────────────────────────────────────────────────────────────────────────────────────────


_KEYS = [column.name for column in approval_votes.primary_key]
_VOTE_COLUMNS = ("decision", "reason", "voted_at")


def cast(connection: Connection, vote: VoteRow) -> None:
    """A yes that is said again stays as it was said first; a no takes the place of the yes before it."""
    values = {column.name: getattr(vote, column.name) for column in approval_votes.columns}
    of_postgres = connection.dialect.name == "postgresql"
    insert = postgresql.insert(approval_votes) if of_postgres else sqlite.insert(approval_votes)
    if vote.decision == Decision.REJECT:
        said = {name: insert.excluded[name] for name in _VOTE_COLUMNS}
        connection.execute(insert.on_conflict_do_update(index_elements=_KEYS, set_=said), values)
    else:
        connection.execute(insert.on_conflict_do_nothing(), values)


def close(
    connection: Connection,
    approval_id: bytes,
    decision: ApprovalDecision,
    *,
    decider: str,
    reason: str | None,
    now: Instant,
) -> None:
    """The caller holds the lock, and has seen that it is open."""
    mine = sa.update(approvals).where(approvals.c.approval_id == approval_id)
    connection.execute(mine.values(decision=decision.value, decider=decider, reason=reason, decided_at=now))


def set_reply(connection: Connection, row: QuestionRow, *, input_hash: str, reply: object) -> None:
    """Replace the reply to an agent; the inputs of the run stay as they are."""
    own = sa.update(approvals).where(approvals.c.approval_id == row.approval_id)
    connection.execute(own.values(input_hash=input_hash, modifications=to_text(reply)))


def set_inputs(
    connection: Connection, row: QuestionRow, *, shown: object, inputs: object, input_hash: str, modifications: object
) -> None:
    """Replace the inputs under approval; `shown` are the previous inputs, the first of which are stored."""
    own = sa.update(approvals).where(approvals.c.approval_id == row.approval_id)
    values: dict[str, Any] = {"input_hash": input_hash, "modifications": to_text(modifications)}
    if row.modifications is None:
        values["proposed"] = to_text(shown)
    connection.execute(own.values(**values))
    connection.execute(sa.update(runs).where(runs.c.run_id == row.run_id).values(inputs=to_text(inputs)))
