"""What becomes of a question whose run ends before anybody has answered it: it is closed in the same transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.life.change import Change, End
from horarium.policy.approval import ApprovalDecision
from horarium.policy.deciding import RUN_CANCELLED
from horarium.schedule.event import NoticeType
from horarium.schedule.run import RunState
from horarium.store.database.set_wise import select_by_ids
from horarium.store.history import notices
from horarium.store.history.notices import Notice
from horarium.store.runs.new_approval import told_of
from horarium.store.runs.work import Work
from horarium.store.tables import approvals

_TOLD = ("approval_id", "run_id", "namespace", "schedule_uid", "gates", "workflow", "node_id", "expires_at", "question")
_AT_ONCE = 900


def close_unanswered(connection: Connection, changed: Sequence[tuple[Work, Change]], now: Instant) -> None:
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
    for start in range(0, len(ids), _AT_ONCE):
        open_ones = (approvals.c.run_id.in_(ids[start : start + _AT_ONCE]), approvals.c.decision == "pending")
        closing = sa.update(approvals).where(*open_ones).returning(*(approvals.c[name] for name in _TOLD))
        values = {"decision": ApprovalDecision.EXPIRED.value, "reason": reason, "decided_at": now}
        closed += connection.execute(closing.values(**values)).all()
    if not closed:
        return
    found = select_by_ids(connection, _OF_RUNS, sorted({row.run_id for row in closed}))
    of_run = {run_id: (origin, nominal) for run_id, origin, nominal in found}
    told = [_notice(row, *of_run[row.run_id], reason) for row in sorted(closed, key=lambda row: bytes(row.approval_id))]
    notices.append(connection, told, now=now)


_OF_RUNS = "SELECT run_id, origin, nominal FROM runs WHERE run_id"


def _notice(row: Any, origin: str, nominal: Instant, reason: str | None) -> Notice:
    values = {**told_of(row, origin, nominal), "reason": reason}
    return Notice(NoticeType.APPROVAL_EXPIRED, row.namespace, row.schedule_uid, row.run_id, values)
