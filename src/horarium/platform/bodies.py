"""Typed request bodies, and the reader that validates them.

The reader reports every error. A field may have other names, null is the same as omitted, and keys may be camelCase.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from horarium.core.document.calendar import CalendarKind
from horarium.core.document.json_values import check_text
from horarium.core.lifecycle.outcome import ReportedState
from horarium.core.policy.queue import OVERLAP_ALIASES, OverlapPolicy, PolicyError, parse_name
from horarium.core.policy.votes import DECISION_ALIASES, Decision
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.instant import from_rfc3339, to_datetime
from horarium.platform.wire import Amount, Object, Time

B = TypeVar("B", bound="Body")

MAX_NOTE = 1_000
MAX_WHOLE = 2**31 - 1
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A time without an offset is read as UTC, as the Durable Workflow server reads it.
_HAS_OFFSET = re.compile(r"([Zz]|[+-]\d\d:\d\d)$")
_MAX_UNKNOWN = 10
_ALIASES: Mapping[type[StrEnum], Mapping[str, Any]] = {OverlapPolicy: OVERLAP_ALIASES, Decision: DECISION_ALIASES}


def _text(most: int) -> Any:
    return Meta(max_length=most)


Note = Annotated[str, _text(MAX_NOTE)]
Name = Annotated[str, _text(128)]
Text = Annotated[str, _text(255)]
ZoneName = Annotated[str, _text(64)]
Moment = Annotated[
    str,
    Meta(
        max_length=64,
        description="RFC 3339 time, duration from now such as 4h or P1D, or local time such as 2026-11-17T09:00.",
    ),
]
Whole = Annotated[int, Meta(ge=0, le=MAX_WHOLE)]


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all bodies; `OTHER_NAMES` maps another name to the field that it means.

    `REFUSALS` are statuses of refusals that only requests with this body meet.
    """

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}
    REFUSALS: ClassVar[tuple[int, ...]] = ()


class NoteBody(Body, frozen=True, kw_only=True):
    """`reason` is recorded with the change. `note` replaces the note of the schedule and is the default of `reason`."""

    reason: Note | None = None
    note: Note | None = None
    namespace: Name | None = None


class PauseScheduleBody(NoteBody, frozen=True, kw_only=True):
    """`until`: time at which the schedule resumes; without it, it stays paused until resumed. A local time is read in
    `timezone` (default: the time zone of the schedule).
    """

    until: Moment | None = None
    timezone: ZoneName | None = None


class TriggerBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"overlap_policy_override": "overlap_policy", "input": "inputs", "note": "reason"}

    overlap_policy: OverlapPolicy | None = None
    even_if_paused: bool = False
    idempotency_key: Text | None = None
    inputs: Any = None
    reason: Note | None = None
    namespace: Name | None = None
    approval_status: Text | None = None
    skip_approval: bool = False


class RerunBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"overlap_policy_override": "overlap_policy", "input": "inputs", "note": "reason"}

    overlap_policy: OverlapPolicy | None = None
    even_if_paused: bool = False
    inputs: Any = None
    reason: Note | None = None
    namespace: Name | None = None
    approval_status: Text | None = None
    skip_approval: bool = False


class BackfillBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {
        "from": "start_time",
        "to": "end_time",
        "overlap_policy_override": "overlap_policy",
        "note": "reason",
    }

    start_time: Time
    end_time: Time
    overlap_policy: OverlapPolicy | None = None
    reverse: bool = False
    dry_run: bool = False
    reason: Note | None = None
    namespace: Name | None = None
    approval_status: Text | None = None
    skip_approval: bool = False


class CalendarsBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"calendar_ids": "calendars"}

    calendars: tuple[str, ...]


class ConditionBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"condition": "pre_dispatch_condition"}

    pre_dispatch_condition: Object


class RotationBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"inputs": "inputs_rotation"}

    inputs_rotation: tuple[Object, ...]


class ClaimBody(Body, frozen=True, kw_only=True):
    worker: Text | None = None
    limit: Whole = 1
    workflow_types: tuple[str, ...] | None = None


class HeartbeatBody(Body, frozen=True, kw_only=True):
    lease_epoch: Whole


class RunLogBody(Body, frozen=True, kw_only=True):
    """`lines` are texts, or objects with `text`, `stream` and `at`. `dropped`: number of lines lost before them."""

    lease_epoch: Whole
    lines: tuple[Object | str, ...]
    dropped: Whole = 0


class ReportBody(Body, frozen=True, kw_only=True):
    """The outcome of a run. Return the `lease_epoch` or `report_token` that came with the run. A lease is valid only
    for the worker that claimed the run.
    """

    OTHER_NAMES: ClassVar = {"status": "state"}

    state: ReportedState
    result: Any = None
    error: str | None = None
    error_class: str | None = None
    cost: Amount | None = None
    tokens: int | None = None
    tool_calls: int | None = None
    gate: str | None = None
    lease_epoch: int | None = None
    attempt: int | None = None
    report_token: str | None = None


class StartBody(Body, frozen=True, kw_only=True):
    """A run without a schedule. `scheduled_for`: time that the run is for. The idempotency key is kept as long as the
    run.
    """

    OTHER_NAMES: ClassVar = {"input": "inputs"}

    workflow_id: str
    idempotency_key: Text
    version: int | str | None = None
    user_id: str | None = None
    inputs: Any = None
    scheduled_for: Time | None = None
    approval_status: Text | None = None
    skip_approval: bool = False


class CalendarBody(Body, frozen=True, kw_only=True):
    """A custom calendar: dates or a rule. An update keeps omitted fields.

    `timezone` null: the days are those of the time zone of each schedule that uses the calendar.
    """

    name: Name | None = None
    kind: CalendarKind | None = None
    timezone: str | None = None
    dates: tuple[str, ...] | None = None
    rule: str | None = None


class CloneBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"new_name": "name"}

    name: Name


class NamespaceBody(Body, frozen=True, kw_only=True):
    OTHER_NAMES: ClassVar = {"name": "namespace"}

    namespace: Name
    description: Note = ""


class NamespaceChange(Body, frozen=True, kw_only=True):
    """New values of `quotas` and `retention`: a number, null (no limit, or kept forever) or `default`."""

    description: Note | None = None
    quotas: Object | None = None
    retention: Object | None = None


class PauseBody(Body, frozen=True, kw_only=True):
    """`paused` false resumes. `until`: time at which the trigger resumes. A local time is read in `timezone` (default:
    the time zone of the schedule).
    """

    OTHER_NAMES: ClassVar = {"note": "reason"}

    schedule_id: Name
    paused: bool
    reason: Note | None = None
    until: Moment | None = None
    timezone: ZoneName | None = None


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────

_Read = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class _Member:
    read: _Read
    required: bool


def read_body(kind: type[B], document: Mapping[str, Any]) -> B:
    """Raises InvalidDefinition with all problems."""
    members, other = _members(kind), kind.OTHER_NAMES
    errors: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for key, given in document.items():
        spelled = key if key in members or key in other else _HUMP.sub("_", key).lower()
        name = spelled if spelled in members else other.get(spelled)
        if name is None:
            if len(errors) < _MAX_UNKNOWN:
                errors[key[:100]] = ["unknown field"]
        elif given is not None and name not in values:
            try:
                values[name] = members[name].read(given, key)
            except InvalidDefinition as wrong:
                errors |= {f"{key}.{inside}": texts for inside, texts in wrong.errors.items()}
                values[name] = None
            except (PolicyError, InvalidSpec, ValueError) as wrong:
                errors[key] = [_error_text(wrong)]
                values[name] = None
    missing = (name for name, member in members.items() if member.required and name not in values)
    errors |= {name: ["is required"] for name in missing}
    if errors:
        raise InvalidDefinition(errors)
    return kind(**values)


def names_of(kind: type[Body]) -> tuple[str, ...]:
    return kind.__struct_fields__


def _error_text(wrong: Exception) -> str:
    match wrong:
        case PolicyError():
            return wrong.text
        case InvalidSpec():
            return wrong.message
        case _:
            return str(wrong)


@cache  # as many entries as there are kinds of bodies
def _members(kind: type[Body]) -> Mapping[str, _Member]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: _Member(_reader(hints[each.name]), each.required) for each in msgspec.structs.fields(kind)}


def _reader(hint: Any) -> _Read:
    if get_origin(hint) in (UnionType, Union):
        parts = [part for part in get_args(hint) if part is not type(None)]
        hint = parts[0] if len(parts) == 1 else Any
    bounds: Meta | None = None
    if get_origin(hint) is Annotated:
        hint, bounds = get_args(hint)[:2]
    if hint is str:
        return _text_reader(bounds)
    if hint is bool:
        return _flag
    if hint is int:
        return _whole
    if hint is datetime:
        return _time
    if isinstance(hint, type) and issubclass(hint, Body):
        return lambda value, _field: read_body(hint, _object(value))
    if bounds is not None and get_origin(hint) is tuple:
        return _texts_reader(bounds)
    if bounds is not None and get_origin(hint) is Mapping:
        return _pairs_reader(bounds, or_null=type(None) in get_args(get_args(hint)[1]))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        aliases = _ALIASES.get(hint, {})
        return lambda value, field: parse_name(hint, aliases, value, field)
    return lambda value, _field: value


def _text_reader(bounds: Meta | None) -> _Read:
    most = MAX_NOTE if bounds is None or bounds.max_length is None else bounds.max_length
    least = 0 if bounds is None or bounds.min_length is None else bounds.min_length

    def read(value: object, field: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError(f"must be a string of at most {most} characters")
        if len(value) < least or (least and not value.strip()):
            raise ValueError("must not be blank")
        if "\x00" in value:
            raise ValueError("must not contain the character U+0000")
        check_text(field, value)
        return value

    return read


def _texts_reader(bounds: Meta) -> _Read:
    """A list of short texts, each once; their order stays."""
    one, least, most = _text_reader(_text(255)), bounds.min_length or 0, bounds.max_length or MAX_NOTE

    def read(value: object, field: str) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            raise ValueError(f"must be a list of {least} to {most} strings")
        return tuple(dict.fromkeys(one(each, field) for each in value))

    return read


def _pairs_reader(bounds: Meta, *, or_null: bool) -> _Read:
    one, most = _text_reader(_text(255)), bounds.max_length or MAX_NOTE

    def read(value: object, field: str) -> Mapping[str, str | None]:
        if not isinstance(value, Mapping) or len(value) > most:
            raise ValueError(f"must be an object with at most {most} members, all of them strings")
        return {
            one(name, field): None if or_null and text is None else one(text, field) for name, text in value.items()
        }

    return read


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object")
    return value


def _flag(value: object, _field: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _whole(value: object, _field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_WHOLE:
        raise ValueError(f"must be a whole number from 0 to {MAX_WHOLE}")
    return value


def _time(value: object, field: str) -> datetime:
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError("must be a time such as 2026-03-08T07:00:00Z")
    return to_datetime(from_rfc3339(value if _HAS_OFFSET.search(value) else f"{value}Z", field=field))
