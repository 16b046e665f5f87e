"""How the policies of a run are put together of what several say: schedule, assignment, agent, workflow, server.

Approval is taken field by field, and can only be made stricter by those who come later: whoever asks for a yes is
heard, gates unite, the largest quorum counts. Retries and failures are whole policies, the first that is given holds.
Of limits the strictest of all hold. What the workflow says of approval is a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from horarium.policy.approval import ApprovalMode, ApprovalPolicy
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import RunLimits, merge_limits
from horarium.policy.retry import UNASKED, RetryPolicy
from horarium.schedule.effective import Effective, PolicyOrigin

_NO_LIMITS: Final = RunLimits()
_NO_APPROVAL: Final = ApprovalPolicy()
_USUAL_FAILURE: Final = FailurePolicy()
# How much waits under each; None is a policy that says nothing of it.
_STRICTER: Final = {None: 0, ApprovalMode.ON_BLOCK: 1, ApprovalMode.SENSITIVE_ACTIONS: 2, ApprovalMode.EVERY_NODE: 3}


@dataclass(frozen=True, slots=True)
class Said:
    """Policies from one origin; None, or a value that is the default anyway, sets nothing."""

    origin: PolicyOrigin
    approval: ApprovalPolicy | None = None
    retry: RetryPolicy | None = None
    failure: FailurePolicy | None = None
    limits: RunLimits | None = None


def merge_policies(said: Sequence[Said], *, has_assignee: bool, caps: RunLimits = _NO_LIMITS) -> Effective:
    """`said` in the order of precedence; `caps` are the engine's, and are nobody's word.

    `requires_approval` of the result is settled: work that somebody is assigned to waits unless it is said otherwise.
    """
    origins: dict[str, PolicyOrigin] = {}
    approval = _approval(said, origins)
    if approval.requires_approval is None:
        approval = replace(approval, requires_approval=has_assignee)
    if approval.mode is None and has_assignee:
        approval = replace(approval, mode=ApprovalMode.SENSITIVE_ACTIONS)
    retry = _first(said, "retry", "retry_policy", lambda policy: policy.unasked, origins)
    failure = _first(said, "failure", "failure_policy", lambda policy: policy == _USUAL_FAILURE, origins)
    return Effective(approval, retry or UNASKED, failure or _USUAL_FAILURE, _limits(said, caps, origins), origins)


def _approval(said: Sequence[Said], origins: dict[str, PolicyOrigin]) -> ApprovalPolicy:
    policies = [(each.origin, each.approval) for each in said if each.approval is not None]
    chosen: dict[str, Any] = {}
    for field in fields(ApprovalPolicy):
        usual = getattr(_NO_APPROVAL, field.name)
        given = [(origin, getattr(policy, field.name)) for origin, policy in policies]
        given = [(origin, value) for origin, value in given if value != usual]
        if given:
            origin, chosen[field.name] = _RULES.get(field.name, _first_given)(given)
            origins[f"approval_policy.{field.name}"] = origin
    return ApprovalPolicy(**chosen)


Given = Sequence[tuple[PolicyOrigin, Any]]


def _first_given(given: Given) -> tuple[PolicyOrigin, Any]:
    return given[0]


def _yes_is_needed(given: Given) -> tuple[PolicyOrigin, Any]:
    return next((each for each in given if each[1]), given[0])


def _nobody_says_no(given: Given) -> tuple[PolicyOrigin, Any]:
    return next((each for each in given if not each[1]), given[0])


def _united(given: Given) -> tuple[PolicyOrigin, Any]:
    return given[0][0], frozenset().union(*(value for _, value in given))


def _largest(given: Given) -> tuple[PolicyOrigin, Any]:
    return max(given, key=lambda each: each[1])  # of equal ones the first


def _mode(given: Given) -> tuple[PolicyOrigin, Any]:
    """The first that is given, but never less than the workflow's."""
    floor = [each for each in given if each[0] is PolicyOrigin.WORKFLOW]
    return max([given[0], *floor], key=lambda each: _STRICTER[each[1]])


_RULES: Final[dict[str, Callable[[Given], tuple[PolicyOrigin, Any]]]] = {
    "requires_approval": _yes_is_needed,
    "gates": _united,
    "mode": _mode,
    "approvals_required": _largest,
    "allow_requester": _nobody_says_no,
}


def _first(
    said: Sequence[Said], attribute: str, name: str, is_usual: Callable[[Any], bool], origins: dict[str, PolicyOrigin]
) -> Any:
    for each in said:
        policy = getattr(each, attribute)
        if policy is not None and not is_usual(policy):
            origins[name] = each.origin
            return policy
    return None


def _limits(said: Sequence[Said], caps: RunLimits, origins: dict[str, PolicyOrigin]) -> RunLimits:
    own = [(each.origin, each.limits) for each in said if each.limits is not None]
    merged = merge_limits(*(limits for _, limits in own), caps)
    for field in fields(RunLimits):
        value = getattr(merged, field.name)
        whose = [origin for origin, limits in own if getattr(limits, field.name) is not None]
        exact = [origin for origin, limits in own if getattr(limits, field.name) == value]
        if value is not None and whose and (exact or field.name == "allow_tools"):
            origins[f"limits.{field.name}"] = (exact or whose)[0]
    return merged
