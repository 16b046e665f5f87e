"""The terms under which a run is done."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from horarium.core.decision.run_policies import Terms, assignee_document, terms_of
from horarium.core.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.core.policy.limits import RunLimits

NOBODY: dict[str, Any] = {"has_assignee": False}
SOMEBODY: dict[str, Any] = {"has_assignee": True}
SENSITIVE = ApprovalMode.SENSITIVE_ACTIONS


@pytest.mark.parametrize(
    ("approval", "limits", "given", "expected"),
    [
        (ApprovalPolicy(), RunLimits(), NOBODY, Terms()),
        (ApprovalPolicy(), RunLimits(), SOMEBODY, Terms(SENSITIVE)),
        (ApprovalPolicy(mode=ApprovalMode.ON_BLOCK), RunLimits(), SOMEBODY, Terms(ApprovalMode.ON_BLOCK)),
        (
            ApprovalPolicy(gates=frozenset({"spend"})),
            RunLimits(),
            {**NOBODY, "node_gates": ("publish", "spend")},
            Terms(gates=("publish", "spend")),
        ),
        (
            ApprovalPolicy(),
            RunLimits(cost=Decimal("0.5"), runtime_seconds=60, allow_tools=()),
            NOBODY,
            Terms(limits={"runtime_seconds": 60, "cost": 0.5}, allow_tools=()),
        ),
    ],
    ids=["nothing", "assigned", "a mode of its own", "gates of policy and node", "limits and no tools"],
)
def test_terms(approval: ApprovalPolicy, limits: RunLimits, given: dict[str, Any], expected: Terms) -> None:
    assert terms_of(approval, limits, None, **given) == expected


def test_who_works_is_told_with_the_member_of_a_team() -> None:
    assert assignee_document(None, None, None) is None
    assert assignee_document(None, "a", None) == {"type": "agent", "id": "a"}
    assert assignee_document("team", "t", "a") == {"type": "team", "id": "t", "member": "a"}
