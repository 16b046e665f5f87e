"""A prompt from its schedule to an agent that speaks the protocol, and on from there when a process is gone."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable

import pytest
import sqlalchemy as sa
from engine.builders import World
from launchers.agents import Agent

from horarium.engine.dispatcher import Dispatcher
from horarium.engine.follower import Follower
from horarium.engine.loop import Pulse
from horarium.features.agents.rows import AGENTS
from horarium.launchers.a2a.dialect import TaskState
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.registry import Registry
from horarium.launchers.ssrf import AddressGuard, AddressPolicy
from horarium.platform.database import Database
from horarium.platform.database.tables import agents, runs
from horarium.serve.preparers import preparers_with

TLS = ssl.create_default_context()


def at_agent(database: Database, prompt: str, run: Callable[[World, Agent], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Agent() as agent:
            world = World(database)
            document = {"id": "writer", "url": agent.url}
            now = world.clock.now()
            world.write(lambda connection: AGENTS.insert(connection, "default", "writer", document, now=now))
            given = {"assignee_type": "agent", "assignee_id": "writer", "approval_policy": {"requires_approval": False}}
            world.add("brief", action={"kind": "prompt", "prompt": prompt}, **given)
            world.clock.move(60)
            world.tick()
            await run(world, agent)

    asyncio.run(main())


def registry(world: World) -> Registry:
    return Registry([A2ALauncher(world.clock, guard=AddressGuard(AddressPolicy(allow_loopback=True)), tls=TLS)])


def process(world: World) -> Dispatcher:
    return Dispatcher(world.database, world.clock, registry(world), "test", preparers=preparers_with())


def test_an_agent_is_sent_a_prompt_and_its_answer_is_the_result(database: Database) -> None:
    async def run(world: World, agent: Agent) -> None:
        await process(world).step()
        (row,) = world.runs()
        (task,) = agent.tasks.values()
        assert row.state == "succeeded"
        assert json.loads(row.result) == {"text": "task it", "task_id": task.name, "context_id": task.context}
        assert row.reference == task.name
        seen = world.database.read(lambda connection: connection.execute(sa.select(agents)).one())
        assert seen.dialect == "1.0"

    at_agent(database, "task it", run)


@pytest.mark.both_databases
def test_what_a_process_left_at_an_agent_is_followed_by_another_and_nothing_is_sent(database: Database) -> None:
    async def run(world: World, agent: Agent) -> None:
        gone = asyncio.ensure_future(process(world).step())
        await agent.until("get")
        gone.cancel()  # as if it were killed: it tells nobody
        await asyncio.gather(gone, return_exceptions=True)
        assert world.states() == ["running"]
        world.clock.move(40)
        world.tidy()
        world.clock.move(5)
        agent.tasks["task-1"].state = TaskState.COMPLETED
        await process(world).step()
        assert world.states() == ["succeeded"]
        assert (len(agent.sent), agent.stopped) == (1, [])

    at_agent(database, "slow", run)


def test_an_agent_that_was_away_when_its_run_was_stopped_is_told_later(database: Database) -> None:
    async def run(world: World, agent: Agent) -> None:
        dispatcher = process(world)
        stop, wake = asyncio.Event(), asyncio.Event()
        living = asyncio.ensure_future(dispatcher.run(stop, wake, 5, Pulse()))
        await agent.until("get")
        agent.away = 1_000
        world.write(lambda connection: connection.execute(sa.update(runs).values(stop_requested_at=world.clock.now())))
        await dispatcher.renew()
        await until(lambda: world.states() == ["cancelled"])
        stop.set()
        wake.set()
        await living
        assert agent.stopped == []
        agent.away = 0
        world.clock.move(60)
        await Follower(database, world.clock, registry(world)).step()
        assert agent.stopped == ["task-1"]

    at_agent(database, "slow", run)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not so():
            await asyncio.sleep(0.02)
