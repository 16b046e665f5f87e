"""Operations on calendars.

The name of a rule may contain a slash (`holidays:US@America/New_York`), so a name is the rest of a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.features.tenants.model import Calendar, CalendarDeleted, CalendarList
from horarium.platform.bodies import CalendarBody, CloneBody
from horarium.platform.client.call import Call, Page, Pages
from horarium.platform.operation import READ, WRITE, Operations

Document = Mapping[str, Any]

operation = Operations("/api/calendars", tag="calendars")


class CalendarOperations:
    @operation("GET", "", needs=READ, summary="List calendars", answer=CalendarList)
    @staticmethod
    def list_calendars(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Calendar]]:
        """List custom calendars, then built-in ones."""

    @operation("POST", "", needs=WRITE, summary="Create a calendar", body=CalendarBody, answer=Calendar, status=201)
    @staticmethod
    def create_calendar(document: Document | None = None, /, **fields: Any) -> Call[Calendar]: ...

    @operation(
        "POST",
        "/{name:path}/clone",
        needs=WRITE,
        summary="Copy a calendar",
        body=CloneBody,
        answer=Calendar,
        status=201,
    )
    @staticmethod
    def clone_calendar(name: str, new_name: str) -> Call[Calendar]:
        """Copy a calendar, for example to change a built-in one."""

    @operation("GET", "/{name:path}", needs=READ, summary="Show a calendar", answer=Calendar)
    @staticmethod
    def get_calendar(name: str, *, year: int | None = None) -> Call[Calendar]:
        """Show a custom or built-in calendar, or a rule such as `holidays:US`; with `year`, its days of that year."""

    @operation("PUT", "/{name:path}", needs=WRITE, summary="Update a calendar", body=CalendarBody, answer=Calendar)
    @staticmethod
    def update_calendar(
        name: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Calendar]:
        """Update a calendar. Omitted fields are kept."""

    @operation("DELETE", "/{name:path}", needs=WRITE, summary="Delete a calendar", answer=CalendarDeleted)
    @staticmethod
    def delete_calendar(name: str) -> Call[CalendarDeleted]:
        """Delete a calendar. Raises CalendarInUse while a schedule uses it."""

    iter_calendars = Pages(list_calendars)
