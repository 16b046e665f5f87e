"""What an agent or a team says about all the work that it does: approval, retries, failures, limits, and a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

from horarium.policy.approval import ApprovalPolicy, parse_approval_policy
from horarium.policy.failure import FailurePolicy, parse_failure_policy
from horarium.policy.limits import Budget, RunLimits, parse_budget, parse_limits, with_exact_amount
from horarium.policy.names import PolicyError, read_object
from horarium.policy.retry import RetryPolicy, parse_retry_policy
from horarium.schedule.field import plain

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerPolicies:
    """None = nothing is said, so that whoever comes next may say it."""

    approval: ApprovalPolicy | None = None
    retry: RetryPolicy | None = None
    failure: FailurePolicy | None = None
    limits: RunLimits | None = None
    budget: Budget | None = None


def _limits(value: object) -> RunLimits:
    return parse_limits(with_exact_amount(value, "cost") if isinstance(value, Mapping) else value)


def _budget(value: object) -> Budget:
    exact = with_exact_amount(value, "spending_limit_credits") if isinstance(value, Mapping) else value
    return parse_budget(exact)


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "approval_policy": ("approval", parse_approval_policy),
    "retry_policy": ("retry", parse_retry_policy),
    "failure_policy": ("failure", parse_failure_policy),
    "limits": ("limits", _limits),
    "budget": ("budget", _budget),
}
POLICY_NAMES: Final = tuple(_READERS)


def parse_worker_policies(value: object) -> WorkerPolicies:
    """Raises PolicyError, whose field is the path below `policies`."""
    given = read_object(value, "policies", POLICY_NAMES)
    read = {_READERS[name][0]: read_part(name, _READERS[name][1], said) for name, said in given.items()}
    return WorkerPolicies(**read)


def read_part(name: str, read: Callable[[Any], T], value: object) -> T:
    """Read a part and name it in errors about its contents."""
    try:
        return read(value)
    except PolicyError as wrong:
        raise PolicyError(name if wrong.field == name else f"{name}.{wrong.field}", wrong.text) from None


def policies_document(policies: WorkerPolicies) -> dict[str, Any]:
    found = {name: getattr(policies, attribute) for name, (attribute, _) in _READERS.items()}
    return {name: policy_document(policy) for name, policy in found.items() if policy is not None}


def policy_document(policy: Any) -> dict[str, Any]:
    """JSON form of a policy; reading it gives an equal policy."""
    if isinstance(policy, ApprovalPolicy):
        return policy.document()
    found = {each.name: getattr(policy, each.name) for each in fields(policy) if each.name != "unasked"}
    return {name: plain(value) for name, value in found.items() if value is not None}
