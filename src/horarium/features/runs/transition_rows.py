"""SQL that records events of runs: one transaction for the runs, their schedules and the runs that waited.

Any number of events costs a few statements together. Each is judged by `react` on the row as it is under lock, and
every change is checked against the table of transitions; no other code ends a run. The positions are locked before
the runs, as the tick does, so that the two never wait for each other. Runs that wait for a place or a key are then
released one by one.

Log fields name a run by `namespace`, `schedule_id` and `run_id`, where they exist. A run refers to its schedule by uid
only, so the ids are read where something failed, and never for a run that succeeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.decide import plan_ending
from horarium.core.decision.statuses import empties_after
from horarium.core.document.planning import Planning
from horarium.core.document.states import CommandContext, Obstacle, RunState, Status, check_transition, dispatch_status
from horarium.core.lifecycle.live_run import Rules
from horarium.core.lifecycle.outcome import (
    Accepted,
    Admit,
    Begin,
    Block,
    Change,
    End,
    Event,
    LaunchAnswered,
    Nothing,
    NothingCause,
    Progress,
    RetryLater,
    TargetAccepted,
    WaitForTarget,
)
from horarium.core.lifecycle.react import react
from horarium.errors import HorariumError
from horarium.features.approvals import request_rows
from horarium.features.runs import step_rows
from horarium.features.runs.end_rows import end_below, pause_after_failures, used_more
from horarium.features.runs.release_rows import pass_on, release
from horarium.features.runs.step_rows import StepChange
from horarium.features.runs.update_rows import BY_ITSELF, cut_error, write_changes
from horarium.features.runs.work_rows import RunWork, lock_any_works
from horarium.features.schedules import write_rows
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import LockedPosition
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import Instant
from horarium.platform.database import Database
from horarium.platform.database.run_archive import rows_by_ids_everywhere, runs_text
from horarium.platform.database.statements import event_text, select_by_ids
from horarium.platform.database.tables import schedules
from horarium.platform.ids import id_text

_DEFAULT_RULES = Rules()
# Bytes of results that are worth a statement of their own.
_LARGE = 4_096
Places: TypeAlias = dict[bytes, LockedPosition]
"""The positions of schedules under lock, by uid."""


class ReportedEvent(NamedTuple):
    """An event of a run and the rules of its definition; `by` is the requester, if any."""

    run_id: bytes
    event: Event
    rules: Rules = _DEFAULT_RULES
    by: CommandContext | None = None


class RecordedChange(NamedTuple):
    """Outcome of an event: the run as it was, and the change."""

    run: RunWork
    change: Change

    @property
    def counted(self) -> bool:
        return not isinstance(self.change, Nothing)


def record_event(
    connection: Connection,
    known: Plannings,
    run_id: bytes,
    event: Event,
    rules: Rules = _DEFAULT_RULES,
    *,
    now: Instant,
    by: CommandContext | None = None,
) -> Change:
    recorded = record_events(connection, known, [ReportedEvent(run_id, event, rules, by)], now=now)
    return recorded[0].change if recorded else Nothing(NothingCause.NOT_SO)


def record_events(
    connection: Connection,
    known: Plannings,
    happened: Sequence[ReportedEvent],
    *,
    now: Instant,
    schedules: Collection[bytes] | None = None,
) -> list[RecordedChange]:
    """One for each run that exists, in order; the second event about a run that has just changed comes too late.

    `schedules` are those whose root runs these are, where the caller knows them.
    """
    judged = [(each.run_id, partial(_judge, each, now)) for each in happened]
    may_end = any(_may_end(each.event) for each in happened)
    by = {each.run_id: each.by for each in happened if each.by is not None}
    return change_runs(connection, known, judged, now=now, may_end=may_end, schedules=schedules, by=by)


def _judge(happened: ReportedEvent, now: Instant, run: RunWork) -> Change:
    return react(run, happened.event, happened.rules, now)


def change_runs(
    connection: Connection,
    known: Plannings,
    judged: Sequence[tuple[bytes, Callable[[RunWork], Change]]],
    *,
    now: Instant,
    may_end: bool = True,
    schedules: Collection[bytes] | None = None,
    by: Mapping[bytes, CommandContext] = BY_ITSELF,
) -> list[RecordedChange]:
    """Each run is locked, judged as it is then, and changed. Without `may_end` no judgement may be an end."""
    if not judged:
        return []
    run_ids = [run_id for run_id, _ in judged]
    places: Places = {}
    if may_end:
        places = write_rows.lock_positions(
            connection, _schedules_of(connection, run_ids) if schedules is None else schedules
        )
    runs = {run.run_id: run for run in lock_any_works(connection, run_ids)}
    recorded: list[RecordedChange] = []
    changed: set[bytes] = set()
    for run_id, judge in judged:
        run = runs.get(run_id)
        if run is None:
            continue
        change = Nothing(NothingCause.TOO_LATE) if run_id in changed else judge(run)
        if not isinstance(change, Nothing):
            _check(run, change)
            changed.add(run_id)
        recorded.append(RecordedChange(run, change))
    ends = [(run, change) for run, change in recorded if isinstance(change, End)]
    below = end_below(connection, ends, now)
    whole: dict[bytes, Change] = {run.run_id: end for run, end in below.ended}
    whole |= dict.fromkeys(below.gone, Nothing(NothingCause.TOO_LATE))  # the workflow has just ended, and this with it
    recorded = [
        each if isinstance(each.change, Nothing) else each._replace(change=whole.get(each.run.run_id, each.change))
        for each in recorded
    ]
    counted = [each for each in recorded if each.counted]
    write_changes(connection, counted, now, by)
    _follow_up(connection, known, places, counted, now)
    tenant_rows.add_growth(connection, _large_results(recorded), now)
    return recorded


def _large_results(recorded: Sequence[RecordedChange]) -> dict[str, tenant_rows.Growth]:
    """Storage growth by large results, to add to quotas at once; the count of bytes finds small ones."""
    sizes: Counter[str] = Counter()
    for run, change in recorded:
        if isinstance(change, End) and change.result is not None:
            sizes[run.namespace] += len(event_text(change.result))
    return {namespace: tenant_rows.Growth(bytes=size) for namespace, size in sizes.items() if size >= _LARGE}


def _may_end(event: Event) -> bool:
    return not (
        isinstance(event, TargetAccepted) or (isinstance(event, LaunchAnswered) and isinstance(event.outcome, Accepted))
    )


def _check(run: RunWork, change: Change) -> None:
    """A holder whose lease ran out, and after whom nobody has begun, takes the run up again with its answer."""
    before = RunState.LAUNCHING if run.state == RunState.READY else RunState(run.state)
    after = _state_after(change)
    if after is not before:
        check_transition(before, after)


def _state_after(change: Change) -> RunState:
    match change:
        case End(state):
            return state
        case RetryLater() | Admit():
            return RunState.READY
        case WaitForTarget(_, queued):
            return RunState.QUEUED if queued else RunState.RUNNING
        case Progress() | Begin():  # unless nobody holds it any more, and it stays where it was
            return RunState.RUNNING
        case Block():
            return RunState.AWAITING_APPROVAL
        case Nothing():
            raise AssertionError("nothing has changed")


def _follow_up(
    connection: Connection, known: Plannings, places: Places, changed: Sequence[RecordedChange], now: Instant
) -> None:
    """Apply consequences of run changes for approvals, places, concurrency keys and workflows."""
    blocks = {run.run_id: change for run, change in changed if isinstance(change, Block)}
    gates = {run_id: (block.gate,) for run_id, block in blocks.items()}
    asked = {run_id: block.question for run_id, block in blocks.items() if block.question is not None}
    request_rows.request(connection, [*gates], now, gates, asked)
    step_rows.add_changes(connection, [noted for run, change in changed if (noted := _noted(run, change)) is not None])
    ended = [(run, change) for run, change in changed if isinstance(change, End)]
    if not ended:
        return
    _count(connection, known, places, ended, now)
    for run, _ in ended:
        if run.schedule_uid in places:
            pass_on(connection, known, run, now)
    freed = {run.schedule_uid for run, _ in ended}
    for uid, place in places.items():
        if place.held and uid in freed:
            release(connection, known, uid, now=now)


def _noted(run: RunWork, change: Change) -> StepChange | None:
    """Note for the workflow of a step: that the step has ended, or has used more."""
    if run.parent_run_id is None or not isinstance(change, End | RetryLater | Progress):
        return None
    more = used_more(run, change)
    return StepChange(run.parent_run_id, run.run_id, more) if isinstance(change, End) or any(more) else None


# ── locks ────────────────────────────────────────────────────────────────────────────────────────────


_OF_ROOTS = "SELECT DISTINCT schedule_uid FROM runs WHERE parent_run_id IS NULL AND schedule_uid IS NOT NULL AND run_id"


def _schedules_of(connection: Connection, run_ids: Sequence[bytes]) -> set[bytes]:
    return {row[0] for row in select_by_ids(connection, _OF_ROOTS, run_ids)}


# ── counting on the schedule ─────────────────────────────────────────────────────────────────────────


def _count(
    connection: Connection, known: Plannings, places: Places, ended: Sequence[tuple[RunWork, End]], now: Instant
) -> None:
    """Several ends of one schedule are counted in turn: the third failure in a row is the third."""
    counted = [
        (run.schedule_uid, run, end)
        for run, end in ended
        if run.parent_run_id is None and run.schedule_uid is not None and run.schedule_uid in places
    ]
    if not counted:
        return
    plannings = known.load(connection, {places[uid].planning for uid, _, _ in counted})
    for uid, run, end in counted:
        place = places[uid]
        places[uid] = _counted(connection, place, run, end, plannings[place.planning], now)
    write_rows.save_counted(connection, (places[uid] for uid in sorted({uid for uid, _, _ in counted})))


def _counted(
    connection: Connection, place: LockedPosition, run: RunWork, end: End, planning: Planning | Exception, now: Instant
) -> LockedPosition:
    """The position after the end; with the schedule paused, if this was one failure too many."""
    was_held = run.state == RunState.HELD
    place = place._replace(
        active=place.active - (not was_held),
        held=place.held - was_held,
        last_completed_at=now,
        last_completed_run_id=run.run_id,
        last_state=end.state.value,
        empty_in_a_row=empties_after(place.empty_in_a_row, end.state, end.error_class),
    )
    if isinstance(planning, Exception):
        return place
    ending = plan_ending(planning, Status(place.status), place.failures_in_a_row, end.state)
    if ending.failures_in_a_row != place.failures_in_a_row:
        place = place._replace(failures_in_a_row=ending.failures_in_a_row)
    if ending.failed:
        failures, error = place.failures_count + 1, cut_error(end.error)
        place = place._replace(failures_count=failures, last_error=error, last_error_at=now)
    if end.state is RunState.LAUNCH_FAILED:
        place = place._replace(last_dispatch_status=dispatch_status(Obstacle.LAUNCH_FAILED))
    if ending.pause_reason is not None:
        place = pause_after_failures(connection, place, planning, ending.pause_reason, now)
    return place


LogFields: TypeAlias = dict[str, str]

_OF_RUNS = runs_text(
    lambda runs: (
        f"SELECT run_id, runs.namespace, schedule_id FROM {runs} "
        "LEFT JOIN schedules ON schedules.schedule_uid = runs.schedule_uid WHERE run_id"
    )
)


def fields_of_run(run_id: bytes, namespace: str | None, schedule_id: str | None) -> LogFields:
    found = {"namespace": namespace, "schedule_id": schedule_id, "run_id": id_text(run_id)}
    return {name: value for name, value in found.items() if value is not None}


def find_run_fields(connection: Connection, run_id: bytes) -> LogFields:
    found = rows_by_ids_everywhere(connection, _OF_RUNS, [run_id])
    return fields_of_run(*found[0]) if found else fields_of_run(run_id, None, None)


def read_run_fields(database: Database, run_id: bytes) -> LogFields:
    """Find the fields of a run in a transaction of its own. Never raises: an event without a schedule is still one."""
    try:
        return database.glance(lambda connection: find_run_fields(connection, run_id))
    except HorariumError:
        return fields_of_run(run_id, None, None)


def read_schedule_fields(database: Database, uid: bytes) -> LogFields:
    """Read the fields of one schedule. Never raises."""
    named = sa.select(schedules.c.namespace, schedules.c.schedule_id).where(schedules.c.schedule_uid == uid)
    try:
        found = database.glance(lambda connection: connection.execute(named).one_or_none())
    except HorariumError:
        found = None
    return {} if found is None else {"namespace": found.namespace, "schedule_id": found.schedule_id}


class SettledRun(NamedTuple):
    """A change of a run that counted, as observers are told of it; `schedule_id` is known where the run failed."""

    run: RunWork
    change: Change
    schedule_id: str | None = None


def settled(connection: Connection, recorded: Sequence[RecordedChange]) -> list[SettledRun]:
    """Return the changes that counted; the schedules of failed runs are read in one query."""
    counted = [each for each in recorded if each.counted]
    failed = sorted({run.run_id for run, change in counted if run.schedule_uid is not None and _is_failure(change)})
    found = rows_by_ids_everywhere(connection, _OF_RUNS, failed) if failed else []
    ids = {run_id: schedule_id for run_id, _, schedule_id in found}
    return [SettledRun(run, change, ids.get(run.run_id)) for run, change in counted]


def _is_failure(change: Change) -> bool:
    return isinstance(change, RetryLater) or (isinstance(change, End) and change.state is not RunState.SUCCEEDED)
