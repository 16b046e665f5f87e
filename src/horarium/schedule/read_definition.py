"""Reads places into a definition: one check for each field, every problem kept under its path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from horarium.condition import compile_condition
from horarium.errors import ConditionError
from horarium.policy.approval import ApprovalPolicy, parse_approval_policy
from horarium.policy.catchup import Catchup, parse_catchup
from horarium.policy.failure import FailurePolicy, parse_failure_policy
from horarium.policy.limits import Budget, RunLimits, parse_budget, parse_limits
from horarium.policy.names import PolicyError, parse_name, shown, text, whole
from horarium.policy.overlap import Overlap, parse_overlap
from horarium.policy.queue import MAX_PRIORITY, MIN_PRIORITY
from horarium.policy.retry import UNASKED, RetryPolicy, parse_retry_policy
from horarium.policy.rotation import parse_rotation
from horarium.recurrence.zone import load_zone
from horarium.schedule.assignee import Assignee, parse_assignee
from horarium.schedule.definition import Definition, Json, RunDefinition, Source
from horarium.schedule.naming import checked_id
from horarium.schedule.read_action import read_action
from horarium.schedule.read_spec import read_spec
from horarium.schedule.reading import Reader, any_text, mapping

MAX_NOTE = 1_000
MAX_NAME = 255
MAX_MEMO_BYTES = 262_144
MAX_ATTRIBUTE_BYTES = 2_048
MAX_CALENDARS = 100

_OVERLAP_FIELDS = ("overlap_policy", "max_concurrency", "max_buffered", "cancel_grace_seconds")
_CATCHUP_FIELDS = (
    "catchup_policy",
    "max_catchup",
    "catchup_window_seconds",
    "catchup_spread_seconds",
    "misfire_grace_seconds",
)
_APPROVAL_FIELDS = ("requires_approval", "mode", "gates", "expires_after_seconds")
_RETRY_FIELDS = ("max_retries", "backoff_ms", "max_backoff_ms", "retry_on", "timeout_ms")
_LIMITS_FIELDS = ("runtime_seconds", "cost", "tokens", "tool_calls", "allow_tools")

# Twelve digits before the point and six after, as the amounts themselves.
_AMOUNT = re.compile(r"\d{1,13}(\.\d{1,6})?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Frozen, so one of each serves all definitions that say nothing.
_NOTHING: Mapping[str, object] = {}
_NO_ROTATION: tuple[Mapping[str, object], ...] = ()
_OVERLAP, _CATCHUP, _BUDGET, _LIMITS = Overlap(), Catchup(), Budget(), RunLimits()
_APPROVAL, _FAILURE = ApprovalPolicy(), FailurePolicy()
_note = any_text(MAX_NOTE)
_short = any_text(MAX_NAME)


def read_definition(reader: Reader, *, trusted: bool) -> Definition:
    """Good only if the reader has no problem; trusted = we wrote the document, so nothing is compiled."""
    schedule_id = reader.one("schedule_id", checked_id, "")
    if not reader.given("schedule_id"):
        reader.blame("schedule_id", "is required")
    return Definition(
        schedule_id=schedule_id,
        spec=read_spec(reader, key=None if trusted else schedule_id or "?"),
        action=read_action(reader),
        **_identity(reader, trusted=trusted),
        **_guards(reader, trusted=trusted),
        **_policies(reader),
    )


def read_run_definition(reader: Reader) -> RunDefinition:
    """Of a document that we wrote, what its runs need: the rest is not looked at, since a herd reads thousands."""
    return RunDefinition(
        schedule_id=reader.one("schedule_id", checked_id, ""),
        action=read_action(reader),
        inputs_rotation=reader.one("inputs_rotation", _rotation, _NO_ROTATION),
        labels=reader.entries("labels", _label),
        memo=reader.one("memo", mapping, _NOTHING),
        retry=_retry(reader),
        limits=_run_limits(reader),
    )


def _retry(reader: Reader) -> RetryPolicy:
    return reader.group("retry_policy.", _RETRY_FIELDS, parse_retry_policy, UNASKED)


def _run_limits(reader: Reader) -> RunLimits:
    return reader.group("limits.", _LIMITS_FIELDS, _limits, _LIMITS)


def _identity(reader: Reader, *, trusted: bool) -> dict[str, Any]:
    return {
        "namespace": reader.one("namespace", checked_id, "default"),
        "name": reader.one("name", _name, ""),
        "note": reader.one("note", _note, None),
        "labels": reader.entries("labels", _label),
        "memo": reader.one("memo", mapping if trusted else _memo, _NOTHING),
        "search_attributes": reader.entries("search_attributes", _attribute),
        "source": reader.one("source", _source, Source.RUNTIME),
        "user_id": reader.one("user_id", text, None),
        "owner": reader.one("owner", text, None),
        "assignee": reader.group("", ("assignee_type", "assignee_id"), _assignee, None),
        "workflow_assignment_id": reader.one("workflow_assignment_id", checked_id, None),
    }


def _guards(reader: Reader, *, trusted: bool) -> dict[str, Any]:
    condition = reader.one("pre_dispatch_condition", mapping if trusted else _condition, None)
    return {
        "calendars": tuple(dict.fromkeys(reader.array("calendars", _calendar, most=MAX_CALENDARS))),
        "pre_dispatch_condition": condition or None,  # no clauses and no condition mean the same
        "inputs_rotation": reader.one("inputs_rotation", _rotation, _NO_ROTATION),
        "budget": reader.group("budget.", ("spending_limit_credits", "max_daily_runs"), _budget, _BUDGET),
    }


def _policies(reader: Reader) -> dict[str, Any]:
    return {
        "overlap": reader.group("", _OVERLAP_FIELDS, parse_overlap, _OVERLAP),
        "catchup": reader.group("", _CATCHUP_FIELDS, parse_catchup, _CATCHUP),
        "concurrency_key": reader.one("concurrency_key", text, None),
        "concurrency_limit": reader.one("concurrency_limit", _at_least_one, 1),
        "priority": reader.one("priority", _priority, 0),
        "approval": reader.group("approval_policy.", _APPROVAL_FIELDS, parse_approval_policy, _APPROVAL),
        "retry": _retry(reader),
        "failure": reader.group(
            "failure_policy.", ("mode", "fallback_assignee_id"), parse_failure_policy, FailurePolicy()
        ),
        "limits": _run_limits(reader),
        "pause_on_failure": reader.one("pause_on_failure", _at_least_one, None),
        "max_runs": reader.one("max_runs", _at_least_one, None),
    }


# ── checks ────────────────────────────────────────────────────────────────────────────────────────


def _rotation(field: str, value: object) -> tuple[Mapping[str, object], ...]:
    return parse_rotation(value, field)


def _at_least_one(field: str, value: object) -> int:
    return whole(field, value, least=1)


def _name(field: str, value: object) -> str:
    name = _short(field, value)
    if _CONTROL.search(name):
        raise PolicyError(field, "holds a control character; a name is one line")
    return name


def _source(field: str, value: object) -> Source:
    return parse_name(Source, {}, value, field)


def _assignee(given: Mapping[str, object]) -> Assignee | None:
    return parse_assignee(given.get("assignee_type"), given.get("assignee_id"))


def _label(field: str, value: object) -> str:
    """Labels are texts; a number or a boolean is kept as JSON spells it."""
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 64):
        return json.dumps(value)
    if not isinstance(value, str):
        raise PolicyError(field, f"must be text, a number or a boolean, not {shown(value)}")
    return _bounded(field, value)


def _attribute(field: str, value: object) -> Json:
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) for item in value):
            raise PolicyError(field, "an array of a search attribute holds texts only")
        _bounded(field, "".join(value))
        return value
    if not isinstance(value, str | bool | int | float):
        raise PolicyError(field, f"must be text, a number, a boolean or an array of texts, not {shown(value)}")
    return _bounded(field, value) if isinstance(value, str) else value


def _bounded(field: str, value: str) -> str:
    if len(value.encode("utf-8", "replace")) > MAX_ATTRIBUTE_BYTES:
        raise PolicyError(field, f"is longer than {MAX_ATTRIBUTE_BYTES} bytes")
    return value


def _memo(field: str, value: object) -> Mapping[str, object]:
    memo = mapping(field, value)
    size = len(json.dumps(memo, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_MEMO_BYTES:
        raise PolicyError(field, f"takes {size} bytes as JSON; at most {MAX_MEMO_BYTES} are kept")
    return memo


def _condition(field: str, value: object) -> Mapping[str, object]:
    try:
        compile_condition(value)
    except ConditionError as wrong:
        raise PolicyError(field, wrong.message) from None
    return mapping(field, value)


def _calendar(field: str, value: object) -> str:
    """An id, or an id and a zone: `holidays:US@America/New_York`. Whether it exists is not for us to know."""
    if not isinstance(value, str) or "/" not in value:
        return checked_id(field, value)
    name, _, zone = value.partition("@")
    checked_id(field, name)
    load_zone(zone)
    return value


def _budget(given: Mapping[str, object]) -> Budget:
    return parse_budget(_exact(given, "spending_limit_credits"))


def _limits(given: Mapping[str, object]) -> RunLimits:
    return parse_limits(_exact(given, "cost"))


def _exact(given: Mapping[str, object], field: str) -> dict[str, object]:
    """An amount that no JSON number says exactly is written as text."""
    value = given.get(field)
    if not isinstance(value, str):
        return dict(given)
    if _AMOUNT.fullmatch(value) is None:
        raise PolicyError(field, f"must be a number of credits, not {shown(value)}")
    return {**given, field: Decimal(value)}


def _priority(field: str, value: object) -> int:
    return whole(field, value, least=MIN_PRIORITY, most=MAX_PRIORITY)
