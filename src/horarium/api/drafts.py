"""The route that validates and previews a document; it writes nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.previews import preview_rows, shown_year
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.routing import READ, Routes, ScheduleDocument
from horarium.api.run_views import shown_policies
from horarium.decision import fires
from horarium.instant import to_datetime
from horarium.operations import schedule_drafts
from horarium.schedule.effective import PolicyOrigin
from horarium.schedule.patch import Update
from horarium.wire.drafts import FireChanges, MovedFire, ScheduleDraft
from horarium.wire.runs import RunPolicies
from horarium.wire.schedules import Year, YearDay

routes = Routes("/api/schedules", tag="previews")


@routes(
    "POST",
    "/draft",
    needs=READ,
    summary="Preview a schedule document",
    body=ScheduleDocument,
    sends={**examples.SCHEDULE, "schedule_id": "weekly-report"},
    answer=ScheduleDraft,
    example=ScheduleDraft(
        valid=True,
        may_write=True,
        errors={},
        document={**examples.SCHEDULE, "schedule_id": "weekly-report"},
        words="at 02:00 every day (Europe/Istanbul time)",
        warnings=(),
        fires=(examples.PREVIEW,),
        year=Year(
            schedule_id="weekly-report",
            timezone="Europe/Istanbul",
            year=2026,
            days=(YearDay(date="2026-03-02", fires=1, skips=0, reasons={}),),
            bounded=False,
        ),
        changes=None,
        policies=RunPolicies(
            approval_policy={"requires_approval": False},
            retry_policy={"max_attempts": 1},
            failure_policy={"mode": "fail"},
            limits={"cost": None},
            origins={"approval_policy.requires_approval": PolicyOrigin.DEFAULT},
        ),
    ),
    repeatable=False,  # it writes nothing
)
def draft_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    document: Document,
    schedule_id: Annotated[str | None, Query(description="ID of the schedule to update, as PUT would.")] = None,
    merge: Annotated[bool, Query(description="Merge into that schedule, as PATCH would.")] = False,
    whole: Annotated[bool, Query(description="Replace the whole schedule, as PUT with `whole` would.")] = False,
    n: Annotated[int, Query(description="Number of fire times, 0 to 50.")] = 10,
    year: Annotated[int | None, Query(description="Year of the overview (default this year).")] = None,
) -> Reply:
    """Validates as a create would or, with `schedule_id`, as an update would. Validation errors are in `errors`; the
    status is still 200.
    """
    how = Update.MERGE if merge else Update.WHOLE if whole else Update.PARTS
    found = schedule_drafts.draft(resources, caller, document, schedule_id=schedule_id, how=how, rows=n, year=year)
    return Reply(
        ScheduleDraft(
            valid=not found.errors,
            may_write=found.may_write,
            errors={path: tuple(texts) for path, texts in found.errors.items()},
            document=found.document,
            words=found.words,
            warnings=found.warnings,
            fires=tuple(preview_rows(found.fires)),
            year=None if found.year is None else _shown_year(found),
            changes=None if found.changes is None else shown_changes(found.changes),
            policies=None if found.policies is None else shown_policies(found.policies),
        )
    )


def _shown_year(found: schedule_drafts.ScheduleDraft) -> Year:
    named = (found.document or {}).get("schedule_id")
    assert found.year is not None  # that is why it is shown
    return shown_year(named or "", found.year)


def shown_changes(found: fires.FireChanges) -> FireChanges:
    return FireChanges(
        added=tuple(map(to_datetime, found.added)),
        removed=tuple(map(to_datetime, found.removed)),
        moved=tuple(MovedFire(before=to_datetime(each.before), after=to_datetime(each.after)) for each in found.moved),
        until=to_datetime(found.until),
        bounded=found.bounded,
    )
