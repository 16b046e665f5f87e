"""Calls that preview, explain and compare schedules and test conditions. None of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from horarium.features.schedules.calls import SCHEDULE, SCHEDULES
from horarium.features.schedules.change_model import ConditionTest, Revision, RevisionComparison, ScheduleDraft
from horarium.features.schedules.model import Explanation, PreviewRow, Year
from horarium.platform.client.call import Call, Method, Own, OwnPages, Page, Pages, When, given, many, one

if TYPE_CHECKING:
    from horarium.core.document.fields import ScheduleFields


Document = Mapping[str, Any]


class DraftCalls:
    @Method
    @staticmethod
    def draft_schedule(
        document: Document | None = None,
        /,
        *,
        changing: str | None = None,
        merge: bool | None = None,
        whole: bool | None = None,
        n: int | None = None,
        year: int | None = None,
        **fields: Unpack[ScheduleFields],
    ) -> Call[ScheduleDraft]:
        """Preview creating a schedule or, with the ID of a schedule as `changing`, updating it.

        `merge` previews a patch, `whole` an update that replaces the whole definition.
        """
        query = {"schedule_id": changing, "merge": merge, "whole": whole, "n": n, "year": year}
        body = {**(document or {}), **fields}
        return Call("POST", f"{SCHEDULES}/draft", one(ScheduleDraft), query=query, body=body)

    @Method
    @staticmethod
    def preview_schedule(
        schedule_id: str, *, n: int | None = None, start: When | None = None, timezone: str | None = None
    ) -> Call[Page[PreviewRow]]:
        """Preview the upcoming occurrences. `start` may be a local time or date in `timezone` (default: time zone of
        the schedule).
        """
        return Call(
            "GET",
            f"{SCHEDULE}/preview",
            many(PreviewRow, "rows", "preview"),
            {"schedule_id": schedule_id},
            query={"n": n, "from": start, "timezone": timezone},
        )

    @Method
    @staticmethod
    def get_schedule_year(schedule_id: str, *, year: int | None = None) -> Call[Year]:
        """Show the fire days of a year and the days that calendars exclude (default this year)."""
        return Call("GET", f"{SCHEDULE}/year", one(Year), {"schedule_id": schedule_id}, query={"year": year})

    @Method
    @staticmethod
    def explain_schedule(schedule_id: str, at: When, *, timezone: str | None = None) -> Call[Explanation]:
        """Explain an occurrence. A local time is read in `timezone` (default: time zone of the schedule)."""
        query = {"at": at, "timezone": timezone}
        return Call("GET", f"{SCHEDULE}/explain", one(Explanation), {"schedule_id": schedule_id}, query=query)

    @Method
    @staticmethod
    def list_schedule_revisions(
        schedule_id: str, *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[Revision]]:
        """List the revisions of a schedule, newest first. Also available for deleted schedules."""
        return Call(
            "GET",
            f"{SCHEDULE}/revisions",
            many(Revision, "revisions"),
            {"schedule_id": schedule_id},
            query={"page_size": page_size, "next_page_token": next_page_token},
            cursor="next_page_token",
        )

    @Method
    @staticmethod
    def compare_schedule_revisions(
        schedule_id: str, older: int | None = None, newer: int | None = None
    ) -> Call[RevisionComparison]:
        """Compare two revisions: fields and future fires (default: the newest two)."""
        query = {"from": older, "to": newer}
        path = f"{SCHEDULE}/revisions/compare"
        return Call("GET", path, one(RevisionComparison), {"schedule_id": schedule_id}, query=query)

    @Method
    @staticmethod
    def test_condition(
        condition: Document | None, *, schedule_id: str | None = None, context: Any = None
    ) -> Call[ConditionTest]:
        """Test a condition on `context`, or on the current context of the schedule."""
        body = {"condition": condition, **given(schedule_id=schedule_id, context=context)}
        return Call("POST", "/api/conditions/test", one(ConditionTest), body=body)

    iter_schedule_revisions = Pages(list_schedule_revisions)


class RevisionMethods:
    """Calls about revisions and previews of one schedule, without its ID."""

    preview = Own(DraftCalls.preview_schedule)
    year = Own(DraftCalls.get_schedule_year)
    explain = Own(DraftCalls.explain_schedule)
    revisions = Own(DraftCalls.list_schedule_revisions)
    compare_revisions = Own(DraftCalls.compare_schedule_revisions)
    iter_revisions = OwnPages(DraftCalls.list_schedule_revisions)
