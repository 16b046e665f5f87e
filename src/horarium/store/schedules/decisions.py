"""How a batch of decisions becomes rows: three set-based statements in the transaction of the claim.

One UPDATE of positions, then the new rows of runs and history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from horarium.decision.record import Entry, NewEvent, NewRun, first_stored_event
from horarium.instant import Instant
from horarium.policy.limits import MILLIONTHS
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.run import Origin
from horarium.store.database.set_wise import Insert, Update, encode


class ScheduleRecord(NamedTuple):
    """One schedule's share of a batch."""

    schedule_uid: bytes
    namespace: str
    revision: int
    planning: Planning
    entry: Entry


_POSITIONS = Update(
    "positions",
    {
        "schedule_uid": "bytea",
        "status": "text",
        "next_due": "int8",
        "decided_until": "int8",
        "next_sequence": "int8",
        "active": "int4",
        "held": "int4",
        "runs_born": "int8",
        "fires_count": "int8",
        "skipped_count": "int8",
        "rotation_index": "int8",
        "last_fired_at": "int8",
        "last_run_id": "bytea",
        "last_skip_reason": "text",
        "last_skipped_at": "int8",
        "last_dispatch_status": "text",
    },
)
_RUNS = Insert(
    "runs",
    {
        "run_id": "bytea",
        "namespace": "text",
        "schedule_uid": "bytea",
        "revision": "int4",
        "origin": "text",
        "state": "text",
        "nominal": "int8",
        "due": "int8",
        "ready_at": "int8",
        "rotation_index": "int4",
        "trigger_number": "int8",
        "covers_first": "int8",
        "covers_last": "int8",
        "covers_count": "int8",
        "created_at": "int8",
        "next_event": "int4",
        "workflow": "text",
        "kind": "text",
        "timeout_seconds": "int4",
        "priority": "int4",
        "queue": "text",
        "delivery": "text",
        "needs_approval": "bool",
        "concurrency_key": "text",
        "assignee": "text",
        "reserved": "int8",
        "target": "text",
        "attempt_ms": "int8",
        "runtime_seconds": "int4",
    },
    {
        "attempt": ("int4", 0),
        "launches": ("int4", 0),
        "lease_epoch": ("int4", 0),
        "cost": ("int8", 0),
        "tokens": ("int8", 0),
        "tool_calls": ("int8", 0),
    },
)
HISTORY = Insert(
    "history",
    {
        "schedule_uid": "bytea",
        "sequence": "int8",
        "namespace": "text",
        "event_type": "text",
        "recorded_at": "int8",
        "nominal": "int8",
        "nominal_last": "int8",
        "run_id": "bytea",
        "payload": "text",
    },
)


def write_records(
    connection: Connection, records: Sequence[ScheduleRecord], *, now: Instant, origin: Origin = Origin.SCHEDULED
) -> None:
    """The caller has locked the positions; nothing here decides anything."""
    position_rows = [_position_row(record) for record in records]
    run_rows = [_run_row(record, run, now, origin.value) for record in records for run in record.entry.runs]
    history_rows = [_history_row(record, event, now) for record in records for event in record.entry.events]
    _POSITIONS.run(connection, position_rows)
    _RUNS.run(connection, run_rows)
    HISTORY.run(connection, history_rows)
    _mark_deleted(connection, records, now)


def _position_row(record: ScheduleRecord) -> tuple[Any, ...]:
    position, counts = record.entry.position, record.entry.counts
    return (
        record.schedule_uid,
        position.status.value,
        position.next_due,
        position.decided_until,
        counts.next_sequence,
        counts.active,
        counts.held,
        position.runs_born,
        counts.fires_count,
        counts.skipped_count,
        position.rotation_index,
        counts.last_fired_at,
        counts.last_run_id,
        counts.last_skip_reason,
        counts.last_skipped_at,
        counts.last_dispatch_status,
    )


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
        *_run_constants(record.planning),
    )


@lru_cache(maxsize=65_536)
def _run_constants(planning: Planning) -> tuple[Any, ...]:
    """What all runs of one planning have in common, in the order of the last columns."""
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
        int(planning.reserve * MILLIONTHS),
        planning.target,
        planning.attempt_ms,
        planning.runtime_seconds,
    )


def _history_row(record: ScheduleRecord, event: NewEvent, now: Instant) -> tuple[Any, ...]:
    return (
        record.schedule_uid,
        event.sequence,
        record.namespace,
        event.event_type.value,
        now,
        event.nominal,
        event.nominal_last,
        event.run_id,
        encode(event.payload),
    )


def _mark_deleted(connection: Connection, records: Iterable[ScheduleRecord], now: Instant) -> None:
    """A schedule whose runs are used up is deleted by the transaction that bore the last one."""
    gone = [record.schedule_uid for record in records if record.entry.position.status is Status.DELETED]
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    for uid in gone:
        connection.exec_driver_sql(
            f"UPDATE schedules SET deleted_at = {mark}, updated_at = {mark}, version = version + 1 "
            f"WHERE schedule_uid = {mark}",
            (now, now, uid),
        )
