"""An agent that offers it is asked to say when there is news, and whoever follows the run hears it."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents.house import House, name, until
from agents.running import running

from horarium.launchers.a2a.messages import Hints


@pytest.mark.parametrize("kind", ["plain", "old"])
def test_an_agent_says_that_there_is_news(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    hinted: list[str] = []
    hint = Hints.hint

    def hear(hints: Hints, run_id: str) -> bool:
        hinted.append(run_id)
        return hint(hints, run_id)

    monkeypatch.setattr(Hints, "hint", hear)
    with running(kind, tmp_path, "--push") as (_, agent):
        hold = name("pushed")
        run_id = house.prompt(house.agent(agent.url), f"hold {hold}")
        house.until(run_id, "running")
        agent.release(hold)
        assert house.ended(run_id)["result"]["text"] == f"held: {hold}"
        until(lambda: run_id in hinted)
        assert agent.times(f"hold {hold}") == 1
