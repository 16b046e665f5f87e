"""How the policies of a run are told: each in full, with whose word every part of it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from horarium.policy.approval import DEFAULT_EXPIRES_AFTER_SECONDS, NEVER_SECONDS, ApprovalPolicy, WhileWaiting
from horarium.policy.failure import FailurePolicy
from horarium.policy.limits import RunLimits
from horarium.policy.queue import USUAL_QUEUE, OwnQueue
from horarium.policy.retry import RetryPolicy
from horarium.schedule.definition import Definition
from horarium.schedule.effective import Effective, PolicyOrigin, read_effective
from horarium.schedule.field import amount
from horarium.schedule.merged_policies import Said, merge_policies

_APPROVAL, _RETRY, _FAILURE, _LIMITS = "approval_policy", "retry_policy", "failure_policy", "limits"
_QUEUE = "queue_policy"
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
    queue_policy: Mapping[str, Any] | None = None


def policies_of(
    effective: str | None, definition: Definition | None, *, of_schedule: bool = True
) -> ToldPolicies | None:
    """By what was settled at the birth of a run, or else by its definition; None = neither can be read.

    `of_schedule`: a schedule created the run, so its queue policy applied.
    """
    queue = definition.queue if definition is not None and of_schedule else None
    if effective is not None:
        return _settled(effective, queue)
    if definition is None:
        return None
    own = Said(PolicyOrigin.SCHEDULE, definition.approval, definition.retry, definition.failure, definition.limits)
    return _of_schedule(own, definition.assignee is not None, queue)


@lru_cache(maxsize=4_096)
def _settled(effective: str, queue: OwnQueue | None) -> ToldPolicies | None:
    try:
        return tell(read_effective(effective), queue)
    except (ValueError, LookupError, TypeError, AttributeError):  # what cannot be read is one run's trouble
        return None


@lru_cache(maxsize=4_096)
def _of_schedule(said: Said, has_assignee: bool, queue: OwnQueue | None) -> ToldPolicies:
    """Where nobody but the schedule says anything."""
    return tell(merge_policies([said], has_assignee=has_assignee), queue)


def tell(effective: Effective, queue: OwnQueue | None) -> ToldPolicies:
    policies = {
        _APPROVAL: told(in_force(effective.approval)) | _for_ever(effective.approval),
        _RETRY: told(effective.retry),
        _FAILURE: told(effective.failure),
        _LIMITS: told(effective.limits),
    }
    parts = [f"{name}.{part}" for name in _BY_PART for part in policies[name]]
    names = [*parts, _RETRY, _FAILURE]
    origins = {name: effective.origins.get(name, PolicyOrigin.DEFAULT) for name in names}
    if queue is None:
        return ToldPolicies(**policies, origins=origins)
    found = queue.under(effective.queue)
    return ToldPolicies(**policies, origins=origins | _queue_origins(queue, found), queue_policy=found.document())


def _queue_origins(own: OwnQueue, found: OwnQueue) -> dict[str, PolicyOrigin]:
    """A value that equals the default counts as not given."""
    origins = {}
    usual, before = USUAL_QUEUE.document(), own.document()
    for name, value in found.document().items():
        origin = PolicyOrigin.SCHEDULE if value != usual[name] else PolicyOrigin.DEFAULT
        origins[f"{_QUEUE}.{name}"] = origin if value == before[name] else PolicyOrigin.ASSIGNMENT
    return origins


def in_force(approval: ApprovalPolicy) -> ApprovalPolicy:
    """With what holds where nobody says anything; without a mode only the gates that are named hold a step."""
    return replace(
        approval,
        expires_after_seconds=approval.expires_after_seconds or DEFAULT_EXPIRES_AFTER_SECONDS,
        approvals_required=approval.approvals_required or 1,
        allow_requester=bool(approval.allow_requester),
        while_waiting=approval.while_waiting or WhileWaiting.COUNT,
    )


def _for_ever(approval: ApprovalPolicy) -> dict[str, Any]:
    """Null stands for a question that waits for ever."""
    return {"expires_after_seconds": None} if approval.expires_after_seconds == NEVER_SECONDS else {}


def told(policy: ApprovalPolicy | RetryPolicy | FailurePolicy | RunLimits) -> dict[str, Any]:
    """Every field of it; what is null was said by nobody, and is no limit."""
    found = {each.name: getattr(policy, each.name) for each in fields(policy)}
    return {name: _plain(value) for name, value in found.items() if name not in _NOT_TOLD}


def _plain(value: object) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case tuple():
            return list(value)
        case Decimal():
            return amount(value)
        case _:
            return value
