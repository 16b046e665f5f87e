"""SQL that lists approval requests, records votes, and decides."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from horarium.core.document.json_values import damage_of
from horarium.core.policy.approval import ApprovalDecision
from horarium.core.policy.votes import Decision, names_of
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.columns import TypedRows, names_from_text, to_text, value_from_text
from horarium.platform.database.statements import Scope, within_scope
from horarium.platform.database.tables import approval_votes, approvals, runs, schedules


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
_SAID = ("decision", "reason", "voted_at")


def cast(connection: Connection, vote: VoteRow) -> None:
    """A yes that is said again stays as it was said first; a no takes the place of the yes before it."""
    values = {column.name: getattr(vote, column.name) for column in approval_votes.columns}
    of_postgres = connection.dialect.name == "postgresql"
    insert = postgresql.insert(approval_votes) if of_postgres else sqlite.insert(approval_votes)
    if vote.decision == Decision.REJECT:
        said = {name: insert.excluded[name] for name in _SAID}
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
