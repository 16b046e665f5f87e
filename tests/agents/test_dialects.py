"""How an agent is spoken to is found out, with a card or without one, and not against what its registration says."""

from __future__ import annotations

import pytest
from agents.between import between
from agents.launching import launched, notes_of, request
from agents.running import Agent

from horarium.core.document.assignee import AgentProtocol
from horarium.core.lifecycle.outcome import Finished, Refused
from horarium.launchers.launcher import AgentLine

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")


def test_an_agent_without_a_card_is_found_out_by_asking(agent: Agent) -> None:
    with between(agent.url, hidden=CARDS) as middle:
        asked = request(middle.url, "task without a card")
        outcome = launched(asked)
    assert isinstance(outcome, Finished), outcome
    assert agent.executions()["executions"][asked.key] == 1
    seen = notes_of(asked).cards[-1]
    assert (seen.card, seen.dialect) == (None, agent.model.dialect)


@pytest.mark.parametrize("protocol", [AgentProtocol.V0_3, AgentProtocol.V1_0])
def test_a_registered_dialect_is_the_only_one(agent: Agent, protocol: AgentProtocol) -> None:
    spoken = {"plain": ["1.0"], "compat": ["1.0", "0.3"], "old": ["0.3"]}[agent.name]
    asked = request(agent.url, "task in one dialect", agent=AgentLine("someone", agent.url, protocol))
    outcome = launched(asked)
    speaks = protocol.value in spoken
    assert isinstance(outcome, Finished if speaks else Refused), outcome
    assert agent.executions()["executions"].get(asked.key, 0) == int(speaks)


def test_a_long_prompt_in_any_script_arrives_as_it_is(agent: Agent) -> None:
    text = "مرحبا 你好 🙂 \u200b \t\n" * 3_000 + "end"
    outcome = launched(request(agent.url, f"echo {text}"))
    assert isinstance(outcome, Finished)
    assert isinstance(outcome.result, dict)
    assert outcome.result["text"] == text
