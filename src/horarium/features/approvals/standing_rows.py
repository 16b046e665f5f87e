"""Yeses that were given beforehand: kept as rows, and used as votes on the questions that they cover."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.audit_entries import AuditAction
from horarium.core.document.json_values import UNREADABLE, unreadable_of
from horarium.core.document.states import CommandContext, NoticeType
from horarium.core.lifecycle.live_run import NO_RULES
from horarium.core.lifecycle.outcome import Admit, ApprovalGiven, Change
from horarium.core.lifecycle.react import react
from horarium.core.policy.approval import ApprovalDecision
from horarium.core.policy.votes import (
    Approved,
    Decision,
    OpenRequest,
    StandingEnd,
    StandingGrant,
    Vote,
    Voter,
    count_votes,
    grant_covers,
)
from horarium.features.approvals.rows import NewApproval, notice_fields
from horarium.features.approvals.standing_end_rows import Unchanged, ends_of
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs import definition_rows
from horarium.features.runs.update_rows import write_changes
from horarium.features.runs.work_rows import RunWork
from horarium.instant import Instant
from horarium.platform.database import audit_chain
from horarium.platform.database.statements import RowInsert, TypedRows, from_text, names_from_text, to_text
from horarium.platform.database.tables import approval_votes, approvals, schedules, standing_approvals
from horarium.platform.ids import id_text

SOURCE = "standing"
ENDED: Final = "end_standing_approval"
"""Through which door such a vote came, and the first word of its reason."""


@dataclass(frozen=True, slots=True)
class StandingRow:
    """All columns, and the id of the schedule that its uid stands for."""

    standing_id: bytes
    namespace: str
    schedule_uid: bytes | None
    workflow_id: str | None
    revision: int | None
    gates: tuple[str, ...]
    until: Instant | None
    max_uses: int | None
    uses: int
    reason: str | None
    made_by: str
    created_at: Instant
    made_role: str
    schedule_id: str | None = None
    made_token: bytes | None = None
    bound_to: str | None = None
    ended_at: Instant | None = None
    ended_reason: str | None = None


NO_TOKEN: Final = b""
"""The token of an approval that was created with another credential than a stored token."""

_ROWS = TypedRows(StandingRow, schedules, standing_approvals, gates=names_from_text)
_JOINED = standing_approvals.outerjoin(schedules, standing_approvals.c.schedule_uid == schedules.c.schedule_uid)
_SELECT = _ROWS.select.select_from(_JOINED)
_VOTES = RowInsert(approval_votes, ("approval_id", "principal", "input_hash", "decision", "reason", "voted_at"))


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────


def insert(connection: Connection, row: StandingRow) -> None:
    values = {column.name: getattr(row, column.name) for column in standing_approvals.columns}
    connection.execute(sa.insert(standing_approvals).values({**values, "gates": to_text(sorted(row.gates))}))


def count_of(connection: Connection, namespace: str) -> int:
    own = standing_approvals.c.namespace == namespace
    return int(connection.execute(sa.select(sa.func.count()).select_from(standing_approvals).where(own)).scalar_one())


def page(
    connection: Connection, namespace: str, *, after: bytes | None, limit: int
) -> tuple[tuple[StandingRow, ...], bool]:
    """Oldest first; and whether there are more."""
    own = [standing_approvals.c.namespace == namespace]
    if after is not None:
        own.append(standing_approvals.c.standing_id > after)
    rows = _ROWS.all_listed(connection, _SELECT.where(*own).order_by(standing_approvals.c.standing_id).limit(limit + 1))
    return tuple(rows[:limit]), len(rows) > limit


def find(connection: Connection, namespace: str, standing_id: bytes) -> StandingRow | None:
    mine = (standing_approvals.c.namespace == namespace, standing_approvals.c.standing_id == standing_id)
    return _ROWS.one(connection, _SELECT.where(*mine))


def delete(connection: Connection, standing_id: bytes) -> None:
    connection.execute(sa.delete(standing_approvals).where(standing_approvals.c.standing_id == standing_id))


# ── use ──────────────────────────────────────────────────────────────────────────────────────────────


def answer(
    connection: Connection, asked: Sequence[tuple[RunWork, NewApproval]], in_the_midst: Collection[bytes], now: Instant
) -> list[bytes]:
    """Vote on questions that were just asked; the runs for which that was enough are let go, and returned.

    `in_the_midst` are runs that had begun: their questions are about a gate, and not about the whole run.
    """
    standing = _locked(connection, asked, now)
    if not standing:
        return []
    unchanged = Unchanged(connection)
    given = definition_rows.with_template_inputs(connection, [run.run_id for run, _ in asked if run.inputs is None])
    uses = {row.standing_id: row.uses for row in standing}
    votes: list[tuple[Any, ...]] = []
    agreed: list[tuple[RunWork, NewApproval, StandingRow]] = []
    for run, made in asked:
        question, gates = _question(made), frozenset(from_text(made.gates))
        whole_run = run.parent_run_id is None and run.run_id not in in_the_midst
        heard: list[Vote] = []
        for row in standing:
            yes = _standing_grant(row, uses[row.standing_id], run)
            if not _is_about(row, made) or any(vote.principal == row.made_by for vote in heard):
                continue
            brings = run.inputs is not None or run.run_id in given
            about = partial(grant_covers, revision=made.revision, whole_run=whole_run, brings_inputs=brings)
            if not unchanged.since(row, run):
                continue
            if about(yes, question, gates=gates, now=now):
                uses[row.standing_id] += 1
                heard.append(Vote(row.made_by, made.input_hash))
                votes.append(_vote(made, row, now))
                if isinstance(count_votes(question, heard), Approved):
                    agreed.append((run, made, row))
                    break
    _VOTES.run(connection, votes)
    _count_uses(connection, {row.standing_id: row.uses for row in standing}, uses)
    return _admit(connection, agreed, now)


def _locked(connection: Connection, asked: Sequence[tuple[RunWork, NewApproval]], now: Instant) -> list[StandingRow]:
    """Ours until the transaction ends, so that no use is counted twice or forgotten."""
    uids = sorted({made.schedule_uid for _, made in asked if made.schedule_uid is not None})
    names = sorted({made.workflow for _, made in asked if made.workflow is not None})
    spaces = sorted({made.namespace for _, made in asked})
    mine = standing_approvals.c
    about = sa.or_(mine.schedule_uid.in_(uids), mine.workflow_id.in_(names))
    own = (mine.namespace.in_(spaces), about, mine.ended_at.is_(None))
    statement = _SELECT.where(*own).order_by(mine.standing_id)
    rows = _lock_readable(connection, statement)
    ends = ends_of(connection, rows, now)
    _record_ends(connection, [(row, end) for row in rows if (end := ends[row.standing_id]) is not None], now)
    return [row for row in rows if ends[row.standing_id] is None and row.gates != UNREADABLE]


def _lock_readable(connection: Connection, statement: sa.Select[Any]) -> list[StandingRow]:
    """Lock standing approvals; one that cannot be read approves nothing, and stays as it is."""
    found = _ROWS.all_listed(connection, statement.with_for_update(of=standing_approvals))
    return [row for row in found if unreadable_of(row) is None]


def close_ended(connection: Connection, namespace: str, now: Instant, *, workflow_id: str | None = None) -> None:
    """Record the end of the standing approvals of a namespace that have ended, with an entry in the audit for each.

    `workflow_id`: only those that are bound to this workflow.
    """
    mine = standing_approvals.c
    statement = _SELECT.where(mine.namespace == namespace, mine.ended_at.is_(None)).order_by(mine.standing_id)
    if workflow_id is not None:
        named = mine.bound_to.contains(to_text(workflow_id), autoescape=True)
        statement = statement.where(sa.or_(mine.workflow_id == workflow_id, named))
    rows = _lock_readable(connection, statement)
    ends = ends_of(connection, rows, now)
    _record_ends(connection, [(row, end) for row in rows if (end := ends[row.standing_id]) is not None], now)


def _record_ends(connection: Connection, ended: Sequence[tuple[StandingRow, StandingEnd]], now: Instant) -> None:
    for row, end in ended:
        own = sa.update(standing_approvals).where(standing_approvals.c.standing_id == row.standing_id)
        connection.execute(own.values(ended_at=now, ended_reason=end.value))
        detail = {"standing_id": id_text(row.standing_id), "reason": end.value, "made_by": row.made_by}
        audit_chain.append(connection, row.namespace, [AuditAction(ENDED, source=SOURCE, detail=detail)], now=now)


def _is_about(row: StandingRow, made: NewApproval) -> bool:
    if row.namespace != made.namespace:
        return False
    if row.schedule_uid is not None:
        return row.schedule_uid == made.schedule_uid
    return row.workflow_id is not None and row.workflow_id == made.workflow


def _standing_grant(row: StandingRow, uses: int, run: RunWork) -> StandingGrant:
    maker = Voter(row.made_by, row.made_role, permitted=True, is_worker=run.claimed_by == row.made_by)
    return StandingGrant(frozenset(row.gates), maker, row.revision, row.until, row.max_uses, uses)


def _question(made: NewApproval) -> OpenRequest:
    return OpenRequest(
        made.input_hash,
        made.expires_at,
        approvals_required=made.approvals_required,
        approvers=frozenset(from_text(made.approvers)),
        allow_requester=made.allow_requester,
        requesters=frozenset(from_text(made.requesters)),
    )


def _vote(made: NewApproval, row: StandingRow, now: Instant) -> tuple[Any, ...]:
    return made.approval_id, row.made_by, made.input_hash, Decision.APPROVE.value, vote_reason(row), now


def vote_reason(row: StandingRow) -> str:
    """The reason of a vote that was given beforehand."""
    return SOURCE if row.reason is None else f"{SOURCE}: {row.reason}"


def _count_uses(connection: Connection, before: dict[bytes, int], after: dict[bytes, int]) -> None:
    changed = [{"id": key, "now_used": uses} for key, uses in sorted(after.items()) if uses != before[key]]
    if changed:
        own = sa.update(standing_approvals).where(standing_approvals.c.standing_id == sa.bindparam("id"))
        connection.execute(own.values(uses=sa.bindparam("now_used")), changed)


def _admit(
    connection: Connection, agreed: Sequence[tuple[RunWork, NewApproval, StandingRow]], now: Instant
) -> list[bytes]:
    if not agreed:
        return []
    decided = sa.update(approvals).where(approvals.c.approval_id == sa.bindparam("id"))
    decided = decided.values(
        decision=ApprovalDecision.APPROVED.value,
        decider=sa.bindparam("by"),
        reason=sa.bindparam("why"),
        decided_at=now,
        standing_id=sa.bindparam("standing"),
    )
    rows = [
        {"id": made.approval_id, "by": row.made_by, "why": vote_reason(row), "standing": row.standing_id}
        for _, made, row in agreed
    ]
    connection.execute(decided, rows)
    changes: list[tuple[RunWork, Change]] = []
    for run, made, _ in agreed:
        change = react(run, ApprovalGiven(made.approval_id), NO_RULES, now)
        if isinstance(change, Admit):
            changes.append((run, change))
    by = {run.run_id: CommandContext(row.made_by, source=SOURCE, reason=vote_reason(row)) for run, _, row in agreed}
    write_changes(connection, changes, now, by)
    history_rows.append_notices(connection, [_notice(*each) for each in agreed], now=now)
    return [run.run_id for run, _ in changes]


def _notice(run: RunWork, made: NewApproval, row: StandingRow) -> Notice:
    values = {
        **notice_fields(made, run.origin, run.nominal),
        "decision": ApprovalDecision.APPROVED.value,
        "decided_by": row.made_by,
        "reason": vote_reason(row),
        "standing_id": id_text(row.standing_id),
    }
    return Notice(NoticeType.APPROVAL_DECIDED, made.namespace, made.schedule_uid, run.run_id, values)
