"""The two agents of the demonstration, one of each generation, and the prompts that they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from horarium.demo.agent import V0_3, V1_0, Agent, AgentServer
from horarium.operations import agents, schedules
from horarium.operations.caller import Caller
from horarium.operations.resources import Resources

HERALD, CLERK = "demo-herald", "demo-clerk"
_GENERATIONS: Final = {HERALD: V1_0, CLERK: V0_3}
_NAMES: Final = {HERALD: "The herald", CLERK: "The clerk"}
_WORK_SECONDS = 1.0


@contextmanager
def serving() -> Iterator[Mapping[str, str]]:
    """The addresses of both, which answer in threads of this process for as long as it lasts."""
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
    """Both agents at the addresses that they have this time, and what they are told."""
    for agent_id, url in addresses.items():
        agents.put(resources, caller, agent_id, {"name": _NAMES[agent_id], "url": url})
    for document in (_morning(), _question()):
        schedules.upsert(resources, caller, document)


def _morning() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt",
        "cron_expressions": ["@every PT1M"],
        "action": {"kind": "prompt", "prompt": "Say good morning to whoever is here."},
        **_by(HERALD),
        "note": "A prompt to an agent that speaks A2A 1.0: what it answered is the result of the run.",
    }


def _question() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt-question",
        "cron_expressions": ["@every PT2M"],
        "action": {"kind": "prompt", "prompt": "Order flowers. Ask first: which colour?"},
        **_by(CLERK),
        "note": "A prompt to an agent that speaks A2A 0.3 and asks before it answers: `horarium approval list`, then "
        """`horarium approval modify ID --set '{"reply": "yellow"}'`.""",
    }


def _by(agent_id: str) -> Mapping[str, Any]:
    """Without a yes before each run, which work for an agent needs by itself; whoever tries it is alone."""
    return {
        "assignee_type": "agent",
        "assignee_id": agent_id,
        "approval_policy": {"requires_approval": False, "allow_requester": True},
    }
