"""What waits for a yes is found in the inbox, decided once by those who may, and nothing starts before."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api.fed import fed

from horarium.core.policy.approval import input_hash
from horarium.features.tenants import service as tenant_service
from horarium.instant import HOUR, to_rfc3339
from horarium.testing import TestService

POLICY: dict[str, Any] = {"requires_approval": True}
INPUTS = {"audience": "board", "rows": {"most": 10, "least": 1}}


def door(horarium: TestService, subject: str, role: str = "operator") -> httpx.Client:
    issued = tenant_service.issue_token(horarium.resources, horarium.caller, name=subject, role=role, subject=subject)
    return horarium.http(token=issued.secret)


def waiting(horarium: TestService, schedule_id: str = "brief", **parts: Any) -> dict[str, Any]:
    """A schedule whose first occurrence is due, and the question that it asks."""
    action = {"kind": "http", "url": "http://target.test/hook", "input": INPUTS}
    horarium.create(
        schedule_id=schedule_id,
        at=[to_rfc3339(horarium.clock.now() + HOUR)],
        **{"action": action, "approval_policy": POLICY, **parts},
    )
    horarium.advance(hours=1)
    [asked] = inbox(horarium.http(), schedule_id=schedule_id)
    return asked


def inbox(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    answer = http.get("/api/approvals", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["approvals"]
    return found


def decide(http: httpx.Client, asked: dict[str, Any], decision: str = "approve", **said: Any) -> httpx.Response:
    return http.post(f"/api/approvals/{asked['approval_id']}/decision", json={"decision": decision, **said})


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def state(horarium: TestService, asked: dict[str, Any]) -> str:
    found: str = horarium.http().get(f"/api/runs/{asked['run_id']}").json()["state"]
    return found


def events(horarium: TestService, asked: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    told = horarium.http().get(f"/api/runs/{asked['run_id']}/events").json()["events"]
    return [(each["event_type"], each["payload"]) for each in told]


def told(horarium: TestService, kind: str) -> list[dict[str, Any]]:
    return [entry["payload"] for entry in fed(horarium.http(), kind)]


def test_a_question_says_what_would_run_and_a_yes_lets_it(horarium: TestService) -> None:
    asked = waiting(horarium, approval_policy={**POLICY, "gates": ["spend", "publish"]})
    assert horarium.launcher.deliveries == []
    assert (asked["status"], asked["gates"], asked["inputs"]) == ("pending", ["publish", "spend"], INPUTS)
    assert (asked["input_hash"], asked["votes"], asked["decided_at"]) == (input_hash(INPUTS), [], None)
    assert (asked["schedule_id"], asked["origin"], asked["nominal"]) == ("brief", "scheduled", "2026-03-01T01:00:00Z")
    ada = door(horarium, "ada")
    shown = ada.get(f"/api/approvals/{asked['approval_id']}").json()
    assert (shown["action"]["url"], shown["action"]["input"]) == ("http://target.test/hook", INPUTS)
    assert asked["action"] == {name: value for name, value in shown["action"].items() if name != "input"}
    done = decide(ada, asked, reason="looks right", input_hash=asked["input_hash"]).json()
    assert (done["status"], done["decided_by"], done["reason"]) == ("approved", "ada", "looks right")
    assert [(vote["by"], vote["decision"]) for vote in done["votes"]] == [("ada", "approve")]
    horarium.settle()
    assert len(horarium.launcher.deliveries) == 1
    [said] = [payload for kind, payload in events(horarium, asked) if kind == "run.approved"]
    assert (said["principal"], said["reason"], said["approval_id"]) == ("ada", "looks right", asked["approval_id"])
    assert inbox(ada) == []
    assert refused(decide(door(horarium, "bob"), asked, "reject")) == (409, "already_decided")
    assert [each["approval_id"] for each in told(horarium, "approval_requested")] == [asked["approval_id"]]
    [decision] = told(horarium, "approval_decided")
    assert (decision["decision"], decision["decided_by"], decision["gates"]) == (
        "approved",
        "ada",
        ["publish", "spend"],
    )


def test_one_no_ends_it(horarium: TestService) -> None:
    asked = waiting(horarium, approval_policy={**POLICY, "approvals_required": 2})
    ada, bob = door(horarium, "ada"), door(horarium, "bob")
    assert decide(ada, asked).json()["status"] == "pending"
    assert decide(bob, asked, "reject", reason="not today").json()["status"] == "rejected"
    assert state(horarium, asked) == "rejected"
    assert ("run.rejected", "bob") in [(kind, said.get("principal")) for kind, said in events(horarium, asked)]
    horarium.settle()
    assert horarium.launcher.deliveries == []
    assert horarium.http().get("/api/schedules/brief").json()["active_runs"] == 0


@pytest.mark.both_databases
def test_two_people_must_agree_to_the_same_inputs(horarium: TestService) -> None:
    asked = waiting(horarium, approval_policy={**POLICY, "approvals_required": 2})
    ada, bob = door(horarium, "ada"), door(horarium, "bob")
    for _ in range(2):  # the same voice twice is one voice
        assert decide(ada, asked).json()["status"] == "pending"
    changed = decide(bob, asked, "modify", modifications={"rows": {"most": 5, "least": None}}).json()
    assert changed["status"] == "pending"
    assert (changed["inputs"], changed["proposed_inputs"]) == ({"audience": "board", "rows": {"most": 5}}, INPUTS)
    assert [vote["by"] for vote in changed["votes"]] == ["bob"]
    # What was seen before is not what would run now.
    assert refused(decide(ada, asked, input_hash=asked["input_hash"])) == (412, "inputs_changed")
    done = decide(ada, asked, input_hash=changed["input_hash"]).json()
    assert (done["status"], {vote["by"] for vote in done["votes"]}) == ("modified", {"ada", "bob"})
    horarium.settle()
    assert [each.inputs for each in horarium.launcher.deliveries] == [{"audience": "board", "rows": {"most": 5}}]
    assert "run.modified" in [kind for kind, _ in events(horarium, asked)]


def test_what_was_proposed_may_be_nothing_and_a_yes_may_become_a_no(horarium: TestService) -> None:
    two: dict[str, Any] = {"approval_policy": {**POLICY, "approvals_required": 2}}
    asked = waiting(horarium, **two, action={"kind": "http", "url": "http://target.test/hook"})
    ada, bob = door(horarium, "ada"), door(horarium, "bob")
    decide(ada, asked, "modify", modifications={"rows": 5})
    done = decide(bob, asked).json()
    assert (asked["inputs"], done["inputs"], done["status"]) == (None, {"rows": 5}, "modified")
    assert "run.modified" in [kind for kind, _ in events(horarium, asked)]
    asked = waiting(horarium, "other", **two)
    decide(ada, asked, reason="looks right")
    done = decide(ada, asked, "reject", reason="it does not").json()
    assert [(each["by"], each["decision"], each["reason"]) for each in done["votes"]] == [
        ("ada", "reject", "it does not")
    ]


def test_what_was_handed_out_before_a_gate_is_not_heard_after_it(horarium: TestService) -> None:
    horarium.create(
        schedule_id="brief", cron_expressions=["0 0 1 1 *"], action={"kind": "http", "url": "http://a.test/"}
    )
    run_id = horarium.http().post("/api/schedules/brief/trigger").json()["run_id"]
    horarium.settle()

    def say(state: str, delivery: int) -> tuple[str, str]:
        token = horarium.launcher.deliveries[delivery].report_token
        body = {"state": state, "gate": "publish", "report_token": token}
        said = horarium.http().post(f"/api/runs/{run_id}/report", json=body).json()
        return said["outcome"], said["state"]

    assert say("blocked", 0) == ("blocked", "awaiting_approval")
    assert say("blocked", 0) == ("unchanged", "awaiting_approval")
    assert door(horarium, "ada").post(f"/api/runs/{run_id}/approve", json={}).status_code == 200
    horarium.settle()
    # A message that is repeated asks no second time, and what stopped at the gate cannot end what went on.
    assert say("blocked", 0) == say("succeeded", 0) == ("late", "running")
    assert say("blocked", 1) == ("blocked", "awaiting_approval")
    assert door(horarium, "ada").post(f"/api/runs/{run_id}/approve", json={}).status_code == 200
    horarium.settle()
    assert say("succeeded", 2) == ("recorded", "succeeded")


def test_who_wrote_or_asked_may_not_decide_unless_that_is_allowed(horarium: TestService) -> None:
    ada, bob, cleo = (door(horarium, name, "owner") for name in ("ada", "bob", "cleo"))
    document = {
        "schedule_id": "hers",
        "cron_expressions": ["0 0 1 1 *"],
        "action": {"kind": "http", "url": "http://target.test/", "input": INPUTS},
        "approval_policy": POLICY,
    }
    assert ada.post("/api/schedules", json=document).status_code == 201
    changed = horarium.http().patch("/api/schedules/hers", json={"user_id": None, "note": "x"})
    assert changed.status_code == 200
    run_id = bob.post("/api/schedules/hers/trigger").json()["run_id"]
    for requester in (ada, bob):
        answer = requester.post(f"/api/runs/{run_id}/approve", json={})
        assert refused(answer) == (403, "requester_may_not_decide")
        assert "allow_requester: true" in answer.json()["message"]
        assert inbox(requester, mine=True) == []
    assert [asked["run_id"] for asked in inbox(cleo, mine=True)] == [run_id]
    assert cleo.post(f"/api/runs/{run_id}/approve", json={}).json()["status"] == "approved"
    document |= {"schedule_id": "alone", "approval_policy": {**POLICY, "allow_requester": True}}
    assert ada.post("/api/schedules", json=document).status_code == 201
    own = ada.post("/api/schedules/alone/trigger").json()["run_id"]
    assert ada.post(f"/api/runs/{own}/reject", json={"reason": "changed my mind"}).json()["status"] == "rejected"


@pytest.mark.both_databases
def test_a_list_of_approvers_replaces_the_permission(horarium: TestService) -> None:
    asked = waiting(horarium, approval_policy={**POLICY, "approvers": ["vera", "role:owner"]})
    ada, vera = door(horarium, "ada"), door(horarium, "vera", "viewer")
    assert refused(decide(ada, asked)) == (403, "not_an_approver")
    assert refused(decide(door(horarium, "will", "viewer"), asked)) == (403, "not_an_approver")
    assert inbox(ada, mine=True) == []
    for approver in (vera, door(horarium, "olga", "owner")):
        assert [each["run_id"] for each in inbox(approver, mine=True)] == [asked["run_id"]]
    assert decide(vera, asked).json()["status"] == "approved"


def test_a_question_expires_or_waits_for_ever(horarium: TestService) -> None:
    late = waiting(horarium, "late", approval_policy={**POLICY, "expires_after_seconds": 600})
    never = waiting(horarium, "never", approval_policy={**POLICY, "expires_after_seconds": None})
    assert (late["expires_at"], never["expires_at"]) == ("2026-03-01T01:10:00Z", None)
    shown = horarium.http().get("/api/schedules/never").json()["approval_policy"]
    assert shown["expires_after_seconds"] is None
    ada = door(horarium, "ada")
    assert refused(decide(ada, late)) == (410, "approval_expired")
    horarium.advance(days=2)
    assert (state(horarium, late), state(horarium, never)) == ("expired", "awaiting_approval")
    [expired] = [each for each in told(horarium, "approval_expired") if each["approval_id"] == late["approval_id"]]
    assert "reason" not in expired
    assert refused(decide(ada, late)) == (410, "approval_expired")
    assert decide(ada, never).json()["status"] == "approved"


def test_the_question_of_a_run_that_was_stopped_is_closed(horarium: TestService) -> None:
    asked = waiting(horarium)
    assert horarium.http().post(f"/api/runs/{asked['run_id']}/cancel").status_code == 200
    shown = horarium.http().get(f"/api/approvals/{asked['approval_id']}").json()
    assert (shown["status"], shown["reason"]) == ("expired", "run_cancelled")
    assert refused(decide(door(horarium, "ada"), asked)) == (409, "already_decided")
    assert [each["reason"] for each in told(horarium, "approval_expired")] == ["run_cancelled"]


def test_many_are_decided_at_once_with_an_outcome_each(horarium: TestService) -> None:
    first, second = (
        waiting(horarium, "one"),
        waiting(horarium, "two", approval_policy={**POLICY, "approvals_required": 2}),
    )
    third = waiting(horarium, "three")
    ada = door(horarium, "ada")
    decide(ada, third, "reject")
    ids = [each["approval_id"] for each in (first, second, third)]
    answer = ada.post("/api/approvals/decisions", json={"ids": [*ids, "nonsense"], "decision": "approve"})
    outcomes = [(each["approval_id"], each["outcome"], each.get("reason")) for each in answer.json()["outcomes"]]
    assert outcomes == [
        (ids[0], "approved", None),
        (ids[1], "waiting", None),
        (ids[2], "failed", "already_decided"),
        ("nonsense", "failed", "approval_not_found"),
    ]
    too_many = ada.post("/api/approvals/decisions", json={"ids": [f"{n}" for n in range(101)], "decision": "approve"})
    assert refused(too_many) == (422, "validation_failed")


def test_many_are_decided_as_they_were_shown_or_not_at_all(horarium: TestService) -> None:
    first, second = waiting(horarium, "one"), waiting(horarium, "two")
    ids = [each["approval_id"] for each in (first, second)]
    shown = {ids[0]: first["input_hash"], ids[1]: "of something else"}
    body = {"ids": ids, "decision": "approve", "input_hashes": shown}
    ada = door(horarium, "ada")
    answer = ada.post("/api/approvals/decisions", json=body)
    outcomes = [(each["outcome"], each.get("reason")) for each in answer.json()["outcomes"]]
    assert outcomes == [("approved", None), ("failed", "inputs_changed")]
    stray = ada.post("/api/approvals/decisions", json={**body, "ids": ids[:1]})
    assert (stray.status_code, list(stray.json()["errors"])) == (422, ["input_hashes"])


SENSELESS = [
    ({}, "decision"),
    ({"decision": "maybe"}, "decision"),
    ({"decision": "modify"}, "modifications"),
    ({"decision": "modify", "modifications": []}, "modifications"),
    ({"decision": "approve", "modifications": {"a": 1}}, "modifications"),
    ({"decision": "modify", "modifications": {"a": "\u0000"}}, "modifications.a"),
    ({"decision": "approve", "reason": "x" * 1_001}, "reason"),
    ({"decision": "approve", "skip": True}, "skip"),
]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_decision_that_says_nothing_sensible_is_refused(horarium: TestService) -> None:
    asked = waiting(horarium)
    for body, field in SENSELESS:
        answer = door(horarium, "ada").post(f"/api/approvals/{asked['approval_id']}/decision", json=body)
        assert refused(answer) == (422, "validation_failed"), (body, field)
        assert list(answer.json()["errors"]) == [field], (body, field)


@pytest.mark.both_databases
def test_the_inbox_is_read_in_pages_and_by_gate(horarium: TestService) -> None:
    asked = [waiting(horarium, f"s{n}", approval_policy={**POLICY, "gates": [f"g{n}"]}) for n in range(3)]
    http, found, token = horarium.http(), [], None
    while True:
        page = http.get("/api/approvals", params={"page_size": 2, **({"next_page_token": token} if token else {})})
        found += [each["approval_id"] for each in page.json()["approvals"]]
        token = page.json()["next_page_token"]
        if token is None:
            break
    assert found == [each["approval_id"] for each in asked]
    assert [each["schedule_id"] for each in inbox(http, gate="g1")] == ["s1"]
    assert inbox(http, gate='g"1') == inbox(http, status="approved") == []
    assert len(inbox(http, status="all")) == 3
    assert http.get("/api/approvals", params={"schedule_id": "nowhere"}).status_code == 404


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_who_may_only_approve_brings_in_no_secret(horarium: TestService) -> None:
    call = {"kind": "http", "url": "https://example.com/", "input": {"n": 1}}
    asked = waiting(horarium, action=call)
    more = {"key": {"$secret": "erp"}}
    said = decide(door(horarium, "ada"), asked, "modify", modifications=more)
    assert (said.status_code, said.json()["reason"]) == (403, "forbidden")
    assert decide(door(horarium, "eve", "owner"), asked, "modify", modifications=more).status_code == 200


def test_a_request_tells_the_caller_whether_a_decision_would_be_accepted(horarium: TestService) -> None:
    asked = waiting(horarium)
    callers = {
        "author": (door(horarium, str(horarium.caller.principal), "admin"), (False, "requester_may_not_decide")),
        "viewer": (door(horarium, "vera", "viewer"), (False, "not_an_approver")),
        "operator": (door(horarium, "olga"), (True, None)),
    }
    for http, expected in callers.values():
        found = http.get(f"/api/approvals/{asked['approval_id']}").json()
        [listed] = inbox(http)
        for each in (found, listed):
            assert (each["may_decide"], each.get("refusal")) == expected
        answer = decide(http, asked, input_hash="not-that-of-the-inputs")  # refused for that alone, or before
        assert answer.json()["reason"] == (expected[1] or "inputs_changed")
        assert (answer.json()["message"] == found.get("refusal_message")) is not found["may_decide"]
    assert decide(door(horarium, "otto"), asked).json()["refusal"] == "already_decided"
