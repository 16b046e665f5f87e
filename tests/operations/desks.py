"""A resources on a real database, with a clock that moves when told and a ticker to keep time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from endings import end_run
from engine.builders import World
from world import FakeClock

from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import End, ReportTokens
from horarium.features.agents import service as agent_service
from horarium.features.history import service as history_service
from horarium.features.history.rows import HistoryRow
from horarium.features.resources import Resources
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunRow
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.creation import ScheduleChange
from horarium.instant import from_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.database import Database, processes
from horarium.platform.settings import Settings
from horarium.platform.telemetry.telemetry import Telemetry
from horarium.platform.wire import Role

TOKENS = ReportTokens(b"k" * 32, "http://horarium.test")
NOON = from_rfc3339("2026-03-15T12:00:00Z")
ADMIN = Caller("root", Role.ADMIN, source="test", request_id="r-1")
ALICE = Caller("alice", Role.OWNER)
BOB = Caller("bob", Role.OWNER)
OPERATOR = Caller("olga", Role.OPERATOR)
VIEWER = Caller("vera", Role.VIEWER)
AGENT = Caller("agent-7", Role.AGENT)


@dataclass
class Office:
    """The resources and what tests do around it."""

    resources: Resources
    world: World

    @property
    def clock(self) -> FakeClock:
        return self.world.clock

    @classmethod
    def on(cls, database: Database, clock: FakeClock | None = None, **settings: Any) -> Office:
        clock = clock or FakeClock(NOON)
        return cls(Resources(database, clock, Settings(**settings), Telemetry(clock), TOKENS), World(database, clock))

    def create(self, schedule_id: str = "nightly", caller: Caller = ADMIN, **parts: Any) -> ScheduleChange:
        return schedule_service.create(self.resources, caller, document(schedule_id, **parts))

    def create_for(self, agent_id: str, schedule_id: str = "nightly", **parts: Any) -> ScheduleChange:
        """A schedule whose work is an agent's."""
        agent_service.put(self.resources, ADMIN, agent_id, {})
        return self.create(schedule_id, assignee_id=agent_id, **parts)

    def tick(self, seconds: float = 0) -> None:
        """Time passes, with a ticker alive all the while; then all that is due is decided."""
        self.clock.move(seconds)
        self.resources.database.write(lambda c: processes.beat_lease(c, "ticker", "test", self.clock.now(), 10**9, {}))
        self.world.tick()

    def events(self, schedule_id: str = "nightly") -> list[HistoryRow]:
        return list(history_service.read_history(self.resources, ADMIN, schedule_id, limit=500).rows)

    def kinds(self, schedule_id: str = "nightly") -> list[str]:
        return [event.event_type.removeprefix("Schedule") for event in self.events(schedule_id)]

    def runs(self, schedule_id: str = "nightly") -> list[RunRow]:
        """Oldest first."""
        page = self.resources.database.read(
            lambda c: runs_read.page_of_namespace(c, "default", limit=1_000, whole=True)
        )
        return [run for run in reversed(page.rows) if run.schedule_id == schedule_id]

    def states(self, schedule_id: str = "nightly") -> list[str]:
        return [run.state.value for run in self.runs(schedule_id)]

    def end(self, run: RunRow, state: RunState = RunState.SUCCEEDED, **values: Any) -> None:
        now = self.clock.now()
        self.resources.database.write(lambda c: end_run(c, run.run_id, End(state, **values), now=now))


def document(schedule_id: str = "nightly", **parts: Any) -> dict[str, Any]:
    """Every minute, to be fetched by a worker."""
    return {
        "schedule_id": schedule_id,
        "spec": {"cron_expressions": ["* * * * *"]},
        "action": {"workflow_type": "report"},
        **parts,
    }


def without_gaps(events: Sequence[HistoryRow]) -> bool:
    return [event.sequence for event in events] == list(range(1, len(events) + 1))
