"""Processes on a database, liveness of their loops, and counts of items that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from horarium.core.decision.health import judge
from horarium.core.decision.presence import GONE_AFTER_SECONDS, ProcessState, Seen, notes, process_state, silent_seconds
from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.json_values import UnreadableEntry
from horarium.core.document.states import RunState, Status
from horarium.features.resources import Resources
from horarium.features.runs import count_rows
from horarium.features.runs.count_rows import MOST_COUNTED, MOST_GROUPS, BoundedCount, LeaseHolder, WaitingGroup
from horarium.features.schedules import due_rows, health_rows
from horarium.features.schedules.drafts import require_namespace
from horarium.instant import DAY, SECOND, Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.processes import ProcessRow, listed_processes, process_rows
from horarium.platform.database.schema import read_state
from horarium.platform.database.statements import Scope
from horarium.platform.wire import Permission

TICKER = "ticker"
# Loops that rest long between two steps; all others step every few seconds.
REST_SECONDS: Mapping[str, float] = {
    "archive": 60,
    "clock": 60,
    "health": 10,
    "partitions": 3_600,
    "repair": 3_600,
    "retention": 600,
    "tzdata": 86_400,
    "usage": 60,
}


@dataclass(frozen=True, slots=True)
class LoopHealth:
    """`limit_seconds`: a loop whose last completed step is older is stuck, or fails again and again."""

    name: str
    last_completed_at: Instant
    seconds_ago: float
    limit_seconds: float

    @property
    def healthy(self) -> bool:
        return self.seconds_ago <= self.limit_seconds


@dataclass(frozen=True, slots=True)
class ProcessHealth:
    name: str
    since: Instant
    beat_at: Instant
    alive: bool
    draining: bool
    loops: tuple[LoopHealth, ...]

    @property
    def healthy(self) -> bool:
        return self.alive and all(loop.healthy for loop in self.loops)


@dataclass(frozen=True, slots=True)
class LivenessReport:
    """`loops` holds, of each loop, the freshest of all processes: any ticker will do.

    `processes` are named by machine and number, and are only for those to whom the machines belong.
    """

    processes: tuple[ProcessHealth, ...]
    loops: tuple[LoopHealth, ...]

    @property
    def healthy(self) -> bool:
        """Tell whether schedules are being decided: some ticker completes its steps."""
        return any(loop.name == TICKER and loop.healthy for loop in self.loops)


def liveness(resources: Resources, caller: Caller) -> LivenessReport:
    caller.require(Permission.ADMINISTER)

    def look(connection: Connection) -> LivenessReport:
        now = resources.clock.now()
        processes = tuple(process_life(resources, row, now) for row in process_rows(connection))
        freshest: dict[str, LoopHealth] = {}
        for loop in (loop for process in processes if process.alive for loop in process.loops):
            if loop.name not in freshest or loop.last_completed_at > freshest[loop.name].last_completed_at:
                freshest[loop.name] = loop
        shown = processes if caller.of_the_house else ()
        return LivenessReport(shown, tuple(freshest[name] for name in sorted(freshest)))

    return resources.database.read(look)


def process_life(resources: Resources, row: ProcessRow, now: Instant) -> ProcessHealth:
    alive = silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS
    loops = tuple(
        LoopHealth(name, at, _age(at, now), _limit(resources, name))
        for name, at in sorted(row.process.completed.items())
    )
    return ProcessHealth(row.owner, row.since, row.beat_at, alive, row.process.draining, loops)


def _age(at: Instant, now: Instant) -> float:
    return max(0, now - at) / SECOND


def _limit(resources: Resources, loop: str) -> float:
    """Two rests missed; the ticker has a limit of its own."""
    usual = resources.settings.ready_tick_age_seconds
    if loop == TICKER:
        return usual
    rest = resources.settings.janitor_seconds if loop in ("janitor", "release") else REST_SECONDS.get(loop, 0)
    return usual + 2 * rest


MOST_PROCESSES = 500
MOST_WORKERS = 100


@dataclass(frozen=True, slots=True)
class ClusterProcessRow:
    """`runs` are those in its hands."""

    row: ProcessRow
    seen: Seen
    runs: int


@dataclass(frozen=True, slots=True)
class ClusterWorkerRow:
    """One that takes runs from pull queues, as far as it holds any. It signs by renewing their leases."""

    name: str
    state: ProcessState
    runs: int
    silent_seconds: float


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """`oldest_ready_seconds` None = nothing is ready. `more`: there was too much to count or to show all of it.

    `unreadable` are the rows of processes that cannot be read.
    """

    schema: str | None
    processes: tuple[ClusterProcessRow, ...]
    workers: tuple[ClusterWorkerRow, ...]
    tick_lag_seconds: float
    oldest_ready_seconds: float | None
    waiting: tuple[WaitingGroup, ...]
    more: bool
    notes: tuple[str, ...]
    unreadable: tuple[UnreadableEntry, ...]


def cluster(resources: Resources, caller: Caller) -> ClusterStatus:
    caller.require_house()
    return resources.database.read(lambda connection: _look(resources, connection))


def _look(resources: Resources, connection: Connection) -> ClusterStatus:
    now = resources.clock.now()
    listed = listed_processes(connection)
    damaged = [row for row in listed if isinstance(row, UnreadableEntry)]
    found = (row for row in listed if not isinstance(row, UnreadableEntry))
    rows = sorted(found, key=lambda row: row.beat_at, reverse=True)
    held = {each.owner: each for each in count_rows.lease_holders(connection)}
    shown = sorted(
        (_process(resources, row, held, now) for row in rows[:MOST_PROCESSES]), key=lambda each: each.seen.name
    )
    known = {row.owner for row in rows}
    workers = [
        _worker(each, resources.settings.lease_seconds, now) for each in held.values() if each.owner not in known
    ]
    waiting, state = count_rows.waiting_groups(connection), read_state(connection)
    revision = None if state is None else state.revision
    return ClusterStatus(
        schema=revision,
        processes=tuple(shown),
        workers=tuple(workers[:MOST_WORKERS]),
        tick_lag_seconds=_since(due_rows.earliest_due(connection), now) or 0.0,
        oldest_ready_seconds=_since(count_rows.oldest_ready(connection), now),
        waiting=tuple(waiting),
        more=_is_more(waiting) or len(rows) > MOST_PROCESSES or len(workers) > MOST_WORKERS,
        notes=notes([each.seen for each in shown], revision),
        unreadable=tuple(damaged),
    )


def _process(resources: Resources, row: ProcessRow, held: Mapping[str, LeaseHolder], now: Instant) -> ClusterProcessRow:
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
    return ClusterProcessRow(row, seen, 0 if mine is None else mine.runs)


def _worker(held: LeaseHolder, lease_seconds: int, now: Instant) -> ClusterWorkerRow:
    silent = silent_seconds(held.until - lease_seconds * SECOND, now)
    return ClusterWorkerRow(held.owner, process_state(silent), held.runs, silent)


def _since(at: Instant | None, now: Instant) -> float | None:
    return None if at is None else max(0, now - at) / SECOND


def _is_more(waiting: Sequence[WaitingGroup]) -> bool:
    of_state = [[each.runs for each in waiting if each.state is state] for state in count_rows.WAITING]
    return any(sum(runs) >= MOST_COUNTED or len(runs) >= MOST_GROUPS for runs in of_state)


LATELY: Final = DAY


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a count ends: of what an index counts, of rows that are read for it, of schedules that are judged."""

    schedules: int = 100_000
    rows: int = 10_000
    judged: int = 5_000


BOUNDS: Final = Bounds()
JUDGED: Final = (HealthStatus.FAILING, HealthStatus.STALE, HealthStatus.LATE)
"""The words of health that are counted; those that a status or a list of questions tells are not counted twice."""

RUNS: Final = (RunState.HELD, RunState.READY, RunState.LAUNCHING, RunState.QUEUED, RunState.RUNNING)
"""Counted run states; for runs that await approval, approval requests are counted instead."""


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    """`since` is from where on occurrences count as missed lately, and ends of runs as failed in 24 hours."""

    as_of: Instant
    since: Instant
    schedules: Mapping[Status, BoundedCount]
    health: Mapping[HealthStatus, BoundedCount]
    runs: Mapping[RunState, BoundedCount]
    waiting_for_approval: BoundedCount
    missed_lately: BoundedCount
    failed_24h: BoundedCount

    def bounded(self) -> Iterator[str]:
        """The counts that stopped at their bound, by their names."""
        yield from (f"schedules.{status}" for status, count in self.schedules.items() if count.bounded)
        yield from (word.value for word, count in self.health.items() if count.bounded)
        yield from (state.value for state, count in self.runs.items() if count.bounded)
        alone = ("waiting_for_approval", "missed_lately", "failed_24h")
        yield from (name for name in alone if getattr(self, name).bounded)


def look(resources: Resources, caller: Caller, bounds: Bounds = BOUNDS) -> OverviewCounts:
    caller.require(Permission.READ)
    namespace, now = caller.scope, resources.clock.now()

    def work(connection: Connection) -> OverviewCounts:
        require_namespace(connection, caller.namespace)
        open_runs = count_rows.count_open_runs(connection, namespace, bounds.rows)
        return OverviewCounts(
            as_of=now,
            since=now - LATELY,
            schedules=count_rows.count_schedules(connection, namespace, bounds.schedules),
            health=_health(resources, connection, namespace, now, bounds.judged),
            failed_24h=count_rows.count_failed(connection, namespace, now - LATELY, bounds.rows),
            runs={state: count for state, count in open_runs.items() if state in RUNS},
            waiting_for_approval=count_rows.count_requests(connection, namespace, bounds.rows),
            missed_lately=count_rows.count_missed(connection, namespace, now - LATELY, now, bounds.rows),
        )

    return resources.database.read(work)


def _health(
    resources: Resources, connection: Connection, namespace: Scope, now: Instant, most: int
) -> dict[HealthStatus, BoundedCount]:
    """Counts by health. Stale schedules show the sign of late ones, so both are read together."""
    found: dict[HealthStatus, BoundedCount] = {}
    failing_after = resources.settings.failing_after
    for sign, words in ((HealthStatus.FAILING, JUDGED[:1]), (HealthStatus.LATE, JUDGED[1:])):
        rows = health_rows.with_sign(connection, namespace, sign, now, failing_after, most + 1)
        vitals = health_rows.vitals_of(connection, resources.known, rows[:most], failing_after, with_failed=False)
        judged = Counter(judge(each, now).status for each in vitals)
        found |= {word: BoundedCount(judged[word], len(rows) > most) for word in words}
    return found
