"""SQL that writes a batch of decisions in the transaction of the claim, and marks schedules as broken.

One UPDATE of positions, then the new rows of runs and history. A schedule that cannot be planned or recorded is set
aside: it is visible everywhere, and blocks no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from horarium.core.decision.record import NewRun, ScheduleWrites, first_stored_event
from horarium.core.decision.run_policies import RunColumns
from horarium.core.document.definition import of_worker
from horarium.core.document.json_values import Json
from horarium.core.document.planning import Planning
from horarium.core.document.states import EventType, Obstacle, Origin, Status, dispatch_status
from horarium.features.history.rows import Journal, append, last_sequence
from horarium.features.runs import definition_rows
from horarium.features.schedules import write_rows
from horarium.features.schedules.rows import PositionChange
from horarium.features.schedules.write_rows import move_version
from horarium.instant import Instant, to_rfc3339
from horarium.platform.database.statements import RowInsert, storable_text, to_millionths
from horarium.platform.database.tables import runs


class ScheduleRecord(NamedTuple):
    """One schedule's share of a batch."""

    schedule_uid: bytes
    namespace: str
    revision: int
    planning: Planning
    entry: ScheduleWrites


# What a run that has just been born has none of.
ZEROS = dict.fromkeys(("attempt", "launches", "lease_epoch", "cost", "tokens", "tool_calls"), 0)
_RUNS = RowInsert(
    runs,
    (
        "run_id", "namespace", "schedule_uid", "revision", "origin", "state", "nominal", "due", "ready_at",
        "rotation_index", "trigger_number", "covers_first", "covers_last", "covers_count", "created_at", "next_event",
        "workflow", "kind", "timeout_seconds", "priority", "queue", "delivery", "needs_approval", "concurrency_key",
        "assignee", "reserved", "target", "attempt_ms", "runtime_seconds", "assignee_type", "member", "effective",
        "workflow_version",
    ),
    ZEROS,
)  # fmt: skip


def write_records(
    connection: Connection,
    records: Sequence[ScheduleRecord],
    *,
    now: Instant,
    origin: Origin = Origin.SCHEDULED,
    given: Json = None,
) -> Mapping[str, int]:
    """Return the bytes of rendered texts by namespace. `given` are values for templates.

    The caller has locked the positions; nothing here decides anything.
    """
    run_rows = [_run_row(record, run, now, origin.value) for record in records for run in record.entry.runs]
    write_rows.save_decided(
        connection, ((record.schedule_uid, record.entry.position, record.entry.counts) for record in records)
    )
    _RUNS.run(connection, run_rows)
    rendered: Mapping[str, int] = {}
    if templates := [record for record in records if record.planning.template is not None and record.entry.runs]:
        rendered = _render(connection, templates, now, origin.value, given)
    append(connection, ((record.schedule_uid, record.namespace, record.entry.events) for record in records), now=now)
    # A schedule whose runs are used up is deleted by the transaction that bore the last one.
    for record in records:
        if record.entry.deletes:
            move_version(connection, record.schedule_uid, deleted_at=now, updated_at=now)
    return rendered


def _render(
    connection: Connection, records: Sequence[ScheduleRecord], now: Instant, origin: str, given: Json
) -> Mapping[str, int]:
    created = [
        definition_rows.Created(
            run.run_id, record.namespace, record.schedule_uid, record.revision, record.planning.spec, run.nominal,
            run.due, run.rotation_index or 0,
        )
        for record in records
        for run in record.entry.runs
    ]  # fmt: skip
    return definition_rows.save_texts(connection, created, now=now, origin=origin, given=given)


def _run_row(record: ScheduleRecord, run: NewRun, now: Instant, origin: str) -> tuple[Any, ...]:
    covers = run.covers
    first, last, count = (None, None, None) if covers is None else (covers.first, covers.last, covers.count)
    return (
        run.run_id,
        record.namespace,
        record.schedule_uid,
        record.revision,
        origin,
        run.state.value,
        run.nominal,
        run.due,
        run.ready_at,
        run.rotation_index,
        run.trigger_number,
        first,
        last,
        count,
        now,
        first_stored_event(run.state),
        *(_run_constants(record.planning) if run.settled is None else _settled(record.planning, run.settled)),
    )


@lru_cache(maxsize=65_536)
def _run_constants(planning: Planning) -> tuple[Any, ...]:
    """Column values that all runs of one planning share, in the order of the last columns."""
    return (
        planning.workflow,
        planning.kind,
        planning.timeout_seconds,
        planning.priority,
        planning.queue,
        planning.delivery.value,
        planning.needs_approval,
        planning.concurrency_key,
        planning.assignee,
        to_millionths(planning.reserve),
        planning.target,
        planning.attempt_ms,
        planning.runtime_seconds,
        None if planning.assignee_type is None else planning.assignee_type.value,
        None,
        None,
        None,
    )


def _settled(planning: Planning, settled: RunColumns) -> tuple[Any, ...]:
    """The same for a run in which others than its schedule have a word."""
    return (
        planning.workflow,
        planning.kind,
        planning.timeout_seconds,
        settled.priority,
        planning.queue,
        planning.delivery.value,
        settled.needs_approval,
        planning.concurrency_key,
        None if settled.assignee is None else settled.assignee.id,
        to_millionths(settled.reserve),
        of_worker(planning.target, settled.assignee, settled.member),
        settled.attempt_ms,
        settled.runtime_seconds,
        None if settled.assignee is None else settled.assignee.type.value,
        settled.member,
        settled.effective,
        settled.workflow_version,
    )


_MAX_ERROR = 1_000


def park(connection: Connection, schedule_uid: bytes, *, error: str, error_class: str, now: Instant) -> bool:
    """`next_due` stays to be read; an edit or a resume plans anew. False if it is not active any more."""
    # The error may quote what broke the row: whatever a database cannot hold must not break it again.
    said = storable_text(error, _MAX_ERROR) or error_class
    position = write_rows.lock_position(connection, schedule_uid)
    if position is None or position.status != Status.ACTIVE:
        return False
    # What is wrong may be the number itself: then the stream says where it ends.
    journal = Journal(max(position.next_sequence, last_sequence(connection, schedule_uid) + 1), now)
    journal.add(EventType.BROKEN, error=said, error_class=error_class, broken_at=to_rfc3339(now))
    moved = _broken(said, now)
    moved["next_sequence"] = journal.write(connection, schedule_uid, position.namespace)
    write_rows.move_position(connection, schedule_uid, **moved)
    return True


def park_without_event(connection: Connection, schedule_uid: bytes, *, error: str, now: Instant) -> None:
    """Park a schedule whose row or stream lets no event be written: it must not stop the others."""
    write_rows.move_position(connection, schedule_uid, **_broken(storable_text(error, _MAX_ERROR), now))


def _broken(said: str | None, now: Instant) -> PositionChange:
    return {
        "status": Status.BROKEN,
        "last_error": said,
        "last_error_at": now,
        "last_dispatch_status": dispatch_status(Obstacle.BROKEN),
    }
