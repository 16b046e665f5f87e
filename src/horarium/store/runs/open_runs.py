"""Runs as those see them who start, stop or answer for them by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import CommandContext
from horarium.schedule.kinds import CELERY
from horarium.schedule.run import Origin
from horarium.store.database.bounded_count import count_up_to
from horarium.store.database.json_text import to_text
from horarium.store.errors import Conflict
from horarium.store.runs import everywhere
from horarium.store.runs.definitions import insert_own
from horarium.store.runs.states import ACTIVE_NAMES, IS_NOT_STARTED, OPEN_ROOT
from horarium.store.runs.step_changes import note_stops
from horarium.store.schedules.decisions import ZEROS
from horarium.store.tables import approvals, runs, runs_archive

KEY_OF_ONE = "runs_by_callers_key"
"""The index that lets no two runs of a namespace have the same key of a caller's."""

MOST_COUNTED = 50_000
# Of variables in one statement older SQLites take 999.
_IDS_AT_ONCE = 900
# The condition of the index `runs_one_per_occurrence`, as text, so that both databases see that it is the one to use.
_IS_OCCURRENCE = f"origin IN ('{Origin.SCHEDULED}', '{Origin.BACKFILL}')"
# With that of `runs_open`.
_IS_NOT_STARTED = sa.and_(sa.text(OPEN_ROOT), sa.text(IS_NOT_STARTED))


def not_started(connection: Connection, uid: bytes, limit: int) -> list[bytes]:
    """Root runs that nobody outside has seen, in no order."""
    some = sa.select(runs.c.run_id).where(runs.c.schedule_uid == uid, _IS_NOT_STARTED).limit(limit)
    return list(connection.execute(some).scalars())


def ask_not_started_to_stop(connection: Connection, uid: bytes, now: Instant) -> None:
    """However many there are: from now on no claim sees them, no release lets them go, and the janitor ends them."""
    waiting = sa.update(runs).where(runs.c.schedule_uid == uid, _IS_NOT_STARTED, runs.c.stop_requested_at.is_(None))
    connection.execute(waiting.values(stop_requested_at=now))


def taken(connection: Connection, uid: bytes, first: Instant, last: Instant) -> set[Instant]:
    """The nominal times in a range that have their run already."""
    mine = sa.select(runs.c.nominal).where(
        runs.c.schedule_uid == uid, sa.text(_IS_OCCURRENCE), runs.c.nominal.between(first, last)
    )
    return {row.nominal for row in everywhere.every(connection, mine)}


def open_run_ids(connection: Connection, uid: bytes, limit: int) -> list[bytes]:
    """Root runs that are neither final nor held, oldest first."""
    rows = connection.execute(
        sa.select(runs.c.run_id)
        .where(runs.c.schedule_uid == uid, runs.c.parent_run_id.is_(None), runs.c.state.in_(ACTIVE_NAMES))
        .order_by(runs.c.run_id)
        .limit(limit)
    )
    return [row.run_id for row in rows]


def set_callers_part(
    connection: Connection, run_id: bytes, *, external_key: str | None, inputs: Any, rerun_of: bytes | None = None
) -> None:
    """Raises Conflict(`runs_by_callers_key`) if another run of the namespace has the key."""
    values: dict[str, Any] = {}
    if external_key is not None:
        values["external_key"] = external_key
    if inputs is not None:
        values["inputs"] = to_text(inputs)
    if rerun_of is not None:
        values["rerun_of"] = rerun_of
    if values:
        mine = sa.update(runs).where(runs.c.run_id == run_id).values(**values).returning(runs.c.namespace)
        namespace = connection.execute(mine).scalar_one()
        _refuse_archived_key(connection, namespace, external_key)


def _refuse_archived_key(connection: Connection, namespace: str, external_key: str | None) -> None:
    """After the row that has the key was written: from then on no other that has it can move without being seen."""
    if external_key is None or not everywhere.has_archive(connection):
        return
    mine = (runs_archive.c.namespace == namespace, runs_archive.c.external_key == external_key)
    if connection.execute(sa.select(sa.exists().where(*mine))).scalar_one():
        raise Conflict(KEY_OF_ONE)


def set_requested_by(connection: Connection, run_ids: Sequence[bytes], context: CommandContext) -> None:
    """Record the request that started all these runs."""
    said = context.to_payload()
    if not said:
        return
    mine = sa.update(runs).values(requested_by=to_text(said))
    for first in range(0, len(run_ids), _IDS_AT_ONCE):
        connection.execute(mine.where(runs.c.run_id.in_(run_ids[first : first + _IDS_AT_ONCE])))


def insert_unscheduled(connection: Connection, values: dict[str, Any], document: Mapping[str, Any]) -> None:
    """A run that no schedule asked for; its definition is kept under its own id.

    Raises Conflict(`runs_by_callers_key`) if its key is taken.
    """
    # Only its creation is read off the row; why it exists is nobody's schedule.
    connection.execute(sa.insert(runs).values(**ZEROS, next_event=2, **values))
    _refuse_archived_key(connection, values["namespace"], values.get("external_key"))
    insert_own(connection, values["run_id"], to_text(document))


def ask_to_stop(connection: Connection, run_ids: Collection[bytes], now: Instant) -> None:
    """Whoever holds it reads the wish when it renews its lease; the first wish stays on record."""
    connection.execute(
        sa.update(runs)
        .where(runs.c.run_id.in_(list(run_ids)), runs.c.stop_requested_at.is_(None))
        .values(stop_requested_at=now)
    )
    note_stops(connection, list(run_ids))


class Unclaimed(NamedTuple):
    """Runs of one type that no worker takes."""

    namespace: str
    queue: str | None
    workflow: str | None
    runs: int


def unclaimed(connection: Connection, *, born_before: Instant, limit: int) -> list[Unclaimed]:
    """Queues with runs that have waited since before `born_before`, the fullest first."""
    of_one = (runs.c.namespace, runs.c.queue, runs.c.workflow)
    count = sa.func.count()
    waiting = sa.select(*of_one, count).where(
        runs.c.state == "queued", runs.c.kind != CELERY.name, runs.c.created_at < born_before
    )
    rows = connection.execute(waiting.group_by(*of_one).order_by(count.desc(), *of_one).limit(limit))
    return [Unclaimed(*row) for row in rows]


def approvals_waiting(connection: Connection) -> int:
    """Count pending requests; as text, so that both databases see the partial index that holds just these."""
    pending = sa.select(sa.literal(1)).select_from(approvals).where(sa.text("decision = 'pending'"))
    return count_up_to(connection, pending, MOST_COUNTED)


def lock(connection: Connection, run_id: bytes) -> None:
    """Whoever holds the position of its schedule too has locked that first."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(runs.c.run_id).where(runs.c.run_id == run_id).with_for_update())
