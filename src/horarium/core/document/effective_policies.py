"""Effective policies of a run: merged from all who state one, settled when the run is created, and stored with it.

A schedule, its assignment, the agent or team that works, and the stored workflow may each state a policy; what none
of them states is a default. Later edits of any of them do not change runs that exist.

Approval is merged field by field, and later ones can only make it stricter: if one requires approval it is required,
gates unite, the largest quorum counts. Retry and failure policies are whole: the first that is given holds. Of
limits the strictest of all hold. What the workflow says of approval is a floor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from horarium.core.policy.approval import (
    UNASKED,
    ApprovalMode,
    ApprovalPolicy,
    FailurePolicy,
    RetryPolicy,
    parse_approval_policy,
    parse_failure_policy,
    parse_retry_policy,
)
from horarium.core.policy.limits import RunLimits, credits_of, merge_limits, millionths_of
from horarium.core.policy.queue import QueuePolicy, canonical_json, parse_queue_policy, queue_document


class PolicyOrigin(StrEnum):
    """Level that set a policy."""

    SCHEDULE = "schedule"
    ASSIGNMENT = "assignment"
    AGENT = "agent"
    WORKFLOW = "workflow"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Effective:
    """`origins` names who said each field, as `approval_policy.mode` or `retry_policy`; what is not in it is a default.

    `versions` are those of the sub-workflows that were `latest` when the root was born. `queue` is the
    `queue_policy` of the assignment.
    """

    approval: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    retry: RetryPolicy = UNASKED
    failure: FailurePolicy = field(default_factory=FailurePolicy)
    limits: RunLimits = field(default_factory=RunLimits)
    origins: Mapping[str, PolicyOrigin] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    queue: QueuePolicy | None = None


def effective_text(effective: Effective) -> str:
    """As the column `runs.effective` keeps it."""
    limits = _given(effective.limits)
    if effective.limits.cost is not None:
        limits["cost"] = millionths_of(effective.limits.cost)
    document = {
        "approval_policy": _given(effective.approval),
        "retry_policy": None if effective.retry.unasked else _given(effective.retry, without="unasked"),
        "failure_policy": _given(effective.failure),
        "limits": limits,
        "origins": dict(effective.origins),
        "versions": dict(effective.versions),
    }
    if effective.queue is not None:
        document["queue_policy"] = queue_document(effective.queue)
    return canonical_json(document)


@lru_cache(maxsize=4_096)
def read_effective(text: str) -> Effective:
    document = json.loads(text)
    limits = document["limits"]
    tools = limits.get("allow_tools")
    retry = document["retry_policy"]
    return Effective(
        parse_approval_policy(document["approval_policy"]),
        UNASKED if retry is None else parse_retry_policy(retry),
        parse_failure_policy(document["failure_policy"]),
        RunLimits(
            **{
                **limits,
                "cost": credits_of(limits.get("cost")),
                "allow_tools": None if tools is None else tuple(tools),
            }
        ),
        {name: PolicyOrigin(said) for name, said in document["origins"].items()},
        document["versions"],
        parse_queue_policy(document["queue_policy"]) if "queue_policy" in document else None,
    )


def _given(policy: Any, without: str = "") -> dict[str, Any]:
    """Set fields of a policy; a set is sorted, so that equal policies have equal texts."""
    found = {each.name: getattr(policy, each.name) for each in fields(policy) if each.name != without}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in found.items()
        if value is not None
    }


# ── Merging ───────────────────────────────────────────────────────────────────────────────────────────


_NO_LIMITS: Final = RunLimits()
_NO_APPROVAL: Final = ApprovalPolicy()
_USUAL_FAILURE: Final = FailurePolicy()
# How much waits under each; None is a policy that says nothing of it.
_STRICTER: Final = {None: 0, ApprovalMode.ON_BLOCK: 1, ApprovalMode.SENSITIVE_ACTIONS: 2, ApprovalMode.EVERY_NODE: 3}


@dataclass(frozen=True, slots=True)
class StatedPolicies:
    """Policies from one origin; None, or a value that is the default anyway, sets nothing."""

    origin: PolicyOrigin
    approval: ApprovalPolicy | None = None
    retry: RetryPolicy | None = None
    failure: FailurePolicy | None = None
    limits: RunLimits | None = None


def merge_policies(said: Sequence[StatedPolicies], *, has_assignee: bool, caps: RunLimits = _NO_LIMITS) -> Effective:
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


def _approval(said: Sequence[StatedPolicies], origins: dict[str, PolicyOrigin]) -> ApprovalPolicy:
    policies = [(each.origin, each.approval) for each in said if each.approval is not None]
    chosen: dict[str, Any] = {}
    for each in fields(ApprovalPolicy):
        usual = getattr(_NO_APPROVAL, each.name)
        given = [(origin, getattr(policy, each.name)) for origin, policy in policies]
        given = [(origin, value) for origin, value in given if value != usual]
        if given:
            origin, chosen[each.name] = _RULES.get(each.name, _first_stated)(given)
            origins[f"approval_policy.{each.name}"] = origin
    return ApprovalPolicy(**chosen)


Given = Sequence[tuple[PolicyOrigin, Any]]


def _first_stated(given: Given) -> tuple[PolicyOrigin, Any]:
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
    said: Sequence[StatedPolicies],
    attribute: str,
    name: str,
    is_usual: Callable[[Any], bool],
    origins: dict[str, PolicyOrigin],
) -> Any:
    for each in said:
        policy = getattr(each, attribute)
        if policy is not None and not is_usual(policy):
            origins[name] = each.origin
            return policy
    return None


def _limits(said: Sequence[StatedPolicies], caps: RunLimits, origins: dict[str, PolicyOrigin]) -> RunLimits:
    own = [(each.origin, each.limits) for each in said if each.limits is not None]
    merged = merge_limits(*(limits for _, limits in own), caps)
    for each in fields(RunLimits):
        value = getattr(merged, each.name)
        whose = [origin for origin, limits in own if getattr(limits, each.name) is not None]
        exact = [origin for origin, limits in own if getattr(limits, each.name) == value]
        if value is not None and whose and (exact or each.name == "allow_tools"):
            origins[f"limits.{each.name}"] = (exact or whose)[0]
    return merged
