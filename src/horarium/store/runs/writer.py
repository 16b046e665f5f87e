"""How what happened to runs is written down: one transaction for the runs, their schedules and those that waited.

Events come in any number and cost a few statements together. Each is judged by `life.react` on the row as it
is under lock, and every change is checked against the table of transitions; there is no other way for a run
to leave the hands of those who work on it. The positions are locked before the runs, as the tick does, so that
the two never wait for each other. What waits for a place or a key is then let go one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection

from horarium.decision.ending import plan_ending
from horarium.decision.last_status import empties_after
from horarium.instant import Instant
from horarium.life.change import Admit, Again, Begin, Block, Change, End, Nothing, Progress, Wait, Why
from horarium.life.event import Answered, Event, Taken
from horarium.life.live_run import Rules
from horarium.life.outcome import Accepted
from horarium.life.react import react
from horarium.schedule.event import CommandContext
from horarium.schedule.planning import Planning
from horarium.schedule.position import Status
from horarium.schedule.reason import Obstacle, dispatch_status
from horarium.schedule.run import RunState, check_transition
from horarium.store import usage
from horarium.store.database.json_text import event_text
from horarium.store.database.set_wise import select_by_ids
from horarium.store.runs import approvals, step_changes
from horarium.store.runs.after_end import pause_after_failures
from horarium.store.runs.changes import BY_ITSELF, kept_error, write_changes
from horarium.store.runs.descendants import end_below, used_more
from horarium.store.runs.release import pass_on, release
from horarium.store.runs.step_changes import Noted
from horarium.store.runs.work import Work, lock_any_works
from horarium.store.schedules import positions
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import LockedPosition

_DEFAULT_RULES = Rules()
# Bytes of results that are worth a statement of their own.
_LARGE = 4_096
Places: TypeAlias = dict[bytes, LockedPosition]
"""The positions of schedules under lock, by uid."""


class Happened(NamedTuple):
    """An event of a run and the rules of its definition; `by` is the requester, if any."""

    run_id: bytes
    event: Event
    rules: Rules = _DEFAULT_RULES
    by: CommandContext | None = None


class Recorded(NamedTuple):
    """Outcome of an event: the run as it was, and the change."""

    run: Work
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
    recorded = record_events(connection, known, [Happened(run_id, event, rules, by)], now=now)
    return recorded[0].change if recorded else Nothing(Why.NOT_SO)


def record_events(
    connection: Connection,
    known: Plannings,
    happened: Sequence[Happened],
    *,
    now: Instant,
    schedules: Collection[bytes] | None = None,
) -> list[Recorded]:
    """One for each run that exists, in order; the second event about a run that has just changed comes too late.

    `schedules` are those whose root runs these are, where the caller knows them.
    """
    judged = [(each.run_id, partial(_judge, each, now)) for each in happened]
    may_end = any(_may_end(each.event) for each in happened)
    by = {each.run_id: each.by for each in happened if each.by is not None}
    return change_runs(connection, known, judged, now=now, may_end=may_end, schedules=schedules, by=by)


def _judge(happened: Happened, now: Instant, run: Work) -> Change:
    return react(run, happened.event, happened.rules, now)


def change_runs(
    connection: Connection,
    known: Plannings,
    judged: Sequence[tuple[bytes, Callable[[Work], Change]]],
    *,
    now: Instant,
    may_end: bool = True,
    schedules: Collection[bytes] | None = None,
    by: Mapping[bytes, CommandContext] = BY_ITSELF,
) -> list[Recorded]:
    """Each run is locked, judged as it is then, and changed. Without `may_end` no judgement may be an end."""
    if not judged:
        return []
    run_ids = [run_id for run_id, _ in judged]
    places: Places = {}
    if may_end:
        places = positions.lock_all(connection, _schedules_of(connection, run_ids) if schedules is None else schedules)
    runs = {run.run_id: run for run in lock_any_works(connection, run_ids)}
    recorded: list[Recorded] = []
    changed: set[bytes] = set()
    for run_id, judge in judged:
        run = runs.get(run_id)
        if run is None:
            continue
        change = Nothing(Why.TOO_LATE) if run_id in changed else judge(run)
        if not isinstance(change, Nothing):
            _check(run, change)
            changed.add(run_id)
        recorded.append(Recorded(run, change))
    ends = [(run, change) for run, change in recorded if isinstance(change, End)]
    below = end_below(connection, ends, now)
    whole: dict[bytes, Change] = {run.run_id: end for run, end in below.ended}
    whole |= dict.fromkeys(below.gone, Nothing(Why.TOO_LATE))  # the workflow has just ended, and this with it
    recorded = [
        each if isinstance(each.change, Nothing) else each._replace(change=whole.get(each.run.run_id, each.change))
        for each in recorded
    ]
    counted = [each for each in recorded if each.counted]
    write_changes(connection, counted, now, by)
    _follow_up(connection, known, places, counted, now)
    usage.add(connection, _large_results(recorded), now)
    return recorded


def _large_results(recorded: Sequence[Recorded]) -> dict[str, usage.Growth]:
    """Storage growth by large results, to add to quotas at once; the count of bytes finds small ones."""
    sizes: Counter[str] = Counter()
    for run, change in recorded:
        if isinstance(change, End) and change.result is not None:
            sizes[run.namespace] += len(event_text(change.result))
    return {namespace: usage.Growth(bytes=size) for namespace, size in sizes.items() if size >= _LARGE}


def _may_end(event: Event) -> bool:
    return not (isinstance(event, Taken) or (isinstance(event, Answered) and isinstance(event.outcome, Accepted)))


def _check(run: Work, change: Change) -> None:
    """A holder whose lease ran out, and after whom nobody has begun, takes the run up again with its answer."""
    before = RunState.LAUNCHING if run.state == RunState.READY else RunState(run.state)
    after = _state_after(change)
    if after is not before:
        check_transition(before, after)


def _state_after(change: Change) -> RunState:
    match change:
        case End(state):
            return state
        case Again() | Admit():
            return RunState.READY
        case Wait(_, queued):
            return RunState.QUEUED if queued else RunState.RUNNING
        case Progress() | Begin():  # unless nobody holds it any more, and it stays where it was
            return RunState.RUNNING
        case Block():
            return RunState.AWAITING_APPROVAL
        case Nothing():
            raise AssertionError("nothing has changed")


def _follow_up(
    connection: Connection, known: Plannings, places: Places, changed: Sequence[Recorded], now: Instant
) -> None:
    """Apply consequences of run changes for approvals, places, concurrency keys and workflows."""
    blocks = {run.run_id: change for run, change in changed if isinstance(change, Block)}
    gates = {run_id: (block.gate,) for run_id, block in blocks.items()}
    asked = {run_id: block.question for run_id, block in blocks.items() if block.question is not None}
    approvals.request(connection, [*gates], now, gates, asked)
    step_changes.note(connection, [noted for run, change in changed if (noted := _noted(run, change)) is not None])
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


def _noted(run: Work, change: Change) -> Noted | None:
    """Note for the workflow of a step: that the step has ended, or has used more."""
    if run.parent_run_id is None or not isinstance(change, End | Again | Progress):
        return None
    more = used_more(run, change)
    return Noted(run.parent_run_id, run.run_id, more) if isinstance(change, End) or any(more) else None


# ── locks ────────────────────────────────────────────────────────────────────────────────────────────


_OF_ROOTS = "SELECT DISTINCT schedule_uid FROM runs WHERE parent_run_id IS NULL AND schedule_uid IS NOT NULL AND run_id"


def _schedules_of(connection: Connection, run_ids: Sequence[bytes]) -> set[bytes]:
    return {row[0] for row in select_by_ids(connection, _OF_ROOTS, run_ids)}


# ── counting on the schedule ─────────────────────────────────────────────────────────────────────────


def _count(
    connection: Connection, known: Plannings, places: Places, ended: Sequence[tuple[Work, End]], now: Instant
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
    positions.save_counted(connection, (places[uid] for uid in sorted({uid for uid, _, _ in counted})))


def _counted(
    connection: Connection, place: LockedPosition, run: Work, end: End, planning: Planning | Exception, now: Instant
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
        failures, error = place.failures_count + 1, kept_error(end.error)
        place = place._replace(failures_count=failures, last_error=error, last_error_at=now)
    if end.state is RunState.LAUNCH_FAILED:
        place = place._replace(last_dispatch_status=dispatch_status(Obstacle.LAUNCH_FAILED))
    if ending.pause_reason is not None:
        place = pause_after_failures(connection, place, planning, ending.pause_reason, now)
    return place
