"""Routes of the agenda and of the overview of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import Query

from horarium.core.decision.agenda import AgendaEntry
from horarium.core.decision.statuses import Forecast
from horarium.core.document.states import Reason, Status
from horarium.errors import InvalidDefinition
from horarium.features.cluster import service as cluster_service
from horarium.features.cluster.model import Overview, ScheduleCounts
from horarium.features.forecast import agenda, agenda_lanes
from horarium.features.forecast.model import Agenda, AgendaBucket, AgendaLane, AgendaRow, AgendaSchedule, LaneBucket
from horarium.features.forecast.routes import MOMENT, forecast_fields, written
from horarium.features.schedules.filters import ScheduleFilter
from horarium.features.schedules.views import check_texts, labels_of, status_of
from horarium.instant import to_datetime
from horarium.platform.database.statements import fitting
from horarium.platform.http import examples
from horarium.platform.http.limits import within_bytes
from horarium.platform.http.requests import ALL_NAMESPACES, CallerOf, ListCallerOf, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import READ, Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import encode, time_of

routes = Routes("/api", tag="previews")


@routes(
    "GET",
    "/agenda",
    needs=READ,
    summary="Show the occurrences of all schedules in a time window",
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
        schedules={
            "nightly-report": AgendaSchedule(name="", timezone="Europe/Istanbul", status=Status.ACTIVE),
        },
        lanes=(
            AgendaLane(
                schedule_id="nightly-report",
                name="",
                rows_complete=True,
                buckets=(LaneBucket(at=examples.AT, dispatched=0, skipped=1, held=0, missed=0, failed=0),),
            ),
        ),
    ),
)
def get_agenda(
    resources: ResourcesOf,
    caller: CallerOf,
    start: Annotated[
        str | None, Query(alias="from", description=f"Start of the window (default now): {MOMENT}.")
    ] = None,
    end: Annotated[
        str | None, Query(alias="to", description="End of the window, exclusive (default 24 hours after the start).")
    ] = None,
    timezone: Annotated[str | None, Query(description="Time zone of local times and days.")] = None,
    limit: Annotated[
        int | None,
        Query(
            description=(
                "Maximum rows, 1 to 5000 (default 1000). With `lanes`: maximum rows of each lane, 0 to "
                "5000 (default 100)."
            )
        ),
    ] = None,
    bucket_seconds: Annotated[int, Query(description="Length of a bucket, in seconds.")] = agenda.DEFAULT_BUCKET,
    lanes: Annotated[bool, Query(description="Add complete counts by schedule and bucket.")] = False,
    lane_limit: Annotated[int, Query(description="Lanes per page, 1 to 100.")] = agenda_lanes.MAX_LANES,
    next_page_token: Annotated[
        str | None, Query(max_length=8_192, description="Token of the next page of lanes.")
    ] = None,
    schedule_id: Annotated[list[str] | None, Query(description="Only these schedules, at most 100.")] = None,
    text: Annotated[
        str | None, Query(max_length=200, description="Only schedules whose ID or name contains this text.")
    ] = None,
    label: Annotated[
        list[str] | None, Query(description="Label filter as name=value. All given labels must match.")
    ] = None,
    status: Annotated[str | None, Query(description="Schedule status: active, paused, finished or broken.")] = None,
    reason: Annotated[
        Reason | None, Query(description="Only decided occurrences with this reason. Omits predictions.")
    ] = None,
) -> Reply:
    """Past occurrences as decided, with their runs; future occurrences as predicted. The window is at most 31 days.

    With `lanes`, each schedule has its own counts and its own row limit, so a frequent schedule does not hide others.
    """
    wanted = agenda.Wanted(_chosen(schedule_id, text, label, status), reason)
    now = resources.clock.now()
    asked = (written("from", start, timezone), written("to", end, timezone))
    first, last = (None if each is None else each.instant(now) for each in asked)
    if lanes:
        found, rows = _lanes_within_bytes(
            lane_limit,
            lambda most: agenda_lanes.look(
                resources,
                caller,
                start=first,
                end=last,
                limit=limit,
                bucket_seconds=bucket_seconds,
                wanted=wanted,
                lane_limit=most,
                next_page_token=next_page_token,
            ),
        )
    else:
        if next_page_token is not None:
            raise InvalidDefinition({"next_page_token": ["requires lanes=true: only lanes have pages"]})
        found, rows = within_bytes(
            agenda.DEFAULT_ROWS if limit is None else limit,
            lambda most: agenda.look(
                resources,
                caller,
                start=first,
                end=last,
                limit=agenda.DEFAULT_ROWS if most is None else most,
                bucket_seconds=bucket_seconds,
                wanted=wanted,
            ),
            lambda found: map(_row, found.rows),
        )
    return Reply(
        Agenda(
            namespace=caller.namespace,
            start=to_datetime(found.start),
            end=to_datetime(found.end),
            rows=rows,
            under_way=tuple(map(_row, found.under_way)),
            buckets=tuple(
                AgendaBucket(at=to_datetime(each.at), starts=each.starts, skips=each.skips) for each in found.buckets
            ),
            truncated=found.truncated,
            schedules={
                name: AgendaSchedule(name=each.name, timezone=each.timezone, status=each.status)
                for name, each in found.schedules.items()
            },
            lanes=None if found.lanes is None else tuple(map(_lane, found.lanes)),
            next_page_token=found.next_page_token,
        )
    )


def _lanes_within_bytes(
    lane_limit: int, ask: Callable[[int], agenda.AgendaResult]
) -> tuple[agenda.AgendaResult, tuple[Any, ...]]:
    """Return a page of as many lanes as fit with their rows."""
    found = ask(lane_limit)
    for _ in range(2):
        rows = [(each.schedule_id, encode(_row(each))) for each in found.rows]
        sizes = {each.schedule_id: len(encode(_lane(each))) for each in found.lanes or ()}
        for name, text in rows:
            sizes[name] += len(text)
        count = fitting(sizes.values())
        if count == len(sizes):
            break
        found = ask(count)
    return found, tuple(msgspec.Raw(text) for _, text in rows)


def _lane(lane: agenda.Lane) -> AgendaLane:
    return AgendaLane(
        schedule_id=lane.schedule_id,
        name=lane.name,
        rows_complete=lane.rows_complete,
        buckets=tuple(LaneBucket(at=to_datetime(at), **counts._asdict()) for at, counts in lane.buckets),
    )


def _chosen(
    ids: list[str] | None, text: str | None, labels: list[str] | None, status: str | None
) -> ScheduleFilter | None:
    """None = all of them."""
    if ids is not None and len(ids) > agenda.MAX_IDS:
        raise InvalidDefinition({"schedule_id": [f"accepts at most {agenda.MAX_IDS} values"]})
    given = {"schedule_id": ids, "text": text, "label": labels, "status": status}
    if not any(each is not None for each in given.values()):
        return None
    check_texts({name: each if isinstance(each, list) else [each] for name, each in given.items() if each is not None})
    return ScheduleFilter(
        statuses=None if status is None else [status_of(status)],
        text=text,
        labels=labels_of(labels or []),
        schedule_ids=None if ids is None else tuple(dict.fromkeys(ids)),
    )


def _row(entry: AgendaEntry) -> AgendaRow:
    return AgendaRow(
        schedule_id=entry.schedule_id,
        at=to_datetime(entry.at),
        decision=entry.decision,
        reason=entry.reason,
        predicted=entry.predicted,
        run_id=None if entry.run_id is None else id_text(entry.run_id),
        state=entry.state,
        count=entry.count,
        started_at=time_of(entry.started_at),
        finished_at=time_of(entry.finished_at),
        **({"held": entry.held} if entry.forecast is None else forecast_fields(entry.forecast)),
    )


overview_routes = Routes("/api", tag="overview")


@overview_routes(
    "GET",
    "/overview",
    needs=READ,
    summary="Count the items that need attention",
    answer=Overview,
    example=Overview(
        namespace="default",
        as_of=examples.LATER,
        since=examples.AT,
        schedules=ScheduleCounts(active=214, paused=3, finished=12, broken=1),
        failing=2,
        stale=0,
        late=0,
        waiting_for_approval=4,
        missed_lately=0,
        failed_24h=3,
        held=1,
        ready=0,
        launching=0,
        queued=2,
        running=17,
        bounded=(),
    ),
)
def get_overview(resources: ResourcesOf, caller: ListCallerOf) -> Reply:
    """Each count equals the length of a list and is capped, so the cost does not grow with the stored data."""
    found = cluster_service.look(resources, caller)
    return Reply(
        Overview(
            namespace=caller.scope or ALL_NAMESPACES,
            as_of=to_datetime(found.as_of),
            since=to_datetime(found.since),
            schedules=ScheduleCounts(**{status.value: each.count for status, each in found.schedules.items()}),
            waiting_for_approval=found.waiting_for_approval.count,
            missed_lately=found.missed_lately.count,
            failed_24h=found.failed_24h.count,
            bounded=tuple(found.bounded()),
            **{str(word): each.count for word, each in (*found.health.items(), *found.runs.items())},
        )
    )
