"""What births bring with them beyond their rows: ids, counters, questions, and room that others must make.

The tick, a trigger by hand and a backfill all end here, so that none of them can forget one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from sqlalchemy import Connection

from horarium.decision.births import payers
from horarium.decision.facts import Fact
from horarium.decision.guards import facts_needed
from horarium.decision.record import Entry, NewId, NewRun
from horarium.ids import id_text, new_id
from horarium.instant import DAY, Instant
from horarium.schedule.planning import Planning
from horarium.schedule.run import Origin, RunState
from horarium.store import counters
from horarium.store.policies import move_turns
from horarium.store.runs import make_room
from horarium.store.schedules.due import Plannings


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
    entry: Entry,
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
        counters.add_to_counters(connection, births_to_count(namespace, schedule_uid, planning, entry, now))
    if entry.terminate_active:
        kept = frozenset(run.run_id for run in entry.runs[entry.kept_from :])
        make_room.end_active(connection, schedule_uid, now=now, keep=kept)
    if entry.supersede_waiting:
        kept = frozenset(run.run_id for run in entry.runs[entry.kept_from :])
        make_room.end_waiting(connection, schedule_uid, now=now, keep=kept)
    if entry.cancel_active:
        make_room.ask_active_to_stop(connection, schedule_uid, now)
    return [run.run_id for run in entry.runs[entry.kept_from :] if run.state is RunState.AWAITING_APPROVAL]


@lru_cache(maxsize=65_536)
def _is_counted(planning: Planning) -> bool:
    return not facts_needed(planning, Origin.SCHEDULED).isdisjoint({Fact.SPENDING, Fact.DAILY_RUNS, Fact.KEYS})


def births_to_count(
    namespace: str, schedule_uid: bytes, planning: Planning, entry: Entry, now: Instant
) -> Mapping[counters.Counter, int]:
    """Changes of watched counters by the new runs of an entry."""
    needed = facts_needed(planning, Origin.SCHEDULED)
    day = now // DAY
    changes: Counter[counters.Counter] = Counter()
    for run in entry.runs:
        reserve = counters.to_millionths(planning.reserve if run.settled is None else run.settled.reserve)
        for owner in _owners(namespace, schedule_uid, planning, run):
            if Fact.SPENDING in needed and reserve:
                changes["spent", owner, day] += reserve
            if Fact.DAILY_RUNS in needed:
                changes["runs", owner, day] += 1
    if planning.concurrency_key is not None:
        started = sum(run.state is not RunState.HELD for run in entry.runs)
        changes["key", counters.key_owner(namespace, planning.concurrency_key), 0] = started
    return changes


def _owners(namespace: str, schedule_uid: bytes, planning: Planning, run: NewRun) -> list[str]:
    """Owners of the counters that a new run changes: its schedule, and all that do its work."""
    settled = run.settled
    who = payers(planning.assigned, None) if settled is None else payers(settled.assignee, settled.member)
    return [counters.schedule_owner(schedule_uid), *(counters.assignee_owner(namespace, each) for each in who)]


def _give_turns(connection: Connection, namespace: str, entry: Entry) -> None:
    """The teams are locked already, where a turn was asked for."""
    taken: Counter[tuple[str, str]] = Counter()
    for run in entry.runs:
        if run.settled is not None and run.settled.assignee is not None and run.settled.member is not None:
            taken[namespace, run.settled.assignee.id] += 1
    move_turns(connection, taken)
