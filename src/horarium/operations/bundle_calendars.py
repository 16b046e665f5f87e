"""What a bundle does to a calendar."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from horarium.errors import InvalidCalendar
from horarium.operations.bundle_documents import Stored, Written
from horarium.operations.bundle_steps import Applying
from horarium.operations.errors import CalendarInUse
from horarium.operations.quotas import check_bytes, check_rows
from horarium.schedule.bundle import BundleKind, Document
from horarium.schedule.calendar import BUILT_IN, parse_calendar, shared_calendar, to_document
from horarium.schedule.holidays import is_rule_name
from horarium.store import calendars, row_limits
from horarium.store.database import Connection
from horarium.store.schedules import references


class BundledCalendars:
    kind: Final = BundleKind.CALENDAR

    def is_built_in(self, name: str) -> bool:
        """Raises InvalidCalendar for a rule of a country that nobody knows."""
        return name in BUILT_IN or (is_rule_name(name) and shared_calendar(name) is not None)

    def named_by(self, document: Document) -> tuple[str, ...]:
        return ()

    def find(self, applying: Applying, names: Collection[str]) -> Mapping[str, Stored]:
        found = calendars.find_many(applying.connection, applying.caller.namespace, names)
        return {
            name: Stored(_compared(row.document), row.bundle, row.owner, row.version) for name, row in found.items()
        }

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        return calendars.names_of_bundle(connection, namespace, bundle, most)

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        return to_document(parse_calendar(document))

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Written:
        connection, namespace, now = applying.connection, applying.caller.namespace, applying.now
        whole = self.read(applying, name, document, there)
        before = None if there is None else there.document
        if whole == before:
            return Written()
        check_bytes(applying.resources, connection, namespace, whole, now, before=before)
        if there is None:
            owner = applying.caller.principal
            check_rows(connection, row_limits.CALENDARS, namespace)
            calendars.insert(connection, namespace, name, whole, now=now, owner=owner)
        else:
            calendars.update(connection, namespace, name, whole, expected_version=there.version, now=now)
        return Written()

    def set_bundle(self, applying: Applying, name: str) -> None:
        calendars.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        connection, namespace = applying.connection, applying.caller.namespace
        users = references.schedules_with_calendar(connection, namespace, [name])
        if users:
            raise CalendarInUse(name, tuple(schedule_id for schedule_id, _ in users))
        calendars.delete(connection, namespace, name)


def _compared(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """One that was damaged is replaced all the same."""
    try:
        return to_document(parse_calendar(document))
    except InvalidCalendar:
        return document
