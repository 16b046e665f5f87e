"""SQL of what ends and creations of runs entail for other rows.

A stop reaches the steps of a workflow at every depth: each ends with it, or is asked to. A newer occurrence may end
the active runs of its schedule, or ask them to stop. The end of a run may pause its schedule after failures. Creation
adds ids, counters, and capacity that others must free; the tick, a trigger by hand and a backfill share it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, update

from horarium.core.decision.decide import pause_position
from horarium.core.decision.facts import Fact
from horarium.core.decision.guards import facts_needed
from horarium.core.decision.record import NewId, NewRun, ScheduleWrites
from horarium.core.decision.run_policies import payers
from horarium.core.document.planning import Planning
from horarium.core.document.states import (
    OPEN,
    EventType,
    Origin,
    Position,
    RecordedOutcome,
    RunState,
    Status,
    instance_id,
)
from horarium.core.lifecycle.live_run import NO_RULES
from horarium.core.lifecycle.outcome import (
    ApprovalExpired,
    CancelledUnstarted,
    End,
    Event,
    Progress,
    RetryLater,
    Terminated,
    UsedResources,
)
from horarium.core.lifecycle.react import react
from horarium.core.policy.votes import SUPERSEDED
from horarium.features.agents.policy_rows import move_turns
from horarium.features.history.rows import Journal
from horarium.features.runs import step_rows
from horarium.features.runs.step_rows import NOTHING_USED, StepChange, add_stops
from horarium.features.runs.update_rows import write_changes
from horarium.features.runs.work_rows import COLUMNS, RunWork, as_works, lock_works
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import LockedPosition
from horarium.features.schedules.write_rows import move_version
from horarium.instant import DAY, Instant, to_rfc3339
from horarium.platform.database import statements
from horarium.platform.database.run_states import ACTIVE_LIST, ACTIVE_NAMES, NOT_STARTED_NAMES, WAITING_ROOT, sql_list
from horarium.platform.database.statements import select_by_ids
from horarium.platform.database.tables import runs
from horarium.platform.ids import id_text, new_id

# Deeper than workflows may be nested.
_MOST_LEVELS = 16
_OPEN = sql_list(OPEN)
_OPEN_CHILDREN = f"SELECT run_id, workflow_version FROM runs WHERE state IN {_OPEN} AND parent_run_id"
RUN_CANCELLED = "run_cancelled"


class Below(NamedTuple):
    """`ended` are the ends that were asked about, still to be written; `gone` are the runs below that were ended."""

    ended: list[tuple[RunWork, End]]
    gone: set[bytes]


def end_below(
    connection: Connection,
    ended: Sequence[tuple[RunWork, End]],
    now: Instant,
    levels: int = _MOST_LEVELS,
    apart: frozenset[bytes] = frozenset(),
) -> Below:
    """All that is open below these is ended before them: nobody waits for it any more.

    What steps have used counts for the workflows above them, also where these have not taken note of it yet. Those
    `apart`, which are the ones that were asked about first, have ends of their own.
    """
    parents = [run.run_id for run, _ in ended if run.workflow_version is not None]
    if not parents or not levels:
        return Below(list(ended), set())
    apart |= {run.run_id for run, _ in ended}
    more: defaultdict[bytes, UsedResources] = defaultdict(lambda: NOTHING_USED)
    noted = [
        *step_rows.take_changes(connection, parents, finish=False),
        *step_rows.take_changes(connection, parents, finish=True),
    ]
    for each in noted:
        more[each.run_id] = _added(more[each.run_id], each.used)
    # Nodes that had not begun are listed as never run by whoever reads the workflow next.
    begun = [run.run_id for run, end in ended if run.workflow_version is not None and _is_cut_short(run, end)]
    step_rows.add_changes(connection, [StepChange(run_id) for run_id in begun])
    over = Terminated("the workflow of this step has ended", "workflow_ended")
    children = [row[0] for row in select_by_ids(connection, _OPEN_CHILDREN, parents) if row[0] not in apart]
    below = end_below(connection, _ended_by(connection, children, over, now), now, levels - 1, apart)
    write_changes(connection, below.ended, now)
    for run, end in (*below.ended, *ended):
        if run.parent_run_id is not None:
            more[run.parent_run_id] = _added(more[run.parent_run_id], used_more(run, end))
    whole = [
        (run, replace(end, used=_added(end.used or run.used, more[run.run_id])) if run.run_id in more else end)
        for run, end in ended
    ]
    return Below(whole, below.gone | {run.run_id for run, _ in below.ended})


def _is_cut_short(run: RunWork, end: End) -> bool:
    return run.state == RunState.RUNNING and end.state is not RunState.SUCCEEDED


def used_more(run: RunWork, change: End | RetryLater | Progress) -> UsedResources:
    """By how much, than was known of the run before."""
    return UsedResources(*(after - before for after, before in zip(change.used or run.used, run.used, strict=True)))


def _added(first: UsedResources, second: UsedResources) -> UsedResources:
    return UsedResources(*(one + other for one, other in zip(first, second, strict=True)))


def _ended_by(
    connection: Connection, run_ids: Sequence[bytes], event: Event, now: Instant
) -> list[tuple[RunWork, End]]:
    judged = [(run, react(run, event, NO_RULES, now)) for run in lock_works(connection, run_ids)]
    return [(run, change) for run, change in judged if isinstance(change, End)]


def end_runs(connection: Connection, run_ids: Sequence[bytes], event: Event, now: Instant) -> list[tuple[RunWork, End]]:
    """Those of them that the event ends, with all that is below them; who waits for them is told by the caller."""
    ended = end_below(connection, _ended_by(connection, run_ids, event, now), now).ended
    write_changes(connection, ended, now)
    return ended


def stop_steps(connection: Connection, parents: Sequence[bytes], now: Instant, *, at_once: bool) -> None:
    """Stop steps of workflows that wind down: cancel those not started, ask the others to stop or end them."""
    if not parents:
        return
    children = [row[0] for row in select_by_ids(connection, _OPEN_CHILDREN, parents)]
    event: Event = CancelledUnstarted("cancelled before it started", RUN_CANCELLED)
    if at_once:
        event = Terminated("a limit of the run was reached", "run_cap_reached")
    ended = end_runs(connection, children, event, now)
    step_rows.add_changes(
        connection,
        [
            StepChange(run.parent_run_id, run.run_id, used_more(run, end))
            for run, end in ended
            if run.parent_run_id is not None
        ],
    )
    gone = {run.run_id for run, _ in ended}
    _ask_to_stop(connection, [run_id for run_id in children if run_id not in gone], now)


def _ask_to_stop(connection: Connection, run_ids: Sequence[bytes], now: Instant) -> None:
    """The first wish stays on record, and is told once."""
    unasked = sa.update(runs).where(runs.c.stop_requested_at.is_(None), runs.c.state.not_in(NOT_STARTED_NAMES))
    for first in range(0, len(run_ids), 500):
        some = run_ids[first : first + 500]
        asked = unasked.where(runs.c.run_id.in_(some)).values(stop_requested_at=now).returning(runs.c.run_id)
        step_rows.add_stops(connection, list(connection.execute(asked).scalars()))


_SELECT = (
    f"SELECT {COLUMNS} FROM runs WHERE schedule_uid = {{mark}} AND parent_run_id IS NULL AND state IN {ACTIVE_LIST} "
)


def end_active(
    connection: Connection, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """Terminate what is active, for `terminate_other`; the caller's plan has counted them out already."""
    postgres = connection.dialect.name == "postgresql"
    statement = _SELECT.format(mark="%s" if postgres else "?") + ("FOR UPDATE" if postgres else "")
    works = as_works(connection.exec_driver_sql(statement, (schedule_uid,)))
    replaced = Terminated("replaced by a newer occurrence", "terminate_other")
    changes = [(work, react(work, replaced, NO_RULES, now)) for work in works if work.run_id not in keep]
    ended = [(work, change) for work, change in changes if isinstance(change, End)]
    write_changes(connection, end_below(connection, ended, now).ended, now)
    return len(ended)


_WAITING = f"SELECT {COLUMNS} FROM runs WHERE schedule_uid = {{mark}} AND {WAITING_ROOT} "


def end_waiting(
    connection: Connection, schedule_uid: bytes, *, now: Instant, keep: frozenset[bytes] = frozenset()
) -> int:
    """End what waits for a yes, for `while_waiting: supersede`, with its question; the caller counts them out."""
    postgres = connection.dialect.name == "postgresql"
    statement = _WAITING.format(mark="%s" if postgres else "?") + ("FOR UPDATE" if postgres else "")
    works = as_works(connection.exec_driver_sql(statement, (schedule_uid,)))
    newer = ApprovalExpired(SUPERSEDED)
    changes = [(work, react(work, newer, NO_RULES, now)) for work in works if work.run_id not in keep]
    ended = [(work, change) for work, change in changes if isinstance(change, End)]
    write_changes(connection, end_below(connection, ended, now).ended, now)
    return len(ended)


def ask_active_to_stop(connection: Connection, schedule_uid: bytes, now: Instant) -> None:
    """For `cancel_other`: the runs are asked; after the grace they are terminated by a release."""
    asked = connection.execute(
        update(runs)
        .where(
            runs.c.schedule_uid == schedule_uid,
            runs.c.parent_run_id.is_(None),
            runs.c.state.in_(ACTIVE_NAMES),
            runs.c.stop_requested_at.is_(None),
        )
        .values(stop_requested_at=now)
        .returning(runs.c.run_id)
    )
    add_stops(connection, list(asked.scalars()))


def pause_after_failures(
    connection: Connection, position: LockedPosition, planning: Planning, reason: str, now: Instant
) -> LockedPosition:
    """As a pause by hand: what was due and undecided is accounted for."""
    before = Position(position.decided_until, position.next_due, Status(position.status), position.generation)
    journal = Journal(position.next_sequence, now)
    journal.missed(pause_position(planning, before, now=now).superseded if before.status is Status.ACTIVE else None)
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
        "outcome": RecordedOutcome.DRAINED.value,
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


def new_ids() -> Iterator[NewId]:
    while True:
        value = new_id()
        yield NewId(value, id_text(value))


def settle_side_effects(
    connection: Connection,
    known: Plannings,
    namespace: str,
    schedule_uid: bytes,
    planning: Planning,
    entry: ScheduleWrites,
    now: Instant,
) -> list[bytes]:
    """Apply what few plans need beyond their three rows: counters, and the end of runs that are replaced.

    Returns the runs that await approval: pass them to `approvals.request`, for many schedules together.
    """
    if not entry.runs:
        return []
    if any(run.settled is not None and run.settled.member is not None for run in entry.runs):
        _give_turns(connection, namespace, entry)
    if _is_counted(planning):
        statements.add_to_counters(connection, births_to_count(namespace, schedule_uid, planning, entry, now))
    if entry.terminate_active:
        kept = frozenset(run.run_id for run in entry.runs[entry.kept_from :])
        end_active(connection, schedule_uid, now=now, keep=kept)
    if entry.supersede_waiting:
        kept = frozenset(run.run_id for run in entry.runs[entry.kept_from :])
        end_waiting(connection, schedule_uid, now=now, keep=kept)
    if entry.cancel_active:
        ask_active_to_stop(connection, schedule_uid, now)
    return [run.run_id for run in entry.runs[entry.kept_from :] if run.state is RunState.AWAITING_APPROVAL]


@lru_cache(maxsize=65_536)
def _is_counted(planning: Planning) -> bool:
    return not facts_needed(planning, Origin.SCHEDULED).isdisjoint({Fact.SPENDING, Fact.DAILY_RUNS, Fact.KEYS})


def births_to_count(
    namespace: str, schedule_uid: bytes, planning: Planning, entry: ScheduleWrites, now: Instant
) -> Mapping[statements.Counter, int]:
    """Changes of watched counters by the new runs of an entry."""
    needed = facts_needed(planning, Origin.SCHEDULED)
    day = now // DAY
    changes: Counter[statements.Counter] = Counter()
    for run in entry.runs:
        reserve = statements.to_millionths(planning.reserve if run.settled is None else run.settled.reserve)
        for owner in _owners(namespace, schedule_uid, planning, run):
            if Fact.SPENDING in needed and reserve:
                changes["spent", owner, day] += reserve
            if Fact.DAILY_RUNS in needed:
                changes["runs", owner, day] += 1
    if planning.concurrency_key is not None:
        started = sum(run.state is not RunState.HELD for run in entry.runs)
        changes["key", statements.key_owner(namespace, planning.concurrency_key), 0] = started
    return changes


def _owners(namespace: str, schedule_uid: bytes, planning: Planning, run: NewRun) -> list[str]:
    """Owners of the counters that a new run changes: its schedule, and all that do its work."""
    settled = run.settled
    who = payers(planning.assigned, None) if settled is None else payers(settled.assignee, settled.member)
    return [statements.schedule_owner(schedule_uid), *(statements.assignee_owner(namespace, each) for each in who)]


def _give_turns(connection: Connection, namespace: str, entry: ScheduleWrites) -> None:
    """The teams are locked already, where a turn was asked for."""
    taken: Counter[tuple[str, str]] = Counter()
    for run in entry.runs:
        if run.settled is not None and run.settled.assignee is not None and run.settled.member is not None:
            taken[namespace, run.settled.assignee.id] += 1
    move_turns(connection, taken)
