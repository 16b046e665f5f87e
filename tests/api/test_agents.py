"""An agent sees and reports its own work, and what others do is not there for it, whatever it guesses."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.features.schedules.decisions import MAX_RECORDED
from horarium.features.tenants import service as tenant_service
from horarium.platform.database.tables import runs
from horarium.platform.ids import parse_id
from horarium.testing import Accepted, TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

QUEUE = "brooms"


@pytest.fixture
def answer() -> Accepted:
    return Accepted(reference=QUEUE, queued=True)


def door(horarium: TestService, subject: str, role: str = "agent", **given: Any) -> httpx.Client:
    issued = tenant_service.issue_token(
        horarium.resources, horarium.caller, name=subject, role=role, subject=subject, **given
    )
    return horarium.http(token=issued.secret)


def make_run(horarium: TestService, schedule_id: str, assignee: str | None = None, **parts: Any) -> str:
    """A run that waits on the queue."""
    assigned = {} if assignee is None else {"assignee_id": assignee}
    if assignee is not None:
        horarium.http().put(f"/api/agents/{assignee}", json={}).raise_for_status()
    horarium.create(
        schedule_id=schedule_id,
        cron_expressions=["0 0 1 1 *"],
        action={"workflow_type": schedule_id, "task_queue": QUEUE, "input": {"secret": schedule_id}},
        **{"approval_policy": {"requires_approval": False}, **assigned, **parts},
    )
    run_id: str = horarium.http().post(f"/api/schedules/{schedule_id}/trigger").json()["run_id"]
    horarium.settle()
    return run_id


def claim(http: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    answer = http.post(f"/api/queues/{QUEUE}/claim", json={"limit": 10, **asked})
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["runs"]
    return found


def said(http: httpx.Client, run_id: str, verb: str = "report", **body: Any) -> tuple[int, str]:
    answer = http.post(f"/api/runs/{run_id}/{verb}", json=body)
    return answer.status_code, answer.json().get("reason") or answer.json().get("outcome", "")


def looks(http: httpx.Client, run_id: str) -> set[int]:
    return {http.get(f"/api/runs/{run_id}{part}").status_code for part in ("", "/events", "/logs")}


def test_a_claim_tells_the_terms_of_the_work(horarium: TestService) -> None:
    make_run(
        horarium,
        "mine",
        "ada",
        approval_policy={"requires_approval": False, "gates": ["publish", "archive"]},
        limits={"cost": 0.5, "tokens": 100, "allow_tools": ["search"]},
        search_attributes={"tenant": 42},
        global_model_id="small",
    )
    [run] = claim(door(horarium, "ada"))
    told = {
        "assignee": {"type": "agent", "id": "ada"},
        "approval_mode": "sensitive_actions",
        "gates": ["archive", "publish"],
        "limits": {"cost": 0.5, "tokens": 100},
        "allow_tools": ["search"],
        "global_model_id": "small",
        "search_attributes": {"tenant": 42},
        "attempt": 0,
        "node_id": None,
        "parent_run_id": None,
        "root_run_id": None,
    }
    assert {name: run[name] for name in told} == told


@pytest.mark.parametrize("types", [None, ["mine"]], ids=["any type", "by type"])
def test_what_a_team_was_given_is_for_the_member_whose_turn_it_is(
    horarium: TestService, types: list[str] | None
) -> None:
    """Also where an agent has the name of the team."""
    run_id = make_run(horarium, "mine", "desk")
    team = {"assignee_type": "team", "assignee": "desk", "member": "ada"}
    given = sa.update(runs).where(runs.c.run_id == parse_id(run_id, "run_id")).values(**team)
    horarium.resources.database.write(lambda c: c.execute(given))
    for stranger in ("desk", "bob"):
        assert claim(door(horarium, stranger), workflow_types=types) == []
        assert looks(door(horarium, stranger), run_id) == {404}
    assert looks(door(horarium, "ada"), run_id) == {200}
    [run] = claim(door(horarium, "ada"), workflow_types=types)
    assert run["assignee"] == {"type": "team", "id": "desk", "member": "ada"}


@pytest.mark.parametrize("types", [None, ["mine", "theirs", "open"]], ids=["any type", "by type"])
def test_an_agent_claims_what_is_its_own_or_nobody_s(horarium: TestService, types: list[str] | None) -> None:
    mine, theirs = make_run(horarium, "mine", "ada"), make_run(horarium, "theirs", "bob")
    unassigned = make_run(horarium, "open")
    asked = {} if types is None else {"workflow_types": types}
    assert {run["run_id"] for run in claim(door(horarium, "ada"), **asked)} == {mine, unassigned}
    assert [run["run_id"] for run in claim(door(horarium, "bob"), **asked)] == [theirs]


def test_a_run_of_another_is_not_there(horarium: TestService) -> None:
    ada, bob = door(horarium, "ada"), door(horarium, "bob")
    waiting = make_run(horarium, "theirs", "bob")
    assert looks(ada, waiting) == {404}
    [held] = claim(bob)
    # The thief knows the run, and guesses the number of the lease, which is small.
    lease = {"lease_epoch": held["lease_epoch"]}
    for verb, body in (
        ("heartbeat", lease),
        ("logs", {**lease, "lines": ["forged"]}),
        ("report", {**lease, "state": "succeeded"}),
        ("report", {"state": "succeeded"}),
        ("report", {"state": "succeeded", "report_token": "hrt_0.forged"}),
    ):
        assert said(ada, waiting, verb, **body) == (404, "run_not_found")
    assert looks(ada, waiting) == {404}
    assert said(bob, waiting, **lease, state="succeeded") == (200, "recorded")
    assert looks(ada, waiting) == {404}


def test_an_agent_sees_what_it_works_on_and_what_it_has_reported(horarium: TestService) -> None:
    ada = door(horarium, "ada")
    assigned, unassigned = make_run(horarium, "mine", "ada"), make_run(horarium, "open")
    assert (looks(ada, assigned), looks(ada, unassigned)) == ({200}, {404})
    held = {run["run_id"]: run for run in claim(ada)}
    assert looks(ada, unassigned) == {200}
    lease = {"lease_epoch": held[unassigned]["lease_epoch"]}
    assert said(ada, unassigned, "logs", **lease, lines=["one"])[0] == 200
    assert said(ada, unassigned, **lease, state="succeeded") == (200, "recorded")
    assert looks(ada, unassigned) == {200}


def test_an_agent_sees_nothing_else(horarium: TestService) -> None:
    make_run(horarium, "mine", "ada")
    ada = door(horarium, "ada")
    paths = (
        "schedules", "schedules/mine", "schedules/mine/history", "schedules/mine/runs", "schedules/mine/preview",
        "schedules/mine/health", "runs", "feed", "events", "agenda", "calendars", "tokens",
    )  # fmt: skip
    assert {path: ada.get(f"/api/{path}").status_code for path in paths} == dict.fromkeys(paths, 403)
    assert ada.get("/api/cluster/info").status_code == 200


def test_a_guessed_lease_opens_nothing_to_those_who_may_see_the_run(horarium: TestService) -> None:
    run_id = make_run(horarium, "open")
    [held] = claim(door(horarium, "ada"))
    lease = {"lease_epoch": held["lease_epoch"]}
    for thief in (door(horarium, "eve", "owner"), door(horarium, "root", "admin")):
        assert said(thief, run_id, "heartbeat", **lease) == (409, "lease_lost")
        assert said(thief, run_id, "logs", **lease, lines=["forged"]) == (409, "lease_lost")
        assert said(thief, run_id, **lease, state="succeeded") == (409, "lease_lost")
        assert said(thief, run_id, state="succeeded") == (403, "report_unproven")
    assert horarium.runs("open")[0].state.value == "running"


def test_a_lease_that_somebody_else_got_says_nothing_any_more(horarium: TestService) -> None:
    run_id = make_run(horarium, "open")
    ada = door(horarium, "ada")
    [first] = claim(ada)
    for _ in range(2):  # it is not heard of again: its lease ends, then the run goes back to the queue
        horarium.advance(minutes=1)
    [second] = claim(door(horarium, "bob"))
    for epoch in (first["lease_epoch"], second["lease_epoch"]):
        assert said(ada, run_id, lease_epoch=epoch, state="succeeded") == (404, "run_not_found")


def test_a_token_that_names_queues_is_good_for_no_other(horarium: TestService) -> None:
    make_run(horarium, "open")
    elsewhere = door(horarium, "ada", queues=["mops"])
    assert elsewhere.post(f"/api/queues/{QUEUE}/claim").status_code == 403
    assert elsewhere.post("/api/queues/mops/claim").json()["runs"] == []
    assert len(claim(door(horarium, "bob", queues=["mops", QUEUE]))) == 1


def test_whoever_was_handed_the_token_of_a_run_may_report_with_a_token_of_its_own(horarium: TestService) -> None:
    run_id, ada = make_run(horarium, "open"), door(horarium, "ada")
    token = horarium.launcher.deliveries[-1].report_token
    assert said(ada, run_id, state="succeeded", report_token=token) == (200, "recorded")
    assert looks(ada, run_id) == {200}


@pytest.mark.parametrize("who", ["ada", "bob"])
def test_nobody_reports_a_run_past_its_approval(horarium: TestService, who: str) -> None:
    """The assignee, and an agent that does not even see the run: both are refused, and both are on record."""
    run_id = make_run(horarium, "gated", "ada", approval_policy={"requires_approval": True})
    thief = door(horarium, who)
    for _ in range(MAX_RECORDED + 2):
        assert said(thief, run_id, state="succeeded", lease_epoch=1) == (403, "approval_required")
    assert horarium.runs("gated")[0].state.value == "awaiting_approval"
    http = horarium.http()
    events = [
        event for event in http.get(f"/api/runs/{run_id}/events").json()["events"] if "bypass" in event["event_type"]
    ]
    assert len(events) == MAX_RECORDED  # who goes on trying fills nothing
    assert events[0]["payload"]["command_context"]["principal"] == who
    told = [each for each in horarium.history("gated") if each.event_type == "ScheduleApprovalBypassAttempted"]
    assert (len(told), told[0].payload["workflow_run_id"]) == (MAX_RECORDED, run_id)
    assert "approval_bypass_attempt" in {entry["kind"] for entry in http.get("/api/feed").json()["entries"]}
    assert horarium.verify() == []


def test_an_idempotency_key_hides_no_attempt_to_get_past_an_approval(horarium: TestService) -> None:
    run_id = make_run(horarium, "gated", "ada", approval_policy={"requires_approval": True})
    thief = door(horarium, "ada")
    for _ in range(2):  # the key is free again after a refusal
        told = thief.post(f"/api/runs/{run_id}/report", json={"state": "succeeded"}, headers={"Idempotency-Key": "k"})
        assert (told.status_code, told.json()["reason"]) == (403, "approval_required")
    events = horarium.http().get(f"/api/runs/{run_id}/events").json()["events"]
    assert [event["event_type"] for event in events].count("approval_bypass_attempt") == 2
    assert horarium.verify() == []


def test_a_run_that_came_to_a_gate_is_not_reported_past_it_by_its_own_worker(horarium: TestService) -> None:
    http, started = horarium.http(), {"idempotency_key": "k", "workflow_id": "sweep"}
    run_id = http.post("/api/run-launcher/start", json=started).json()["run_id"]
    horarium.settle()
    [held] = claim(http)
    token = {"report_token": held["report_token"]}
    assert said(http, run_id, state="blocked", gate="publish", **token) == (200, "blocked")
    assert said(http, run_id, state="blocked", gate="publish", **token) == (200, "unchanged")
    assert said(http, run_id, state="succeeded", **token) == (403, "approval_required")
    # No schedule asked for it: the feed tells.
    kinds = [entry["kind"] for entry in http.get("/api/feed").json()["entries"]]
    assert kinds == ["approval_bypass_attempt", "approval_requested"]
