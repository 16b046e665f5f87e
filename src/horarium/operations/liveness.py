"""Which processes live and whether each of their loops completes its steps.

A process writes down, every few seconds, when each of its loops last completed a step. The beat itself proves
nothing: a loop that hangs grows old here however lively its process is, and a process that died leaves a row
that grows old as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from horarium.decision.process_state import GONE_AFTER_SECONDS, silent_seconds
from horarium.instant import SECOND, Instant
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources
from horarium.store.database import Connection
from horarium.store.processes import ProcessRow, process_rows
from horarium.wire.roles import Permission

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
class LoopLife:
    """`limit_seconds`: a loop whose last completed step is older is stuck, or fails again and again."""

    name: str
    last_completed_at: Instant
    seconds_ago: float
    limit_seconds: float

    @property
    def healthy(self) -> bool:
        return self.seconds_ago <= self.limit_seconds


@dataclass(frozen=True, slots=True)
class ProcessLife:
    name: str
    since: Instant
    beat_at: Instant
    alive: bool
    draining: bool
    loops: tuple[LoopLife, ...]

    @property
    def healthy(self) -> bool:
        return self.alive and all(loop.healthy for loop in self.loops)


@dataclass(frozen=True, slots=True)
class Liveness:
    """`loops` holds, of each loop, the freshest of all processes: any ticker will do.

    `processes` are named by machine and number, and are only for those to whom the machines belong.
    """

    processes: tuple[ProcessLife, ...]
    loops: tuple[LoopLife, ...]

    @property
    def healthy(self) -> bool:
        """Tell whether schedules are being decided: some ticker completes its steps."""
        return any(loop.name == TICKER and loop.healthy for loop in self.loops)


def liveness(resources: Resources, caller: Caller) -> Liveness:
    caller.require(Permission.ADMINISTER)

    def look(connection: Connection) -> Liveness:
        now = resources.clock.now()
        processes = tuple(process_life(resources, row, now) for row in process_rows(connection))
        freshest: dict[str, LoopLife] = {}
        for loop in (loop for process in processes if process.alive for loop in process.loops):
            if loop.name not in freshest or loop.last_completed_at > freshest[loop.name].last_completed_at:
                freshest[loop.name] = loop
        shown = processes if caller.of_the_house else ()
        return Liveness(shown, tuple(freshest[name] for name in sorted(freshest)))

    return resources.database.read(look)


def process_life(resources: Resources, row: ProcessRow, now: Instant) -> ProcessLife:
    alive = silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS
    loops = tuple(
        LoopLife(name, at, _age(at, now), _limit(resources, name)) for name, at in sorted(row.process.completed.items())
    )
    return ProcessLife(row.owner, row.since, row.beat_at, alive, row.process.draining, loops)


def _age(at: Instant, now: Instant) -> float:
    return max(0, now - at) / SECOND


def _limit(resources: Resources, loop: str) -> float:
    """Two rests missed; the ticker has a limit of its own."""
    usual = resources.settings.ready_tick_age_seconds
    if loop == TICKER:
        return usual
    rest = resources.settings.janitor_seconds if loop in ("janitor", "release") else REST_SECONDS.get(loop, 0)
    return usual + 2 * rest
