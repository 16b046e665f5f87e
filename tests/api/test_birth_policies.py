"""Whose policies hold when a run is born, through every door that a run is born through."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.core.document.effective_policies import read_effective
from horarium.platform.database import run_archive
from horarium.platform.database.tables import agents
from horarium.platform.ids import id_text
from horarium.testing import TestService

PULL = {"workflow_type": "brief", "task_queue": "desk"}
FREE = {"requires_approval": False}


@pytest.fixture
def http(horarium: TestService) -> httpx.Client:
    return horarium.http()


def put(http: httpx.Client, path: str, **document: Any) -> dict[str, Any]:
    answer = http.put(f"/api/{path}", json=document)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def store(http: httpx.Client, workflow_id: str) -> None:
    put(
        http,
        f"workflows/{workflow_id}",
        nodes=[{"id": "n", "action": {**PULL, "kind": "pull", "workflow_type": "write"}}],
    )


def hourly(horarium: TestService, schedule_id: str = "s", **parts: Any) -> None:
    usual = {"cron_expressions": ["30 * * * *"], "action": PULL, "overlap_policy": "allow_all"}
    horarium.create(schedule_id=schedule_id, **{**usual, **parts})


def born(horarium: TestService) -> list[Any]:
    """The rows of all runs, in the order of their births."""
    return horarium.resources.database.read(
        lambda connection: sorted(run_archive.rows_everywhere(connection, sa.select), key=lambda row: row.run_id)
    )


def trigger(http: httpx.Client, schedule_id: str = "s") -> dict[str, Any]:
    answer = http.post(f"/api/schedules/{schedule_id}/trigger")
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_what_an_agent_demands_holds_for_every_birth_from_then_on(horarium: TestService, http: httpx.Client) -> None:
    """A schedule that asks for nothing cannot lower it, and is not touched by it."""
    put(http, "agents/ada", policies={"approval_policy": FREE})
    hourly(horarium, assignee_id="ada", approval_policy=FREE)
    trigger(http)
    before = http.get("/api/schedules/s").json()["version"]
    policies = {"approval_policy": {"requires_approval": True, "gates": ["spend"]}, "limits": {"runtime_seconds": 60}}
    put(http, "agents/ada", policies=policies)
    trigger(http)
    horarium.advance(hours=1)
    filled = {"start_time": "2026-02-28T22:00:00Z", "end_time": "2026-02-28T23:00:00Z"}
    http.post("/api/schedules/s/backfill", json=filled)
    first, *others = born(horarium)
    assert (first.state == "awaiting_approval", first.needs_approval) == (False, False)
    assert [(row.state, row.needs_approval, row.runtime_seconds) for row in others] == [
        ("awaiting_approval", True, 60)
    ] * len(others)
    assert {row.origin for row in others} >= {"manual", "scheduled"}
    assert {(row.assignee_type, row.assignee, row.member) for row in others} == {("agent", "ada", None)}
    assert http.get("/api/schedules/s").json()["version"] == before
    origins = read_effective(others[0].effective).origins
    assert (origins["approval_policy.requires_approval"], origins["limits.runtime_seconds"]) == ("agent", "agent")


@pytest.mark.both_databases
def test_an_assignment_says_who_works_and_how(horarium: TestService, http: httpx.Client) -> None:
    put(http, "agents/ada")
    store(http, "brief")
    said = {"workflow_id": "brief", "assignee_type": "agent", "assignee_id": "ada", "approval_policy": FREE}
    put(http, "assignments/g", **said, retry_policy={"max_retries": 7}, queue_policy={"mode": "skip", "priority": 4})
    hourly(horarium, workflow_assignment_id="g", overlap_policy="skip")
    assert trigger(http)["outcome"] == "triggered"
    assert trigger(http)["outcome"] == "skipped"
    [row] = born(horarium)
    assert (row.assignee, row.priority, row.needs_approval, '"max_retries":7' in row.effective) == (
        "ada",
        4,
        False,
        True,
    )
    put(
        http,
        "assignments/g",
        **{**said, "approval_policy": {"requires_approval": True}},
        queue_policy={"mode": "allow_all"},
    )
    assert trigger(http)["outcome"] == "triggered"
    assert born(horarium)[-1].state == "awaiting_approval"


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"assignee_id": "nobody"}, "assignee_id"),
        ({"assignee_type": "team", "assignee_id": "ada"}, "assignee_id"),
        ({"workflow_assignment_id": "nothing"}, "workflow_assignment_id"),
        ({"workflow_assignment_id": "other"}, "workflow_assignment_id"),
    ],
    ids=["no agent", "an agent is no team", "no assignment", "an assignment of another workflow"],
)
def test_nobody_s_work_is_refused_at_write(http: httpx.Client, parts: dict[str, Any], field: str) -> None:
    put(http, "agents/ada")
    store(http, "another")
    put(http, "assignments/other", workflow_id="another", assignee_id="ada")
    document = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "action": PULL, **parts}
    answer = http.post("/api/schedules", json=document)
    assert (answer.status_code, sorted(answer.json()["errors"])) == (422, [field])


def test_a_team_takes_turns_under_the_budgets_of_all(horarium: TestService, http: httpx.Client) -> None:
    """An agent that is called as the team is has a purse of its own."""
    for name in ("desk", "bob"):
        put(http, f"agents/{name}", policies={"budget": {"max_daily_runs": 2}})
    put(http, "teams/desk", members=["desk", "bob"], strategy="round_robin", budget={"max_daily_runs": 3})
    hourly(horarium, assignee_type="team", assignee_id="desk", approval_policy=FREE)
    hourly(horarium, "alone", assignee_id="desk", approval_policy=FREE)
    answers = [trigger(http, name) for name in ("s", "alone", "s", "s", "s")]
    assert [each["outcome"] for each in answers] == ["triggered", "triggered", "triggered", "skipped", "skipped"]
    assert answers[3]["reason"] == "daily_limit_reached"
    assert [(row.assignee_type, row.member) for row in born(horarium)] == [
        ("team", "desk"),
        ("agent", None),
        ("team", "bob"),
    ]
    horarium.advance(hours=25)
    members = [row.member for row in born(horarium) if row.assignee_type == "team"]
    assert members == ["desk", "bob", "desk"]  # the next day goes on with whose turn it was


@pytest.mark.both_databases
def test_a_row_that_nobody_can_read_is_the_trouble_of_its_schedules_alone(
    horarium: TestService, http: httpx.Client
) -> None:
    for name in ("ada", "bob"):
        put(http, f"agents/{name}")
        hourly(horarium, f"of-{name}", assignee_id=name, approval_policy=FREE)
    broken = agents.update().where(agents.c.agent_id == "ada").values(document='{"id":7}')
    horarium.resources.database.write(lambda connection: connection.execute(broken))
    listed = http.get("/api/schedules").json()["schedules"]
    assert [each["next_run_at"] is None for each in listed] == [True, False]
    assert http.get("/api/agenda").status_code == 200
    refused = http.post("/api/schedules/of-ada/trigger")
    assert (refused.status_code, refused.json()["reason"]) == (409, "schedule_broken")
    horarium.advance(hours=1)
    assert [row.assignee for row in born(horarium)] == ["bob"]
    assert http.get("/api/schedules/of-ada").json()["status"] == "broken"
    listed = http.get("/api/agents").json()["agents"]
    assert [(each["id"], each.get("unreadable", False)) for each in listed] == [("ada", True), ("bob", False)]


def test_money_is_counted_for_those_who_work(horarium: TestService, http: httpx.Client) -> None:
    put(http, "agents/ada", policies={"budget": {"spending_limit_credits": 5}, "limits": {"cost": 3}})
    hourly(horarium, assignee_id="ada", approval_policy=FREE)
    assert [trigger(http)["outcome"] for _ in range(2)] == ["triggered", "skipped"]
    [run] = born(horarium)
    assert run.reserved == 3_000_000
    # What was set aside for it comes back to its purse when it ends without a cost.
    http.post(f"/api/runs/{id_text(run.run_id)}/terminate").raise_for_status()
    assert trigger(http)["outcome"] == "triggered"


STEP = {"kind": "http", "url": "https://example.com/"}
WORKFLOW = {
    "nodes": [
        {"id": "first", "action": STEP, "assignee_type": "team", "assignee_id": "desk"},
        {"id": "second", "action": STEP, "assignee_type": "team", "assignee_id": "desk"},
        {"id": "third", "action": STEP},
    ]
}


@pytest.mark.both_databases
def test_the_run_of_a_workflow_names_its_version_and_its_steps_whose_turn_it_was(
    horarium: TestService, http: httpx.Client
) -> None:
    for name in ("ada", "bob"):
        put(http, f"agents/{name}", policies={"limits": {"runtime_seconds": 60 if name == "ada" else 90}})
    put(http, "teams/desk", members=["ada", "bob"], strategy="round_robin")
    put(http, "workflows/brief", **WORKFLOW)
    floor = {**WORKFLOW, "approval_policy": {"requires_approval": True}}
    hourly(horarium, action={"workflow_id": "brief"})
    trigger(http)
    horarium.settle()
    root, *steps = born(horarium)
    assert (root.workflow_version, root.needs_approval, root.effective) == (1, False, None)
    assert [(each.node_id, each.assignee, each.member) for each in steps] == [
        ("first", "desk", "ada"),
        ("second", "desk", "bob"),
        ("third", None, None),
    ]
    assert [read_effective(each.effective).limits.runtime_seconds for each in steps[:2]] == [60, 90]
    put(http, "workflows/brief", **floor)
    assert trigger(http)["state"] == "awaiting_approval"
    assert (born(horarium)[-1].workflow_version, born(horarium)[-1].needs_approval) == (2, True)
    started = http.post("/api/workflows/brief/runs", json={"version": 1}).json()
    assert started["outcome"] == "started"
    waiting = http.post("/api/workflows/brief/runs", json={}).json()
    assert waiting["outcome"] == "awaiting_approval"


@pytest.mark.both_databases
def test_a_start_without_a_schedule_is_asked_for_and_paid_by_whoever_works(
    horarium: TestService, http: httpx.Client
) -> None:
    put(http, "agents/ada", policies={"budget": {"max_daily_runs": 1}, "approval_policy": {"gates": ["spend"]}})
    put(http, "workflows/brief", nodes=[{"id": "only", "action": STEP}])
    body = {"assignee_type": "agent", "assignee_id": "ada"}
    first = http.post("/api/workflows/brief/runs", json=body)
    assert (first.status_code, first.json()["outcome"]) == (201, "awaiting_approval")
    [row] = born(horarium)
    assert (row.assignee_type, row.assignee, read_effective(row.effective).approval.gates) == (
        "agent",
        "ada",
        frozenset({"spend"}),
    )
    second = http.post("/api/workflows/brief/runs", json=body)
    assert (second.status_code, second.json()["reason"]) == (409, "budget_exceeded")
    assert http.post("/api/workflows/brief/runs", json={**body, "assignee_id": "nobody"}).status_code == 422


@pytest.mark.parametrize(
    ("said", "of_agent", "states"),
    [
        ({}, "count", ["awaiting_approval"]),
        ({}, "ignore", ["awaiting_approval"] * 2),
        ({}, "supersede", ["expired", "awaiting_approval"]),
        ({"while_waiting": "count"}, "supersede", ["awaiting_approval"]),
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_an_agent_says_what_a_waiting_run_is_to_the_next_occurrence(
    horarium: TestService, http: httpx.Client, said: dict[str, Any], of_agent: str, states: list[str]
) -> None:
    """Where the schedule says nothing itself, and also where the agent says it after the schedule was written."""
    put(http, "agents/ada")
    hourly(horarium, assignee_id="ada", overlap_policy="skip", approval_policy={"requires_approval": True, **said})
    put(http, "agents/ada", policies={"approval_policy": {"while_waiting": of_agent}})
    horarium.advance(hours=2)
    assert [each.state for each in born(horarium)] == states


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_an_agent_says_of_waiting_runs_holds_for_those_that_are_let_go(
    horarium: TestService, http: httpx.Client
) -> None:
    put(http, "agents/ada", policies={"approval_policy": {"while_waiting": "supersede"}})
    often: dict[str, Any] = {"cron_expressions": ["*/5 * * * *"], "overlap_policy": "buffer_all"}
    hourly(horarium, assignee_id="ada", approval_policy={"requires_approval": True, "allow_requester": True}, **often)
    horarium.advance(minutes=5)
    assert http.post(f"/api/runs/{id_text(born(horarium)[0].run_id)}/approve", json={}).is_success
    horarium.advance(minutes=10)
    assert [each.state for each in born(horarium)] == ["running", "held", "held"]
    horarium.finish(horarium.runs("s")[0])
    horarium.advance(minutes=1)
    assert [each.state for each in born(horarium)] == ["succeeded", "expired", "awaiting_approval"]
