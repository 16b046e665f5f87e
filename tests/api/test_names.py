"""Runs and approvals carry the display names of what they name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.core.lifecycle.outcome import Finished
from horarium.launchers.recording import Step
from horarium.platform.database.tables import agents
from horarium.testing import TestService

_PROMPT = {"kind": "prompt", "prompt": "Write the brief"}
_ASKS = {"approval_policy": {"requires_approval": True}}
_WRITER = {"agent_id": "writer", "name": "The writer", "url": "https://agents.example.com/w"}


@pytest.fixture
def answer() -> Step:
    return Finished()


@pytest.fixture
def org(http: httpx.Client) -> None:
    """An agent with a name, one without, a team of both, and a workflow of one prompt to the team."""
    post(http, "/api/agents", id="writer", name="The writer", url=_WRITER["url"], token="t0p-secret-token")
    post(http, "/api/agents", id="plain", url="https://agents.example.com/p")
    http.put("/api/teams/desk", json={"members": ["writer", "plain"], "name": "News desk"}).raise_for_status()
    node = {"id": "draft", "action": _PROMPT, "assignee_type": "team", "assignee_id": "desk"}
    http.put("/api/workflows/brief", json={"name": "The brief", "nodes": [node]}).raise_for_status()


def post(http: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = http.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def trigger(http: httpx.Client, schedule_id: str, **parts: Any) -> str:
    post(http, "/api/schedules", schedule_id=schedule_id, cron_expr="0 0 1 1 *", **parts)
    return str(post(http, f"/api/schedules/{schedule_id}/trigger")["run_id"])


def names_of(run: dict[str, Any]) -> tuple[Any, ...]:
    workflow, assignee = run["workflow"] or {}, run["assignee"] or {}
    return run.get("schedule_name"), workflow.get("name"), assignee.get("name"), assignee.get("member_name")


@pytest.mark.archived
@pytest.mark.usefixtures("org")
def test_a_run_and_its_steps_carry_the_names_of_their_schedule_workflow_and_assignee(
    http: httpx.Client, horarium: TestService
) -> None:
    flow = trigger(http, "flow", name="Morning brief", action={"kind": "workflow", "workflow_id": "brief"})
    single = trigger(http, "single", name="A prompt", action=_PROMPT, assignee={"type": "agent", "id": "writer"})
    bare = trigger(http, "bare", workflow_type="w", assignee={"type": "agent", "id": "plain"})
    horarium.advance(60)
    expected = {
        flow: ("Morning brief", "The brief", None, None),
        single: ("A prompt", None, "The writer", None),
        bare: (None, None, None, None),
    }
    listed = {run["run_id"]: names_of(run) for run in http.get("/api/runs").json()["runs"]}
    assert listed == expected
    assert {run_id: names_of(http.get(f"/api/runs/{run_id}").json()) for run_id in expected} == expected
    (step,) = http.get(f"/api/runs/{flow}").json()["steps"]
    assert step["assignee"] == {
        "type": "team",
        "id": "desk",
        "member": "writer",
        "name": "News desk",
        "member_name": "The writer",
    }
    http.delete("/api/schedules/flow").raise_for_status()
    (kept,) = http.get("/api/schedules/flow/runs").json()["runs"]
    assert names_of(kept) == expected[flow], "a deleted schedule keeps its name"


def test_an_occurrence_without_a_run_carries_the_name_of_its_schedule(
    http: httpx.Client, horarium: TestService
) -> None:
    post(http, "/api/schedules", schedule_id="s", name="Hourly", cron_expr="0 * * * *", workflow_type="w")
    http.post("/api/schedules/s/pause").raise_for_status()
    post(http, "/api/schedules", schedule_id="t", name="Closed", cron_expr="0 * * * *", workflow_type="w",
         calendars=["weekends-only"])  # fmt: skip
    horarium.advance(days=2)
    shown = http.get("/api/schedules/t/runs", params={"include": "skips"}).json()["runs"]
    assert {each.get("schedule_name") for each in shown} == {"Closed"}
    assert "skipped" in {each["state"] for each in shown}


@pytest.mark.usefixtures("org")
def test_an_approval_carries_names_and_the_agent_that_its_prompt_goes_to_without_its_token(
    http: httpx.Client, horarium: TestService
) -> None:
    single = {"action": _PROMPT, "assignee": {"type": "agent", "id": "writer"}}
    trigger(http, "single", name="A prompt", **single, **_ASKS)
    trigger(http, "flow", name="Flow", action={"kind": "workflow", "workflow_id": "brief"}, **_ASKS)
    trigger(http, "plain", workflow_type="w", **_ASKS)
    shown = http.get("/api/approvals").json()["approvals"]
    found = {each["schedule_id"]: each for each in shown}
    told = {
        key: (each.get("schedule_name"), each.get("workflow_name"), each.get("agent")) for key, each in found.items()
    }
    assert told == {
        "single": ("A prompt", None, _WRITER),
        "flow": ("Flow", "The brief", None),
        "plain": (None, None, None),
    }
    one = http.get(f"/api/approvals/{found['single']['approval_id']}")
    assert (one.json()["agent"], one.json()["action"]["prompt"]) == (_WRITER, "Write the brief")
    assert "t0p-secret-token" not in one.text
    http.delete("/api/schedules/single").raise_for_status()
    every = http.get("/api/approvals", params={"status": "all"}).json()["approvals"]
    assert {each.get("schedule_name") for each in every} == {"A prompt", "Flow", None}
    damaged = sa.update(agents).where(agents.c.agent_id == "writer").values(document="{")
    horarium.resources.database.write(lambda connection: connection.execute(damaged))
    assert http.get(f"/api/approvals/{found['single']['approval_id']}").json()["agent"] == {"agent_id": "writer"}
    assert http.get("/api/runs").json()["runs"][-1]["assignee"] == {"type": "agent", "id": "writer"}


@pytest.mark.usefixtures("org")
def test_the_names_of_a_page_are_read_in_as_many_queries_as_those_of_one_row(
    http: httpx.Client, horarium: TestService
) -> None:
    seen: list[str] = []

    def listen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    def asked(path: str) -> int:
        http.get(path)  # definitions are remembered from now on
        seen.clear()
        assert http.get(path).status_code == 200
        return len(seen)

    engine = horarium.resources.database.engine
    counts: list[tuple[int, int]] = []
    for number in range(3):
        who = {"type": "agent", "id": ("writer", "plain")[number % 2]}
        trigger(http, f"s{number}", name=f"Name {number}", action=_PROMPT, assignee=who, **_ASKS)
        sa.event.listen(engine, "before_cursor_execute", listen)
        counts.append((asked("/api/runs"), asked("/api/approvals")))
        sa.event.remove(engine, "before_cursor_execute", listen)
    assert counts[0] == counts[1] == counts[2]
