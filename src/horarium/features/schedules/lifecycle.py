"""Pause, resume and delete schedules. None of these fires occurrences of the past."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from horarium.core.decision import decide
from horarium.core.decision.decide import released_at_once
from horarium.core.decision.facts import Missed
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.planning import Planning
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.states import EventType, Obstacle, Status, dispatch_status
from horarium.core.lifecycle.outcome import CancelledUnstarted
from horarium.errors import CycleDetected, InvalidDefinition
from horarium.features.agents.policy_rows import find_policy_documents
from horarium.features.history.rows import Journal
from horarium.features.resources import Opened, Resources, open_schedule, wake_tickers
from horarium.features.runs import open_rows
from horarium.features.runs.transition_rows import ReportedEvent, record_events
from horarium.features.schedules import pause_rows, write_rows
from horarium.features.schedules.creation import (
    MomentText,
    ScheduleChange,
    moved,
    next_due,
    next_runs,
    planned_row,
    unchanged,
    zone_of,
)
from horarium.features.schedules.lookup_rows import newest_workflow
from horarium.features.schedules.references import note_attribute
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.schedules.write_rows import mark_deleted, save_position, set_note
from horarium.features.secrets.rows import forget_of_schedule
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.caller import Caller, require_confirmed
from horarium.platform.database import Connection
from horarium.platform.database.errors import CommitUnknown, StoreUnavailable
from horarium.platform.database.wakeups import READY
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import Refused
from horarium.platform.wire import Permission, WriteOutcome

# Runs that a delete cancels in one transaction, and in how many: whoever asks over HTTP waits for it.
_AT_ONCE = 500
_MOST_STEPS = 10


def pause(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    reason: str | None = None,
    note: str | None = None,
    until: MomentText | Instant | None = None,
    if_version: int | None = None,
) -> ScheduleChange:
    """Stop ticks and releases, not active runs; at `until` the ticker resumes the schedule.

    A local time is read in the zone of the schedule, unless another is named. The end of the pause releases held runs
    without another request: more than the limit of a storm need a confirmation now.
    """
    caller.require(Permission.OPERATE)

    def work(connection: Connection) -> ScheduleChange:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        end = until.instant(opened.now, zone_of(opened)) if isinstance(until, MomentText) else until
        if end is not None and isinstance(opened.planning, Planning):
            # What runs now has ended by then, or is counted as if it had.
            require_confirmed(caller, released_at_once(opened.planning, active=0, held=opened.row.held))
        return pause_opened(connection, caller.because(reason or note), opened, end, note=note)

    return resources.database.write(work)


def resume(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    reason: str | None = None,
    note: str | None = None,
    if_version: int | None = None,
) -> ScheduleChange:
    """Plans from now, also a schedule that was set aside as broken; held runs are released."""
    caller.require(Permission.OPERATE)

    def work(connection: Connection) -> ScheduleChange:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        require_somebody(connection, opened)
        return resume_opened(resources, connection, caller.because(reason or note), opened, note=note)

    return resources.database.write(work)


def delete(
    resources: Resources, caller: Caller, schedule_id: str, *, reason: str | None = None, if_version: int | None = None
) -> ScheduleChange:
    """Soft: history stays readable, what has not started is cancelled, what runs may end.

    Of very many that have not started a part is cancelled here and the rest soon, by the janitor; none of them can
    start any more when this returns.
    """
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> tuple[ScheduleChange, bool]:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        caller.require_owner(opened.row.owner, f"the schedule {schedule_id!r}")
        return delete_opened(resources, connection, caller.because(reason), opened)

    written, is_rest = resources.database.write(work)
    # Inside a larger transaction it would only make that one longer.
    if is_rest and not isinstance(resources.database, JoinedTransaction):
        _cancel_more(resources, caller, written.schedule_uid)
    return written


def pause_opened(
    connection: Connection,
    caller: Caller,
    opened: Opened,
    until: Instant | None = None,
    *,
    note: str | None = None,
) -> ScheduleChange:
    """Pause a schedule whose lock is held. A pause replaces the one before it, unless it is equal."""
    row, now = opened.row, opened.now
    if until is not None and until <= now:
        raise InvalidDefinition({"until": [f"must be in the future; the current time is {to_rfc3339(now)}"]})
    is_equal = caller.reason in (None, row.pause_reason) and note in (None, row.note) and until == row.paused_until
    if row.status is Status.PAUSED and is_equal:
        return replace(unchanged(connection, opened), paused_until=until)
    position = row.position()._replace(status=Status.PAUSED, decided_until=max(row.decided_until, now))
    journal = Journal(row.next_sequence, now, caller.context())
    journal.missed(_overtaken(opened))
    journal.add(EventType.PAUSED, reason=caller.reason, paused_at=to_rfc3339(now), until=rfc3339_or_none(until))
    _set_note(connection, row, note)
    version = save_position(
        connection,
        row.schedule_uid,
        {
            "status": position.status,
            "decided_until": position.decided_until,
            "paused_at": now,
            "pause_reason": caller.reason,
            "paused_until": until,
            "paused_by": caller.principal,
            "last_dispatch_status": dispatch_status(Obstacle.PAUSED),
            "next_sequence": journal.write(connection, row.schedule_uid, row.namespace),
        },
        expected_version=row.version,
        now=now,
    )
    paused = replace(row, status=position.status, decided_until=position.decided_until, paused_until=until)
    coming = position._replace(next_due=next_due(paused, opened.planning, now))
    done = moved(connection, opened, WriteOutcome.PAUSED, version, coming)
    if until is None:
        return done
    following = next_runs(connection, [planned_row(paused, opened.planning)], now, opened.signals)[row.schedule_uid]
    return replace(done, next_run=following, paused_until=until)


def resume_opened(
    resources: Resources, connection: Connection, caller: Caller, opened: Opened, *, note: str | None = None
) -> ScheduleChange:
    """Resume a schedule whose lock is held."""
    row, now = opened.row, opened.now
    if row.status not in (Status.PAUSED, Status.BROKEN):
        return unchanged(connection, opened)
    _check_workflow(connection, row, opened.sound)
    require_confirmed(caller, released_at_once(opened.sound, active=row.active, held=row.held))
    position = decide.resume_position(opened.sound, row.schedule_uid, row.position(), now=now).position
    journal = Journal(row.next_sequence, now, caller.context())
    journal.missed(_overtaken(opened))
    journal.add(EventType.RESUMED, next_fire_at=rfc3339_or_none(position.next_due), generation=position.generation)
    _set_note(connection, row, note)
    version, released = pause_rows.write_resumed(connection, resources.known, row, position, journal, now=now)
    if released:
        resources.database.notify(connection, READY)
    wake_tickers(resources, connection, position.next_due)
    return moved(connection, opened, WriteOutcome.RESUMED, version, position)


def require_somebody(connection: Connection, opened: Opened) -> None:
    """Raises Refused where whoever would do the work is gone: each run would be refused, and nobody told why.

    Of a team that is there one may be gone all the same; what that means is the business of each run.
    """
    planning, namespace = opened.planning, opened.row.namespace
    if isinstance(planning, Exception) or (planning.assigned is None and planning.assignment is None):
        return
    given = [] if planning.assignment is None else [(namespace, planning.assignment)]
    speakers = find_policy_documents(
        connection, given, [] if planning.assigned is None else [(namespace, planning.assigned)]
    )
    who = speakers.assignee_of(namespace, planning.assigned, planning.assignment)
    if who is None:
        raise Refused(f"the assignment {planning.assignment!r} was deleted; change the assignee of the schedule first")
    there: Mapping[Any, Any] = speakers.agents if who.type is AssigneeType.AGENT else speakers.teams
    if (namespace, who.id) not in there:
        raise Refused(f"the {who.type.value} {who.id!r} was deleted; change the assignee of the schedule first")


def _check_workflow(connection: Connection, row: ScheduleRow, planning: Planning) -> None:
    """Raises CycleDetected: what can never end is not begun. Whose it is is asked at each fire."""
    if planning.kind == WORKFLOW.name and planning.workflow is not None:
        stored = newest_workflow(connection, row.namespace, planning.workflow)
        if stored is not None and stored.cycle:
            raise CycleDetected(stored.cycle, path="action")


def _set_note(connection: Connection, row: ScheduleRow, note: str | None) -> None:
    """Replace the note of the schedule, as the `note` of a pause does in Durable Workflow."""
    if note is not None:
        set_note(connection, row, note, note_attribute(note))


def delete_opened(
    resources: Resources, connection: Connection, caller: Caller, opened: Opened
) -> tuple[ScheduleChange, bool]:
    """For whoever holds the lock. With whether there are runs left to cancel."""
    row, now = opened.row, opened.now
    journal = Journal(row.next_sequence, now, caller.context())
    deleted = row.position()._replace(status=Status.DELETED, next_due=None, decided_until=max(row.decided_until, now))
    journal.missed(_overtaken(opened))
    journal.add(EventType.DELETED, reason=caller.reason, deleted_at=rfc3339_or_none(now))
    mark_deleted(connection, row, now=now)
    write_rows.move_position(
        connection,
        row.schedule_uid,
        decided_until=deleted.decided_until,
        next_sequence=journal.write(connection, row.schedule_uid, row.namespace),
    )
    if len(open_rows.not_started(connection, row.schedule_uid, _AT_ONCE + 1)) > _AT_ONCE:
        open_rows.ask_not_started_to_stop(connection, row.schedule_uid, now)
    is_rest = _cancel_some(resources, connection, caller, row.schedule_uid, now)
    # What still runs may be tried again; then its credentials go with the rows of the schedule.
    if not open_rows.open_run_ids(connection, row.schedule_uid, 1):
        forget_of_schedule(connection, row.schedule_uid, row.namespace, row.schedule_id)
    return moved(connection, opened, WriteOutcome.DELETED, row.version + 1, deleted), is_rest


def _cancel_some(resources: Resources, connection: Connection, caller: Caller, uid: bytes, now: Instant) -> bool:
    """As many as one transaction should end; whether there are more."""
    waiting = open_rows.not_started(connection, uid, _AT_ONCE + 1)
    gone = CancelledUnstarted("the schedule was deleted before the run started", "schedule_deleted")
    ended = [ReportedEvent(run_id, gone, by=caller.context()) for run_id in waiting[:_AT_ONCE]]
    record_events(connection, resources.known, ended, now=now)
    return len(waiting) > _AT_ONCE


def _cancel_more(resources: Resources, caller: Caller, uid: bytes) -> None:
    """The schedule is deleted, whatever happens here: what is left, or cannot be written now, the janitor ends."""
    with suppress(StoreUnavailable, CommitUnknown):
        for _ in range(_MOST_STEPS):
            if not resources.database.write(
                lambda connection: _cancel_some(resources, connection, caller, uid, resources.clock.now())
            ):
                return


def _overtaken(opened: Opened) -> Missed | None:
    """The occurrences up to now that no tick has decided; a clock that stands still has none."""
    if opened.row.status not in (Status.ACTIVE, Status.BROKEN) or not isinstance(opened.planning, Planning):
        return None
    return decide.pause_position(opened.planning, opened.row.position(), now=opened.now).superseded
