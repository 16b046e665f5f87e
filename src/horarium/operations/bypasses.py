"""How an attempt to get round an approval is written down: on the run, in its schedule's history and in the feed.

What concerns no run yet is in history and feed; what concerns no schedule, in the feed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from horarium.ids import id_text
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.operations.errors import ApprovalRequired, BundleRefused
from horarium.operations.gated_steps import any_step_waits, steps_wait
from horarium.operations.resources import Resources
from horarium.policy.approval import BYPASS_EVENT, NO_SKIPPING, ApprovalPolicy, Skipping, detect_bypass
from horarium.schedule.definition import Definition
from horarium.schedule.effective import read_effective
from horarium.schedule.event import EventType, NoticeType, RunEventType
from horarium.schedule.run import RunState
from horarium.schedule.sub_workflows import Use
from horarium.store.database import Connection
from horarium.store.history import events, notices
from horarium.store.history.append import Journal
from horarium.store.history.notices import Notice
from horarium.store.runs import read as runs_read
from horarium.store.runs.events import add_event, count_events
from horarium.store.runs.read import RunRow
from horarium.store.schedules import positions
from horarium.store.schedules import rows as schedules

MAX_RECORDED = 20
"""Recorded attempts per run, or in a row per schedule; further attempts are refused but not recorded."""


def refuse_skipping(skipping: Skipping, *, needs_approval: bool, about: bytes | None = None) -> None:
    """Raises ApprovalRequired, which undoes the transaction: see `bypass_on_record`."""
    asked = detect_bypass(needs_approval=needs_approval, approval_status=skipping.approval_status, skip=skipping.skip)
    if asked is not None:
        raise ApprovalRequired(f"this requires approval, which a request cannot skip ({asked})", asked, about)


def refuse_skipping_in(
    connection: Connection, skipping: Skipping, definition: Definition, *, needs_approval: bool
) -> None:
    """Refuse what a written schedule says to skip approval, also where only a step of its workflow would need one."""
    if skipping == NO_SKIPPING:
        return
    waits = needs_approval or steps_wait(connection, definition, definition.approval)
    refuse_skipping(skipping, needs_approval=waits)


def refuse_skipping_again(
    connection: Connection, caller: Caller, run: RunRow, policy: ApprovalPolicy | None = None, *, is_new: bool = False
) -> None:
    """Refuse a request to skip approval for a run that awaits approval, or has steps that would.

    `policy` is that of its definition, for a run that keeps none of its own. `is_new`: the refusal undoes the run.
    """
    if caller.skipping == NO_SKIPPING:
        return
    waits = run.state is RunState.AWAITING_APPROVAL
    if not waits and run.workflow is not None and run.workflow_version is not None:
        kept = policy if run.effective is None else read_effective(run.effective).approval
        root = Use(run.workflow, run.workflow_version)
        has_assignee = run.assignee is not None
        waits = any_step_waits(connection, run.namespace, root, kept or ApprovalPolicy(), has_assignee=has_assignee)
    refuse_skipping(caller.skipping, needs_approval=waits, about=None if is_new else run.run_id)


@contextmanager
def bypass_on_record(resources: Resources, caller: Caller, schedule_id: str | None = None) -> Iterator[None]:
    """Around what `refuse_skipping` may undo: nothing of it was done, and that it was tried is written here."""
    try:
        yield
    except (ApprovalRequired, BundleRefused) as refused:
        tried = refused if isinstance(refused, ApprovalRequired) else refused.__cause__
        if isinstance(tried, ApprovalRequired) and tried.attempted is not None:
            named = schedule_id or getattr(refused, "schedule_id", None)
            _record(resources, caller, named, tried)
        raise


def _record(resources: Resources, caller: Caller, schedule_id: str | None, tried: ApprovalRequired) -> None:
    def write(connection: Connection) -> ApprovalRequired:
        run = None if tried.about is None else runs_read.find(connection, caller.namespace, tried.about)
        if run is not None and tried.attempted is not None:
            record_bypass(connection, caller, run, tried.attempted, resources.clock.now())
            return tried
        row = None
        if schedule_id is not None:
            row = schedules.find(connection, caller.namespace, schedule_id, lock=True)
        now, context, values = resources.clock.now(), caller.context(), {"attempted": tried.attempted}
        if row is None:
            told = {**values, "command_context": context}
            notice = Notice(NoticeType.APPROVAL_BYPASS_ATTEMPT, caller.namespace, None, None, told)
            notices.append(connection, [notice], now=now)
        elif not _filled(connection, row.schedule_uid):
            journal = Journal(row.next_sequence, now, context)
            journal.about(EventType.APPROVAL_BYPASS_ATTEMPT, values)
            following = journal.write(connection, row.schedule_uid, row.namespace)
            positions.move(connection, row.schedule_uid, next_sequence=following)
        return tried

    resources.database.write(write)


def _filled(connection: Connection, schedule_uid: bytes) -> bool:
    """Tell whether the newest history consists of such attempts only."""
    newest = events.newest_types(connection, schedule_uid, MAX_RECORDED)
    return len(newest) == MAX_RECORDED and set(newest) == {EventType.APPROVAL_BYPASS_ATTEMPT.value}


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
