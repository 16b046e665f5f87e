"""Whose word holds for a run, field by field, and who said it."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.effective_policies import (
    Effective,
    PolicyOrigin,
    StatedPolicies,
    effective_text,
    merge_policies,
    read_effective,
)
from horarium.core.policy.approval import UNASKED, ApprovalMode, ApprovalPolicy, FailureMode, FailurePolicy, RetryPolicy
from horarium.core.policy.limits import RunLimits

SCHEDULE, ASSIGNMENT, AGENT, WORKFLOW = (
    PolicyOrigin.SCHEDULE,
    PolicyOrigin.ASSIGNMENT,
    PolicyOrigin.AGENT,
    PolicyOrigin.WORKFLOW,
)
HALT, FALLBACK = FailurePolicy(FailureMode.HALT), FailurePolicy(FailureMode.FALLBACK, "second")
NOTHING = StatedPolicies(SCHEDULE, ApprovalPolicy(), UNASKED, FailurePolicy(), RunLimits())


def asks(
    origin: PolicyOrigin, requires: bool | None = None, mode: ApprovalMode | None = None, **more: Any
) -> StatedPolicies:
    return StatedPolicies(origin, ApprovalPolicy(requires, mode, **more))


@pytest.mark.parametrize(
    ("said", "field", "value", "origin"),
    [
        ([NOTHING], "requires_approval", True, None),
        ([NOTHING], "mode", ApprovalMode.SENSITIVE_ACTIONS, None),
        ([asks(SCHEDULE, False)], "requires_approval", False, SCHEDULE),
        ([asks(SCHEDULE, False), asks(AGENT, True)], "requires_approval", True, AGENT),
        ([asks(SCHEDULE, False), asks(ASSIGNMENT, True), asks(AGENT, True)], "requires_approval", True, ASSIGNMENT),
        ([asks(SCHEDULE, True), asks(AGENT, False)], "requires_approval", True, SCHEDULE),
        ([asks(SCHEDULE), asks(ASSIGNMENT, False), asks(WORKFLOW, True)], "requires_approval", True, WORKFLOW),
        ([asks(SCHEDULE), asks(ASSIGNMENT, False), asks(AGENT, False)], "requires_approval", False, ASSIGNMENT),
        (
            [asks(SCHEDULE, mode=ApprovalMode.ON_BLOCK), asks(AGENT, mode=ApprovalMode.EVERY_NODE)],
            "mode",
            ApprovalMode.ON_BLOCK,
            SCHEDULE,
        ),
        (
            [asks(SCHEDULE, mode=ApprovalMode.ON_BLOCK), asks(WORKFLOW, mode=ApprovalMode.EVERY_NODE)],
            "mode",
            ApprovalMode.EVERY_NODE,
            WORKFLOW,
        ),
        (
            [asks(SCHEDULE, mode=ApprovalMode.EVERY_NODE), asks(WORKFLOW, mode=ApprovalMode.ON_BLOCK)],
            "mode",
            ApprovalMode.EVERY_NODE,
            SCHEDULE,
        ),
        (
            [asks(SCHEDULE, gates=frozenset({"spend"})), asks(AGENT, gates=frozenset({"publish"}))],
            "gates",
            frozenset({"spend", "publish"}),
            SCHEDULE,
        ),
        (
            [asks(SCHEDULE), asks(ASSIGNMENT, expires_after_seconds=60), asks(AGENT, expires_after_seconds=90)],
            "expires_after_seconds",
            60,
            ASSIGNMENT,
        ),
    ],
)
def test_approval_is_taken_field_by_field(
    said: list[StatedPolicies], field: str, value: object, origin: PolicyOrigin | None
) -> None:
    merged = merge_policies(said, has_assignee=True)
    assert getattr(merged.approval, field) == value
    assert merged.origins.get(f"approval_policy.{field}") == origin


def test_without_an_assignee_nothing_waits_by_itself() -> None:
    assert merge_policies([NOTHING], has_assignee=False).approval == ApprovalPolicy(requires_approval=False)


@pytest.mark.parametrize(
    ("said", "retry", "failure", "origins"),
    [
        ([NOTHING], UNASKED, FailurePolicy(), {}),
        (
            [
                NOTHING,
                StatedPolicies(ASSIGNMENT, retry=RetryPolicy(4)),
                StatedPolicies(AGENT, retry=RetryPolicy(5), failure=HALT),
            ],
            RetryPolicy(4),
            HALT,
            {"retry_policy": ASSIGNMENT, "failure_policy": AGENT},
        ),
        (
            [
                StatedPolicies(SCHEDULE, retry=RetryPolicy(0), failure=FALLBACK),
                StatedPolicies(AGENT, retry=RetryPolicy(5), failure=HALT),
            ],
            RetryPolicy(0),
            FALLBACK,
            {"retry_policy": SCHEDULE, "failure_policy": SCHEDULE},
        ),
    ],
    ids=["defaults", "those who come later", "the schedule first"],
)
def test_the_first_whole_policy_holds(
    said: list[StatedPolicies], retry: RetryPolicy, failure: FailurePolicy, origins: dict[str, PolicyOrigin]
) -> None:
    merged = merge_policies(said, has_assignee=False)
    assert (merged.retry, merged.failure) == (retry, failure)
    assert {name: said for name, said in merged.origins.items() if "." not in name} == origins


def test_of_limits_the_strictest_of_all_hold() -> None:
    said = [
        StatedPolicies(SCHEDULE, limits=RunLimits(cost=5, tokens=100, allow_tools=("search", "mail"))),
        StatedPolicies(AGENT, limits=RunLimits(cost=3, runtime_seconds=60, allow_tools=("search",))),
    ]
    merged = merge_policies(said, has_assignee=True, caps=RunLimits(tokens=50, tool_calls=7))
    assert merged.limits == RunLimits(60, 3, 50, 7, ("search",))
    told = {name: origin for name, origin in merged.origins.items() if name.startswith("limits.")}
    assert told == {"limits.cost": AGENT, "limits.runtime_seconds": AGENT, "limits.allow_tools": AGENT}
    assert read_effective(effective_text(merged)) == merged


def test_what_is_put_together_of_nothing_is_what_an_effective_bundle_begins_with() -> None:
    merged = merge_policies([NOTHING], has_assignee=False)
    assert merged == Effective(ApprovalPolicy(requires_approval=False))
