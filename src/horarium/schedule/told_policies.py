"""How the policies of a run are told: each in full, with whose word every part of it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from horarium.policy.approval import ApprovalMode, ApprovalPolicy, run_needs_approval
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import RunLimits
from horarium.policy.retry import RetryPolicy
from horarium.schedule.definition import Definition
from horarium.schedule.effective import Effective, PolicyOrigin, read_effective
from horarium.schedule.field import amount

_APPROVAL, _RETRY, _FAILURE, _LIMITS = "approval_policy", "retry_policy", "failure_policy", "limits"
# Of these each part may be somebody else's word; the others are taken whole.
_BY_PART = (_APPROVAL, _LIMITS)
_NOT_TOLD = frozenset({"unasked"})


@dataclass(frozen=True, slots=True)
class ToldPolicies:
    """`origins` has a name for each part, as `approval_policy.mode`, and for each policy that is taken whole."""

    approval_policy: Mapping[str, Any]
    retry_policy: Mapping[str, Any]
    failure_policy: Mapping[str, Any]
    limits: Mapping[str, Any]
    origins: Mapping[str, PolicyOrigin]


def policies_of(effective: str | None, definition: Definition | None) -> ToldPolicies | None:
    """By what was settled at the birth of a run, or else by its definition; None = neither can be read."""
    if effective is not None:
        try:
            return tell(read_effective(effective))
        except (ValueError, LookupError, TypeError, AttributeError):  # what cannot be read is one run's trouble
            return None
    return None if definition is None else tell(effective_of(definition))


def effective_of(definition: Definition) -> Effective:
    """Where nobody but the schedule says anything."""
    return _of_schedule(
        definition.approval,
        definition.retry,
        definition.failure,
        definition.limits,
        definition.assignee is not None,
    )


@lru_cache(maxsize=4_096)
def _of_schedule(
    approval: ApprovalPolicy, retry: RetryPolicy, failure: FailurePolicy, limits: RunLimits, has_assignee: bool
) -> Effective:
    said = [
        *_said(_APPROVAL, approval, ApprovalPolicy()),
        *([] if retry.unasked else [_RETRY]),
        *([] if failure == FailurePolicy() else [_FAILURE]),
        *_said(_LIMITS, limits, RunLimits()),
    ]
    in_force = replace(approval, requires_approval=run_needs_approval(approval, has_assignee=has_assignee))
    if in_force.mode is None and has_assignee:
        in_force = replace(in_force, mode=ApprovalMode.SENSITIVE_ACTIONS)
    return Effective(in_force, retry, failure, limits, dict.fromkeys(said, PolicyOrigin.SCHEDULE))


def _said(name: str, policy: object, default: object) -> list[str]:
    names = [each.name for each in fields(policy)]  # type: ignore[arg-type]  # every policy is a dataclass
    return [f"{name}.{each}" for each in names if getattr(policy, each) != getattr(default, each)]


def tell(effective: Effective) -> ToldPolicies:
    policies = {
        _APPROVAL: told(effective.approval),
        _RETRY: told(effective.retry),
        _FAILURE: told(effective.failure),
        _LIMITS: told(effective.limits),
    }
    parts = [f"{name}.{part}" for name in _BY_PART for part in policies[name]]
    names = [*parts, _RETRY, _FAILURE]
    origins = {name: effective.origins.get(name, PolicyOrigin.DEFAULT) for name in names}
    return ToldPolicies(**policies, origins=origins)


def told(policy: object) -> dict[str, Any]:
    """Every field of it; what is null was said by nobody, and is no limit."""
    found = {each.name: getattr(policy, each.name) for each in fields(policy)}  # type: ignore[arg-type]  # as above
    return {name: _plain(value) for name, value in found.items() if name not in _NOT_TOLD}


def _plain(value: object) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case Decimal():
            return amount(value)
        case _:
            return value
