"""Routes of the guards of a schedule: calendars, condition and input rotation."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.etags import IfMatch, version_of
from horarium.api.requests import CallerOf, ResourcesOf, json_body
from horarium.api.routing import WRITE, Routes
from horarium.api.schedules import reply_written
from horarium.errors import InvalidDefinition
from horarium.operations import guards
from horarium.operations.guards import Guarded
from horarium.wire.bodies import Body, CalendarsBody, ConditionBody, RotationBody, names_of, read_body
from horarium.wire.schedules import WriteResult

routes = Routes("/api/schedules/{schedule_id}", tag="guards")

Value = Annotated[Any, Depends(json_body)]


@routes(
    "PUT",
    "/calendars",
    needs=WRITE,
    summary="Set the calendars of a schedule",
    body=CalendarsBody,
    sends={"calendars": ["us-federal-holidays-2026"]},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_calendars(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """All calendars must allow a day."""
    return _put(resources, caller, schedule_id, Guarded.CALENDARS, _value(CalendarsBody, body), if_match)


@routes(
    "DELETE",
    "/calendars",
    needs=WRITE,
    summary="Remove all calendars from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_calendars(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.CALENDARS, if_match)


@routes(
    "PUT",
    "/condition",
    needs=WRITE,
    summary="Set the condition of a schedule",
    body=ConditionBody,
    sends={"pre_dispatch_condition": {"/last_24h_stats/failed": {"lt": 3}}},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_condition(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """Accepts the condition itself or an object with `pre_dispatch_condition`."""
    # A filter maps JSON pointers, which are empty or begin with a slash: no pointer is spelled like these names.
    names = {*names_of(ConditionBody), *ConditionBody.OTHER_NAMES}
    named = isinstance(body, dict) and not names.isdisjoint(body)
    condition = _value(ConditionBody, body) if named else body
    return _put(resources, caller, schedule_id, Guarded.CONDITION, condition, if_match)


@routes(
    "DELETE",
    "/condition",
    needs=WRITE,
    summary="Remove the condition from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_condition(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.CONDITION, if_match)


@routes(
    "PUT",
    "/rotation",
    needs=WRITE,
    summary="Set the input rotation of a schedule",
    body=RotationBody,
    sends={"inputs_rotation": [{"region": "eu"}, {"region": "us"}]},
    answer=WriteResult,
    example=examples.UPDATED,
)
def set_rotation(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Reply:
    """The rotation restarts with the first entry, even if the entries are unchanged."""
    return _put(resources, caller, schedule_id, Guarded.ROTATION, _value(RotationBody, body), if_match)


@routes(
    "DELETE",
    "/rotation",
    needs=WRITE,
    summary="Remove the input rotation from a schedule",
    answer=WriteResult,
    example=examples.UPDATED,
)
def clear_rotation(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    return _clear(resources, caller, schedule_id, Guarded.ROTATION, if_match)


def _value(kind: type[Body], body: Any) -> Any:
    """The one thing that such a body holds; it may come without the object around it."""
    [name] = names_of(kind)
    return getattr(read_body(kind, body), name) if isinstance(body, dict) else body


def _put(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, value: Any, if_match: str | None
) -> Reply:
    if value is None or (value == {} and part is Guarded.CONDITION):
        raise InvalidDefinition({part.value: ["is required; use DELETE to clear it"]})
    return reply_written(guards.put(resources, caller, schedule_id, part, value, if_version=version_of(if_match)))


def _clear(resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, if_match: str | None) -> Reply:
    return reply_written(guards.clear(resources, caller, schedule_id, part, if_version=version_of(if_match)))
