"""Agents for tests of the engine: rows in the database, and a launcher that plays them all from a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from engine.builders import World
from sqlalchemy import Connection
from world import FakeClock

from horarium.core.lifecycle.outcome import Outcome
from horarium.engine.claimer import DispatcherOptions
from horarium.features.agents.rows import AGENTS, TEAMS
from horarium.launchers.launcher import AgentLine, LaunchRequest
from horarium.launchers.recording import RecordingLauncher, Step
from horarium.platform.database import Database
from horarium.platform.database.tables import unwanted_tasks

PROMPT: dict[str, Any] = {"kind": "prompt", "prompt": "Write"}


class Agents(RecordingLauncher):
    """Forgets keys: which delivery is one too many is for the tests to say. `told` are tasks that were called off."""

    honours_key = False
    can_poll = False

    def __init__(self, clock: FakeClock, *script: Step) -> None:
        super().__init__(clock, kind="prompt", script=script)
        self.told: list[tuple[str, str]] = []
        self.listens: Callable[[], bool] = lambda: True

    async def launch(self, request: LaunchRequest) -> Outcome:
        self._answers.clear()
        return await super().launch(request)

    async def cancel_task(self, namespace: str, agent: AgentLine, reference: str) -> bool:
        self.told.append((agent.agent_id, reference))
        return self.listens()


def world_of(database: Database, *script: Step, clock: FakeClock | None = None) -> World:
    """Without any agent, and without anything to do."""
    ours = clock or FakeClock()
    return World(database, ours, launcher=Agents(ours, *script), dispatcher=DispatcherOptions(lease_seconds=30))


def agents_of(world: World) -> Agents:
    assert isinstance(world.launcher, Agents)
    return world.launcher


def add_agent(world: World, agent_id: str = "writer", **fields: Any) -> None:
    document = {"id": agent_id, "url": f"http://{agent_id}.test/", **fields}
    now = world.clock.now()
    world.write(lambda connection: AGENTS.insert(connection, "default", agent_id, document, now=now))


def add_team(world: World, team_id: str, *members: str, strategy: str = "round_robin") -> None:
    document = {"team_id": team_id, "members": list(members), "strategy": strategy}
    now = world.clock.now()
    world.write(lambda connection: TEAMS.insert(connection, "default", team_id, document, now=now, turn=0))


def add_prompts(world: World, count: int = 1, agent_id: str = "writer", **fields: Any) -> None:
    """That many runs are ready: one of each of so many schedules."""
    action = {**PROMPT, **fields.pop("action", {})}
    given = {"assignee_type": "agent", "assignee_id": agent_id, **fields}
    given["approval_policy"] = {"requires_approval": False}
    first = len(world.runs())
    for number in range(count):
        world.add(f"{agent_id}-{first + number}", action=action, cron_expressions=["* * * * *"], **given)
    world.clock.move(60)
    world.tick()


def left_behind(world: World) -> list[tuple[str, str, int]]:
    """Agent, task and tries of what is still to be told."""

    def read(connection: Connection) -> list[tuple[str, str, int]]:
        columns = (unwanted_tasks.c.agent_id, unwanted_tasks.c.reference, unwanted_tasks.c.tries)
        return [tuple(row) for row in connection.execute(sa.select(*columns).order_by(unwanted_tasks.c.reference))]

    return world.database.read(read)
