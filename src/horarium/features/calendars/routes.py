"""Routes of calendars: custom, built-in, and rules such as `holidays:US`.

The name of a rule may contain a slash (`holidays:US@America/New_York`), so a name is the rest of a path.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

from fastapi import Query

from horarium.core.document import calendar
from horarium.features.calendars import service
from horarium.features.calendars.operations import CalendarOperations
from horarium.features.calendars.service import StoredCalendar
from horarium.features.tenants.model import Calendar, CalendarDay, CalendarDeleted, CalendarList
from horarium.platform.bodies import CloneBody, read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import Routes
from horarium.platform.wire import time_of

routes = Routes()


@routes.implements(
    CalendarOperations.list_calendars, example=CalendarList(calendars=(examples.STORED_CALENDAR,), next_page_token=None)
)
def list_calendars(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=256)] = None,
) -> Reply:
    """Custom calendars by name, then the built-in ones."""
    page, shown = within_bytes(
        page_size,
        lambda most: service.list_calendars(resources, caller, page_size=most, next_page_token=next_page_token),
        lambda page: readable(resources, "calendar", page.calendars, _shown, lambda kept: kept.calendar.name),
    )
    return Reply(CalendarList(calendars=shown, next_page_token=page.next_page_token))


@routes.implements(
    CalendarOperations.create_calendar,
    audited=Audited.IN_NAMESPACE,
    sends=examples.CALENDAR,
    example=examples.STORED_CALENDAR,
)
def create_calendar(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    return _reply(service.create(resources, caller, document), 201)


@routes.implements(
    CalendarOperations.clone_calendar,
    audited=Audited.IN_NAMESPACE,
    sends={"name": "company-holidays-copy"},
    example=examples.STORED_CALENDAR,
)
def clone_calendar(resources: ResourcesOf, caller: CallerOf, name: str, body: Document) -> Reply:
    """Creates a custom calendar from a built-in one or another calendar."""
    return _reply(service.clone_calendar(resources, caller, name, read_body(CloneBody, body).name), 201)


@routes.implements(CalendarOperations.get_calendar, example=examples.STORED_CALENDAR)
def get_calendar(
    resources: ResourcesOf,
    caller: CallerOf,
    name: str,
    year: Annotated[int | None, Query(ge=1900, le=2200, description="Include the days of this year.")] = None,
) -> Reply:
    """Custom and built-in calendars, and rules such as `holidays:US`."""
    kept = service.get(resources, caller, name)
    return _reply(kept, days=None if year is None else _days(kept.calendar, year))


@routes.implements(
    CalendarOperations.update_calendar,
    audited=Audited.IN_NAMESPACE,
    sends={"dates": ["2026-12-24"]},
    example=examples.STORED_CALENDAR,
)
def update_calendar(
    resources: ResourcesOf, caller: CallerOf, name: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Omitted fields are kept."""
    return _reply(service.update(resources, caller, name, document, if_version=version_of(if_match)))


@routes.implements(
    CalendarOperations.delete_calendar,
    audited=Audited.IN_NAMESPACE,
    example=CalendarDeleted(name="company-holidays", outcome="deleted"),
)
def delete_calendar(resources: ResourcesOf, caller: CallerOf, name: str) -> Reply:
    """Rejected while a schedule uses it."""
    service.delete(resources, caller, name)
    return Reply(CalendarDeleted(name=name, outcome="deleted"))


def _reply(kept: StoredCalendar, status_code: int = 200, *, days: tuple[CalendarDay, ...] | None = None) -> Reply:
    headers = {} if kept.version is None else {"ETag": etag(kept.version)}
    return Reply(_shown(kept, days), status_code, headers=headers)


def _shown(kept: StoredCalendar, days: tuple[CalendarDay, ...] | None = None) -> Calendar:
    found = kept.calendar
    ends = calendar.coverage_ends(found)
    return Calendar(
        name=found.name,
        kind=found.kind,
        timezone=found.timezone,
        dates=tuple(day.isoformat() for day in sorted(found.dates)),
        rule=found.rule,
        covers=None if found.covers is None else (found.covers[0].isoformat(), found.covers[1].isoformat()),
        read_only=found.read_only,
        version=kept.version,
        updated_at=time_of(kept.updated_at),
        warning=kept.warning,
        bundle=kept.bundle,
        owner=kept.owner,
        covered_until=None if ends is None else ends.isoformat(),
        days=days,
    )


def _days(found: calendar.CalendarDefinition, year: int) -> tuple[CalendarDay, ...]:
    """Return the listed days with the names that the rule gives them."""
    first = date(year, 1, 1)
    named = ((day, calendar.day_name(found, day)) for day in (first + timedelta(days=n) for n in range(366)))
    return tuple(
        CalendarDay(date=day.isoformat(), name=name or None)
        for day, name in named
        if name is not None and day.year == year
    )
