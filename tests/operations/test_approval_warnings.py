"""Warnings of writes about approvals: settings without effect, and approvals that nobody could give."""

from __future__ import annotations

from typing import Any

import pytest
from operations.desks import ADMIN, ALICE, BOB, Office, document

from horarium.features.agents import service as agent_service
from horarium.features.bundles.document import read_bundle
from horarium.features.bundles.service import apply_bundle
from horarium.features.schedules import revisions
from horarium.features.schedules import service as schedule_service
from horarium.features.tenants import service as tenant_service
from horarium.features.workflows import service as workflow_service

ASKING: dict[str, Any] = {"approval_policy": {"requires_approval": True}}
NODE = {"id": "a", "action": {"workflow_type": "x"}}


def about(warnings: tuple[str, ...], field: str) -> list[str]:
    return [each for each in warnings if each.startswith(f"approval_policy.{field}:")]


def give(office: Office, subject: str, role: str = "operator", **values: Any) -> None:
    tenant_service.issue_token(
        office.resources, ADMIN, name=f"token of {subject}", role=role, subject=subject, **values
    )


# ── settings for steps ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["sensitive_actions", "on_block", "every_node"])
def test_a_mode_without_steps_is_a_warning_of_each_write(office: Office, mode: str) -> None:
    policy: dict[str, Any] = {"approval_policy": {"mode": mode, "allow_requester": True}}
    [said] = about(office.create(**policy).warnings, "mode")
    assert f"{mode} applies only to steps" in said
    office.create("other")
    assert about(schedule_service.update(office.resources, ADMIN, "other", policy).warnings, "mode") == [said]
    assert about(revisions.draft(office.resources, ADMIN, document("new", **policy)).warnings, "mode") == [said]
    assert schedule_service.update(office.resources, ADMIN, "other", {"note": "read before"}).warnings == ()


def test_gates_without_steps_are_a_warning_of_the_plan_of_an_apply(office: Office) -> None:
    wanted = document("new", approval_policy={"gates": ["publish"]})
    [step] = apply_bundle(office.resources, ADMIN, read_bundle("b", {"schedules": [wanted]}), dry_run=True)
    assert len(about(step.warnings, "gates")) == 1


def test_a_stored_workflow_has_steps(office: Office) -> None:
    workflow_service.put(office.resources, ADMIN, "report", {"nodes": [NODE]})
    policy = {"mode": "every_node", "gates": ["publish"], "allow_requester": True}
    office.create(approval_policy=policy)
    assert about(office.create("other", approval_policy=policy).warnings, "mode") == []
    office.tick(60)
    assert office.states() == ["ready"]  # its steps await approval, not the run


def test_every_node_holds_the_one_call_of_a_schedule_without_steps(office: Office) -> None:
    office.create(approval_policy={"mode": "every_node", "requires_approval": False})
    office.create("free", approval_policy={"mode": "on_block"})
    office.tick(60)
    assert (office.states(), office.states("free")) == (["awaiting_approval"], ["ready"])


def test_every_node_of_an_agent_holds_its_prompts(office: Office) -> None:
    policies = {"approval_policy": {"mode": "every_node"}}
    agent_service.put(office.resources, ADMIN, "ada", {"policies": policies})
    prompt: dict[str, Any] = {
        "action": {"prompt": "x"},
        "assignee_id": "ada",
        "approval_policy": {"requires_approval": False},
    }
    office.create(**prompt)
    agent_service.put(office.resources, ADMIN, "bea", {})
    office.create("later", **{**prompt, "assignee_id": "bea"})
    agent_service.put(office.resources, ADMIN, "bea", {"policies": policies})  # decided when the run is created
    office.tick(60)
    assert (office.states(), office.states("later")) == (["awaiting_approval"], ["awaiting_approval"])


# ── approvals that nobody could give ─────────────────────────────────────────────────────────────────


def test_a_sole_approver_is_told_before_the_first_run(office: Office) -> None:
    [said] = about(office.create(caller=ALICE, **ASKING).warnings, "allow_requester")
    assert "alice may not approve runs of their own schedule; set allow_requester (--allow-requester)" in said
    draft = revisions.draft(office.resources, ALICE, document("new", **ASKING))
    assert about(draft.warnings, "allow_requester") == [said]
    assert about(office.create("free", ALICE).warnings, "allow_requester") == []
    edited = schedule_service.update(office.resources, ALICE, "free", ASKING)
    assert about(edited.warnings, "allow_requester") == [said]
    able = {"approval_policy": {"requires_approval": True, "allow_requester": True}}
    assert schedule_service.update(office.resources, ALICE, "free", able).warnings == ()


def test_another_live_approver_is_enough(office: Office) -> None:
    now = office.clock.now()
    give(office, "alice")  # another token of the same principal
    give(office, "vera", role="viewer")
    give(office, "worker", role="agent")
    give(office, "late", expires_at=now + 1_000_000)
    office.clock.move(2)
    assert len(about(office.create("a", ALICE, **ASKING).warnings, "allow_requester")) == 1
    give(office, "olga")
    assert office.create("b", ALICE, **ASKING).warnings == ()


def test_the_number_and_the_list_of_approvers_count(office: Office) -> None:
    give(office, "olga")

    def said(**policy: Any) -> list[str]:
        name = f"s{len(policy)}{office.clock.now()}"
        office.clock.move(1)
        done = office.create(name, ALICE, approval_policy={"requires_approval": True, **policy})
        return about(done.warnings, "allow_requester") + about(done.warnings, "approvals_required")

    assert "2 other approvers" in said(approvals_required=2)[0]
    assert len(said(approvers=["role:admin"])) == 1
    assert said(approvers=["role:operator"]) == []
    assert said(approvers=["somebody-with-a-certificate"]) == []
    assert len(said(approvers=["alice"])) == 1
    assert said(approvers=["alice"], allow_requester=True) == []
    assert "is 3, but only 2 users may approve" in said(approvals_required=3, allow_requester=True)[0]


def test_the_owner_of_a_schedule_may_not_approve_what_an_admin_edits(office: Office) -> None:
    give(office, "alice", role="owner")
    office.create(caller=ALICE)
    [said] = about(schedule_service.update(office.resources, ADMIN, "nightly", ASKING).warnings, "allow_requester")
    assert "alice and root" in said
    give(office, "bob", role="owner")
    assert about(office.create("other", BOB, **ASKING).warnings, "allow_requester") == []


def test_steps_that_await_approval_are_told_as_runs_are(office: Office) -> None:
    workflow_service.put(office.resources, ALICE, "report", {"nodes": [{**NODE, "gates": ["publish"]}]})
    gated: dict[str, Any] = {"approval_policy": {"gates": ["publish"]}}
    assert len(about(office.create(caller=ALICE, **gated).warnings, "allow_requester")) == 1
    assert office.create("free", ALICE, approval_policy={"gates": ["spend"]}).warnings == ()


def test_the_policy_of_a_stored_workflow_counts(office: Office) -> None:
    workflow_service.put(office.resources, ALICE, "report", {"nodes": [NODE], **ASKING})
    assert len(about(office.create(caller=ALICE).warnings, "allow_requester")) == 1
    able = {"approval_policy": {"requires_approval": True, "allow_requester": True}}
    workflow_service.put(office.resources, ALICE, "report", {"nodes": [NODE], **able})
    assert office.create("other", ALICE).warnings == ()


@pytest.mark.parametrize("setting", [{"jwt_secret": "k" * 32}, {"token": "t" * 32}], ids=["signed", "fixed"])
def test_principals_without_a_stored_token_count(office: Office, setting: dict[str, str]) -> None:
    other = Office.on(office.resources.database, office.clock, **setting)
    assert other.create(caller=ALICE, **ASKING).warnings == ()
