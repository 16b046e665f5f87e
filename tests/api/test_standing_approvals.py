"""A yes that was given beforehand answers what it was given for, and each use of it is a decision on record."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from horarium.features.tenants import service as tenant_service
from horarium.platform.database.tables import standing_approvals
from horarium.platform.database.tables import tokens as token_rows
from horarium.platform.ids import id_text
from horarium.testing import TestService

ACTION = {"kind": "http", "url": "http://target.test/hook", "input": {"n": 1}}
DOCUMENT: dict[str, Any] = {
    "schedule_id": "brief",
    "cron_expressions": ["0 0 1 1 *"],
    "action": ACTION,
    "overlap_policy": "allow_all",
    "approval_policy": {"requires_approval": True, "gates": ["publish"]},
}
STANDING: dict[str, Any] = {"schedule_id": "brief", "gates": ["publish"], "reason": "agreed for this month"}


def door(horarium: TestService, subject: str, role: str = "operator") -> httpx.Client:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name=subject, role=role, subject=subject)
    return horarium.http(token=issued.secret)


def trigger(http: httpx.Client) -> dict[str, Any]:
    answer = http.post("/api/schedules/brief/trigger").json()
    found: dict[str, Any] = http.get(f"/api/runs/{answer['run_id']}").json()
    assert answer["state"] == found["state"]
    return found


@pytest.mark.both_databases
def test_it_answers_until_it_is_used_up_or_the_schedule_is_another(horarium: TestService) -> None:
    horarium.create(DOCUMENT)
    ada = door(horarium, "ada")
    made = ada.post("/api/approvals/standing", json={**STANDING, "max_uses": 2})
    assert made.status_code == 201, made.text
    assert trigger(horarium.http())["state"] == "ready"
    [asked] = horarium.http().get("/api/approvals", params={"status": "approved"}).json()["approvals"]
    assert (asked["decided_by"], asked["standing_id"]) == ("ada", made.json()["standing_id"])
    assert asked["reason"] == asked["votes"][0]["reason"] == "standing: agreed for this month"
    events = horarium.http().get(f"/api/runs/{asked['run_id']}/events").json()["events"]
    [said] = [each["payload"] for each in events if each["event_type"] == "run.approved"]
    assert (said["principal"], said["source"]) == ("ada", "standing")
    # What was agreed to beforehand was this schedule, as it was.
    other = horarium.http().post("/api/schedules/brief/trigger", json={"inputs": {"n": 2}}).json()["run_id"]
    assert horarium.http().get(f"/api/runs/{other}").json()["state"] == "awaiting_approval"
    edited = {"action": {**ACTION, "input": {"n": 2}}}
    assert horarium.http().patch("/api/schedules/brief", json=edited).status_code == 200
    assert trigger(horarium.http())["state"] == "awaiting_approval"
    again = ada.post("/api/approvals/standing", json={**STANDING, "max_uses": 1}).json()
    assert [trigger(horarium.http())["state"] for _ in range(2)] == ["ready", "awaiting_approval"]
    listed = ada.get("/api/approvals/standing").json()["standing"]
    assert [(each["uses"], each["max_uses"]) for each in listed] == [(1, 2), (1, 1)]
    assert ada.delete(f"/api/approvals/standing/{again['standing_id']}").json()["outcome"] == "deleted"
    assert ada.delete(f"/api/approvals/standing/{again['standing_id']}").status_code == 404
    assert horarium.verify() == []


def test_what_one_asked_for_oneself_one_does_not_agree_to_beforehand(horarium: TestService) -> None:
    ada, bob = door(horarium, "ada", "owner"), door(horarium, "bob", "owner")
    assert ada.post("/api/schedules", json=DOCUMENT).status_code == 201
    refused = ada.post("/api/approvals/standing", json=STANDING)
    assert (refused.status_code, refused.json()["reason"]) == (403, "requester_may_not_decide")
    assert bob.post("/api/approvals/standing", json=STANDING).status_code == 201
    assert [trigger(each)["state"] for each in (ada, bob)] == ["ready", "awaiting_approval"]
    viewer = door(horarium, "vera", "viewer").post("/api/approvals/standing", json=STANDING)
    assert (viewer.status_code, viewer.json()["reason"]) == (403, "not_an_approver")


def test_it_is_one_voice_of_those_that_are_needed(horarium: TestService) -> None:
    policy = {**DOCUMENT["approval_policy"], "approvals_required": 2}
    horarium.create({**DOCUMENT, "approval_policy": policy})
    ada, bob = door(horarium, "ada"), door(horarium, "bob")
    for _ in range(2):  # twice by the same person is once
        assert ada.post("/api/approvals/standing", json=STANDING).status_code == 201
    waiting = trigger(horarium.http())
    assert waiting["state"] == "awaiting_approval"
    assert bob.post(f"/api/runs/{waiting['run_id']}/approve", json={}).json()["status"] == "approved"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "schedule_id"),
        ({"schedule_id": "brief", "workflow_id": "w"}, "schedule_id"),
        ({"workflow_id": "w"}, "gates"),
        ({"workflow_id": "w", "gates": ["publish"]}, "workflow_id"),
        ({"schedule_id": "brief", "gates": ["x"] * 101}, "gates"),
        ({"schedule_id": "brief", "gates": [""]}, "gates"),
        ({"schedule_id": "brief", "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"schedule_id": "brief", "max_uses": 0}, "max_uses"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_one_that_makes_no_sense_is_refused(horarium: TestService, body: dict[str, Any], field: str) -> None:
    horarium.create(DOCUMENT)
    answer = door(horarium, "ada").post("/api/approvals/standing", json=body)
    assert answer.status_code == 422
    assert field in answer.json()["errors"]


# ── its end ──────────────────────────────────────────────────────────────────────────────────────────


def state_of(horarium: TestService) -> list[str | None]:
    listed = horarium.http().get("/api/approvals/standing").json()["standing"]
    assert all(each["active"] is (each["ended_reason"] is None) for each in listed)
    return [each["ended_reason"] for each in listed]


def audited(horarium: TestService) -> list[str]:
    entries = horarium.http().get("/api/audit").json()["entries"]
    return [each["detail"]["reason"] for each in entries if each["act"] == "end_standing_approval"]


@pytest.mark.parametrize("how", ["revoked", "expired", "lowered"])
def test_it_ends_with_the_token_or_the_role_of_its_grantor(horarium: TestService, how: str) -> None:
    horarium.create(DOCUMENT)
    expires = horarium.clock.now() + 3_600_000_000 if how == "expired" else None
    issued = tenant_service.issue_token(
        horarium.resources, horarium.caller, name="ada", role="operator", subject="ada", expires_at=expires
    )
    door(horarium, "ada")  # another token of the same grantor does not keep it
    made = horarium.http(token=issued.secret).post("/api/approvals/standing", json=STANDING)
    assert made.status_code == 201, made.text
    assert trigger(horarium.http())["state"] == "ready"
    if how == "revoked":
        tenant_service.revoke_token(horarium.resources, horarium.caller, id_text(issued.token_id))
    elif how == "expired":
        horarium.advance(hours=1)
    else:
        lower = sa.update(token_rows).where(token_rows.c.token_id == issued.token_id).values(role="viewer")
        horarium.resources.database.write(lambda connection: connection.execute(lower))
    assert trigger(horarium.http())["state"] == "awaiting_approval"
    reason = "role_changed" if how == "lowered" else "credential_ended"
    assert (state_of(horarium), audited(horarium)) == ([reason], [reason])


def test_without_an_end_or_a_number_of_uses_it_lasts_ninety_days(horarium: TestService) -> None:
    horarium.create(DOCUMENT)
    door(horarium, "ada").post("/api/approvals/standing", json=STANDING)
    horarium.advance(days=89)
    assert trigger(horarium.http())["state"] == "ready"
    horarium.advance(days=1)
    assert trigger(horarium.http())["state"] == "awaiting_approval"
    assert state_of(horarium) == ["expired"]


@pytest.mark.parametrize("lost", ["made_token", "bound_to"])
def test_one_without_a_record_of_what_it_depends_on_has_ended(horarium: TestService, lost: str) -> None:
    assert horarium.http().put("/api/workflows/flow", json=FLOW).status_code == 201
    horarium.create(schedule_id="s", cron_expressions=["0 0 1 1 *"], action={"workflow_id": "flow"})
    door(horarium, "ada").post("/api/approvals/standing", json={**STANDING, "schedule_id": "s"})
    cleared = sa.update(standing_approvals).values({lost: None})
    horarium.resources.database.write(lambda connection: connection.execute(cleared))
    assert state_of(horarium) == ["credential_ended" if lost == "made_token" else "workflow_changed"]


FLOW: dict[str, Any] = {
    "workflow_id": "flow",
    "nodes": [
        {"id": "a", "action": {"kind": "http", "url": "http://a.test/"}, "gates": ["publish"]},
        {"id": "b", "action": {"kind": "http", "url": "http://b.test/"}},
    ],
    "approval_policy": {"gates": ["publish"]},
}


def started(horarium: TestService) -> str:
    """The state of the gated step of a run of the workflow."""
    run = horarium.http().post("/api/run-launcher/start", json={"workflow_id": "flow", "idempotency_key": "k"})
    assert run.status_code in (200, 201, 202), run.text
    horarium.settle()
    [step] = [
        s for s in horarium.http().get(f"/api/runs/{run.json()['run_id']}").json()["steps"] if s["node_id"] == "a"
    ]
    return str(step["state"])


@pytest.mark.parametrize("change", ["none", "another node", "the gated node", "created again"])
def test_it_ends_with_its_workflow_and_with_an_edit_of_the_gated_node(horarium: TestService, change: str) -> None:
    http = horarium.http()
    assert http.put("/api/workflows/flow", json=FLOW).status_code == 201
    given = {"workflow_id": "flow", "gates": ["publish"]}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    number = {"another node": 1, "the gated node": 0}.get(change)
    if number is not None:
        edited = copy.deepcopy(FLOW)
        edited["nodes"][number]["action"]["url"] = "http://elsewhere.test/"
        assert http.put("/api/workflows/flow", json=edited).status_code in (200, 201)
    if change == "created again":
        assert http.delete("/api/workflows/flow").status_code == 200
        assert http.put("/api/workflows/flow", json=FLOW).status_code == 201
    waits = change in ("the gated node", "created again")
    assert (started(horarium) == "awaiting_approval") is waits
    reason = {"the gated node": "workflow_changed", "created again": "workflow_deleted"}.get(change)
    assert (state_of(horarium), audited(horarium)) == ([reason], [reason] if reason else [])


@pytest.mark.parametrize("gates", [["publish"], []], ids=["a gate", "the whole run"])
@pytest.mark.parametrize("change", ["none", "another node", "the gated node"])
def test_a_pinned_version_is_compared_where_the_schedule_moves_to_another(
    horarium: TestService, change: str, gates: list[str]
) -> None:
    http, flow = horarium.http(), copy.deepcopy(FLOW)
    if not gates:
        del flow["approval_policy"], flow["nodes"][0]["gates"]
    assert http.put("/api/workflows/flow", json=flow).status_code == 201
    action = {"kind": "workflow", "workflow_id": "flow", "version": 1}
    policy = {"requires_approval": not gates, "gates": []}
    horarium.create({**DOCUMENT, "action": action, "approval_policy": policy})
    given = {"schedule_id": "brief", "gates": gates}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    edited = copy.deepcopy(flow)
    edited["nodes"][1 if change == "another node" else 0]["action"]["url"] = "http://elsewhere.test/"
    assert http.put("/api/workflows/flow", json=edited).status_code == 200
    assert state_of(horarium) == [None], "the schedule starts version 1 still"
    if change != "none":
        moved = http.patch("/api/schedules/brief", json={"action": {**action, "version": 2}})
        assert moved.status_code == 200, moved.text
    run_id = http.post("/api/schedules/brief/trigger").json()["run_id"]
    horarium.settle()
    found = http.get(f"/api/runs/{run_id}").json()
    [state] = [each["state"] for each in found["steps"] if each["node_id"] == "a"] if gates else [found["state"]]
    ended = (change == "the gated node") if gates else (change != "none")
    assert (state == "awaiting_approval") is ended
    assert [each is not None for each in state_of(horarium)] == [ended]


def test_to_undo_an_edit_of_the_gated_node_does_not_bring_it_back(horarium: TestService) -> None:
    http = horarium.http()
    assert http.put("/api/workflows/flow", json=FLOW).status_code == 201
    given = {"workflow_id": "flow", "gates": ["publish"]}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    edited = copy.deepcopy(FLOW)
    edited["nodes"][0]["action"]["url"] = "http://elsewhere.test/"
    for document in (edited, FLOW):
        assert http.put("/api/workflows/flow", json=document).status_code == 200
    assert started(horarium) == "awaiting_approval"
    assert (state_of(horarium), audited(horarium)) == (["workflow_changed"], ["workflow_changed"])


@pytest.mark.both_databases
def test_it_ends_where_a_gated_node_loses_its_gate_and_gets_it_back(horarium: TestService) -> None:
    http, flow = horarium.http(), copy.deepcopy(FLOW)
    flow["nodes"][1]["gates"] = ["publish"]
    assert http.put("/api/workflows/flow", json=flow).status_code == 201
    given = {"workflow_id": "flow", "gates": ["publish"]}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    edited = copy.deepcopy(flow)
    del edited["nodes"][0]["gates"]
    for document in (edited, flow):
        assert http.put("/api/workflows/flow", json=document).status_code == 200
    assert started(horarium) == "awaiting_approval"
    assert (state_of(horarium), audited(horarium)) == (["workflow_changed"], ["workflow_changed"])


# ── sub-workflows ────────────────────────────────────────────────────────────────────────────────────

INNER: dict[str, Any] = {
    "workflow_id": "inner",
    "nodes": [{"id": "x", "action": {"kind": "http", "url": "http://x.test/"}}],
}
MIDDLE = {"workflow_id": "middle", "nodes": [{"id": "m", "action": {"kind": "workflow", "workflow_id": "inner"}}]}


def outer(**more: Any) -> dict[str, Any]:
    own = {"id": "b", "action": {"kind": "http", "url": "http://b.test/"}}
    a = {"id": "a", "action": {"kind": "workflow", "workflow_id": "middle"}, **more}
    return {"workflow_id": "flow", "nodes": [a, own], "approval_policy": {"gates": ["publish"]}}


def put_nested(http: httpx.Client, **more: Any) -> None:
    for document in (INNER, MIDDLE, outer(**more)):
        assert http.put(f"/api/workflows/{document['workflow_id']}", json=document).status_code == 201


def edit_inner(http: httpx.Client) -> None:
    edited = copy.deepcopy(INNER)
    edited["nodes"][0]["action"]["url"] = "http://elsewhere.test/"
    assert http.put("/api/workflows/inner", json=edited).status_code == 200


@pytest.mark.parametrize("edits", [False, True])
def test_it_ends_with_an_edit_of_the_workflow_that_the_gated_node_starts(horarium: TestService, edits: bool) -> None:
    http = horarium.http()
    put_nested(http, gates=["publish"])
    given = {"workflow_id": "flow", "gates": ["publish"]}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    if edits:
        edit_inner(http)
        assert http.put("/api/workflows/inner", json=INNER).status_code == 200  # undone
    assert (started(horarium) == "awaiting_approval") is edits
    assert audited(horarium) == (["workflow_changed"] if edits else [])


@pytest.mark.parametrize("edits", [False, True])
def test_one_for_a_whole_run_ends_with_an_edit_of_a_sub_workflow(horarium: TestService, edits: bool) -> None:
    http = horarium.http()
    put_nested(http)
    action = {"kind": "workflow", "workflow_id": "flow"}
    horarium.create({**DOCUMENT, "action": action, "approval_policy": {"requires_approval": True}})
    assert door(horarium, "ada").post("/api/approvals/standing", json=STANDING).status_code == 201
    if edits:
        edit_inner(http)
    assert (trigger(http)["state"] == "awaiting_approval") is edits
    assert state_of(horarium) == (["workflow_changed"] if edits else [None])


def test_a_run_that_keeps_an_older_sub_workflow_is_compared_by_that_one(horarium: TestService) -> None:
    """What the standing approval was given for is newer than what the run was created with."""
    http = horarium.http()
    put_nested(http, gates=["publish"])
    run = http.post("/api/run-launcher/start", json={"workflow_id": "flow", "idempotency_key": "k"}).json()["run_id"]
    edit_inner(http)
    given = {"workflow_id": "flow", "gates": ["publish"]}
    assert door(horarium, "ada").post("/api/approvals/standing", json=given).status_code == 201
    horarium.settle()
    [state] = [each["state"] for each in http.get(f"/api/runs/{run}").json()["steps"] if each["node_id"] == "a"]
    assert state == "awaiting_approval"
    assert state_of(horarium) == [None]
