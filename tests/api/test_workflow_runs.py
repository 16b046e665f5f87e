"""What is shown of a workflow's run: its steps, policies and use, the questions about it, and the events of all."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from client.any_worker import until

from horarium.testing import Accepted, TestService

CALL = {"kind": "http", "url": "https://example.com/"}
DAILY = {
    "nodes": [
        {"id": "send", "needs": ["fetch"], "gates": ["publish"], "action": CALL},
        {"id": "fetch", "action": CALL},
        {"id": "alert", "action": CALL},
    ],
    "edges": [{"from": "fetch", "to": "alert", "condition": {"/result/rows": {"eq": 0}}}],
}


def begin(horarium: TestService, **parts: Any) -> str:
    """The run of the first occurrence, whose first steps have been handed out."""
    horarium.create(
        schedule_id="brief",
        cron_expressions=["0 * * * *"],
        action={"workflow_id": "daily", "input": {"day": 1}, "global_model_id": "small"},
        retry_policy={"max_retries": 4},
        **{"approval_policy": {"gates": ["publish"]}, "limits": {"cost": 5}, **parts},
    )
    horarium.advance(hours=1)
    return horarium.runs()[0].run_id


def step(http: httpx.Client, run_id: str, node: str) -> dict[str, Any]:
    [found] = [each for each in http.get(f"/api/runs/{run_id}").json()["steps"] if each["node_id"] == node]
    return dict(found)


def end(http: httpx.Client, horarium: TestService, run_id: str, node: str, **said: Any) -> None:
    """The target of a step says what became of it."""
    of_step = step(http, run_id, node)["run_id"]
    [delivery] = [each for each in horarium.launcher.deliveries if each.run_id == of_step]
    body = {"state": "succeeded", "report_token": delivery.report_token, **said}
    http.post(f"/api/runs/{of_step}/report", json=body).raise_for_status()
    horarium.settle()


@pytest.fixture
def root(http: httpx.Client, horarium: TestService) -> str:
    """It has fetched; sending waits for a yes, and nobody needs to be alerted."""
    http.put("/api/workflows/daily", json=DAILY).raise_for_status()
    run_id = begin(horarium)
    end(http, horarium, run_id, "fetch", result={"rows": 3}, cost=0.25, tokens=7)
    return run_id


@pytest.mark.archived
def test_a_workflow_s_run_shows_its_steps_and_each_is_a_run(http: httpx.Client, root: str) -> None:
    run = http.get(f"/api/runs/{root}").json()
    assert (run["workflow"], run["state"]) == ({"workflow_id": "daily", "version": 1}, "running")
    assert (run["usage"]["cost"], run["usage"]["tokens"], run["usage"]["tool_calls"]) == (0.25, 7, 0)
    fetch, send, alert = run["steps"]
    assert [(each["node_id"], each["state"]) for each in run["steps"]] == [
        ("fetch", "succeeded"), ("send", "awaiting_approval"), ("alert", "skipped"),
    ]  # fmt: skip
    assert (fetch["result"], fetch["attempt"], fetch["approval"]) == ({"rows": 3}, 0, None)
    assert (send["approval"]["status"], send["approval"]["gates"]) == ("pending", ["publish"])
    assert (alert["cause"], alert["approval"]) == ("branch_not_taken", None)
    own = http.get(f"/api/runs/{send['run_id']}").json()
    assert (own["parent_run_id"], own["root_run_id"], own["node_id"]) == (root, root, "send")
    assert (own["schedule_id"], own["workflow_instance_id"]) == ("brief", f"run:{send['run_id']}")
    assert (own["policies"]["origins"]["approval_policy.gates"], "steps" in own) == ("schedule", False)
    assert own["approval"] == send["approval"]


def test_the_policies_of_a_run_say_whose_word_they_are(http: httpx.Client, root: str) -> None:
    policies = http.get(f"/api/runs/{root}").json()["policies"]
    assert (policies["retry_policy"]["max_retries"], policies["limits"]["cost"]) == (4, 5)
    assert policies["approval_policy"]["requires_approval"] is False
    told = {name: policies["origins"][name] for name in ("retry_policy", "failure_policy", "limits.cost")}
    assert told == {"retry_policy": "schedule", "failure_policy": "default", "limits.cost": "schedule"}


@pytest.mark.archived
def test_lists_show_roots_and_steps_where_they_are_asked_for(http: httpx.Client, root: str) -> None:
    steps = [each["run_id"] for each in http.get(f"/api/runs/{root}").json()["steps"]]

    def listed(path: str = "/api/runs", **asked: str) -> set[str]:
        rows = http.get(path, params=asked).json()["runs"]
        assert all("steps" not in row and "usage" in row for row in rows)
        return {row["run_id"] for row in rows}

    assert listed() == listed("/api/schedules/brief/runs") == listed(workflow_id="daily") == {root}
    assert listed("/api/schedules/brief/runs", workflow_id="other") == listed(assignee="desk") == set()
    assert listed(include="steps") == listed("/api/schedules/brief/runs", include="steps") == {root, *steps}
    assert listed(parent_run_id=root) == listed(root_run_id=root) == set(steps)
    assert listed(parent_run_id=root, state="skipped") == {steps[-1]}
    assert listed("/api/schedules/brief/runs", include="skips") == {root}
    assert http.get("/api/runs", params={"parent_run_id": "x"}).status_code == 422
    assert http.get("/api/runs", params={"include": "all"}).status_code == 422


@pytest.mark.archived
def test_the_stream_of_a_workflow_s_run_tells_of_its_steps(http: httpx.Client, root: str) -> None:
    path = f"/api/runs/{root}/events"
    whole = http.get(path).json()
    assert whole["next_page_token"] is None
    events = whole["events"]
    assert [event["event_type"] for event in events[:3]] == ["ScheduleTriggered", "run.created", "run.started"]
    told = [(event["event_type"], event.get("node_id")) for event in events]
    assert ("node.completed", "fetch") in told
    assert ("node.skipped", "alert") in told
    assert (
        told.index(("node.queued", "fetch"))
        < told.index(("node.started", "fetch"))
        < told.index(("node.queued", "send"))
    )
    steps = {each["run_id"]: each["node_id"] for each in http.get(f"/api/runs/{root}").json()["steps"]}
    assert {event["run_id"]: event.get("node_id") for event in events} == {root: None, **steps}
    paged, token = [], None
    while True:
        page = http.get(path, params={"limit": 1, **({"next_page_token": token} if token else {})}).json()
        paged += page["events"]
        token = page["next_page_token"]
        if token is None:
            break
    assert paged == events
    own = http.get(path, params={"own": True}).json()["events"]
    assert own == [event for event in events if event["run_id"] == root]
    assert http.get(path, params={"after_sequence": 1}).json()["events"] == own[1:]
    for run_id in steps:
        theirs = http.get(f"/api/runs/{run_id}/events").json()["events"]
        assert theirs == [event for event in events if event["run_id"] == run_id]
        assert [event["sequence"] for event in theirs] == list(range(1, len(theirs) + 1))


STRANGE_TOKENS = ["x", "1", "1.2", "1.x.3", f"1.{'0' * 26}.", "9" * 30, "1.2.3.4"]


def test_a_token_that_no_page_has_given_is_refused(http: httpx.Client, root: str) -> None:
    for token in STRANGE_TOKENS:
        answer = http.get(f"/api/runs/{root}/events", params={"next_page_token": token})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, ["next_page_token"]), token


def test_a_step_s_target_is_told_its_place_and_its_terms(http: httpx.Client, horarium: TestService, root: str) -> None:
    [delivery] = horarium.launcher.deliveries
    assert (delivery.node_id, delivery.parent_run_id, delivery.root_run_id) == ("fetch", root, root)
    assert delivery.workflow == {"workflow_id": "daily", "version": 1}
    assert (delivery.terms.gates, delivery.terms.limits) == (("publish",), {"cost": 5})
    assert delivery.terms.global_model_id == "small"


def test_a_step_that_waits_makes_its_schedule_wait_and_is_told_of(http: httpx.Client, root: str) -> None:
    health = http.get("/api/schedules/brief/health").json()
    assert health["status"] == "waiting_for_approval"
    assert health["sentence"] == "A step of a run has been awaiting approval since 2026-03-01T01:00:00Z."
    [unwell] = http.get("/api/health/schedules", params={"unwell": "true"}).json()["schedules"]
    assert (unwell["schedule_id"], unwell["status"]) == ("brief", "waiting_for_approval")
    told = http.get("/api/schedules/brief/explain", params={"at": "2026-03-01T01:00:00Z"}).json()["sentence"]
    assert told.endswith(f"Its run {root} is in state running. {health['sentence']} Approval is required for publish.")
    ahead = http.get("/api/schedules/brief/explain", params={"at": "2026-03-01T02:00:00Z"}).json()["sentence"]
    assert "be skipped: previous run still active." in ahead, "until the request expires, and not until a timeout"
    assert ahead.endswith(health["sentence"])


def test_the_end_of_a_workflow_is_told_with_its_version(http: httpx.Client, horarium: TestService) -> None:
    http.put("/api/workflows/daily", json={"nodes": [{"id": "fetch", "action": CALL}]}).raise_for_status()
    run_id = begin(horarium)
    horarium.advance(seconds=90)
    end(http, horarium, run_id, "fetch", result={"rows": 3}, cost=0.5)
    [run] = http.get("/api/schedules/brief/runs", params={"workflow_id": "daily"}).json()["runs"]
    assert (run["state"], run["cost"], run["approval"], run["duration_seconds"]) == ("succeeded", 0.5, None, 90.0)
    assert run["usage"] == {"runtime_seconds": 90.0, "cost": 0.5, "tokens": 0, "tool_calls": 0}
    assert http.get(f"/api/runs/{run_id}").json()["result"] == {"fetch": {"rows": 3}}
    until(lambda: any(entry["kind"] == "run_finished" for entry in http.get("/api/feed").json()["entries"]))
    [told] = [entry for entry in http.get("/api/feed").json()["entries"] if entry["kind"] == "run_finished"]
    assert (told["run_id"], told["workflow"], told["version"], "approval" in told) == (run_id, "daily", 1, False)
    described = http.get("/api/schedules/brief").json()
    assert (described["last_completed_run_id"], described["last_result"]) == (run_id, {"fetch": {"rows": 3}})


def test_the_runs_of_a_schedule_tell_what_came_of_the_questions(http: httpx.Client, horarium: TestService) -> None:
    http.put("/api/workflows/daily", json={"nodes": [{"id": "fetch", "action": CALL}]}).raise_for_status()
    run_id = begin(horarium, approval_policy={"requires_approval": True})
    [waits] = http.get("/api/schedules/brief/runs", params={"state": "awaiting_approval"}).json()["runs"]
    assert (waits["run_id"], waits["approval"]["status"], waits["duration_seconds"]) == (run_id, "pending", None)
    horarium.advance(hours=24)
    [expired] = http.get("/api/schedules/brief/runs", params={"state": "expired"}).json()["runs"]
    assert (expired["state"], expired["approval"]["status"]) == ("expired", "expired")
    until(lambda: any(entry["kind"] == "run_finished" for entry in http.get("/api/feed").json()["entries"]))
    [told] = [entry for entry in http.get("/api/feed").json()["entries"] if entry["kind"] == "run_finished"]
    assert (told["run_id"], told["workflow"], told["approval"]) == (run_id, "daily", "expired")


def test_whoever_is_called_again_after_a_yes_is_told_what_it_is_for(http: httpx.Client, horarium: TestService) -> None:
    """At a gate in the midst of a plain run, and at the gate of a node before its step begins."""
    http.put("/api/workflows/daily", json=DAILY).raise_for_status()
    run_id = begin(horarium, approval_policy={"gates": ["publish"], "allow_requester": True})
    end(http, horarium, run_id, "fetch", result={"rows": 3})
    asked = step(http, run_id, "send")["approval"]["approval_id"]
    http.post(f"/api/approvals/{asked}/decision", json={"decision": "approve"}).raise_for_status()
    horarium.settle()
    assert horarium.launcher.deliveries[-1].terms.approved_gates == ("publish",)
    end(http, horarium, run_id, "send", state="blocked", gate="spend")
    asked = step(http, run_id, "send")["approval"]["approval_id"]
    http.post(f"/api/approvals/{asked}/decision", json={"decision": "approve"}).raise_for_status()
    horarium.settle()
    again = horarium.launcher.deliveries[-1]
    assert (again.node_id, again.terms.approved_gates) == ("send", ("publish", "spend"))
    assert (again.terms.gates, again.key.endswith(":gate1")) == (("publish",), True)


@pytest.mark.archived
def test_the_steps_of_a_sub_workflow_stand_under_its_own_run(http: httpx.Client, horarium: TestService) -> None:
    http.put("/api/workflows/inner", json={"nodes": [{"id": "c1", "action": CALL}]}).raise_for_status()
    nodes = [{"id": "sub", "action": {"kind": "workflow", "workflow_id": "inner"}}]
    http.put("/api/workflows/daily", json={"nodes": nodes}).raise_for_status()
    root = begin(horarium)
    [sub] = http.get(f"/api/runs/{root}").json()["steps"]
    assert (sub["node_id"], sub["state"]) == ("sub", "running")
    assert sub["workflow"] == {"workflow_id": "inner", "version": 1}
    child = http.get(f"/api/runs/{sub['run_id']}").json()
    [c1] = child["steps"]
    assert (child["workflow"], child["node_id"], c1["node_id"]) == (sub["workflow"], "sub", "c1")
    below = http.get("/api/runs", params={"root_run_id": root}).json()["runs"]
    assert {row["run_id"]: row["parent_run_id"] for row in below} == {sub["run_id"]: root, c1["run_id"]: sub["run_id"]}
    told = http.get(f"/api/runs/{root}/events").json()["events"]
    of_child = http.get(f"/api/runs/{sub['run_id']}/events").json()["events"]
    assert of_child == [event for event in told if event["run_id"] != root]
    assert {event["node_id"] for event in of_child} == {"sub", "c1"}
    assert [row["run_id"] for row in http.get("/api/runs", params={"workflow_id": "inner"}).json()["runs"]] == []
    of_inner = http.get("/api/runs", params={"workflow_id": "inner", "include": "steps"}).json()["runs"]
    assert [row["run_id"] for row in of_inner] == [sub["run_id"]]


def test_a_rerun_is_of_the_same_version_and_asked_about_anew(http: httpx.Client, horarium: TestService) -> None:
    first = {"nodes": [{"id": "fetch", "action": CALL}]}
    http.put("/api/workflows/daily", json=first).raise_for_status()
    run_id = begin(horarium, approval_policy={"requires_approval": True, "allow_requester": True})
    asked = http.get(f"/api/runs/{run_id}").json()
    assert asked["workflow"] == {"workflow_id": "daily", "version": 1}
    http.put("/api/workflows/daily", json={**first, "name": "Daily"}).raise_for_status()
    decision = {"decision": "approve"}
    http.post(f"/api/approvals/{asked['approval']['approval_id']}/decision", json=decision).raise_for_status()
    horarium.settle()
    refused = http.post(f"/api/runs/{step(http, run_id, 'fetch')['run_id']}/rerun")
    assert (refused.status_code, refused.json()["reason"]) == (409, "run_not_repeatable")
    assert "rerun its workflow run" in refused.json()["detail"]
    end(http, horarium, run_id, "fetch")
    again = http.post(f"/api/runs/{run_id}/rerun").json()
    assert (again["outcome"], again["state"]) == ("triggered", "awaiting_approval")
    new = http.get(f"/api/runs/{again['run_id']}").json()
    assert (new["workflow"], new["rerun_of"], new["steps"]) == ({"workflow_id": "daily", "version": 1}, run_id, [])
    assert new["approval"]["status"] == "pending"
    assert new["approval"]["approval_id"] != asked["approval"]["approval_id"]
    http.post(f"/api/approvals/{new['approval']['approval_id']}/decision", json=decision).raise_for_status()
    horarium.settle()
    assert http.get(f"/api/runs/{again['run_id']}").json()["workflow"]["version"] == 1
    assert horarium.launcher.deliveries[-1].workflow == {"workflow_id": "daily", "version": 1}


@pytest.mark.parametrize("answer", [Accepted(reference="q", queued=True)], ids=["queued"])
def test_the_queue_of_a_workflow_is_that_of_steps_that_name_none(http: httpx.Client, horarium: TestService) -> None:
    own, lent = ({"kind": "pull", "workflow_type": "sweep", **queue} for queue in ({"queue": "own"}, {}))
    nodes = [{"id": "a", "action": lent}, {"id": "b", "action": own}]
    refused = http.post("/api/workflows/validate", json={"workflow_id": "daily", "nodes": nodes})
    assert (refused.status_code, list(refused.json()["errors"])) == (422, ["nodes.0.action.queue"])
    assert http.put("/api/workflows/daily", json={"nodes": nodes}).json()["errors"] == refused.json()["errors"]
    document = {"nodes": nodes, "queue": "shared"}
    assert http.post("/api/workflows/validate", json={"workflow_id": "daily", **document}).status_code == 200
    for outcome in ("created", "unchanged"):
        assert http.put("/api/workflows/daily", json=document).json()["outcome"] == outcome
    begin(horarium)
    for queue, node in (("shared", "a"), ("own", "b")):
        claimed = http.post(f"/api/queues/{queue}/claim", json={"worker": "w"}).json()["runs"]
        assert [each["node_id"] for each in claimed] == [node]


@pytest.mark.parametrize("answer", [Accepted(reference="q", queued=True)], ids=["queued"])
def test_a_step_that_a_worker_claims_has_started_once(http: httpx.Client, horarium: TestService) -> None:
    pull = {"kind": "pull", "workflow_type": "sweep", "queue": "q"}
    http.put("/api/workflows/daily", json={"nodes": [{"id": "p", "action": pull}]}).raise_for_status()
    begin(horarium)
    [step] = http.post("/api/queues/q/claim", json={"worker": "w1"}).json()["runs"]
    told = http.get(f"/api/runs/{step['run_id']}/events").json()["events"]
    assert [event["event_type"] for event in told] == ["run.created", "node.queued", "node.started"]
    assert told[-1]["payload"] == {"node_id": "p", "attempt": 0, "worker": "w1"}
