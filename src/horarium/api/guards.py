"""The routes of a schedule's guards: its calendars, its condition and the rotation of its inputs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from horarium.api import views
from horarium.api.answers import Answer
from horarium.api.etags import IfMatch, etag, version_of
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, ResourcesOf, json_body
from horarium.errors import InvalidDefinition
from horarium.operations import guards
from horarium.operations.guards import Guarded
from horarium.operations.write_result import WriteResult

router = APIRouter(prefix="/api/schedules/{schedule_id}", tags=["guards"])

Value = Annotated[Any, Depends(json_body)]


@router.put("/calendars")
@idempotent
def set_calendars(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Answer:
    """All of them must allow a day."""
    names = _member(body, "calendars", "calendar_ids") if isinstance(body, dict) else body
    return _put(resources, caller, schedule_id, Guarded.CALENDARS, names, if_match)


@router.delete("/calendars")
@idempotent
def clear_calendars(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Answer:
    return _clear(resources, caller, schedule_id, Guarded.CALENDARS, if_match)


@router.put("/condition")
@idempotent
def set_condition(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Answer:
    """What must hold for an occurrence to fire: the filter itself, or a `pre_dispatch_condition` that holds it."""
    # A filter maps JSON pointers, which are empty or begin with a slash: no pointer is spelled like these names.
    named = isinstance(body, dict) and any(name in body for name in ("pre_dispatch_condition", "condition"))
    condition = _member(body, "pre_dispatch_condition", "condition") if named else body
    return _put(resources, caller, schedule_id, Guarded.CONDITION, condition, if_match)


@router.delete("/condition")
@idempotent
def clear_condition(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Answer:
    return _clear(resources, caller, schedule_id, Guarded.CONDITION, if_match)


@router.put("/rotation")
@idempotent
def set_rotation(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Value, if_match: IfMatch = None
) -> Answer:
    """Inputs that runs take in turn; begins with the first again, also when nothing else changes."""
    inputs = _member(body, "inputs_rotation", "inputs") if isinstance(body, dict) else body
    return _put(resources, caller, schedule_id, Guarded.ROTATION, inputs, if_match)


@router.delete("/rotation")
@idempotent
def clear_rotation(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Answer:
    return _clear(resources, caller, schedule_id, Guarded.ROTATION, if_match)


def _member(body: dict[str, Any], *names: str) -> Any:
    """The one thing that such a body holds, by any of its names."""
    given = [name for name in names if body.get(name) is not None]
    unknown = {name[:100]: ["unknown field"] for name in sorted(body.keys() - set(names))[:10]}
    if unknown:
        raise InvalidDefinition(unknown)
    if len(given) != 1:
        raise InvalidDefinition({names[0]: ["is required"]})
    return body[given[0]]


def _put(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, value: Any, if_match: str | None
) -> Answer:
    if value is None or (value == {} and part is Guarded.CONDITION):
        raise InvalidDefinition({part.value: ["is required; DELETE clears it"]})
    return _written(guards.put(resources, caller, schedule_id, part, value, if_version=version_of(if_match)))


def _clear(resources: ResourcesOf, caller: CallerOf, schedule_id: str, part: Guarded, if_match: str | None) -> Answer:
    return _written(guards.clear(resources, caller, schedule_id, part, if_version=version_of(if_match)))


def _written(done: WriteResult) -> Answer:
    return Answer(views.written(done), headers={"ETag": etag(done.version)})
