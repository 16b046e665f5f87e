"""What the end of a run leaves in its schedule's history: releases from the buffer, a pause after failures."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from horarium.decision.lifecycle import pause
from horarium.ids import id_text
from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import EventType, TriggerOutcome
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.schedule.run import Origin, instance_id
from horarium.store.history.append import Journal
from horarium.store.schedules.rows import LockedPosition
from horarium.store.schedules.write import move_version


def pause_after_failures(
    connection: Connection, position: LockedPosition, planning: Planning, reason: str, now: Instant
) -> LockedPosition:
    """As a pause by hand: what was due and undecided is accounted for."""
    before = Position(position.decided_until, position.next_due, Status(position.status), position.generation)
    journal = Journal(position.next_sequence, now)
    journal.missed(pause(planning, before, now=now).superseded if before.status is Status.ACTIVE else None)
    journal.add(EventType.PAUSED, reason=reason, paused_at=to_rfc3339(now))
    move_version(connection, position.schedule_uid, updated_at=now)
    return position._replace(
        status=Status.PAUSED.value,
        paused_at=now,
        pause_reason=reason,
        next_sequence=journal.write(connection, position.schedule_uid, position.namespace),
        decided_until=max(position.decided_until, now),
    )


class ReleasedRun(NamedTuple):
    """Columns of a run that is let go, under lock."""

    run_id: bytes
    origin: str
    nominal: Instant
    due: Instant
    revision: int
    rotation_index: int | None
    concurrency_key: str | None
    needs_approval: bool
    approval_id: bytes | None
    next_event: int


def tell_released(journal: Journal, schedule_id: str, planning: Planning, run: ReleasedRun, number: int) -> None:
    text, origin = id_text(run.run_id), Origin(run.origin)
    # A trigger by hand is nobody's occurrence.
    nominal = None if origin is Origin.MANUAL else run.nominal
    values = {
        "workflow_instance_id": instance_id(schedule_id, origin, run.nominal, text),
        "workflow_run_id": text,
        "outcome": TriggerOutcome.DRAINED.value,
        "effective_overlap_policy": planning.overlap.policy.value,
        "trigger_number": number,
        "occurrence_time": to_rfc3339(run.nominal),
        "due": None if run.due == run.nominal else to_rfc3339(run.due),
        "origin": run.origin,
        "revision": run.revision,
        "rotation_index_used": run.rotation_index,
        "from_buffer": True,
    }
    journal.about(EventType.TRIGGERED, values, nominal, nominal, run.run_id)
