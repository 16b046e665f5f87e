"""Routes of drafts and revisions: validate and preview a document, list and compare revisions."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.core.decision import year as decision_year
from horarium.core.document.canonical import UpdateMode
from horarium.core.document.effective_policies import PolicyOrigin
from horarium.core.document.json_values import damage_of
from horarium.features.forecast.routes import preview_rows, shown_year
from horarium.features.resources import Resources
from horarium.features.runs.model import RunPolicies
from horarium.features.runs.views import shown_policies
from horarium.features.schedules import revisions
from horarium.features.schedules.change_model import (
    FireChanges,
    MovedFire,
    Revision,
    RevisionComparison,
    RevisionField,
    RevisionList,
    ScheduleDraft,
)
from horarium.features.schedules.model import Year, YearDay
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import to_datetime
from horarium.platform.http import examples
from horarium.platform.http.limits import within_bytes
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import READ, Routes, ScheduleDocument

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
    how = UpdateMode.MERGE if merge else UpdateMode.WHOLE if whole else UpdateMode.PARTS
    found = revisions.draft(resources, caller, document, schedule_id=schedule_id, how=how, rows=n, year=year)
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


def _shown_year(found: revisions.DraftResult) -> Year:
    named = (found.document or {}).get("schedule_id")
    assert found.year is not None  # that is why it is shown
    return shown_year(named or "", found.year)


def shown_changes(found: decision_year.FireComparison) -> FireChanges:
    return FireChanges(
        added=tuple(map(to_datetime, found.added)),
        removed=tuple(map(to_datetime, found.removed)),
        moved=tuple(MovedFire(before=to_datetime(each.before), after=to_datetime(each.after)) for each in found.moved),
        until=to_datetime(found.until),
        bounded=found.bounded,
    )


revision_routes = Routes("/api/schedules/{schedule_id}/revisions", tag="history")


@revision_routes(
    "GET",
    "",
    needs=READ,
    summary="List the revisions of a schedule",
    answer=RevisionList,
    example=RevisionList(
        schedule_id="nightly-report",
        revisions=(
            Revision(revision=1, recorded_at=examples.AT, principal="ada", note=None, document=examples.SCHEDULE),
        ),
        next_page_token=None,
    ),
)
def list_schedule_revisions(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 100 (default 20).")] = None,
    next_page_token: str | None = None,
) -> Reply:
    """Newest first. Also available for deleted schedules."""
    page, shown = within_bytes(
        page_size,
        lambda most: revisions.read(resources, caller, schedule_id, page_size=most, next_page_token=next_page_token),
        lambda page: (_shown(resources, page.schedule, each) for each in page.revisions),
    )
    return Reply(
        RevisionList(schedule_id=page.schedule.schedule_id, revisions=shown, next_page_token=page.next_page_token)
    )


@revision_routes(
    "GET",
    "/compare",
    needs=READ,
    summary="Compare two revisions of a schedule",
    answer=RevisionComparison,
    example=RevisionComparison(
        schedule_id="nightly-report",
        before=1,
        after=2,
        fields=(RevisionField(path="spec.cron_expressions", before=["0 1 * * *"], after=["0 2 * * *"]),),
        changes=FireChanges(
            added=(),
            removed=(),
            moved=(MovedFire(before=examples.AT, after=examples.LATER),),
            until=examples.LATER,
            bounded=False,
        ),
    ),
)
def compare_schedule_revisions(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    before: Annotated[
        int | None, Query(alias="from", description="Revision number (default: the one before `to`).")
    ] = None,
    after: Annotated[int | None, Query(alias="to", description="Revision number (default: the newest).")] = None,
) -> Reply:
    """Returns the fields that differ and the future fires that are added, removed or moved."""
    found = revisions.compare(resources, caller, schedule_id, before=before, after=after)
    return Reply(
        RevisionComparison(
            schedule_id=schedule_id,
            before=found.before,
            after=found.after,
            fields=tuple(RevisionField(path=each.path, before=each.old, after=each.new) for each in found.fields),
            changes=None if found.changes is None else shown_changes(found.changes),
        )
    )


def _shown(resources: Resources, schedule: ScheduleRow, written: revisions.RevisionEntry) -> Revision:
    row, author = written.row, written.author
    broken = damage_of(row.document)
    if broken is not None:
        name = f"{schedule.namespace}/{schedule.schedule_id} {row.revision}"
        about = {"namespace": schedule.namespace, "schedule_id": schedule.schedule_id}
        resources.damages.tell(resources.telemetry, "revision", name, broken, **about)
    return Revision(
        revision=row.revision,
        recorded_at=to_datetime(row.created_at),
        principal=author.principal,
        note=author.reason,
        document={} if broken is not None else row.document,
        broken=broken,
    )
