"""What the end of a run leaves in its schedule's history: releases from the buffer, a pause after failures."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, update

from horarium.decision.lifecycle import pause
from horarium.decision.record import missed_values
from horarium.ids import id_text
from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import EventType, TriggerOutcome, make_payload
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.run import Origin, instance_id
from horarium.store.database.set_wise import encode
from horarium.store.tables import history, schedules


def pause_after_failures(
    connection: Connection, position: Any, planning: Planning, reason: str, now: Instant
) -> dict[str, Any]:
    """As a pause by hand: what was due and undecided is accounted for."""
    before = Position(position.decided_until, position.next_due, Status(position.status), position.generation)
    overtaken = pause(planning, before, now=now).superseded if before.status is Status.ACTIVE else None
    sequence = position.next_sequence
    if overtaken is not None:
        missed = make_payload(EventType.MISSED, **missed_values(overtaken))
        add_history(
            connection, position, sequence, EventType.MISSED, overtaken.first, None, missed, now, last=overtaken.last
        )
        sequence += 1
    payload = make_payload(EventType.PAUSED, reason=reason, paused_at=to_rfc3339(now))
    add_history(connection, position, sequence, EventType.PAUSED, None, None, payload, now)
    connection.execute(
        update(schedules)
        .where(schedules.c.schedule_uid == position.schedule_uid)
        .values(version=schedules.c.version + 1, updated_at=now)
    )
    return {
        "status": Status.PAUSED.value,
        "paused_at": now,
        "pause_reason": reason,
        "next_sequence": sequence + 1,
        "decided_until": max(position.decided_until, now),
    }


def released_payload(position: Any, planning: Planning, run_id: bytes, row: Any, number: int) -> dict[str, object]:
    text = id_text(run_id)
    return make_payload(
        EventType.TRIGGERED,
        workflow_instance_id=instance_id(position.schedule_id, Origin(row.origin), row.nominal, text),
        workflow_run_id=text,
        outcome=TriggerOutcome.DRAINED.value,
        effective_overlap_policy=planning.overlap.policy.value,
        trigger_number=number,
        occurrence_time=to_rfc3339(row.nominal),
        due=None if row.due == row.nominal else to_rfc3339(row.due),
        origin=row.origin,
        revision=row.revision,
        rotation_index_used=row.rotation_index,
        from_buffer=True,
    )


def add_history(
    connection: Connection,
    position: Any,
    sequence: int,
    event_type: EventType,
    nominal: Instant | None,
    run_id: bytes | None,
    payload: dict[str, object],
    now: Instant,
    *,
    last: Instant | None = None,
) -> None:
    row = history_row(position, sequence, event_type, nominal, run_id, payload, now, last=last)
    connection.execute(history.insert().values(row))


def history_row(
    position: Any,
    sequence: int,
    event_type: EventType,
    nominal: Instant | None,
    run_id: bytes | None,
    payload: dict[str, object],
    now: Instant,
    *,
    last: Instant | None = None,
) -> dict[str, Any]:
    return {
        "schedule_uid": position.schedule_uid,
        "sequence": sequence,
        "namespace": position.namespace,
        "event_type": event_type.value,
        "recorded_at": now,
        "nominal": nominal,
        "nominal_last": nominal if last is None else last,
        "run_id": run_id,
        "payload": encode(payload),
    }
