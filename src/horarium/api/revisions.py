"""The routes that tell what a schedule has been: its definitions, and what differs between two of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.drafts import shown_changes
from horarium.api.pages import within_bytes
from horarium.api.requests import CallerOf, ResourcesOf
from horarium.api.routing import READ, Routes
from horarium.instant import to_datetime
from horarium.operations import revisions
from horarium.operations.resources import Resources
from horarium.schedule.damage import damage_of
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.drafts import (
    FireChanges,
    MovedFire,
    Revision,
    RevisionComparison,
    RevisionField,
    RevisionList,
)

routes = Routes("/api/schedules/{schedule_id}/revisions", tag="history")


@routes(
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


@routes(
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


def _shown(resources: Resources, schedule: ScheduleRow, written: revisions.Written) -> Revision:
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
