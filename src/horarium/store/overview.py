"""Counts of what a namespace has, or all of them, up to a bound: no caller waits for the end of a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.policy.approval import ApprovalDecision
from horarium.schedule.event import EventType
from horarium.schedule.position import Status
from horarium.schedule.reason import Reason
from horarium.schedule.run import OPEN, UNSUCCESSFUL, Origin, RunState
from horarium.store.database.bounded_count import count_up_to
from horarium.store.history.events import told_from
from horarium.store.runs import everywhere
from horarium.store.runs.states import ENDED_BADLY, OPEN_ROOT
from horarium.store.schedules.signs import ACTIVE, AT_REST
from horarium.store.scope import Scope, within_each
from horarium.store.tables import approvals, history, positions, runs

_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)


@dataclass(frozen=True, slots=True)
class Counted:
    """`bounded`: there are at least so many."""

    count: int
    bounded: bool = False


def schedules(connection: Connection, namespace: Scope, most: int) -> dict[Status, Counted]:
    """By status, each along its index; deleted ones are not counted."""
    mine = within_each(positions.c.namespace, namespace)
    active = _count(connection, sa.select(sa.literal(1)).where(mine, ACTIVE), most)
    at_rest = _by_word(connection, sa.select(positions.c.status).where(mine, AT_REST), most)
    is_cut = any(each.bounded for each in at_rest.values())
    others = {status: at_rest.get(status.value, Counted(0, is_cut)) for status in Status}
    found = {**others, Status.ACTIVE: active}
    return {status: count for status, count in found.items() if status is not Status.DELETED}


def open_runs(connection: Connection, namespace: Scope, most: int) -> dict[RunState, Counted]:
    """By state, of runs that have not ended, without the steps of workflows."""
    mine = sa.select(runs.c.state).where(within_each(runs.c.namespace, namespace), sa.text(OPEN_ROOT))
    found = _by_word(connection, mine, most)
    is_cut = any(each.bounded for each in found.values())
    return {state: found.get(state.value, Counted(0, is_cut)) for state in OPEN}


def _by_word(connection: Connection, rows: sa.Select[Any], most: int) -> Mapping[str, Counted]:
    """Count rows by word, among the first `most`."""
    some = rows.limit(most + 1).subquery()
    word = some.c[0]
    counted = connection.execute(sa.select(word, sa.func.count()).group_by(word))
    found: dict[str, int] = {name: count for name, count in counted}  # noqa: C416 - rows are no pairs to a type checker
    is_cut = sum(found.values()) > most
    return {name: Counted(min(count, most), is_cut) for name, count in found.items()}


def questions(connection: Connection, namespace: Scope, most: int) -> Counted:
    """That wait for an answer."""
    pending = sa.select(sa.literal(1)).where(
        within_each(approvals.c.namespace, namespace), approvals.c.decision == ApprovalDecision.PENDING.value
    )
    return _count(connection, pending, most)


def missed(connection: Connection, namespace: Scope, start: Instant, end: Instant, most: int) -> Counted:
    """Rows of missed occurrences that begin in a window, among the `most` newest occurrences of it.

    What was missed and backfilled later has run after all.
    """
    some = (
        sa.select(history.c.schedule_uid, history.c.nominal, history.c.event_type, history.c.payload)
        .where(
            within_each(history.c.namespace, namespace),
            history.c.nominal.is_not(None),
            history.c.nominal >= start,
            history.c.recorded_at >= told_from(start),
            history.c.nominal < end,
        )
        .order_by(history.c.nominal.desc())
        .limit(most + 1)
        .subquery()
    )
    ran = sa.exists().where(
        runs.c.schedule_uid == some.c.schedule_uid, runs.c.nominal == some.c.nominal, runs.c.origin.in_(_OCCURRENCES)
    )
    is_missed = sa.and_(
        some.c.event_type == EventType.MISSED.value,
        _is_for(connection, some.c.payload, Reason.MISSED),
        ~ran,
    )
    looked_at, found = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((is_missed, 1), else_=0)), 0)).select_from(some)
    ).one()
    return Counted(int(found), looked_at > most)


def failed(connection: Connection, namespace: Scope, since: Instant, most: int) -> Counted:
    """Count unsuccessful runs that ended at or after an instant, among the `most` newest unsuccessful ones."""
    count, bounded = 0, False
    for state in sorted(UNSUCCESSFUL):
        newest = (
            sa.select(runs.c.run_id, runs.c.finished_at)
            .where(
                within_each(runs.c.namespace, namespace),
                sa.text(ENDED_BADLY),
                runs.c.state == state.value,
                runs.c.parent_run_id.is_(None),
            )
            .order_by(runs.c.run_id.desc())
            .limit(most + 1)
        )
        found = everywhere.every(connection, newest, most=most + 1)
        ended = {run_id for run_id, finished_at in found if finished_at >= since}
        count, bounded = count + len(ended), bounded or len(found) > most
    return Counted(count, bounded)


def _is_for(connection: Connection, payload: sa.ColumnElement[str], reason: Reason) -> sa.ColumnElement[bool]:
    """The first reason in a payload is its own: that of whoever gave the command, in their words, stands behind it."""
    place = sa.func.strpos if connection.dialect.name == "postgresql" else sa.func.instr
    own = place(payload, f'"reason":"{reason.value}"')
    return sa.and_(own > 0, own == place(payload, '"reason":'))


def _count(connection: Connection, rows: sa.Select[Any], most: int) -> Counted:
    found = count_up_to(connection, rows, most + 1)
    return Counted(min(found, most), found > most)
