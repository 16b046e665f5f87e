"""The two agents of the demo, one for each A2A version, and their prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from horarium.demo.agent import V0_3, V1_0, Agent, AgentServer
from horarium.features.agents import service as agent_service
from horarium.features.resources import Resources
from horarium.features.schedules import service as schedule_service
from horarium.platform.caller import Caller

HERALD, CLERK = "demo-herald", "demo-clerk"
_GENERATIONS: Final = {HERALD: V1_0, CLERK: V0_3}
_NAMES: Final = {HERALD: "Herald", CLERK: "Clerk"}
_WORK_SECONDS = 1.0


@contextmanager
def serving() -> Iterator[Mapping[str, str]]:
    """Serve both agents in threads of this process and yield their URLs."""
    with ExitStack() as stack:
        servers = {
            agent_id: stack.enter_context(AgentServer(Agent(_NAMES[agent_id], generation, _WORK_SECONDS)))
            for agent_id, generation in _GENERATIONS.items()
        }
        for server in servers.values():
            server.begin()
            stack.callback(server.shutdown)
        yield {agent_id: server.url for agent_id, server in servers.items()}


def put_prompts(resources: Resources, caller: Caller, addresses: Mapping[str, str]) -> None:
    """Register both agents at their current URLs and create their schedules."""
    for agent_id, url in addresses.items():
        agent_service.put(resources, caller, agent_id, {"name": _NAMES[agent_id], "url": url})
    for document in (_morning(), _question()):
        schedule_service.upsert(resources, caller, document)


def _morning() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt",
        "cron_expressions": ["@every PT1M"],
        "action": {"kind": "prompt", "prompt": "Say good morning to the team."},
        **_by(HERALD),
        "note": "A prompt to an agent with A2A 1.0. Its answer is the result of the run.",
    }


def _question() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt-question",
        "cron_expressions": ["@every PT2M"],
        "action": {"kind": "prompt", "prompt": "Order flowers. Ask first: which colour?"},
        **_by(CLERK),
        "note": "A prompt to an agent with A2A 0.3 that asks a question first. Run `horarium approval list`, then "
        """`horarium approval answer ID yellow`.""",
    }


def _by(agent_id: str) -> Mapping[str, Any]:
    """Return the assignee, without the approval that runs of agents require by default."""
    return {
        "assignee_type": "agent",
        "assignee_id": agent_id,
        "approval_policy": {"requires_approval": False, "allow_requester": True},
    }
