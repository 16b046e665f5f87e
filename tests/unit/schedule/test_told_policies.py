"""The policies of a run as they are told."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from horarium.core.decision.run_policies import policies_of
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import Action, Definition, SpecText
from horarium.core.document.effective_policies import Effective, PolicyOrigin, effective_text
from horarium.core.policy.approval import ApprovalMode, ApprovalPolicy, FailureMode, FailurePolicy, RetryPolicy
from horarium.core.policy.limits import RunLimits
from horarium.core.policy.queue import Catchup, CatchupPolicy, OverlapPolicy, QueuePolicy

AGENT = Assignee(AssigneeType.AGENT, "writer")


def definition(**parts: Any) -> Definition:
    return Definition("s", SpecText(), Action("http"), **parts)


@pytest.mark.parametrize(
    ("parts", "approval", "origins"),
    [
        ({}, {"requires_approval": False, "mode": None, "gates": []}, {}),
        ({"assignee": AGENT}, {"requires_approval": True, "mode": "sensitive_actions", "gates": []}, {}),
        (
            {"approval": ApprovalPolicy(requires_approval=False, gates=frozenset({"spend", "publish"}))},
            {"requires_approval": False, "mode": None, "gates": ["publish", "spend"]},
            {"approval_policy.requires_approval": "schedule", "approval_policy.gates": "schedule"},
        ),
        ({"retry": RetryPolicy(max_retries=3)}, {}, {"retry_policy": "schedule"}),
        ({"failure": FailurePolicy(FailureMode.HALT)}, {}, {"failure_policy": "schedule"}),
        ({"limits": RunLimits(cost=Decimal("1.5"))}, {}, {"limits.cost": "schedule"}),
    ],
    ids=["nothing", "assigned", "approval", "retry", "failure", "limits"],
)
def test_what_the_schedule_says_is_its_own_and_the_rest_a_default(
    parts: dict[str, Any], approval: dict[str, Any], origins: dict[str, str]
) -> None:
    told = policies_of(None, definition(**parts))
    assert told is not None
    assert {name: told.approval_policy[name] for name in approval} == approval
    assert {name: origin for name, origin in told.origins.items() if origin is not PolicyOrigin.DEFAULT} == origins
    assert {"retry_policy", "failure_policy", "approval_policy.mode", "limits.cost"} <= told.origins.keys()


def test_what_was_settled_at_the_birth_goes_before_the_definition() -> None:
    settled = Effective(
        ApprovalPolicy(requires_approval=True, mode=ApprovalMode.EVERY_NODE, gates=frozenset({"spend"})),
        RetryPolicy(max_retries=5),
        FailurePolicy(),
        RunLimits(cost=Decimal("0.1"), allow_tools=("search",)),
        {"approval_policy.mode": PolicyOrigin.AGENT, "limits.cost": PolicyOrigin.AGENT},
    )
    told = policies_of(effective_text(settled), definition())
    assert told is not None
    assert (told.approval_policy["mode"], told.approval_policy["gates"]) == ("every_node", ["spend"])
    assert (told.retry_policy["max_retries"], told.limits["cost"], told.limits["allow_tools"]) == (5, 0.1, ["search"])
    assert "unasked" not in told.retry_policy
    assert (told.origins["approval_policy.mode"], told.origins["retry_policy"]) == ("agent", "default")


def test_the_queue_policy_of_an_assignment_fills_the_defaults_of_the_schedule() -> None:
    text = effective_text(Effective(queue=QueuePolicy(OverlapPolicy.BUFFER_ALL, max_concurrency=2, priority=4)))
    told = policies_of(text, definition(priority=7, catchup=Catchup(CatchupPolicy.SKIP)))
    assert told is not None
    assert told.queue_policy == {
        "mode": "buffer_all",
        "max_concurrency": 2,
        "priority": 7,
        "on_missed": "skip",
        "max_backfill": None,
    }
    assert {name: origin for name, origin in told.origins.items() if name.startswith("queue_policy")} == {
        "queue_policy.mode": "assignment",
        "queue_policy.max_concurrency": "assignment",
        "queue_policy.priority": "schedule",
        "queue_policy.on_missed": "schedule",
        "queue_policy.max_backfill": "default",
    }


def test_a_run_that_no_schedule_created_has_no_queue_policy() -> None:
    told = policies_of(None, definition(), of_schedule=False)
    assert told is not None
    assert told.queue_policy is None
    assert not any(name.startswith("queue_policy") for name in told.origins)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"limits": 3}'])
def test_a_corrupt_text_is_told_as_nothing(text: str) -> None:
    assert policies_of(text, definition()) is None


def test_a_run_whose_definition_is_gone_tells_none() -> None:
    assert policies_of(None, None) is None
