"""What an agent stops to ask is shown to people, and what they answer is agreed to with the inputs of the run."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api.fed import fed
from api.test_approvals import decide, door, events, inbox, refused, state

from horarium.core.lifecycle.outcome import Asked, Finished, Outcome
from horarium.core.policy.approval import input_hash
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import Step
from horarium.testing import TestService

QUESTION = "Which quarter? " + "x" * 600
INPUTS = {"rows": 5}


@pytest.fixture
def answer() -> Step:
    """An agent that asks before it does anything, of the kind that the prompt names."""

    def speak(request: LaunchRequest) -> Outcome:
        gate = request.action.target["prompt"]
        done = Finished({"text": f"done, with {request.answer}"})
        return done if request.reference else Asked(gate, QUESTION, "task-1")

    return speak


def asked(horarium: TestService, gate: str = "agent_input", **policy: Any) -> dict[str, Any]:
    """The question of an agent to which a schedule's prompt went, by hand of the one who wrote it."""
    http = horarium.http()
    http.put("/api/agents/a1", json={"url": "http://agent.test"})
    document = {
        "schedule_id": "brief",
        "cron_expr": "0 9 * * *",
        "action": {"kind": "prompt", "prompt": gate, "input": INPUTS},
        "assignee_id": "a1",
        "approval_policy": {"requires_approval": False, **policy},
    }
    assert http.post("/api/schedules", json=document).status_code == 201
    assert http.post("/api/schedules/brief/trigger").status_code == 200
    horarium.settle()
    [found] = inbox(http)
    return found


def told(http: httpx.Client, found: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = http.get(f"/api/approvals/{found['approval_id']}").json()
    return whole


def test_whoever_asked_for_the_run_answers_what_the_agent_wants_to_know(horarium: TestService) -> None:
    http, found = horarium.http(), asked(horarium)
    assert (found["question"], found.get("reply"), found["gates"]) == (QUESTION, None, ["agent_input"])
    assert http.get(f"/api/runs/{found['run_id']}").json()["approval"]["question"] == QUESTION[:500]
    [said] = [payload for kind, payload in events(horarium, found) if kind == "run.approval_requested"]
    assert said["question"] == QUESTION[:500]
    assert [each["payload"]["question"] for each in fed(http, "approval_requested")] == [QUESTION[:500]]

    plain = decide(http, found)
    assert (plain.status_code, [*plain.json()["errors"]]) == (422, ["decision"])
    done = decide(http, found, "modify", modifications={"reply": "the third"}, input_hash=found["input_hash"]).json()
    assert (done["status"], done["reply"], done["inputs"]) == ("modified", "the third", INPUTS)
    assert (done.get("proposed_inputs"), done["input_hash"] == input_hash(INPUTS)) == (None, False)
    horarium.settle()
    assert state(horarium, found) == "succeeded"
    first, second = horarium.launcher.deliveries
    assert (second.inputs, second.reference, second.key) == (INPUTS, "task-1", f"{first.key}:gate1")
    assert (first.answer, second.answer) == (None, "the third")
    assert "the third" not in str(events(horarium, found)) + str(fed(http, "approval_decided"))
    assert horarium.verify() == []


REPLIES: dict[str, Any] = {
    "not a text": {"reply": 5},
    "blank": {"reply": "  "},
    "too long": {"reply": "x" * 100_001},
    "what no database holds": {"reply": "\x00"},
    "more than a reply": {"reply": "yes", "rows": 1},
    "inputs": {"rows": 1},
}


def test_what_is_no_answer_is_refused(horarium: TestService) -> None:
    found = asked(horarium)
    for name, modifications in REPLIES.items():
        answer = decide(horarium.http(), found, "modify", modifications=modifications)
        assert answer.status_code == 422, name
        assert all(path.startswith("modifications") for path in answer.json()["errors"]), name
    assert state(horarium, found) == "awaiting_approval"


@pytest.mark.both_databases
def test_leave_is_given_by_another_and_what_it_needs_is_not_shown(horarium: TestService) -> None:
    found, ada, bob = asked(horarium, "agent_auth", approvals_required=2), door(horarium, "ada"), door(horarium, "bob")
    assert refused(decide(horarium.http(), found)) == (403, "requester_may_not_decide")
    first = decide(ada, found).json()
    assert (first["status"], [vote["by"] for vote in first["votes"]]) == ("pending", ["ada"])
    # Another text is another vote; whoever agrees to what is proposed needs no text.
    second = decide(bob, found, "modify", modifications={"reply": "hunter2, and more"}).json()
    assert (second["status"], second["reply"], [vote["by"] for vote in second["votes"]]) == ("pending", "***", ["bob"])
    assert refused(decide(ada, found, input_hash=first["input_hash"])) == (412, "inputs_changed")
    done = decide(ada, found, input_hash=second["input_hash"]).json()
    assert (done["status"], told(ada, found)["reply"]) == ("modified", "***")
    assert "hunter2, and more" not in str(told(ada, found))
    horarium.settle()
    assert (state(horarium, found), horarium.verify()) == ("succeeded", [])
    assert horarium.launcher.deliveries[-1].answer == "hunter2, and more"
    assert ada.get(f"/api/runs/{found['run_id']}").json()["result"] == {"text": "done, with ***"}


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_plain_yes_tells_an_agent_that_it_may_go_on(horarium: TestService) -> None:
    found = asked(horarium, "agent_auth")
    assert decide(door(horarium, "ada"), found).json()["status"] == "approved"
    horarium.settle()
    assert (horarium.launcher.deliveries[-1].answer, horarium.verify()) == ("approved", [])


@pytest.mark.both_databases
def test_a_no_to_an_agent_ends_the_run(horarium: TestService) -> None:
    found = asked(horarium)
    assert decide(horarium.http(), found, "reject").json()["status"] == "rejected"
    assert state(horarium, found) == "rejected"
    asked_again = horarium.http().post(
        "/api/approvals/standing", json={"schedule_id": "brief", "gates": ["agent_input"]}
    )
    assert (asked_again.status_code, [*asked_again.json()["errors"]]) == (422, ["gates"])
