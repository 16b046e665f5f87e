"""How a stop reaches the steps of a workflow: those that are open end with it, or are asked to, at every depth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.life.change import Again, End, Progress, Used
from horarium.life.event import CancelledUnstarted, Event, Terminated
from horarium.life.live_run import NO_RULES
from horarium.life.react import react
from horarium.schedule.run import OPEN, RunState
from horarium.store.database.set_wise import select_by_ids
from horarium.store.runs import step_changes
from horarium.store.runs.changes import write_changes
from horarium.store.runs.states import NOT_STARTED_NAMES, sql_list
from horarium.store.runs.step_changes import NOTHING_USED, Noted
from horarium.store.runs.work import Work, lock_works
from horarium.store.tables import runs

# Deeper than workflows may be nested.
_MOST_LEVELS = 16
_OPEN = sql_list(OPEN)
_OPEN_CHILDREN = f"SELECT run_id, workflow_version FROM runs WHERE state IN {_OPEN} AND parent_run_id"
RUN_CANCELLED = "run_cancelled"


class Below(NamedTuple):
    """`ended` are the ends that were asked about, still to be written; `gone` are the runs below that were ended."""

    ended: list[tuple[Work, End]]
    gone: set[bytes]


def end_below(
    connection: Connection,
    ended: Sequence[tuple[Work, End]],
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
    more: defaultdict[bytes, Used] = defaultdict(lambda: NOTHING_USED)
    noted = [
        *step_changes.take(connection, parents, finish=False),
        *step_changes.take(connection, parents, finish=True),
    ]
    for each in noted:
        more[each.run_id] = _added(more[each.run_id], each.used)
    # Nodes that had not begun are listed as never run by whoever reads the workflow next.
    begun = [run.run_id for run, end in ended if run.workflow_version is not None and _is_cut_short(run, end)]
    step_changes.note(connection, [Noted(run_id) for run_id in begun])
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


def _is_cut_short(run: Work, end: End) -> bool:
    return run.state == RunState.RUNNING and end.state is not RunState.SUCCEEDED


def used_more(run: Work, change: End | Again | Progress) -> Used:
    """By how much, than was known of the run before."""
    return Used(*(after - before for after, before in zip(change.used or run.used, run.used, strict=True)))


def _added(first: Used, second: Used) -> Used:
    return Used(*(one + other for one, other in zip(first, second, strict=True)))


def _ended_by(connection: Connection, run_ids: Sequence[bytes], event: Event, now: Instant) -> list[tuple[Work, End]]:
    judged = [(run, react(run, event, NO_RULES, now)) for run in lock_works(connection, run_ids)]
    return [(run, change) for run, change in judged if isinstance(change, End)]


def end_runs(connection: Connection, run_ids: Sequence[bytes], event: Event, now: Instant) -> list[tuple[Work, End]]:
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
    step_changes.note(
        connection,
        [
            Noted(run.parent_run_id, run.run_id, used_more(run, end))
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
        step_changes.note_stops(connection, list(connection.execute(asked).scalars()))
