"""A yes that was given beforehand answers what it was given for, and each use of it is a decision on record."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.operations import tokens
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
    issued = tokens.issue(horarium.resources, horarium.caller, name=subject, role=role, subject=subject)
    return horarium.http(token=issued.secret)


def trigger(http: httpx.Client) -> dict[str, Any]:
    answer = http.post("/api/schedules/brief/trigger").json()
    found: dict[str, Any] = http.get(f"/api/runs/{answer['run_id']}").json()
    assert answer["state"] == found["state"]
    return found


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
