"""How an attempt to get round an approval is written down: on the run, in its schedule's history and in the feed."""

from __future__ import annotations

from horarium.ids import id_text
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.policy.approval import BYPASS_EVENT
from horarium.schedule.event import EventType, NoticeType, RunEventType
from horarium.store.database import Connection
from horarium.store.history import notices
from horarium.store.history.append import Journal
from horarium.store.history.notices import Notice
from horarium.store.runs.events import add_event, count_events
from horarium.store.runs.read import RunRow
from horarium.store.schedules import positions

MAX_RECORDED = 20
"""Attempts on one run: whoever goes on trying is refused as before, and fills nothing."""


def record_bypass(connection: Connection, caller: Caller, run: RunRow, attempted: str, now: Instant) -> None:
    """In the caller's transaction, which must be committed though the caller is refused."""
    place = None if run.schedule_uid is None else positions.lock(connection, run.schedule_uid)
    if count_events(connection, run.run_id, RunEventType(BYPASS_EVENT)) >= MAX_RECORDED:
        return
    context = caller.context()
    said = {"attempted": attempted, "command_context": context.to_payload()}
    add_event(connection, run.run_id, RunEventType(BYPASS_EVENT), now, said)
    values: dict[str, object] = {"workflow_run_id": id_text(run.run_id), "attempted": attempted}
    if place is None or run.schedule_uid is None:
        told = {**values, "command_context": context}
        kind = NoticeType.APPROVAL_BYPASS_ATTEMPT
        notices.append(connection, [Notice(kind, run.namespace, None, run.run_id, told)], now=now)
        return
    journal = Journal(place.next_sequence, now, context)
    journal.about(EventType.APPROVAL_BYPASS_ATTEMPT, values, run_id=run.run_id)
    following = journal.write(connection, run.schedule_uid, run.namespace)
    positions.move(connection, run.schedule_uid, next_sequence=following)
