"""SQL of retention: delete old runs and old decisions, a few rows a transaction, with a checkpoint for audits.

A run is deleted when it ended long ago, with its steps, events, lines, approvals and votes, and not while a step of it
is open. The decisions of a schedule's history are deleted in the order in which they were made; changes of the
schedule itself (created, updated, paused, resumed, broken, deleted) stay as long as the schedule, since an audit
reads from them which spec was in force. A schedule that was deleted long ago is removed when none of these is left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from horarium.core.document.states import MAX_RUNS_EXHAUSTED, EventType, Origin, Source, Status
from horarium.features.secrets.rows import forget_of_runs, forget_of_schedules
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.limits import Before, cutoff, latest
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.statements import schedule_owner
from horarium.platform.database.tables import (
    approval_votes,
    approvals,
    checkpoints,
    counters,
    history,
    positions,
    run_definitions,
    run_events,
    run_logs,
    runs,
    schedule_attributes,
    schedule_revisions,
    schedules,
    standing_approvals,
    step_changes,
    unwanted_tasks,
)
from horarium.platform.ids import id_at

LIMIT = 500
"""Rows that one transaction deletes, at most."""

LIFECYCLE = frozenset(
    {
        EventType.CREATED,
        EventType.UPDATED,
        EventType.PAUSED,
        EventType.RESUMED,
        EventType.BROKEN,
        EventType.DELETED,
    }
)
_FORGOTTEN = sorted(kind.value for kind in frozenset(EventType) - LIFECYCLE)
# Each of these leaves nothing undecided behind it.
SETTLING = [EventType.CREATED.value, EventType.PAUSED.value, EventType.RESUMED.value, EventType.DELETED.value]


@dataclass(frozen=True, slots=True)
class Found:
    """The ids found by a look at a few rows; `after` is where the next look begins, None = this was the last."""

    ids: tuple[bytes, ...]
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Swept:
    """`whole`: nothing that was asked for is left, but for what somebody else holds at this moment."""

    rows: int
    whole: bool


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def old_runs(connection: Connection, *, finished_before: Before, after: bytes, looks: int) -> Found:
    """The deletable runs among the next `looks` root runs in creation order.

    The newest finished run of a schedule or of a workflow stays, however old: conditions read its result. A run
    whose occurrence lies after the position stays too, because its row is the lock that keeps that occurrence from
    being decided twice.
    """
    may_go = sa.or_(sa.and_(runs.c.schedule_uid.is_not(None), _is_gone()), sa.and_(_in_schedule(), _in_workflow()))
    return _walk(connection, may_go, finished_before, after, looks)


def overtaken_runs(connection: Connection, *, finished_before: Before, after: bytes, looks: int) -> Found:
    """The same, of those that are to be kept: where the schedule is gone, the newest of a workflow stays as well."""
    outlived = sa.and_(runs.c.schedule_uid.is_not(None), _is_gone())
    return _walk(connection, sa.and_(sa.or_(outlived, _in_schedule()), _in_workflow()), finished_before, after, looks)


def _walk(
    connection: Connection, is_left: sa.ColumnElement[bool], finished_before: Before, after: bytes, looks: int
) -> Found:
    is_old = runs.c.finished_at < cutoff(finished_before, runs.c.namespace)
    may_go = sa.and_(runs.c.state.in_(FINAL_NAMES), is_old, is_left)
    rows = connection.execute(
        sa.select(runs.c.run_id, sa.func.coalesce(may_go, sa.false()).label("may_go"))
        .outerjoin_from(runs, positions, positions.c.schedule_uid == runs.c.schedule_uid)
        # Ids are in order of birth, and nothing ends before it is born.
        .where(runs.c.run_id > after, runs.c.run_id < id_at(latest(finished_before)), runs.c.parent_run_id.is_(None))
        .order_by(runs.c.run_id)
        .limit(looks)
    ).all()
    ids = tuple(row.run_id for row in rows if row.may_go)
    return Found(ids, rows[-1].run_id if len(rows) == looks else None)


def _is_gone() -> sa.ColumnElement[bool]:
    """Tell whether the schedule of a run is deleted."""
    return sa.or_(positions.c.schedule_uid.is_(None), positions.c.status == Status.DELETED.value)


def _in_schedule() -> sa.ColumnElement[bool]:
    """Tell whether the run's schedule, if any, has a newer run and has passed the run's occurrence."""
    other = runs.alias("of_schedule")
    decided = sa.or_(runs.c.origin == Origin.MANUAL.value, runs.c.nominal <= positions.c.decided_until)
    newer = _newer(other, other.c.schedule_uid == runs.c.schedule_uid)
    return sa.or_(runs.c.schedule_uid.is_(None), sa.and_(decided, newer))


def _in_workflow() -> sa.ColumnElement[bool]:
    """Tell whether the run's workflow, if any, has a newer run."""
    other = runs.alias("of_workflow")
    same = sa.and_(
        other.c.namespace == runs.c.namespace, other.c.workflow.is_not(None), other.c.workflow == runs.c.workflow
    )
    return sa.or_(runs.c.workflow.is_(None), _newer(other, same))


def _newer(other: sa.FromClause, same: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Tell whether a finished root run of the same kind was created later."""
    return sa.exists().where(
        same, other.c.run_id > runs.c.run_id, other.c.parent_run_id.is_(None), other.c.state.in_(FINAL_NAMES)
    )


def delete_runs(
    connection: Connection, run_ids: Collection[bytes], *, limit: int = LIMIT, runs: sa.Table = runs
) -> Swept:
    """A root goes last, so that what belongs to it is never left without one. `runs` is the table that they are in."""
    # A late report holds the run's lock while it adds its event.
    locked = sa.select(runs.c.run_id).where(runs.c.run_id.in_(list(run_ids))).order_by(runs.c.run_id)
    held = list(connection.execute(locked.with_for_update(skip_locked=True)).scalars())
    roots = _without_open_steps(connection, held, runs)
    is_step = sa.and_(runs.c.root_run_id.in_(roots), runs.c.run_id.not_in(roots))
    steps = list(connection.execute(sa.select(runs.c.run_id).where(is_step).limit(limit)).scalars())
    members = [*steps, *roots]
    forget_of_runs(connection, members)
    asked = sa.select(approvals.c.approval_id).where(approvals.c.run_id.in_(members))
    deleted = 0
    for table, match in (
        (run_events, run_events.c.run_id.in_(members)),
        (run_logs, run_logs.c.run_id.in_(members)),
        (run_definitions, run_definitions.c.run_id.in_(members)),
        (approval_votes, approval_votes.c.approval_id.in_(asked)),
        (approvals, approvals.c.run_id.in_(members)),
        (step_changes, step_changes.c.run_id.in_(members)),
        (unwanted_tasks, unwanted_tasks.c.run_id.in_(members)),
    ):
        deleted += delete_some(connection, table, match, limit - deleted)
    # Of the members only those may go whose own rows are all gone.
    for table, ids in ((runs, steps), (runs, roots)):
        if deleted < limit:
            deleted += delete_some(connection, table, table.c.run_id.in_(ids), limit - deleted)
    return Swept(deleted, whole=deleted < limit)


def _without_open_steps(connection: Connection, roots: Sequence[bytes], runs: sa.Table) -> list[bytes]:
    """Whoever works on a step would report into nothing."""
    mine = sa.and_(runs.c.root_run_id.in_(list(roots)), runs.c.run_id.not_in(list(roots)))
    still = sa.select(runs.c.root_run_id).where(mine, runs.c.state.not_in(FINAL_NAMES)).distinct()
    busy = set(connection.execute(still).scalars())
    return [root for root in roots if root not in busy]


def delete_some(connection: Connection, table: sa.Table, match: sa.ColumnElement[bool], limit: int) -> int:
    """At most `limit` rows; how many they were."""
    if limit <= 0:
        return 0
    key = list(table.primary_key.columns)
    some = sa.select(*key).where(match).limit(limit)
    which = key[0].in_(some) if len(key) == 1 else sa.tuple_(*key).in_(some)
    return connection.execute(sa.delete(table).where(which)).rowcount


def count_old_runs(connection: Connection, *, finished_before: Before, most: int) -> int:
    """Count runs that ended before, to announce a deletion in advance; counting stops at `most`."""

    def count(runs: RunsTable) -> sa.Select[Any]:
        old = (
            sa.select(runs.c.run_id)
            .where(
                runs.c.run_id < id_at(latest(finished_before)),
                runs.c.parent_run_id.is_(None),
                runs.c.state.in_(FINAL_NAMES),
                runs.c.finished_at < cutoff(finished_before, runs.c.namespace),
            )
            .limit(most)
        )
        return sa.select(sa.func.count().label("old")).select_from(old.subquery())

    counted = run_archive.rows_everywhere(connection, count)
    return min(most, sum(int(row.old) for row in counted))


# ── history ──────────────────────────────────────────────────────────────────────────────────────────


def has_old_history(connection: Connection, *, recorded_before: Before) -> bool:
    """Tell whether a scan of all schedules may find anything; tables of later weeks are not read."""
    old = sa.exists().where(
        history.c.recorded_at < latest(recorded_before),
        history.c.sequence.is_not(None),
        history.c.event_type.in_(_FORGOTTEN),
    )
    return bool(connection.execute(sa.select(old)).scalar_one())


def schedules_with_old_history(connection: Connection, *, recorded_before: Before, after: bytes, looks: int) -> Found:
    """The schedules among the next `looks` whose oldest decision is older than the cutoff."""
    oldest = (
        sa.select(history.c.recorded_at)
        .where(history.c.schedule_uid == positions.c.schedule_uid, history.c.event_type.in_(_FORGOTTEN))
        .order_by(history.c.sequence)
        .limit(1)
        .scalar_subquery()
    )
    uid = positions.c.schedule_uid
    before = cutoff(recorded_before, positions.c.namespace).label("before")
    statement = sa.select(uid, oldest.label("oldest"), before).where(uid > after).order_by(uid).limit(looks)
    rows = connection.execute(statement).all()
    ids = tuple(row.schedule_uid for row in rows if row.oldest is not None and row.oldest < row.before)
    return Found(ids, rows[-1].schedule_uid if len(rows) == looks else None)


def trim_history(
    connection: Connection, uids: Sequence[bytes], *, recorded_before: Before, now: Instant, limit: int = LIMIT
) -> Swept:
    """Deletes the oldest decisions of each schedule, and says so in its checkpoint."""
    deleted = 0
    for uid in sorted(uids):
        if deleted >= limit:
            return Swept(deleted, whole=False)
        deleted += _trim(connection, uid, recorded_before, now, limit - deleted)
    return Swept(deleted, whole=deleted < limit)


def _trim(connection: Connection, uid: bytes, recorded_before: Before, now: Instant, limit: int) -> int:
    old = cutoff(recorded_before, positions.c.namespace).label("before")
    lock = sa.select(positions.c.decided_until, old).where(positions.c.schedule_uid == uid)
    found = connection.execute(lock.with_for_update(skip_locked=True, of=positions)).one_or_none()
    if found is None:
        return 0  # a ticker holds it, or it is gone; another pass will come by
    decided_until, before = found
    mine = sa.and_(history.c.schedule_uid == uid, history.c.event_type.in_(_FORGOTTEN))
    oldest = connection.execute(
        sa.select(history.c.sequence, history.c.recorded_at, history.c.nominal_last)
        .where(mine)
        .order_by(history.c.sequence)
        .limit(limit)
    ).all()

    def may_go(row: Any) -> bool:
        return bool(row.recorded_at < before) and (row.nominal_last or 0) <= decided_until

    # From the front and without a hole: an audit must be able to begin right after what is gone.
    forgotten = list(takewhile(may_go, oldest))
    if not forgotten:
        return 0
    last = forgotten[-1].sequence
    connection.execute(sa.delete(history).where(mine, history.c.sequence <= last))
    nominals = [row.nominal_last for row in forgotten if row.nominal_last is not None]
    settled = connection.execute(
        sa.select(sa.func.max(history.c.recorded_at)).where(
            history.c.schedule_uid == uid, history.c.sequence <= last, history.c.event_type.in_(SETTLING)
        )
    ).scalar_one()
    complete_until = min(decided_until, max([*nominals, settled or 0]))
    set_checkpoint(connection, uid, sequence=last + 1, decided_until=complete_until, now=now)
    return len(forgotten)


def set_checkpoint(connection: Connection, uid: bytes, *, sequence: int, decided_until: Instant, now: Instant) -> None:
    """An audit begins here: older history is gone, or cannot be recomputed. It never moves back."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = insert(checkpoints).values(schedule_uid=uid, sequence=sequence, decided_until=decided_until, made_at=now)
    further = {
        name: sa.case((row.excluded[name] > checkpoints.c[name], row.excluded[name]), else_=checkpoints.c[name])
        for name in ("sequence", "decided_until", "made_at")
    }
    connection.execute(row.on_conflict_do_update(index_elements=["schedule_uid"], set_=further))


# ── whole schedules, and what nobody asks about any more ─────────────────────────────────────────────


def deleted_schedules(connection: Connection, *, deleted_before: Before, after: bytes, looks: int) -> Found:
    """The schedules among the next `looks` that were deleted before the cutoff and have no run or decision left."""
    uid = schedules.c.schedule_uid
    may_go = sa.func.coalesce(_may_be_purged(connection, deleted_before), sa.false()).label("may_go")
    rows = connection.execute(sa.select(uid, may_go).where(uid > after).order_by(uid).limit(looks)).all()
    ids = tuple(row.schedule_uid for row in rows if row.may_go)
    return Found(ids, rows[-1].schedule_uid if len(rows) == looks else None)


def purge_schedules(connection: Connection, uids: Sequence[bytes], *, deleted_before: Before) -> int:
    """Purge schedules and return their number. A schedule goes whole or not at all: no reader may see half of one."""
    uid = positions.c.schedule_uid
    locked = sa.select(uid).where(uid.in_(list(uids))).order_by(uid).with_for_update(skip_locked=True)
    ours = list(connection.execute(locked).scalars())
    may_go = _may_be_purged(connection, deleted_before)
    still = sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_uid.in_(ours), may_go)
    gone = list(connection.execute(still).scalars())
    forget_of_schedules(connection, gone)
    of_schedule = (history, checkpoints, schedule_attributes, schedule_revisions, standing_approvals)
    for table in (*of_schedule, positions, schedules):
        connection.execute(sa.delete(table).where(table.c.schedule_uid.in_(gone)))
    owners = [schedule_owner(each) for each in gone]
    connection.execute(sa.delete(counters).where(counters.c.owner.in_(owners), counters.c.kind.in_(_DAILY)))
    return len(gone)


def _may_be_purged(connection: Connection, deleted_before: Before) -> sa.ColumnElement[bool]:
    uid = schedules.c.schedule_uid
    decision = sa.exists().where(history.c.schedule_uid == uid, history.c.event_type.in_(_FORGOTTEN))
    run = (sa.exists().where(table.c.schedule_uid == uid) for table in run_archive.tables(connection))
    forgotten = sa.and_(*(~each for each in run), ~decision)
    is_old = schedules.c.deleted_at < cutoff(deleted_before, schedules.c.namespace)
    return sa.and_(is_old, forgotten, ~_is_declared_again())


def _is_declared_again() -> sa.ColumnElement[bool]:
    """Match exhausted schedules that code or a bundle declares at every start: without the row they would start over.

    Templates are as few as their declarations; a later one with the same id replaces the earlier.
    """
    later = schedules.alias()
    used_up = sa.exists().where(
        history.c.schedule_uid == schedules.c.schedule_uid,
        history.c.event_type == EventType.DELETED.value,
        history.c.payload.contains(MAX_RUNS_EXHAUSTED),
    )
    replaced = sa.exists().where(
        later.c.namespace == schedules.c.namespace,
        later.c.schedule_id == schedules.c.schedule_id,
        later.c.schedule_uid > schedules.c.schedule_uid,
    )
    return sa.and_(schedules.c.source == Source.TEMPLATE.value, used_up, ~replaced)


_DAILY = ("runs", "spent")


def purge_counters(connection: Connection, *, day_before: int, limit: int = LIMIT) -> int:
    """Daily counters of days that no limit asks about any more."""
    return delete_some(connection, counters, sa.and_(counters.c.kind.in_(_DAILY), counters.c.day < day_before), limit)
