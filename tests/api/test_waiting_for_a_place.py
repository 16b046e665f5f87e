"""A prompt that waits says for whom: its agent, and how many of its places are in use."""

from __future__ import annotations

import pytest

from horarium.core.lifecycle.outcome import Accepted
from horarium.features.runs.output import described
from horarium.launchers.recording import Step
from horarium.testing import TestService


@pytest.fixture
def answer() -> Step:
    return lambda request: Accepted()


@pytest.mark.both_databases
def test_a_prompt_without_a_place_says_at_which_agent(horarium: TestService) -> None:
    http, client = horarium.http(), horarium.client()
    http.put("/api/agents/writer", json={"url": "http://agent.test", "capacity": 2})
    http.post(
        "/api/schedules",
        json={
            "schedule_id": "brief",
            "cron_expr": "0 9 * * *",
            "action": {"kind": "prompt", "prompt": "hello"},
            "assignee_id": "writer",
            "approval_policy": {"requires_approval": False},
            "overlap_policy": "allow_all",
        },
    )
    runs = [http.post("/api/schedules/brief/trigger").json()["run_id"] for _ in range(3)]
    horarium.settle()
    shown = {run: http.get(f"/api/runs/{run}").json() for run in runs}
    [waits] = [run for run in runs if shown[run]["state"] == "ready"]
    assert shown[waits]["waiting_for"] == {"agent_id": "writer", "in_use": 2, "capacity": 2}
    assert [shown[run].get("waiting_for") for run in runs if run != waits] == [None, None]
    assert dict(described(client.get_run(waits)))["waiting for"] == "capacity of agent writer (2 of 2 in use)"

    http.put("/api/agents/writer", json={"url": "http://agent.test", "capacity": 3})
    assert http.get(f"/api/runs/{waits}").json().get("waiting_for") is None
