"""Create, change, clone and delete calendars. Built-in calendars are read-only.

A calendar belongs to its creator, as a schedule does, because it decides whether schedules of other owners run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from horarium.core.document.calendar import (
    LISTED,
    CalendarDefinition,
    clone,
    coverage_warning,
    parse_calendar,
    shared_calendar,
    to_document,
)
from horarium.core.document.json_values import UnreadableEntry, unreadable_of
from horarium.errors import HorariumError, InvalidCalendar
from horarium.features.calendars import rows as calendar_rows
from horarium.features.calendars.rows import CalendarRow
from horarium.features.resources import Resources
from horarium.features.schedules import lookup_rows
from horarium.features.schedules.drafts import check_bytes, check_rows, hold_namespace, require_namespace
from horarium.instant import Instant, to_datetime
from horarium.platform.caller import MAX_LIMIT, Caller, checked_limit
from horarium.platform.database import Connection, limits
from horarium.platform.database.errors import CannotRead, UniqueConflict
from horarium.platform.errors import (
    CalendarAlreadyExists,
    CalendarInUse,
    CalendarNotFound,
    CalendarReadOnly,
    VersionMismatch,
)
from horarium.platform.wire import Permission


@dataclass(frozen=True, slots=True)
class StoredCalendar:
    """`version` is None for a built-in calendar. `warning` says that its data ends soon. `owner` None = nobody's."""

    calendar: CalendarDefinition
    version: int | None = None
    updated_at: Instant | None = None
    warning: str | None = None
    bundle: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class CalendarPage:
    """`next_page_token` None = this is the last, with the built-in ones at its end."""

    calendars: tuple[StoredCalendar | UnreadableEntry, ...]
    next_page_token: str | None


def list_calendars(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> CalendarPage:
    """One's own by name, then the built-in ones and the rules; of these, `holidays:US` and the like are too many.

    The token of a page is the name of its last calendar.
    """
    caller.require(Permission.READ)
    limit = checked_limit(page_size, default=MAX_LIMIT)
    today = _today(resources)

    def look(connection: Connection) -> CalendarPage:
        require_namespace(connection, caller.namespace)
        rows, more = calendar_rows.list_page(connection, caller.namespace, after_name=next_page_token, limit=limit)
        own = tuple(_listed(row, today) for row in rows)
        if more and rows:
            return CalendarPage(own, rows[-1].name)
        return CalendarPage((*own, *(_shared(calendar, today) for calendar in LISTED)), None)

    return resources.database.read(look)


def get(resources: Resources, caller: Caller, name: str) -> StoredCalendar:
    caller.require(Permission.READ)
    return resources.database.read(lambda connection: _get(connection, caller, name, _today(resources)))


def create(resources: Resources, caller: Caller, document: Mapping[str, object]) -> StoredCalendar:
    caller.require(Permission.WRITE)
    return _insert(resources, caller, parse_calendar(document))


def update(
    resources: Resources, caller: Caller, name: str, document: Mapping[str, object], *, if_version: int | None = None
) -> StoredCalendar:
    """Update a calendar; members missing in the document stay. The name cannot change."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> StoredCalendar:
        row = _own(connection, caller, name)
        if if_version is not None and row.version != if_version:
            raise VersionMismatch(if_version, row.version)
        if document.get("name", name) != name:
            raise InvalidCalendar("name: cannot be changed; clone the calendar under the new name")
        calendar = parse_calendar({**row.document, **document})
        now = resources.clock.now()
        changed = to_document(calendar)
        version = calendar_rows.update(
            connection, caller.namespace, name, changed, expected_version=row.version, now=now
        )
        check_bytes(resources, connection, caller.namespace, changed, now, before=row.document)
        warning = coverage_warning(calendar, _today(resources))
        return StoredCalendar(calendar, version, now, warning, row.bundle, row.owner)

    return _write_with_retry(resources, work)


def delete(resources: Resources, caller: Caller, name: str) -> None:
    """Refused while a schedule names it: without its calendar a schedule would not run at all."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> None:
        _own(connection, caller, name)
        users = lookup_rows.schedules_with_calendar(connection, caller.namespace, [name])
        if users:
            raise CalendarInUse(name, tuple(schedule_id for schedule_id, _ in users))
        calendar_rows.delete(connection, caller.namespace, name)

    resources.database.write(work)


def clone_calendar(resources: Resources, caller: Caller, name: str, new_name: str) -> StoredCalendar:
    """Clone any calendar, also a built-in or rule calendar, so that the clone can be edited."""
    caller.require(Permission.WRITE)
    return _insert(resources, caller, clone(get(resources, caller, name).calendar, new_name))


def _insert(resources: Resources, caller: Caller, calendar: CalendarDefinition) -> StoredCalendar:
    now = resources.clock.now()

    def work(connection: Connection) -> None:
        hold_namespace(connection, caller.namespace)
        document = to_document(calendar)
        check_rows(connection, limits.CALENDARS, caller.namespace)
        calendar_rows.insert(connection, caller.namespace, calendar.name, document, now=now, owner=caller.principal)
        check_bytes(resources, connection, caller.namespace, document, now)

    try:
        resources.database.write(work)
    except UniqueConflict:
        raise CalendarAlreadyExists(calendar.name) from None
    return StoredCalendar(calendar, 1, now, coverage_warning(calendar, _today(resources)), owner=caller.principal)


def _write_with_retry(resources: Resources, work: Callable[[Connection], StoredCalendar]) -> StoredCalendar:
    """Two edits at once: the second begins again and sees the first."""
    try:
        return resources.database.write(work)
    except UniqueConflict:
        return resources.database.write(work)


def _get(connection: Connection, caller: Caller, name: str, today: date) -> StoredCalendar:
    row = calendar_rows.find(connection, caller.namespace, name)
    if row is not None:
        return _stored(row, today)
    try:
        found = shared_calendar(name)
    except InvalidCalendar:
        found = None
    if found is None:
        raise CalendarNotFound(name[:128])
    return _shared(found, today)


def _own(connection: Connection, caller: Caller, name: str) -> CalendarRow:
    """One that the caller may change."""
    row = calendar_rows.find(connection, caller.namespace, name)
    if row is None:
        _get(connection, caller, name, date.min)  # raises CalendarNotFound
        raise CalendarReadOnly(f"the calendar {name!r} is built in and read-only; clone it and edit the copy")
    caller.require_owner(row.owner, f"the calendar {name!r}")
    return row


def _stored(row: CalendarRow, today: date) -> StoredCalendar:
    try:
        calendar = parse_calendar(row.document)
    except (HorariumError, ValueError, TypeError, AttributeError) as wrong:
        raise CannotRead("calendar", row.name, f"document: {wrong}"[:200]) from wrong
    return StoredCalendar(
        calendar, row.version, row.updated_at, coverage_warning(calendar, today), row.bundle, row.owner
    )


def _listed(row: CalendarRow, today: date) -> StoredCalendar | UnreadableEntry:
    found = unreadable_of(row)
    if found is not None:
        return found
    try:
        return _stored(row, today)
    except CannotRead as wrong:
        return UnreadableEntry(row.name, wrong.detail)


def _shared(calendar: CalendarDefinition, today: date) -> StoredCalendar:
    return StoredCalendar(replace(calendar, read_only=True), warning=coverage_warning(calendar, today))


def _today(resources: Resources) -> date:
    return to_datetime(resources.clock.now()).date()
