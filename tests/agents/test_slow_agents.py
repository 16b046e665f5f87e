"""Twelve slow agents beside a fast one: it has its turn, however many prompts wait for the others."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.house import House, living, name, until
from agents.running import Agent

SLOW = 12
PLACES = 10


@pytest.fixture
def places() -> int:
    return PLACES


@pytest.fixture
def house(sqlite_template: Path, tmp_path: Path, places: int) -> Iterator[House]:
    path = shutil.copy(sqlite_template, tmp_path / "horarium.db")
    limits = {"prompt": places}
    with living(tmp_path, f"sqlite:///{path}", janitor_seconds=0.2, launch_concurrency_by_kind=limits) as running:
        yield running


def wait_at(house: House, agent: Agent, holds: list[str]) -> list[str]:
    """Two prompts at each of twelve agents that take one at a time."""
    agents = [house.agent(agent.url, capacity=1) for _ in holds]
    asked = [house.schedule(agent_id, f"hold {hold}") for agent_id, hold in zip(agents, holds, strict=True)]
    return [house.trigger(each) for _ in range(2) for each in asked]


def under_way(agent: Agent, holds: list[str]) -> int:
    return sum(agent.times(f"hold {hold}") for hold in holds)


@pytest.mark.parametrize("places", [50])
def test_a_fast_agent_does_not_wait_where_there_are_places(house: House, agents: dict[str, Agent]) -> None:
    slow, holds = agents["plain"], [name("slow") for _ in range(SLOW)]
    runs = wait_at(house, slow, holds)
    until(lambda: under_way(slow, holds) == SLOW)
    fast = house.ended(house.prompt(house.agent(agents["old"].url), "task fast"))
    assert fast["state"] == "succeeded"
    assert not any(house.run(each)["finished_at"] for each in runs)
    assert under_way(slow, holds) == SLOW
    for hold in holds:
        slow.release(hold)
    assert {house.ended(each)["state"] for each in runs} == {"succeeded"}


def test_where_all_places_are_taken_a_fast_agent_has_the_next_turn(house: House, agents: dict[str, Agent]) -> None:
    """Two of the slow ones came before it; the second prompts of those that have had a place do not."""
    slow, holds = agents["plain"], [name("slow") for _ in range(SLOW)]
    runs = wait_at(house, slow, holds)
    until(lambda: under_way(slow, holds) == PLACES)
    fast = house.prompt(house.agent(agents["old"].url), "task fast")
    begun = [hold for hold in holds if slow.times(f"hold {hold}")]
    for hold in begun[:3]:
        slow.release(hold)
    assert house.ended(fast)["state"] == "succeeded"
    for hold in holds:
        slow.release(hold)
    assert {house.ended(each)["state"] for each in runs} == {"succeeded"}
    assert under_way(slow, holds) == 2 * SLOW
