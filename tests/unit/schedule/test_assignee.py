"""Assignees: agents, teams and whose turn it is, and what an assignment fixes."""

from __future__ import annotations

import pytest

from horarium.core.document.assignee import (
    MAX_MEMBERS,
    Assignee,
    AssigneeType,
    AssignmentDefinition,
    TeamDefinition,
    TeamStrategy,
    first_given,
    parse_assignee,
    parse_assignment,
    parse_team,
    resolve_agent,
)
from horarium.core.policy.approval import ApprovalPolicy, FailureMode, RetryPolicy
from horarium.core.policy.queue import PolicyError

MEMBERS = ("ada", "bob", "cyd")


@pytest.mark.parametrize(
    ("team", "agents"),
    [
        (TeamDefinition("ops", MEMBERS), ["ada", "ada", "ada", "ada"]),
        (TeamDefinition("ops", MEMBERS, lead="cyd"), ["cyd", "cyd", "cyd", "cyd"]),
        (TeamDefinition("ops", MEMBERS, strategy=TeamStrategy.ROUND_ROBIN), ["ada", "bob", "cyd", "ada"]),
        (TeamDefinition("ops", MEMBERS, lead="cyd", strategy=TeamStrategy.ROUND_ROBIN), ["ada", "bob", "cyd", "ada"]),
    ],
    ids=["the first leads", "a chosen lead", "by turns", "turns do not ask for the lead"],
)
def test_a_team_sends_the_agent_of_its_strategy(team: TeamDefinition, agents: list[str]) -> None:
    assert [resolve_agent(team, turn) for turn in range(4)] == agents


def test_every_team_strategy_sends_a_member() -> None:
    for strategy in TeamStrategy:
        assert resolve_agent(TeamDefinition("ops", MEMBERS, strategy=strategy), 10**9) in MEMBERS


@pytest.mark.parametrize(
    ("team_id", "members", "lead", "field"),
    [
        ("not an id", MEMBERS, None, "team_id"),
        ("ops", (), None, "members"),
        ("ops", tuple(f"agent-{n}" for n in range(MAX_MEMBERS + 1)), None, "members"),
        ("ops", ("ada", "a b"), None, "members"),
        ("ops", ("ada", 7), None, "members"),
        ("ops", ("ada", "ada"), None, "members"),
        ("ops", MEMBERS, "eve", "lead"),
    ],
    ids=["bad id", "nobody", "too many", "bad member", "number", "twice", "stranger leads"],
)
def test_a_team_is_valid_by_construction(team_id: str, members: tuple[str, ...], lead: str | None, field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        TeamDefinition(team_id, members, lead)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given_type", "given_id", "assignee"),
    [
        (None, None, None),
        (None, "ada", Assignee(AssigneeType.AGENT, "ada")),
        ("agent", "ada", Assignee(AssigneeType.AGENT, "ada")),
        ("Team", "ops", Assignee(AssigneeType.TEAM, "ops")),
    ],
)
def test_an_assignee_is_read_from_type_and_id(given_type: object, given_id: object, assignee: Assignee | None) -> None:
    assert parse_assignee(given_type, given_id) == assignee


@pytest.mark.parametrize(
    ("given_type", "given_id", "field"),
    [
        ("agent", None, "assignee_id"),
        ("robot", "ada", "assignee_type"),
        (1, "ada", "assignee_type"),
        ("agent", "", "assignee_id"),
        ("agent", 5, "assignee_id"),
        ("agent", "x" * 10_000, "assignee_id"),
    ],
)
def test_a_half_or_wrong_assignee_is_refused(given_type: object, given_id: object, field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_assignee(given_type, given_id)
    assert refused.value.field == field


def test_a_team_is_read_from_a_document() -> None:
    document = {"id": "ops", "members": ["ada", "bob"], "lead": "bob", "strategy": "RoundRobin"}
    assert parse_team(document) == TeamDefinition("ops", ("ada", "bob"), "bob", TeamStrategy.ROUND_ROBIN)
    assert parse_team({"teamId": "ops", "members": ["ada"]}) == TeamDefinition("ops", ("ada",))


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"members": ["ada"]}, "team_id"),
        ({"id": "ops"}, "members"),
        ({"id": "ops", "members": "ada"}, "members"),
        ({"id": "ops", "members": [["ada"]]}, "members"),
        ({"id": "ops", "members": ["ada"], "lead": 3}, "lead"),
        ({"id": "ops", "members": ["ada"], "strategy": "chaos"}, "strategy"),
        ({"id": "ops", "members": ["ada"], "colour": "red"}, "colour"),
    ],
)
def test_a_bad_team_document_names_the_field(document: dict[str, object], field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_team(document)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("document", "field"),
    [({"members": ["a"]}, "team_id"), ({"id": "t"}, "members")],
    ids=["id", "members"],
)
def test_a_missing_field_of_a_team_is_required(document: dict[str, object], field: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_team(document)
    assert (refused.value.field, str(refused.value)) == (field, f"{field}: is required")


def test_an_assignment_is_read_with_its_four_policies() -> None:
    assignment = parse_assignment(
        {
            "id": "a-1",
            "workflowId": "report",
            "assigneeType": "team",
            "assigneeId": "ops",
            "approvalPolicy": {"requiresApproval": True},
            "retryPolicy": {"maxRetries": 3},
            "failurePolicy": {"mode": "halt"},
            "queuePolicy": {"maxConcurrency": 2},
        }
    )
    assert assignment.assignee == Assignee(AssigneeType.TEAM, "ops")
    assert assignment.approval_policy == ApprovalPolicy(requires_approval=True)
    assert assignment.retry_policy == RetryPolicy(max_retries=3)
    assert assignment.failure_policy is not None
    assert assignment.failure_policy.mode is FailureMode.HALT
    assert assignment.queue_policy is not None
    assert assignment.queue_policy.max_concurrency == 2


def test_policies_that_an_assignment_does_not_give_stay_open() -> None:
    assignment = parse_assignment({"assignment_id": "a-1", "workflow_id": "report", "assignee_id": "ada"})
    assert assignment == AssignmentDefinition("a-1", "report", Assignee(AssigneeType.AGENT, "ada"))
    assert assignment.retry_policy is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"assignment_id": None}, "assignment_id"),
        ({"workflow_id": "a/b"}, "workflow_id"),
        ({"assignee_id": None}, "assignee_id"),
        ({"retry_policy": {"max_retries": -1}}, "retry_policy.max_retries"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_bad_assignment_names_the_field(change: dict[str, object], field: str) -> None:
    good: dict[str, object] = {"assignment_id": "a-1", "workflow_id": "report", "assignee_id": "ada"}
    with pytest.raises(PolicyError) as refused:
        parse_assignment(good | change)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("values", "chosen"),
    [((), None), ((None, None), None), ((None, 0, 1), 0), ((None, False, True), False), (("a", "b"), "a")],
)
def test_the_first_given_value_wins_even_if_it_is_empty(values: tuple[object, ...], chosen: object) -> None:
    assert first_given(*values) is chosen
