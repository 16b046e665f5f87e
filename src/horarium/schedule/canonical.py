"""Writes a definition as its one canonical document: native names, a fixed order, nothing that a default says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from horarium.instant import Instant, to_rfc3339
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.catchup import Catchup
from horarium.policy.overlap import Overlap
from horarium.policy.retry import RetryPolicy
from horarium.recurrence.wall import DstFold, DstGap
from horarium.schedule.definition import Action, Definition, Source, SpecText
from horarium.schedule.run import Delivery

# The top-level names, in the order in which they are written.
_NAMES = """
    schedule_id namespace name note labels memo search_attributes source user_id owner spec action
    assignee_type assignee_id workflow_assignment_id calendars pre_dispatch_condition inputs_rotation budget
    overlap_policy max_concurrency max_buffered cancel_grace_seconds concurrency_key concurrency_limit priority
    catchup_policy max_catchup catchup_window_seconds catchup_spread_seconds misfire_grace_seconds
    approval_policy retry_policy failure_policy limits pause_on_failure max_runs
"""
FIELDS: Final = tuple(_NAMES.split())


def to_document(definition: Definition) -> dict[str, object]:
    """Only what differs from a default, and always these six: the two names, spec, action, overlap and catch-up."""
    d = definition
    return _without_defaults(
        {
            "schedule_id": (d.schedule_id, None),
            "namespace": (d.namespace, None),
            "name": (d.name, ""),
            "note": (d.note, None),
            "labels": (dict(d.labels), {}),
            "memo": (dict(d.memo), {}),
            "search_attributes": (dict(d.search_attributes), {}),
            "source": (d.source.value, Source.RUNTIME.value),
            "user_id": (d.user_id, None),
            "owner": (d.owner, None),
            "spec": (spec_document(d.spec), None),
            "action": (action_document(d.action), None),
            "assignee_type": (d.assignee.type.value if d.assignee else None, None),
            "assignee_id": (d.assignee.id if d.assignee else None, None),
            "workflow_assignment_id": (d.workflow_assignment_id, None),
            "calendars": (list(d.calendars), []),
            "pre_dispatch_condition": (d.pre_dispatch_condition, None),
            "inputs_rotation": (list(d.inputs_rotation), []),
            "budget": (_policy(d.budget), {}),
            **_overlap(d.overlap),
            "concurrency_key": (d.concurrency_key, None),
            "concurrency_limit": (d.concurrency_limit, 1),
            "priority": (d.priority, 0),
            **_catchup(d.catchup),
            "approval_policy": (_policy(d.approval), {}),
            "retry_policy": ({} if d.retry.unasked else _policy(d.retry), {}),
            "failure_policy": (_policy(d.failure), _policy(type(d.failure)())),
            "limits": (_policy(d.limits), {}),
            "pause_on_failure": (d.pause_on_failure, None),
            "max_runs": (d.max_runs, None),
        }
    )


def spec_document(spec: SpecText) -> dict[str, object]:
    return _without_defaults(
        {
            "cron_expressions": (list(spec.cron_expressions), []),
            "intervals": (
                [_without_defaults({"every": (i.every, None), "offset": (i.offset, None)}) for i in spec.intervals],
                [],
            ),
            "at": (list(spec.at), []),
            "timezone": (spec.timezone, None),
            "start_at": (_moment(spec.start_at), None),
            "end_at": (_moment(spec.end_at), None),
            "jitter_seconds": (seconds(spec.jitter_ms), 0),
            "dst_gap": (spec.dst_gap.value, DstGap.NEXT_VALID.value),
            "dst_fold": (spec.dst_fold.value, DstFold.FIRST.value),
        }
    )


def action_document(action: Action) -> dict[str, object]:
    return {
        "kind": action.kind.value,
        **action.target,
        **_without_defaults(
            {
                "input": (action.input, None),
                "connection": (action.connection, None),
                "queue": (action.queue, None),
                "global_model_id": (action.global_model_id, None),
                "execution_timeout_seconds": (action.execution_timeout_seconds, None),
                "run_timeout_seconds": (action.run_timeout_seconds, None),
                "timeout_seconds": (action.timeout_seconds, None),
                "delivery": (action.delivery.value, Delivery.AT_LEAST_ONCE.value),
            }
        ),
    }


def seconds(milliseconds: int) -> int | float:
    whole, rest = divmod(milliseconds, 1_000)
    return milliseconds / 1_000 if rest else whole


def amount(value: Decimal | int) -> int | float | str:
    """A JSON number where one says it exactly, else its digits as text."""
    number = Decimal(value)
    if number == number.to_integral_value():
        return int(number)
    near = float(number)
    return near if Decimal(repr(near)) == number else format(number.normalize(), "f")


def _overlap(overlap: Overlap) -> dict[str, tuple[object, object]]:
    default = Overlap()
    return {
        "overlap_policy": (overlap.policy.value, None),
        "max_concurrency": (overlap.max_concurrency, None),
        "max_buffered": (overlap.max_buffered, None),
        "cancel_grace_seconds": (overlap.cancel_grace_seconds, default.cancel_grace_seconds),
    }


def _catchup(catchup: Catchup) -> dict[str, tuple[object, object]]:
    default = Catchup()
    return {
        "catchup_policy": (catchup.policy.value, None),
        "max_catchup": (catchup.max_catchup, default.max_catchup),
        "catchup_window_seconds": (catchup.catchup_window_seconds, None),
        "catchup_spread_seconds": (catchup.catchup_spread_seconds, default.catchup_spread_seconds),
        "misfire_grace_seconds": (catchup.misfire_grace_seconds, default.misfire_grace_seconds),
    }


def _policy(policy: Any) -> dict[str, object]:
    """Every field that is set: some defaults depend on their neighbours, so a policy is written in full."""
    shown = {each.name: _plain(getattr(policy, each.name)) for each in fields(policy)}
    if isinstance(policy, ApprovalPolicy) and not policy.gates:
        del shown["gates"]
    if isinstance(policy, RetryPolicy):
        del shown["unasked"]  # what is written was asked for
    return {name: value for name, value in shown.items() if value is not None}


def _plain(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case Decimal():
            return amount(value)
        case frozenset():
            return sorted(value)
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else to_rfc3339(instant)


def _without_defaults(pairs: Mapping[str, tuple[object, object]]) -> dict[str, object]:
    return {name: value for name, (value, default) in pairs.items() if value is not None and value != default}
