"""The route of the agenda: what all schedules of a namespace did and will do in a window of time."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.pages import within_bytes
from horarium.api.previews import moment
from horarium.api.requests import CallerOf, ResourcesOf
from horarium.api.routing import READ, Routes
from horarium.decision.agenda import Entry
from horarium.decision.forecast import Forecast
from horarium.ids import id_text
from horarium.instant import to_datetime
from horarium.operations import agendas
from horarium.schedule.reason import Reason
from horarium.wire.agenda import Agenda, AgendaBucket, AgendaRow

routes = Routes("/api", tag="previews")


@routes(
    "GET",
    "/agenda",
    needs=READ,
    summary="Show what all schedules do in a window of time",
    answer=Agenda,
    example=Agenda(
        namespace="default",
        start=examples.AT,
        end=examples.LATER,
        rows=(
            AgendaRow(
                schedule_id="nightly-report",
                at=examples.AT,
                decision=Forecast.SKIP,
                reason=Reason.CALENDAR.value,
                predicted=True,
            ),
        ),
        buckets=(AgendaBucket(at=examples.AT, starts=0, skips=1),),
        truncated=False,
    ),
)
def get_agenda(
    resources: ResourcesOf,
    caller: CallerOf,
    start: Annotated[str | None, Query(alias="from", description="the first moment; now, unless given")] = None,
    end: Annotated[str | None, Query(alias="to", description="up to before this; 24 hours, unless given")] = None,
    limit: Annotated[int, Query(description="rows, 1 to 5000")] = agendas.DEFAULT_ROWS,
    bucket_seconds: Annotated[int, Query(description="how long a bucket is")] = agendas.DEFAULT_BUCKET,
) -> Reply:
    """Past occurrences as they were decided, with their runs; those to come as a preview sees them. 31 days at most."""
    first, last = (None if start is None else moment("from", start)), (None if end is None else moment("to", end))
    found, rows = within_bytes(
        limit,
        lambda most: agendas.look(
            resources, caller, start=first, end=last, limit=most or limit, bucket_seconds=bucket_seconds
        ),
        lambda found: map(_row, found.rows),
    )
    return Reply(
        Agenda(
            namespace=caller.namespace,
            start=to_datetime(found.start),
            end=to_datetime(found.end),
            rows=rows,
            buckets=tuple(
                AgendaBucket(at=to_datetime(each.at), starts=each.starts, skips=each.skips) for each in found.buckets
            ),
            truncated=found.truncated,
        )
    )


def _row(entry: Entry) -> AgendaRow:
    return AgendaRow(
        schedule_id=entry.schedule_id,
        at=to_datetime(entry.at),
        decision=entry.decision,
        reason=entry.reason,
        predicted=entry.predicted,
        run_id=None if entry.run_id is None else id_text(entry.run_id),
        state=entry.state,
        count=entry.count,
    )
