"""A prompt outlives the service that sent it, and several services share an agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents.house import House, living, name, until
from agents.running import Agent

QUICK = {"lease_seconds": 2, "janitor_seconds": 0.2}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", ["plain", "old"])
def test_a_service_that_stops_leaves_its_prompts_to_the_next(
    agents: dict[str, Agent], database_url: str, tmp_path: Path, kind: str
) -> None:
    agent, hold, late = agents[kind], name("left"), name("late")
    with living(tmp_path, database_url, **QUICK) as house:
        agent_id = house.agent(agent.url)
        run_id = house.prompt(agent_id, f"hold {hold}")
        expires = house.prompt(agent_id, f"hold {late}", action={"timeout_seconds": 2}, retry_policy={"max_retries": 0})
        house.until(run_id, "running")
        until(lambda: agent.times(f"hold {late}"))
    assert agent.executions()["cancelled"].count(task_of(agent, f"hold {hold}")) == 0
    agent.release(hold)
    with living(tmp_path, database_url, **QUICK) as house:
        run = house.ended(run_id)
        assert (run["state"], run["result"]["text"]) == ("succeeded", f"held: {hold}")
        assert house.ended(expires)["state"] == "timed_out"
        until(lambda: task_of(agent, f"hold {late}") in agent.executions()["cancelled"])
    assert [agent.times(f"hold {each}") for each in (hold, late)] == [1, 1]


def task_of(agent: Agent, prompt: str) -> str:
    return str(agent.heard(prompt)["task_id"])


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
def test_two_services_give_an_agent_no_more_than_it_takes(
    agents: dict[str, Agent], database_url: str, tmp_path: Path
) -> None:
    agent, hold = agents["plain"], name("shared")
    with living(tmp_path, database_url) as one, living(tmp_path, database_url) as other:
        schedule_id = one.schedule(one.agent(agent.url, capacity=2), f"hold {hold}")
        runs = [each.trigger(schedule_id) for each in (one, other, one, other, one, other)]
        until(lambda: agent.times(f"hold {hold}") == 2)
        # Both have been round meanwhile.
        for house in (one, other) * 3:
            assert house.ended(house.prompt(house.agent(agent.url), "echo meanwhile"))["state"] == "succeeded"
        assert agent.times(f"hold {hold}") == 2
        assert states(one, runs).count("ready") == 4
        agent.release(hold)
        assert {one.ended(each)["state"] for each in runs} == {"succeeded"}
    assert agent.times(f"hold {hold}") == 6


def states(house: House, runs: list[str]) -> list[str]:
    return [house.run(each)["state"] for each in runs]
