"""Which policies hold for a run, and whose word each of them is: settled when the run is born, and kept with it.

A schedule, the assignment that it names, the agent or team that works, and the stored workflow may each say
something; what nobody says is a default. Later edits of any of them leave the runs that were born alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any

from horarium.policy.approval import ApprovalPolicy, parse_approval_policy
from horarium.policy.failure import FailurePolicy, parse_failure_policy
from horarium.policy.json_text import canonical_json
from horarium.policy.limits import RunLimits, credits_of, millionths_of
from horarium.policy.queue import QueuePolicy, parse_queue_policy, queue_document
from horarium.policy.retry import UNASKED, RetryPolicy, parse_retry_policy


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
