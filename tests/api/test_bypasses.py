"""No door lets anybody get round an approval, and whoever tries is on record."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api.fed import fed

from horarium.features.tenants import service as tenant_service
from horarium.testing import Accepted, TestService

ACTION = {"workflow_type": "report", "task_queue": "reports", "input": {"n": 1}}
DOCUMENT: dict[str, Any] = {
    "schedule_id": "brief",
    "cron_expressions": ["0 0 1 1 *"],
    "action": ACTION,
    "approval_policy": {"requires_approval": True},
}
WORKFLOW: dict[str, Any] = {
    "nodes": [{"id": "a", "action": {"kind": "pull", "workflow_type": "report", "queue": "reports"}}],
    "approval_policy": {"requires_approval": True},
}
SKIP: dict[str, Any] = {"skip_approval": True}
NOT_REQUIRED = {"approval_status": "not_required"}
TRIGGERED = {"cron_expressions": ["0 0 1 1 *"], "approval_policy": {"requires_approval": True}, **SKIP}


@pytest.fixture
def answer() -> Accepted:
    return Accepted(reference="reports", queued=True)


def door(horarium: TestService, subject: str, role: str) -> httpx.Client:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name=subject, role=role, subject=subject)
    return horarium.http(token=issued.secret)


def attempts(horarium: TestService, least: int = 1) -> list[str]:
    """As the feed tells them."""
    told = fed(horarium.http(), "approval_bypass_attempt", least)
    return [each["payload"]["attempted"] for each in told]


def in_history(horarium: TestService, schedule_id: str = "brief") -> int:
    told = horarium.history(schedule_id)
    return sum(event.event_type == "ScheduleApprovalBypassAttempted" for event in told)


def ended_run(horarium: TestService) -> str:
    run_id: str = horarium.http().post("/api/schedules/brief/trigger").json()["run_id"]
    assert horarium.http().post(f"/api/runs/{run_id}/cancel").status_code == 200
    return run_id


# the door, what is sent, and whether there is a schedule in whose history it stands
DOORS: list[tuple[str, str, dict[str, Any], bool]] = [
    ("POST", "/api/schedules/brief/trigger", SKIP, True),
    ("POST", "/api/schedules/brief/trigger", {"approvalStatus": "approved"}, True),
    (
        "POST",
        "/api/schedules/brief/backfill",
        {**NOT_REQUIRED, "start_time": "2025-12-31T00:00:00Z", "end_time": "2026-01-02T00:00:00Z"},
        True,
    ),
    ("POST", "/api/runs/{run_id}/rerun", NOT_REQUIRED, True),
    ("PATCH", "/api/schedules/brief", {**NOT_REQUIRED, "note": "x"}, True),
    ("PUT", "/api/schedules/brief", {"approval_policy": {"requires_approval": False}, "skipApproval": True}, True),
    ("POST", "/api/schedules", {**DOCUMENT, "schedule_id": "new", **NOT_REQUIRED}, False),
    ("POST", "/api/workflows/flow/runs", SKIP, False),
    ("PUT", "/api/workflows/flow", {**WORKFLOW, "triggers": [{"key": "k", "schedule": TRIGGERED}]}, False),
    ("POST", "/api/apply", {"bundle": "b", "schedules": [{**DOCUMENT, "schedule_id": "new", **SKIP}]}, False),
]


@pytest.mark.parametrize(("method", "path", "body", "has_schedule"), DOORS, ids=[f"{d[0]} {d[1]}" for d in DOORS])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_whoever_asks_to_skip_is_refused_and_on_record(
    horarium: TestService, method: str, path: str, body: dict[str, Any], has_schedule: bool
) -> None:
    horarium.create(DOCUMENT)
    assert horarium.http().put("/api/workflows/flow", json=WORKFLOW).status_code == 201
    run_id = ended_run(horarium)
    before = len(horarium.runs())
    answer = horarium.http().request(method, path.format(run_id=run_id), json=body)
    assert (answer.status_code, answer.json()["reason"]) == (403, "approval_required")
    assert len(attempts(horarium)) == 1
    assert in_history(horarium) == has_schedule
    assert len(horarium.runs()) == before
    shown = horarium.http().get("/api/schedules/brief").json()
    assert (shown["approval_policy"], shown.get("note")) == ({"requires_approval": True}, None)
    assert horarium.verify() == []


@pytest.mark.parametrize("asked", [SKIP, NOT_REQUIRED], ids=str)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_direct_start_of_a_workflow_skips_nothing_either(horarium: TestService, asked: dict[str, Any]) -> None:
    http = horarium.http()
    asks = {"nodes": [{"id": "a", "action": ACTION}], "approval_policy": {"requires_approval": True}}
    http.put("/api/workflows/w", json=asks).raise_for_status()
    answer = http.post("/api/workflows/w/runs", json=asked)
    assert (answer.status_code, answer.json()["reason"]) == (403, "approval_required")
    assert (len(attempts(horarium)), horarium.runs()) == (1, [])


@pytest.mark.parametrize("asked", [SKIP, NOT_REQUIRED, {"approval_status": "pending"}], ids=str)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_where_nobody_must_agree_there_is_nothing_to_skip(horarium: TestService, asked: dict[str, Any]) -> None:
    horarium.create({**DOCUMENT, "approval_policy": {}})
    answer = horarium.http().post("/api/schedules/brief/trigger", json=asked)
    assert (answer.status_code, answer.json()["state"]) == (200, "ready")
    start = {"workflow_id": "report", "idempotency_key": "k", **asked}
    assert horarium.http().post("/api/run-launcher/start", json=start).status_code == 201
    assert attempts(horarium, 0) == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_repeated_start_cannot_skip_either(horarium: TestService) -> None:
    http = horarium.http()
    assert http.put("/api/workflows/flow", json=WORKFLOW).status_code == 201
    start = {"workflow_id": "flow", "idempotency_key": "k"}
    run_id = http.post("/api/run-launcher/start", json=start).json()["run_id"]
    assert http.post("/api/run-launcher/start", json=start).json()["outcome"] == "already_started"
    answer = http.post("/api/run-launcher/start", json={**start, **SKIP})
    assert (answer.status_code, answer.json()["reason"]) == (403, "approval_required")
    told = [each["event_type"] for each in http.get(f"/api/runs/{run_id}/events").json()["events"]]
    assert told.count("approval_bypass_attempt") == len(attempts(horarium)) == 1


def test_an_agent_and_whoever_works_never_decide(horarium: TestService) -> None:
    horarium.create(DOCUMENT)
    run_id = horarium.http().post("/api/schedules/brief/trigger").json()["run_id"]
    [asked] = horarium.http().get("/api/approvals").json()["approvals"]
    agent, owner = door(horarium, "ada", "agent"), door(horarium, "olga", "owner")
    for path, body in (
        (f"/api/approvals/{asked['approval_id']}/decision", {"decision": "approve"}),
        (f"/api/runs/{run_id}/approve", {"modifications": {"a": {"$secret": 1}}}),
        (f"/api/runs/{run_id}/report", {"state": "succeeded"}),
    ):
        answer = agent.post(path, json=body)
        assert (answer.status_code, answer.json()["reason"]) == (403, "approval_required")
    assert owner.post(f"/api/runs/{run_id}/approve", json={}).status_code == 200
    horarium.settle()
    # Olga claims what she let go; at the gate it comes to she is no judge any more.
    [claimed] = owner.post("/api/queues/reports/claim", json={}).json()["runs"]
    blocked = {"state": "blocked", "gate": "publish", "lease_epoch": claimed["lease_epoch"]}
    assert owner.post(f"/api/runs/{run_id}/report", json=blocked).json()["outcome"] == "blocked"
    answer = owner.post(f"/api/runs/{run_id}/approve", json={})
    assert (answer.status_code, answer.json()["reason"]) == (403, "approval_required")
    events = horarium.http().get(f"/api/runs/{run_id}/events").json()["events"]
    tried = [each["payload"]["attempted"] for each in events if each["event_type"] == "approval_bypass_attempt"]
    assert tried == ["decision approve", "decision modify", "report succeeded", "decision approve"]
    assert in_history(horarium) == len(attempts(horarium, 4)) == 4
    # Somebody else may, and it goes on behind the gate.
    [gate] = horarium.http().get("/api/approvals").json()["approvals"]
    assert gate["gates"] == ["publish"]
    assert door(horarium, "bob", "operator").post(f"/api/runs/{run_id}/approve", json={}).status_code == 200
    horarium.settle()
    assert [run.state for run in horarium.runs()] == ["queued"]
    assert len({each.key for each in horarium.launcher.deliveries}) == 2


def test_lowering_the_policy_leaves_a_waiting_run_waiting(horarium: TestService) -> None:
    horarium.create({**DOCUMENT, "overlap_policy": "allow_all"})
    horarium.http().post("/api/schedules/brief/trigger")
    lower = {"approval_policy": {"requires_approval": False}}
    assert horarium.http().patch("/api/schedules/brief", json=lower).status_code == 200
    horarium.http().post("/api/schedules/brief/trigger")
    horarium.settle()
    assert [run.state for run in horarium.runs()] == ["awaiting_approval", "queued"]
    assert len(horarium.http().get("/api/approvals").json()["approvals"]) == 1


# ── runs of which only a step needs approval ─────────────────────────────────────────────────────────


def gated(name: str, **more: Any) -> dict[str, Any]:
    """A workflow whose second step is gated."""
    work = {"kind": "pull", "workflow_type": "report", "queue": "reports"}
    return {"workflow_id": name, "nodes": [{"id": "a", "action": work},
            {"id": "b", "action": work, "gates": ["publish"], "needs": ["a"], **more}]}  # fmt: skip


GATES = {"approval_policy": {"gates": ["publish"]}}
INNER = {"nodes": [{"id": "x", "action": {"kind": "workflow", "workflow_id": "inner"}}]}
# The workflows that are stored, and what the schedule or the start says beside them.
STEPS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], bool]] = {
    "its own policy": ([{**gated("flow"), **GATES}], {}, True),
    "of the schedule": ([gated("flow")], GATES, True),
    "a sub-workflow": ([{**gated("inner"), **GATES}, {**INNER, "workflow_id": "flow"}], {}, True),
    "the agent of the step": ([gated("flow", assignee_type="agent", assignee_id="writer")], {}, True),
    "a sub-workflow below a stricter one": (
        [
            gated("inner"),
            {**INNER, **GATES, "workflow_id": "middle"},
            {
                "workflow_id": "flow",
                "nodes": [
                    *INNER["nodes"],
                    {"id": "y", "action": {"kind": "workflow", "workflow_id": "middle"}},
                ],
            },
        ],
        {},
        True,
    ),
    "no gate in force": ([gated("flow")], {}, False),
}


@pytest.mark.both_databases
@pytest.mark.parametrize("name", STEPS)
def test_a_gated_step_alone_makes_a_request_to_skip_an_attempt(horarium: TestService, name: str) -> None:
    stored, said, is_attempt = STEPS[name]
    http = horarium.http()
    http.post("/api/agents", json={"id": "writer", "policies": GATES})
    for each in stored:
        assert http.put(f"/api/workflows/{each['workflow_id']}", json=each).status_code == 201
    horarium.create({"schedule_id": "brief", "cron_expressions": ["0 0 1 1 *"], **said,
                     "action": {"kind": "workflow", "workflow_id": "flow"}})  # fmt: skip
    standing = {"schedule_id": "brief", "gates": ["publish"]}
    door(horarium, "ada", "operator").post("/api/approvals/standing", json=standing)  # which changes nothing
    triggered = http.post("/api/schedules/brief/trigger", json=SKIP)
    assert triggered.status_code == (403 if is_attempt else 200), triggered.text
    assert in_history(horarium) == is_attempt
    if said:
        return
    for path, body in {
        "/api/workflows/flow/runs": {**SKIP},
        "/api/run-launcher/start": {**NOT_REQUIRED, "workflow_id": "flow", "idempotency_key": "k"},
    }.items():
        started = http.post(path, json=body)
        assert (started.status_code == 403) is is_attempt, started.text
    most = 3 if is_attempt else 0
    assert len(attempts(horarium, most)) == most
    assert bool(http.get("/api/runs").json()["runs"]) is not is_attempt


def test_a_repeated_start_of_a_run_with_a_gated_step_is_an_attempt_too(horarium: TestService) -> None:
    http = horarium.http()
    assert http.put("/api/workflows/flow", json={**gated("flow"), **GATES}).status_code == 201
    body = {"workflow_id": "flow", "idempotency_key": "k"}
    assert http.post("/api/run-launcher/start", json=body).status_code < 300
    assert http.post("/api/run-launcher/start", json={**body, **SKIP}).status_code == 403
    assert http.post("/api/run-launcher/start", json=body).status_code < 300


@pytest.mark.parametrize("name", ["its own policy", "a sub-workflow", "no gate in force"])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_schedule_whose_steps_need_approval_cannot_be_written_with_a_skip(horarium: TestService, name: str) -> None:
    stored, _, is_attempt = STEPS[name]
    http = horarium.http()
    for each in stored:
        assert http.put(f"/api/workflows/{each['workflow_id']}", json=each).status_code == 201
    action = {"kind": "workflow", "workflow_id": "flow"}
    document = {"schedule_id": "brief", "cron_expressions": ["0 0 1 1 *"], "action": action}
    assert http.post("/api/schedules", json=document).status_code == 201
    new = {**document, "schedule_id": "new"}
    refused = [
        http.post("/api/schedules", json={**new, **SKIP}).status_code,
        http.post("/api/schedules/upsert", json={**new, "schedule_id": "newer", **NOT_REQUIRED}).status_code,
        http.patch("/api/schedules/brief", json={"note": "x", **SKIP}).status_code,
        http.post("/api/apply", json={"bundle": "b", "schedules": [{**new, "schedule_id": "b", **SKIP}]}).status_code,
    ]
    assert refused == ([403] * 4 if is_attempt else [201, 201, 200, 200])
    most = 4 if is_attempt else 0
    assert len(attempts(horarium, most)) == most
    draft = http.post("/api/schedules/draft", json={**new, "schedule_id": "draft", **SKIP}).json()
    assert draft["valid"] is not is_attempt


@pytest.mark.parametrize("body", [SKIP, NOT_REQUIRED, {"skip_approval": False, "skipApproval": "yes"}], ids=str)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_workspace_cannot_skip_either(horarium: TestService, body: dict[str, Any]) -> None:
    http = horarium.http()
    http.post("/api/agents", json={"id": "writer", "policies": {"approval_policy": {"requires_approval": True}}})
    wish = {"cron_expr": "0 0 1 1 *", "prompt": "Write."}
    schedule_id = http.post("/workspaces/writer/schedules", json=wish).json()["id"]
    run = f"/workspaces/writer/schedules/{schedule_id}/run"
    refused = http.post(run, json=body)
    assert (refused.status_code, refused.json()["reason"]) == (403, "approval_required")
    assert in_history(horarium, schedule_id) == 1
    assert http.post(run, content=b"{").json()["status"] == "awaiting_approval"
