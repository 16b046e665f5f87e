"""The routes of calendars: one's own, the built-in ones, and rules such as `holidays:US`.

The name of a rule may hold a slash (`holidays:US@America/New_York`), so a name is the rest of a path.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.etags import IfMatch, etag, version_of
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.views import Body, moment
from horarium.operations import calendars
from horarium.operations.calendars import Kept
from horarium.schedule.calendar import Calendar, day_name, to_document

router = APIRouter(prefix="/api/calendars", tags=["calendars"])

_MAX_NAME = 128


@router.get("")
def list_calendars(resources: ResourcesOf, caller: CallerOf) -> Answer:
    """One's own by name, then the built-in ones."""
    return Answer({"calendars": [_shown(kept) for kept in calendars.list_calendars(resources, caller)]})


@router.post("", status_code=201)
@idempotent
def create(resources: ResourcesOf, caller: CallerOf, document: Document) -> Answer:
    return _answer(calendars.create(resources, caller, document), 201)


@router.post("/{name:path}/clone", status_code=201)
@idempotent
def clone(resources: ResourcesOf, caller: CallerOf, name: str, body: Document) -> Answer:
    """How one begins to change a calendar that is built in."""
    fields = Fields(body)
    new_name = fields.require("name", fields.text("name", "new_name", most=_MAX_NAME))
    fields.check()
    assert new_name is not None  # or check would have raised
    return _answer(calendars.clone_calendar(resources, caller, name, new_name), 201)


@router.get("/{name:path}")
def get(
    resources: ResourcesOf,
    caller: CallerOf,
    name: str,
    year: Annotated[int | None, Query(ge=1900, le=2200, description="also tell the days of this year")] = None,
) -> Answer:
    kept = calendars.get(resources, caller, name)
    return _answer(kept) if year is None else _answer(kept, days=_days(kept.calendar, year))


@router.put("/{name:path}")
@idempotent
def update(resources: ResourcesOf, caller: CallerOf, name: str, document: Document, if_match: IfMatch = None) -> Answer:
    """What the document does not say stays."""
    return _answer(calendars.update(resources, caller, name, document, if_version=version_of(if_match)))


@router.delete("/{name:path}")
@idempotent
def delete(resources: ResourcesOf, caller: CallerOf, name: str) -> Answer:
    """Refused while a schedule names it."""
    calendars.delete(resources, caller, name)
    return Answer({"name": name, "outcome": "deleted"})


def _answer(kept: Kept, status_code: int = 200, **members: Any) -> Answer:
    headers = {} if kept.version is None else {"ETag": etag(kept.version)}
    return Answer({**_shown(kept), **members}, status_code, headers=headers)


def _shown(kept: Kept) -> Body:
    return {
        **to_document(kept.calendar),
        "version": kept.version,
        "updated_at": moment(kept.updated_at),
        "warning": kept.warning,
    }


def _days(calendar: Calendar, year: int) -> list[Body]:
    """The days that it lists, with the name that its rule has for each."""
    first = date(year, 1, 1)
    named = ((day, day_name(calendar, day)) for day in (first + timedelta(days=n) for n in range(366)))
    return [
        {"date": day.isoformat(), "name": name or None} for day, name in named if name is not None and day.year == year
    ]
