"""Under which terms a run is done: what it may use, and what needs a yes on the way. Every target is told them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from horarium.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.policy.limits import RunLimits
from horarium.schedule.json_limits import Json
from horarium.schedule.told_policies import told

_TOOLS = "allow_tools"


@dataclass(frozen=True, slots=True)
class Terms:
    """`gates` need a yes: those that the policy names, and those that the node of a step declares.

    `approved_gates` have one for this run already: whoever comes to one of them goes on. `allow_tools` None = any;
    `limits` has those that there are.
    """

    approval_mode: ApprovalMode | None = None
    gates: tuple[str, ...] = ()
    approved_gates: tuple[str, ...] = ()
    limits: Mapping[str, Json] = field(default_factory=dict)
    allow_tools: tuple[str, ...] | None = None
    global_model_id: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "approval_mode": self.approval_mode,
            "gates": list(self.gates),
            "approved_gates": list(self.approved_gates),
            "limits": dict(self.limits),
            _TOOLS: None if self.allow_tools is None else list(self.allow_tools),
            "global_model_id": self.global_model_id,
        }


@lru_cache(maxsize=4_096)
def terms_of(
    approval: ApprovalPolicy,
    limits: RunLimits,
    global_model_id: str | None,
    *,
    has_assignee: bool,
    node_gates: tuple[str, ...] = (),
    approved_gates: tuple[str, ...] = (),
) -> Terms:
    """Where somebody is assigned, sensitive actions need a yes unless the policy says otherwise."""
    usual = ApprovalMode.SENSITIVE_ACTIONS if has_assignee else None
    given = {name: value for name, value in told(limits).items() if value is not None and name != _TOOLS}
    return Terms(
        approval_mode=usual if approval.mode is None else approval.mode,
        gates=tuple(sorted({*approval.gates, *node_gates})),
        approved_gates=approved_gates,
        limits=given,
        allow_tools=limits.allow_tools,
        global_model_id=global_model_id,
    )


def assignee_document(assignee_type: str | None, assignee: str | None, member: str | None) -> dict[str, str] | None:
    """As targets are told who works; `member` is the agent of a team whose turn it was."""
    if assignee is None:
        return None
    found = {"type": assignee_type or "agent", "id": assignee}
    return found if member is None else {**found, "member": member}
