"""Whose policies hold for a step: those of its run, and more where another agent works at it or its workflow asks."""

from __future__ import annotations

from typing import Any

import pytest
from engine.workflows import node

from horarium.client.client import Client
from horarium.core.lifecycle.outcome import Finished, Outcome, RunFailed
from horarium.launchers.launcher import LaunchRequest
from horarium.testing import TestService


@pytest.fixture
def answer() -> Finished:
    return Finished({"done": True})


def states(horarium: TestService, run_id: str) -> dict[str, str]:
    return {step.node_id: step.state for step in horarium.client().get_run(run_id).steps or ()}


def somebody_else(horarium: TestService) -> Client:
    """Whoever asked for a run may not decide about it."""
    token = horarium.client().issue_token("decider", "operator", subject="bob")
    return horarium.client(token=token.secret)


def put(horarium: TestService, workflow_id: str, *nodes: dict[str, Any], **fields: Any) -> None:
    horarium.client().put_workflow(workflow_id, {"nodes": list(nodes), **fields})


def test_a_step_waits_where_its_own_agent_wants_it_to(horarium: TestService) -> None:
    client = horarium.client()
    client.create_agent(
        {"id": "careful", "url": "http://agent.test/", "policies": {"approval_policy": {"gates": ["tweet"]}}}
    )
    assigned = {"assignee_type": "agent", "assignee_id": "careful", "gates": ["tweet"]}
    put(horarium, "w", node("plain", gates=["tweet"]), node("send", "plain", **assigned), node("end", "send"))
    started = client.run_workflow("w")
    horarium.settle()
    assert states(horarium, started.run_id) == {"plain": "succeeded", "send": "awaiting_approval"}
    [question] = client.list_approvals().items
    assert (question.node_id, question.gates, question.run_id != started.run_id) == ("send", ("tweet",), True)
    somebody_else(horarium).decide_approval(question.approval_id, "approve")
    horarium.settle()
    assert states(horarium, started.run_id) == dict.fromkeys(("plain", "send", "end"), "succeeded")
    assert client.get_run(started.run_id).state == "succeeded"
    assert horarium.verify() == []


def test_what_a_workflow_asks_of_every_start_holds_inside_another(horarium: TestService) -> None:
    client = horarium.client()
    put(horarium, "inner", node("act"), approval_policy={"requires_approval": True})
    put(horarium, "outer", node("first"), node("sub", "first", action={"kind": "workflow", "workflow_id": "inner"}))
    started = client.run_workflow("outer")
    horarium.settle()
    assert states(horarium, started.run_id) == {"first": "succeeded", "sub": "awaiting_approval"}
    [question] = client.list_approvals().items
    somebody_else(horarium).decide_approval(question.approval_id, "approve")
    horarium.settle()
    assert client.get_run(started.run_id).state == "succeeded"
    assert [each.action.target["url"] for each in horarium.launcher.deliveries][-1] == "http://target.test/act"


def test_a_refusal_fails_the_step_and_nobody_takes_it_over(horarium: TestService) -> None:
    client = horarium.client()
    put(horarium, "w", node("act", gates=["tweet"]), node("end", "act"), approval_policy={"gates": ["tweet"]})
    started = client.run_workflow("w")
    horarium.settle()
    [question] = client.list_approvals().items
    somebody_else(horarium).decide_approval(question.approval_id, "reject", reason="not today")
    horarium.settle()
    run = client.get_run(started.run_id)
    assert (run.state, run.cause) == ("failed", "step_failed")
    assert states(horarium, started.run_id) == {"act": "rejected", "end": "skipped"}
    assert horarium.launcher.deliveries == []


def _fails_at_first(request: LaunchRequest) -> Outcome:
    return Finished() if request.key.endswith(":fallback") else RunFailed("no", "bad_input")


@pytest.mark.parametrize("answer", [_fails_at_first])
@pytest.mark.parametrize("spare", ["second", "night"])
def test_who_takes_over_may_be_an_agent_or_a_team_whoever_worked_before(horarium: TestService, spare: str) -> None:
    client = horarium.client()
    for name in ("first", "second"):
        client.create_agent({"id": name, "url": "http://agent.test/"})
    client.create_team({"team_id": "desk", "members": ["first"]})
    client.create_team({"team_id": "night", "members": ["second"]})
    put(horarium, "w", node("act"))
    client.create_schedule(
        schedule_id="s",
        spec={"cron_expressions": ["0 0 1 1 *"]},
        action={"kind": "workflow", "workflow_id": "w"},
        assignee_type="team",
        assignee_id="desk",
        approval_policy={"requires_approval": False},
        failure_policy={"mode": "fallback", "fallback_assignee_id": spare},
    )
    client.trigger_schedule("s")
    horarium.settle()
    steps = client.list_runs(include="steps").items
    [after] = [each for each in steps if each.node_id == "act" and each.state == "succeeded"]
    assert after.assignee is not None
    expected = {"second": ("agent", None), "night": ("team", "second")}[spare]
    assert (after.assignee.type, after.assignee.member, after.assignee.id) == (*expected, spare)
