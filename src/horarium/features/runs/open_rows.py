"""SQL of open runs for requests: start, stop, select, and find past runs of a window.

Retention deletes runs, and may delete the decisions about them too. A backfill must not repeat an occurrence whose run
is gone; where history is gone as well this is unknown, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.document.reader import CELERY
from horarium.core.document.states import CommandContext, EventType, Origin, RunState
from horarium.features.runs.definition_rows import insert_own
from horarium.features.runs.retention_rows import LIFECYCLE
from horarium.features.runs.step_rows import add_stops
from horarium.features.schedules.decision_rows import ZEROS
from horarium.instant import DAY, Instant
from horarium.platform.database import run_archive
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.run_archive import RunsTable
from horarium.platform.database.run_states import ACTIVE_NAMES, IS_NOT_STARTED, OPEN_ROOT
from horarium.platform.database.statements import count_up_to, to_text
from horarium.platform.database.tables import (
    approvals,
    checkpoints,
    history,
    runs,
    runs_archive,
    schedule_attributes,
    schedules,
)

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

    def mine(runs: RunsTable) -> sa.Select[Any]:
        within = runs.c.nominal.between(first, last)
        return sa.select(runs.c.nominal).where(runs.c.schedule_uid == uid, sa.text(_IS_OCCURRENCE), within)

    return {row.nominal for row in run_archive.rows_everywhere(connection, mine)}


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
    if external_key is None or not run_archive.has_archive(connection):
        return
    mine = (runs_archive.c.namespace == namespace, runs_archive.c.external_key == external_key)
    if connection.execute(sa.select(sa.exists().where(*mine))).scalar_one():
        raise UniqueConflict(KEY_OF_ONE)


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
    add_stops(connection, list(run_ids))


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


def lock_run(connection: Connection, run_id: bytes) -> None:
    """Whoever holds the position of its schedule too has locked that first."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(runs.c.run_id).where(runs.c.run_id == run_id).with_for_update())


@dataclass(frozen=True, slots=True)
class RunSelection:
    """None = any; all that are given must fit."""

    run_ids: Collection[bytes] | None = None
    schedule_ids: Collection[str] | None = None
    labels: Mapping[str, str] | None = None
    states: Collection[RunState] | None = None


class SelectedRun(NamedTuple):
    run_id: bytes
    schedule_id: str | None
    state: RunState


def selected_runs(
    connection: Connection, namespace: str, wanted: RunSelection, *, after: bytes | None, limit: int
) -> list[SelectedRun]:
    """Root runs that have not ended, oldest first."""
    statement = (
        sa.select(runs.c.run_id, schedules.c.schedule_id, runs.c.state)
        .outerjoin_from(runs, schedules, runs.c.schedule_uid == schedules.c.schedule_uid)
        .where(runs.c.namespace == namespace, sa.text(OPEN_ROOT), *_conditions(namespace, wanted))
        .order_by(runs.c.run_id)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(runs.c.run_id > after)
    return [
        SelectedRun(run_id, schedule_id, RunState(state))
        for run_id, schedule_id, state in connection.execute(statement)
    ]


def _conditions(namespace: str, wanted: RunSelection) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.run_ids is not None:
        yield runs.c.run_id.in_(list(wanted.run_ids))
    if wanted.schedule_ids is not None:
        mine = (schedules.c.namespace == namespace, schedules.c.schedule_id.in_(list(wanted.schedule_ids)))
        yield runs.c.schedule_uid.in_(sa.select(schedules.c.schedule_uid).where(*mine))
    for name, value in (wanted.labels or {}).items():
        labelled = schedule_attributes.c
        yield runs.c.schedule_uid.in_(
            sa.select(labelled.schedule_uid).where(
                labelled.namespace == namespace,
                labelled.kind == "label",
                labelled.name == name,
                labelled.value == value,
            )
        )
    if wanted.states is not None:
        yield runs.c.state.in_(sorted(state.value for state in wanted.states))


_BIRTHS = (EventType.TRIGGERED.value, EventType.BUFFERED.value)
_LIFECYCLE = sorted(kind.value for kind in LIFECYCLE)


@dataclass(frozen=True, slots=True)
class PastRuns:
    """`nominals` have had a run; up to `forgotten_until` others may have had one. None = nothing is forgotten."""

    nominals: frozenset[Instant]
    forgotten_until: Instant | None = None

    def union(self, other: PastRuns) -> PastRuns:
        bounds = [each.forgotten_until for each in (self, other) if each.forgotten_until is not None]
        return PastRuns(self.nominals | other.nominals, max(bounds, default=None))


def past_runs(
    connection: Connection, uid: bytes, first: Instant, last: Instant, *, since_sequence: int = 1
) -> PastRuns:
    """Read past runs from `first` to `last`; `since_sequence` leaves out history that was read before."""
    # No index leads to the events of an occurrence: a long history is read outside of the writer.
    told = sa.select(history.c.nominal).where(
        history.c.schedule_uid == uid,
        history.c.sequence >= since_sequence,
        history.c.event_type.in_(_BIRTHS),
        history.c.nominal.between(first, last),
        history.c.run_id.is_not(None),
    )
    nominals = taken(connection, uid, first, last).union(connection.execute(told).scalars())
    return PastRuns(frozenset(nominals), _forgotten_until(connection, uid))


def _forgotten_until(connection: Connection, uid: bytes) -> Instant | None:
    """No decision about a later occurrence has been deleted.

    A checkpoint says up to where decisions may be gone. It is also set where none is (new zone rules), so
    the numbers tell: what was done to a schedule stays, and before its first decision nothing else was.
    A decision comes after its occurrence, so none about a time after the oldest that is left is missing -
    by more than a clock may have been set back.
    """
    mark = connection.execute(
        sa.select(checkpoints.c.sequence, checkpoints.c.decided_until).where(checkpoints.c.schedule_uid == uid)
    ).one_or_none()
    if mark is None:
        return None
    mine = sa.and_(history.c.schedule_uid == uid, history.c.sequence.is_not(None))
    oldest = connection.execute(
        sa.select(history.c.sequence, history.c.recorded_at)
        .where(mine, history.c.event_type.not_in(_LIFECYCLE))
        .order_by(history.c.sequence)
        .limit(1)
    ).one_or_none()
    begins = mark.sequence if oldest is None else oldest.sequence
    before = sa.select(sa.func.count()).where(mine, history.c.sequence < begins)
    if connection.execute(before).scalar_one() == begins - 1:
        return None
    decided: Instant = mark.decided_until
    return decided if oldest is None else min(decided, oldest.recorded_at + DAY)
