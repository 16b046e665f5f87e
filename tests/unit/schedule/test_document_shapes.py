"""Changes of agents, teams and assignments in part, and what a replacement resets."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.policy.queue import PolicyError
from horarium.features.agents.definition import AGENT, ASSIGNMENT, SHAPES, TEAM, DocumentShape

WRITER = {
    "id": "writer",
    "name": "The writer",
    "url": "https://agents.example.com/writer",
    "capacity": 3,
    "native_scheduler": True,
    "allowed_hosts": ["cdn.example.com"],
    "policies": {
        "approval_policy": {"gates": ["publish"], "requires_approval": True},
        "retry_policy": {"max_retries": 2},
        "budget": {"max_daily_runs": 5, "spending_limit_credits": 1.5},
    },
}
DESK = {"team_id": "desk", "members": ["ada", "bob"], "strategy": "round_robin", "name": "Desk"}
BRIEF = {
    "assignment_id": "brief",
    "workflow_id": "w",
    "assignee_type": "team",
    "assignee_id": "desk",
    "queue_policy": {"mode": "serial", "onMissed": "skip"},
    "retry_policy": {"max_retries": 0},
}
CASES: list[tuple[DocumentShape[Any], dict[str, Any]]] = [(AGENT, WRITER), (TEAM, DESK), (ASSIGNMENT, BRIEF)]


def leaf(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


@pytest.mark.parametrize(("shape", "document"), CASES, ids=list(SHAPES))
def test_a_change_of_one_field_leaves_every_other(shape: DocumentShape[Any], document: dict[str, Any]) -> None:
    before = shape.parse(document)
    assert shape.patched(before, {}) == before
    for name, value in shape.document(before).items():
        assert shape.patched(before, {name: value}) == before


@pytest.mark.parametrize(
    ("shape", "document", "changes", "path", "found"),
    [
        (AGENT, WRITER, {"capacity": 7}, "capacity", 7),
        (AGENT, WRITER, {"capacity": None}, "capacity", None),
        (AGENT, WRITER, {"nativeScheduler": False}, "native_scheduler", None),
        (AGENT, WRITER, {"policies": {"budget": {"maxDailyBattles": 9}}}, "policies.budget.max_daily_runs", 9),
        (AGENT, WRITER, {"policies": {"approvalPolicy": None}}, "policies.approval_policy", None),
        (AGENT, WRITER, {"policies": {"approval_policy": {"require_approval": False}}},
         "policies.approval_policy.requires_approval", False),
        (TEAM, DESK, {"budget": {"max_daily_runs": 4}}, "policies.budget.max_daily_runs", 4),
        (TEAM, DESK, {"members": ["bob"]}, "members", ["bob"]),
        (ASSIGNMENT, BRIEF, {"queue_policy": {"overlapPolicy": "parallel"}}, "queue_policy.mode", "allow_all"),
    ],
)  # fmt: skip
def test_a_change_is_read_under_every_name_that_a_document_may_use(
    shape: DocumentShape[Any], document: dict[str, Any], changes: dict[str, Any], path: str, found: object
) -> None:
    before = shape.parse(document)
    after = shape.document(shape.patched(before, changes))
    assert leaf(after, path) == found
    kept = {name: value for name, value in shape.document(before).items() if name != path.split(".")[0]}
    assert {name: after[name] for name in kept} == kept


@pytest.mark.parametrize(
    ("shape", "document", "changes", "field"),
    [
        (AGENT, WRITER, {"nonsense": None}, "nonsense"),
        (AGENT, WRITER, {"url": "a", "URL": "b"}, "url"),
        (TEAM, DESK, {"members": None}, "members"),
        (TEAM, DESK, {"budget": {}, "policies": {"budget": {}}}, "budget"),
        (TEAM, DESK, {"lead": "eve"}, "lead"),
        (ASSIGNMENT, BRIEF, {"workflow_id": None}, "workflow_id"),
    ],
)
def test_a_change_that_makes_no_document_is_refused(
    shape: DocumentShape[Any], document: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(PolicyError) as wrong:
        shape.patched(shape.parse(document), changes)
    assert wrong.value.field == field


@pytest.mark.parametrize(("shape", "document"), CASES, ids=list(SHAPES))
def test_a_replacement_resets_each_field_that_it_does_not_name(
    shape: DocumentShape[Any], document: dict[str, Any]
) -> None:
    required = ("assignee_id", "assignee_type", "workflow_id", "members", shape.id_name)
    assert shape.resets(document, document) == []
    for name in document.keys() - set(required):
        less = {key: value for key, value in document.items() if key != name}
        assert {each.path.split(".")[0] for each in shape.resets(document, less)} == {name}
        assert shape.resets(document, {**less, name: None}) == [], "what is named is meant"


def test_members_of_policies_and_defaults_that_stay_are_told_apart() -> None:
    less = {**WRITER, "token": "t", "policies": {"retry_policy": {"max_retries": 2}, "budget": {"max_daily_runs": 1}}}
    resets = AGENT.resets(WRITER, less)
    assert [each.path for each in resets] == [
        "policies.approval_policy.requires_approval",
        "policies.approval_policy.gates",
        "policies.budget.spending_limit_credits",
    ]
