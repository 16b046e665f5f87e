"""What an operator acts on, as counts: each has the meaning of a list, and costs the same however much is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from horarium.decision.health import judge
from horarium.decision.health_status import HealthStatus
from horarium.instant import DAY, Instant
from horarium.operations.caller import Caller
from horarium.operations.drafts import require_namespace
from horarium.operations.resources import Resources
from horarium.schedule.position import Status
from horarium.schedule.run import RunState
from horarium.store import overview
from horarium.store.database import Connection
from horarium.store.overview import Counted
from horarium.store.schedules import health
from horarium.store.scope import Scope
from horarium.wire.roles import Permission

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
class Overview:
    """`since` is from where on occurrences count as missed lately, and ends of runs as failed in 24 hours."""

    as_of: Instant
    since: Instant
    schedules: Mapping[Status, Counted]
    health: Mapping[HealthStatus, Counted]
    runs: Mapping[RunState, Counted]
    waiting_for_approval: Counted
    missed_lately: Counted
    failed_24h: Counted

    def bounded(self) -> Iterator[str]:
        """The counts that stopped at their bound, by their names."""
        yield from (f"schedules.{status}" for status, count in self.schedules.items() if count.bounded)
        yield from (word.value for word, count in self.health.items() if count.bounded)
        yield from (state.value for state, count in self.runs.items() if count.bounded)
        alone = ("waiting_for_approval", "missed_lately", "failed_24h")
        yield from (name for name in alone if getattr(self, name).bounded)


def look(resources: Resources, caller: Caller, bounds: Bounds = BOUNDS) -> Overview:
    caller.require(Permission.READ)
    namespace, now = caller.scope, resources.clock.now()

    def work(connection: Connection) -> Overview:
        require_namespace(connection, caller.namespace)
        open_runs = overview.open_runs(connection, namespace, bounds.rows)
        return Overview(
            as_of=now,
            since=now - LATELY,
            schedules=overview.schedules(connection, namespace, bounds.schedules),
            health=_health(resources, connection, namespace, now, bounds.judged),
            failed_24h=overview.failed(connection, namespace, now - LATELY, bounds.rows),
            runs={state: count for state, count in open_runs.items() if state in RUNS},
            waiting_for_approval=overview.questions(connection, namespace, bounds.rows),
            missed_lately=overview.missed(connection, namespace, now - LATELY, now, bounds.rows),
        )

    return resources.database.read(work)


def _health(
    resources: Resources, connection: Connection, namespace: Scope, now: Instant, most: int
) -> dict[HealthStatus, Counted]:
    """Counts by health. Stale schedules show the sign of late ones, so both are read together."""
    found: dict[HealthStatus, Counted] = {}
    failing_after = resources.settings.failing_after
    for sign, words in ((HealthStatus.FAILING, JUDGED[:1]), (HealthStatus.LATE, JUDGED[1:])):
        rows = health.with_sign(connection, namespace, sign, now, failing_after, most + 1)
        vitals = health.vitals_of(connection, resources.known, rows[:most], failing_after, with_failed=False)
        judged = Counter(judge(each, now).status for each in vitals)
        found |= {word: Counted(judged[word], len(rows) > most) for word in words}
    return found
