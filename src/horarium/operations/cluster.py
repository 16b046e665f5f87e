"""What an operator sees of all processes on a database: who is there, in which version, how far behind, what waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horarium.decision.process_state import ProcessState, Seen, notes, process_state, silent_seconds
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller
from horarium.operations.liveness import process_life
from horarium.operations.resources import Resources
from horarium.schedule.damage import Unreadable
from horarium.store.database import Connection
from horarium.store.processes import ProcessRow, listed_processes
from horarium.store.runs import depth
from horarium.store.runs.depth import MOST_COUNTED, MOST_GROUPS, Held, Waiting
from horarium.store.schedules import due
from horarium.store.schema_state import read_state

MOST_PROCESSES = 500
MOST_WORKERS = 100


@dataclass(frozen=True, slots=True)
class ClusterProcess:
    """`runs` are those in its hands."""

    row: ProcessRow
    seen: Seen
    runs: int


@dataclass(frozen=True, slots=True)
class ClusterWorker:
    """One that takes runs from pull queues, as far as it holds any. It signs by renewing their leases."""

    name: str
    state: ProcessState
    runs: int
    silent_seconds: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """`oldest_ready_seconds` None = nothing is ready. `more`: there was too much to count or to show all of it.

    `unreadable` are the rows of processes that cannot be read.
    """

    schema: str | None
    processes: tuple[ClusterProcess, ...]
    workers: tuple[ClusterWorker, ...]
    tick_lag_seconds: float
    oldest_ready_seconds: float | None
    waiting: tuple[Waiting, ...]
    more: bool
    notes: tuple[str, ...]
    unreadable: tuple[Unreadable, ...]


def cluster(resources: Resources, caller: Caller) -> Cluster:
    caller.require_house()
    return resources.database.read(lambda connection: _look(resources, connection))


def _look(resources: Resources, connection: Connection) -> Cluster:
    now = resources.clock.now()
    listed = listed_processes(connection)
    damaged = [row for row in listed if isinstance(row, Unreadable)]
    found = (row for row in listed if not isinstance(row, Unreadable))
    rows = sorted(found, key=lambda row: row.beat_at, reverse=True)
    held = {each.owner: each for each in depth.in_hand(connection)}
    shown = sorted(
        (_process(resources, row, held, now) for row in rows[:MOST_PROCESSES]), key=lambda each: each.seen.name
    )
    known = {row.owner for row in rows}
    workers = [
        _worker(each, resources.settings.lease_seconds, now) for each in held.values() if each.owner not in known
    ]
    waiting, state = depth.waiting(connection), read_state(connection)
    revision = None if state is None else state.revision
    return Cluster(
        schema=revision,
        processes=tuple(shown),
        workers=tuple(workers[:MOST_WORKERS]),
        tick_lag_seconds=_since(due.earliest_due(connection), now) or 0.0,
        oldest_ready_seconds=_since(depth.oldest_ready(connection), now),
        waiting=tuple(waiting),
        more=_is_more(waiting) or len(rows) > MOST_PROCESSES or len(workers) > MOST_WORKERS,
        notes=notes([each.seen for each in shown], revision),
        unreadable=tuple(damaged),
    )


def _process(resources: Resources, row: ProcessRow, held: Mapping[str, Held], now: Instant) -> ClusterProcess:
    about, offset = row.process.about, row.process.clock_offset
    life = process_life(resources, row, now)
    silent = silent_seconds(row.beat_at, now)
    seen = Seen(
        name=row.owner,
        state=process_state(silent, draining=row.process.draining),
        version=about.version,
        schema=about.schema,
        # A process of the release before names no roles; its loops say what it does.
        roles=frozenset(about.roles) or frozenset(row.process.completed),
        # What is leaving has ended its loops.
        stuck=() if row.process.draining else tuple(loop.name for loop in life.loops if not loop.healthy),
        clock_offset_seconds=None if offset is None else offset / SECOND,
        silent_seconds=silent,
    )
    mine = held.get(row.owner)
    return ClusterProcess(row, seen, 0 if mine is None else mine.runs)


def _worker(held: Held, lease_seconds: int, now: Instant) -> ClusterWorker:
    silent = silent_seconds(held.until - lease_seconds * SECOND, now)
    return ClusterWorker(held.owner, process_state(silent), held.runs, silent)


def _since(at: Instant | None, now: Instant) -> float | None:
    return None if at is None else max(0, now - at) / SECOND


def _is_more(waiting: Sequence[Waiting]) -> bool:
    of_state = [[each.runs for each in waiting if each.state is state] for state in depth.WAITING]
    return any(sum(runs) >= MOST_COUNTED or len(runs) >= MOST_GROUPS for runs in of_state)
