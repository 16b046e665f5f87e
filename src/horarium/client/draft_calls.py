"""Every call about what a schedule would be, has been and will do, and what a condition sees; none of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from horarium.client.call import Call, When, given, many, one
from horarium.client.methods import Method, Own, OwnPages, Pages
from horarium.client.page import Page
from horarium.client.schedule_calls import SCHEDULE, SCHEDULES
from horarium.wire.drafts import ConditionTest, Revision, RevisionComparison, ScheduleDraft
from horarium.wire.schedules import Explanation, PreviewRow, Year

if TYPE_CHECKING:
    from horarium.schedule.fields import ScheduleFields

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
        """What creating it would do or, with the id of a schedule as `changing`, what updating that would.

        With `merge`, as patching it would; with `whole`, as updating it as a whole would.
        """
        query = {"schedule_id": changing, "merge": merge, "whole": whole, "n": n, "year": year}
        body = {**(document or {}), **fields}
        return Call("POST", f"{SCHEDULES}/draft", one(ScheduleDraft), query=query, body=body)

    @Method
    @staticmethod
    def preview_schedule(
        schedule_id: str, *, n: int | None = None, start: When | None = None, timezone: str | None = None
    ) -> Call[Page[PreviewRow]]:
        """What each coming occurrence would bring, and why; nothing is written.

        `start` may be a local time or a day, of `timezone` or else of the schedule's zone.
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
        """The days of a year on which it fires, and those on which its calendars refuse; this year, unless given."""
        return Call("GET", f"{SCHEDULE}/year", one(Year), {"schedule_id": schedule_id}, query={"year": year})

    @Method
    @staticmethod
    def explain_schedule(schedule_id: str, at: When, *, timezone: str | None = None) -> Call[Explanation]:
        """Why it did, did not, will or will not fire then; a local time is of `timezone` or the schedule's zone."""
        query = {"at": at, "timezone": timezone}
        return Call("GET", f"{SCHEDULE}/explain", one(Explanation), {"schedule_id": schedule_id}, query=query)

    @Method
    @staticmethod
    def list_schedule_revisions(
        schedule_id: str, *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[Revision]]:
        """Each definition that it has had, the newest first, also of a deleted schedule."""
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
        """What differs between two definitions, and which coming fires; the newest two, unless told."""
        query = {"from": older, "to": newer}
        path = f"{SCHEDULE}/revisions/compare"
        return Call("GET", path, one(RevisionComparison), {"schedule_id": schedule_id}, query=query)

    @Method
    @staticmethod
    def test_condition(
        condition: Document | None, *, schedule_id: str | None = None, context: Any = None
    ) -> Call[ConditionTest]:
        """Whether it holds in `context`, or in what the schedule would see now, clause by clause."""
        body = {"condition": condition, **given(schedule_id=schedule_id, context=context)}
        return Call("POST", "/api/conditions/test", one(ConditionTest), body=body)

    iter_schedule_revisions = Pages(list_schedule_revisions)


class RevisionMethods:
    """The calls about what one schedule has been and will do, without its id."""

    preview = Own(DraftCalls.preview_schedule)
    year = Own(DraftCalls.get_schedule_year)
    explain = Own(DraftCalls.explain_schedule)
    revisions = Own(DraftCalls.list_schedule_revisions)
    compare_revisions = Own(DraftCalls.compare_schedule_revisions)
    iter_revisions = OwnPages(DraftCalls.list_schedule_revisions)
