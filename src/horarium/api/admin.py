"""Routes for monitoring: liveness of the loops and health of schedules."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.pages import next_page, readable
from horarium.api.requests import CallerOf, ListCallerOf, ResourcesOf
from horarium.api.routing import ADMINISTER, READ, Routes
from horarium.decision.health import watched_status
from horarium.decision.health_status import HealthStatus, WatchedStatus
from horarium.instant import to_datetime
from horarium.operations import liveness, schedule_health, watching
from horarium.operations.list_tokens import MAX_LENGTH
from horarium.operations.schedule_health import Examined
from horarium.wire.answer import time_of
from horarium.wire.schedules import ScheduleHealth, ScheduleHealthList
from horarium.wire.service import Liveness, LoopLife, ProcessLife
from horarium.wire.workspaces import WatchedSchedule

routes = Routes(tag="admin")

# What Molecule calls the ticker.
_SCHEDULER = "scheduler"
_WATCHED = WatchedSchedule(
    workspace_id="writer",
    workspace_name="Writer",
    schedule_id="nightly-report",
    schedule_name="nightly-report",
    cron_expr="0 2 * * *",
    last_run_at=examples.AT,
    expected_next_run=examples.LATER,
    status=WatchedStatus.OK,
    stale_threshold_seconds=172_800,
    health=HealthStatus.OK,
    sentence=examples.HEALTH.sentence,
)
_WITH_ERROR = frozenset({HealthStatus.BROKEN, HealthStatus.FAILING})


@routes(
    "GET",
    "/admin/liveness",
    needs=ADMINISTER,
    summary="Show the liveness of the loops",
    answer=Liveness,
    also=(503,),
    example=Liveness(healthy=True, subsystems={"ticker": examples.LOOP}, processes=()),
)
def engine_liveness(resources: ResourcesOf, caller: CallerOf) -> Reply:
    """Report the loops of all processes that complete their steps. Returns 503 if no ticker does.

    `processes` is listed for admins of the default namespace and empty for other callers.
    """
    found = liveness.liveness(resources, caller)
    subsystems = {loop.name: _loop(loop) for loop in found.loops}
    if liveness.TICKER in subsystems:
        subsystems[_SCHEDULER] = subsystems[liveness.TICKER]
    processes = tuple(_process(each) for each in found.processes)
    answer = Liveness(healthy=found.healthy, subsystems=subsystems, processes=processes)
    return Reply(answer, 200 if found.healthy else 503)


@routes(
    "GET",
    "/admin/schedules/health",
    needs=ADMINISTER,
    summary="List the health of all schedules for a monitor",
    answer=WatchedSchedule,
    many=True,
    example=[_WATCHED],
)
def admin_schedule_health(
    resources: ResourcesOf,
    caller: CallerOf,
    after: Annotated[
        str | None, Query(max_length=128, description="ID of the last schedule of the previous page.")
    ] = None,
) -> Reply:
    """Sorted by workspace and schedule name, at most 1,000 per page. A `Link` header leads to the next page.

    Paused schedules are never stale. Schedules of deleted agents are omitted.
    """
    page = watching.watch(resources, caller, after=after)
    link = {} if page.after is None else next_page("/admin/schedules/health", page.after)
    return Reply([_watched(each) for each in page.schedules], headers=link)


# Not below /api/schedules, where `health` may be the id of a schedule.
@routes(
    "GET",
    "/api/health/schedules",
    needs=READ,
    summary="List the health of schedules",
    answer=ScheduleHealthList,
    example=ScheduleHealthList(schedules=(examples.HEALTH,), next_page_token=None),
)
def list_schedule_health(
    resources: ResourcesOf,
    caller: ListCallerOf,
    unwell: Annotated[
        bool, Query(description="Only schedules that are broken, failing, stale, late or waiting for approval.")
    ] = False,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=MAX_LENGTH)] = None,
) -> Reply:
    """Newest first. With `unwell`: oldest first, one page of at most 1,000."""
    if unwell:
        page = schedule_health.examine_unwell(resources, caller)
    else:
        page = schedule_health.examine_page(resources, caller, page_size=page_size, next_page_token=next_page_token)
    shown: Any = tuple(readable(resources, "schedule", page.examined, _examined, lambda each: each.row.schedule_id))
    return Reply(ScheduleHealthList(schedules=shown, next_page_token=page.next_page_token))


@routes(
    "GET",
    "/api/schedules/{schedule_id}/health",
    needs=READ,
    summary="Show the health of a schedule",
    answer=ScheduleHealth,
    example=examples.HEALTH,
)
def get_schedule_health(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Reply:
    return Reply(_examined(schedule_health.examine_one(resources, caller, schedule_id)))


def _process(process: liveness.ProcessLife) -> ProcessLife:
    return ProcessLife(
        name=process.name,
        alive=process.alive,
        draining=process.draining,
        healthy=process.healthy,
        since=to_datetime(process.since),
        beat_at=to_datetime(process.beat_at),
        loops={loop.name: _loop(loop) for loop in process.loops},
    )


def _loop(loop: liveness.LoopLife) -> LoopLife:
    return LoopLife(
        last_tick_at=to_datetime(loop.last_completed_at),
        seconds_ago=round(loop.seconds_ago, 3),
        limit_seconds=loop.limit_seconds,
        healthy=loop.healthy,
    )


def _watched(each: watching.Watched) -> WatchedSchedule:
    row, health = each.row, each.health
    return WatchedSchedule(
        workspace_id=row.workspace,
        workspace_name=each.workspace_name,
        schedule_id=row.schedule_id,
        schedule_name=row.name or row.schedule_id,
        cron_expr=each.cron_expr,
        last_run_at=time_of(row.last_fired_at),
        expected_next_run=time_of(health.expected_next),
        status=watched_status(health, has_run=row.last_fired_at is not None),
        stale_threshold_seconds=round(health.stale_after_seconds or 0),
        health=health.status,
        sentence=health.sentence,
    )


def _examined(each: Examined) -> ScheduleHealth:
    row, health, spec = each.row, each.health, each.document.get("spec")
    crons = spec.get("cron_expressions") if isinstance(spec, dict) else None
    return ScheduleHealth(
        workspace_id=each.agent_id,
        workspace_name=each.agent_name,
        schedule_id=row.schedule_id,
        schedule_name=row.name or row.schedule_id,
        namespace=row.namespace,
        cron_expr=next(iter(crons), None) if isinstance(crons, list) else None,
        last_run_at=time_of(row.last_fired_at),
        expected_next_run=time_of(health.expected_next),
        status=health.status,
        sentence=health.sentence,
        failures_in_a_row=row.failures_in_a_row,
        last_status=row.last_status,
        consecutive_empty_runs=row.empty_in_a_row,
        late_seconds=round(health.late_seconds, 3),
        stale_threshold_seconds=health.stale_after_seconds,
        error=row.last_error if health.status in _WITH_ERROR else None,
        warnings=each.warnings,
    )
