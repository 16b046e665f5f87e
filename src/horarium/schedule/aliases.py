"""Where a field belongs: every name that a schedule document may use, and the one place it is read as.

A document may be nested (`{"spec": {…}, "action": {…}}`), flat (`{"cron_expr": …, "prompt": …}`) or
both; keys may be snake_case or camelCase. Whatever the spelling, each value ends at one place of the
canonical document and keeps the path it came from. The same thing given twice must be the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from horarium.policy import catchup, overlap
from horarium.policy.names import PolicyError, flag, parse_name, shown
from horarium.recurrence.wall import DstFold, DstGap
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.definition import ActionKind, Source
from horarium.schedule.problems import Given, Problems, joined
from horarium.schedule.run import Delivery
from horarium.schedule.storable import same_json

_MAX_NAME = 64
_MAX_HINTS = 10
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# ── how a value is turned into the canonical one ──────────────────────────────────────────────────


def _verbatim(value: object) -> object:
    return value


def _alone(value: object) -> object:
    if not isinstance(value, str):
        raise PolicyError("", f"must be text, not {shown(value)}")
    return [value]


def _negated(value: object) -> object:
    return not flag("", value)


def _seconds(value: object) -> object:
    """2.0 is 2; anything that is no number is left for the reader to refuse."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _milliseconds(value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError("", f"must be a whole number of milliseconds, not {shown(value)}")
    return _seconds(value / 1_000)


def _name_of(kind: type[StrEnum]) -> Callable[[object], object]:
    return lambda value: parse_name(kind, {}, value, "").value


def _empty_array_is_empty_object(value: object) -> object:
    """PHP writes an empty map as `[]`."""
    return {} if isinstance(value, list) and not value else value


@dataclass(frozen=True, slots=True)
class Name:
    """`read` turns what is given under this name into what the place holds."""

    place: str
    read: Callable[[object], object] = _verbatim
    single: bool = False


Table: TypeAlias = Mapping[str, Name]


def _own(prefix: str, *names: str) -> dict[str, Name]:
    return {name: Name(f"{prefix}{name}") for name in names}


# ── the tables ────────────────────────────────────────────────────────────────────────────────────

_SPEC: Final[Table] = {
    **_own("spec.", "cron_expressions", "intervals", "at", "timezone", "start_at", "end_at"),
    "cron_expr": Name("spec.cron_expressions", _alone, single=True),
    "cron_expression": Name("spec.cron_expressions", _alone, single=True),
    "jitter_seconds": Name("spec.jitter_seconds", _seconds),
    "jitter_ms": Name("spec.jitter_seconds", _milliseconds),
    "dst_gap": Name("spec.dst_gap", _name_of(DstGap)),
    "dst_fold": Name("spec.dst_fold", _name_of(DstFold)),
}
_ACTION: Final[Table] = {
    "kind": Name("action.kind", _name_of(ActionKind)),
    **_own(
        "action.", "workflow_type", "workflow_id", "workflow_class", "version", "prompt", "url", "method", "headers"
    ),
    **_own("action.", "secret", "task", "callable", "command", "input", "connection", "queue", "global_model_id"),
    **_own("action.", "execution_timeout_seconds", "run_timeout_seconds", "timeout_seconds"),
    "delivery": Name("action.delivery", _name_of(Delivery)),
    "inputs": Name("action.input"),
    "inputs_template": Name("action.input"),
    "arguments": Name("action.input"),
    "task_queue": Name("action.queue"),
    # The names that the Durable Workflow server had before it counted in seconds by name.
    "workflow_execution_timeout": Name("action.execution_timeout_seconds"),
    "workflow_run_timeout": Name("action.run_timeout_seconds"),
}
_BUDGET: Final[Table] = {
    **_own("budget.", "spending_limit_credits", "max_daily_runs"),
    "max_daily_battles": Name("budget.max_daily_runs"),
}
_LIMITS: Final[Table] = {
    **_own("limits.", "runtime_seconds", "cost", "tokens", "tool_calls", "allow_tools"),
    "runtime": Name("limits.runtime_seconds"),
    "max_runtime_seconds": Name("limits.runtime_seconds"),
    "max_cost": Name("limits.cost"),
    "max_tokens": Name("limits.tokens"),
    "max_tool_calls": Name("limits.tool_calls"),
    **_BUDGET,
}
_OVERLAP = Name("overlap_policy", lambda value: overlap.parse(value, "").value)
_CATCHUP = Name("catchup_policy", lambda value: catchup.parse(value, "").value)
_QUEUE: Final[Table] = {
    "mode": _OVERLAP,
    "overlap_policy": _OVERLAP,
    "on_missed": _CATCHUP,
    "catchup_policy": _CATCHUP,
    **_own("", "max_concurrency", "max_buffered", "max_catchup", "priority"),
    "max_concurrent": Name("max_concurrency"),
    "max_backfill": Name("max_catchup"),
}
_ASSIGNEE_TYPE = Name("assignee_type", _name_of(AssigneeType))

OBJECTS: Final[Mapping[str, Table]] = {
    "spec": _SPEC,
    "action": _ACTION,
    "assignee": {"type": _ASSIGNEE_TYPE, "id": Name("assignee_id")},
    "budget": _BUDGET,
    "limits": _LIMITS,
    "queue_policy": _QUEUE,
    "approval_policy": {
        **_own("approval_policy.", "requires_approval", "mode", "gates", "expires_after_seconds"),
        "require_approval": Name("approval_policy.requires_approval"),
    },
    "retry_policy": _own("retry_policy.", "max_retries", "backoff_ms", "max_backoff_ms", "retry_on", "timeout_ms"),
    "failure_policy": _own("failure_policy.", "mode", "fallback_assignee_id"),
}
TOP: Final[Table] = {
    **_own("", "schedule_id", "namespace", "name", "note", "user_id", "owner", "workflow_assignment_id"),
    "id": Name("schedule_id"),
    "notes": Name("note"),
    "description": Name("note"),
    "source": Name("source", _name_of(Source)),
    "labels": Name("labels", _empty_array_is_empty_object),
    "memo": Name("memo", _empty_array_is_empty_object),
    "search_attributes": Name("search_attributes", _empty_array_is_empty_object),
    "assignee_type": _ASSIGNEE_TYPE,
    **_own("", "assignee_id", "calendars", "pre_dispatch_condition", "inputs_rotation"),
    "calendar_id": Name("calendars", _alone, single=True),
    "overlap_policy": _OVERLAP,
    "catchup_policy": _CATCHUP,
    "on_missed": _CATCHUP,
    **_own("", "max_concurrency", "max_buffered", "cancel_grace_seconds", "concurrency_key", "concurrency_limit"),
    **_own("", "priority", "max_catchup", "catchup_window_seconds", "catchup_spread_seconds"),
    **_own("", "misfire_grace_seconds", "pause_on_failure", "max_runs", "paused"),
    "max_backfill": Name("max_catchup"),
    "enabled": Name("paused", _negated),
    "is_active": Name("paused", _negated),
    **_BUDGET,
    "allow_tools": _LIMITS["allow_tools"],
    "max_tokens": _LIMITS["max_tokens"],
    **_SPEC,
    **_ACTION,
}
# What our answers carry beside the definition: a document that was read, edited and sent back has them.
_COMPUTED = """
    created_at updated_at deleted_at paused_at status state info outcome revision uid schedule_uid schedule_ulid
    next_due next_run_at next_fire next_fire_at next_fires last_fire last_fired_at last_run_at last_run_id last_status
    last_dispatch_status last_error last_error_at last_error_message last_completed_at last_result run_count
    last_skip_reason last_skipped_at skipped_trigger_count fires_count failures_count remaining_actions
    latest_instance_id latest_workflow_instance_id last_rotation_index
"""
READ_ONLY: Final = frozenset(_COMPUTED.split())
PLACES: Final = frozenset(name.place for table in (TOP, *OBJECTS.values()) for name in table.values())


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Normalised:
    """`nulls` are the places that were given as null, `objects` the parts that were given as an object."""

    places: dict[str, Given] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)


def normalise(document: object, problems: Problems) -> Normalised:
    """The document must have passed `check_storable`."""
    found = Normalised()
    if isinstance(document, list) and not document:
        document = {}
    if not isinstance(document, Mapping):
        problems.add("document", f"must be an object, not {shown(document)}")
        return found
    hints = _Hints()
    for key, value in document.items():
        if problems.full:
            break
        name = _snake(key)
        if name in OBJECTS:
            _read_object(name, key, value, found, problems, hints)
        elif (known := TOP.get(name) or TOP.get(name.removeprefix("p_"))) is not None:
            _put(found, known, joined("", key), value, problems)
        elif (inner := name.removeprefix("p_")) in OBJECTS:
            _read_object(inner, key, value, found, problems, hints)
        elif name in READ_ONLY:
            found.ignored.append(joined("", key))
        else:
            problems.add(joined("", key), hints.about(name, TOP.keys() | OBJECTS.keys(), inside=""))
    found.nulls -= found.places.keys()
    return found


def _read_object(part: str, key: str, value: object, found: Normalised, problems: Problems, hints: _Hints) -> None:
    table = OBJECTS[part]
    if isinstance(value, list) and not value:
        value = {}
    if value is None:
        found.nulls.update(name.place for name in table.values())
        return
    if not isinstance(value, Mapping):
        problems.add(joined("", key), f"must be an object, not {shown(value)}")
        found.bad.update(name.place for name in table.values())
        return
    found.objects.add(part)
    for inner, item in value.items():
        if problems.full:
            break
        path = f"{joined('', key)}.{joined('', inner)}"
        name = table.get(_snake(inner))
        if name is None:
            problems.add(path, hints.about(_snake(inner), table.keys(), inside=part))
        else:
            _put(found, name, path, item, problems)


def _put(found: Normalised, name: Name, path: str, value: object, problems: Problems) -> None:
    if value is None:
        found.nulls.add(name.place)
        return
    try:
        given = Given(path, name.read(value), name.single)
    except PolicyError as wrong:
        problems.add(path, wrong.text)
        found.bad.add(name.place)
        return
    other = found.places.setdefault(name.place, given)
    if not same_json(other.value, given.value):
        problems.add(path, f"disagrees with `{other.path}`, which says the same thing; give one of them")


class _Hints:
    """Comparing spellings is slow, so only the first unknown fields get a guess."""

    def __init__(self) -> None:
        self._left = _MAX_HINTS

    def about(self, name: str, known: Collection[str], *, inside: str) -> str:
        if inside and name in TOP:
            return f"unknown in `{inside}`; it belongs to `{TOP[name].place}`"
        self._left -= 1
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6) if name and self._left >= 0 else []
        return f"unknown field; did you mean `{close[0]}`?" if close else "unknown field"


def _snake(key: str) -> str:
    return _HUMP.sub("_", key).lower() if len(key) <= _MAX_NAME else ""
