"""Routes of the processes on a database, of the liveness of loops, and of the health of schedules."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Query

from horarium.core.decision.health import watched_status
from horarium.core.decision.presence import ProcessState
from horarium.core.decision.statuses import HealthStatus, WatchedStatus
from horarium.core.document.json_values import UnreadableEntry
from horarium.core.document.states import RunState
from horarium.core.recurrence.zone import tzdata_version
from horarium.features.agents.workspace_model import WatchedSchedule
from horarium.features.cluster import service
from horarium.features.cluster.model import Cluster, ClusterProcess, ClusterWorker, QueueDepth
from horarium.features.runs.count_rows import WaitingGroup
from horarium.features.schedules import health as schedules_health
from horarium.features.schedules.filters import MAX_TOKEN_LENGTH
from horarium.features.schedules.health import Examined
from horarium.features.schedules.model import ScheduleHealth, ScheduleHealthList
from horarium.features.tenants.model import ClusterInfo, ControlPlane, Liveness, LoopLife, ProcessLife
from horarium.instant import to_datetime
from horarium.platform.http import examples
from horarium.platform.http.limits import next_page, readable
from horarium.platform.http.middleware import CONTROL_PLANE_VERSION
from horarium.platform.http.requests import CallerOf, IdentityOf, ListCallerOf, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import ADMINISTER, LOOK, READ, Routes
from horarium.platform.wire import time_of

routes = Routes("/api", tag="cluster")

_REQUEST_CONTRACT = {
    "schema": "durable-workflow.v2.control-plane-request.contract",
    "version": 1,
    "operations": {},
}


@routes(
    "GET",
    "/cluster/info",
    needs=LOOK,
    summary="Show the server and its protocol versions",
    answer=ClusterInfo,
    example=ClusterInfo(
        server="horarium",
        version="0.1.0",
        tzdata="2026.1",
        control_plane=ControlPlane(version=CONTROL_PLANE_VERSION, request_contract=_REQUEST_CONTRACT),
    ),
)
def cluster_info(_identity: IdentityOf) -> Reply:
    """Does not check the namespace. The Durable Workflow command line requires `control_plane` in the answer."""
    return Reply(
        ClusterInfo(
            server="horarium",
            version=version("horarium"),
            tzdata=tzdata_version(),
            control_plane=ControlPlane(version=CONTROL_PLANE_VERSION, request_contract=_REQUEST_CONTRACT),
        )
    )


_PROCESS = ClusterProcess(
    name="worker-a:4711:k3x9qz",
    host="worker-a",
    pid=4711,
    roles=("ticker", "janitor", "dispatcher", "follower", "advancer", "deliverer"),
    state=ProcessState.ALIVE,
    version="0.1.0",
    schema_revision="0021",
    started_at=examples.AT,
    beat_at=examples.AT,
    seconds_ago=2.1,
    runs=3,
    stuck=(),
    clock_offset_seconds=0.002,
)


@routes(
    "GET",
    "/cluster/processes",
    needs=ADMINISTER,
    summary="List the processes on this database and the queue depths",
    answer=Cluster,
    example=Cluster(
        version="0.1.0",
        schema_revision="0021",
        processes=(_PROCESS,),
        workers=(),
        tick_lag_seconds=0.0,
        oldest_ready_seconds=None,
        queues=(QueueDepth(kind="workflow", queue="default", ready=0, queued=12, held=0),),
        more=False,
        notes=(),
    ),
)
def get_cluster(resources: ResourcesOf, caller: CallerOf) -> Reply:
    """Requires an admin of the default namespace, because it covers all machines and tenants.

    A process that stopped normally is not listed. A process that crashed is listed for a day. `silent`: two heartbeats
    are missing. `gone`: no heartbeat for 30 seconds.
    """
    found = service.cluster(resources, caller)
    listed: tuple[service.ClusterProcessRow | UnreadableEntry, ...] = (*found.processes, *found.unreadable)
    rows: Any = tuple(readable(resources, "process", listed, _process, lambda each: each.row.owner))
    return Reply(
        Cluster(
            version=version("horarium"),
            schema_revision=found.schema,
            processes=rows,
            workers=tuple(map(_worker, found.workers)),
            tick_lag_seconds=round(found.tick_lag_seconds, 3),
            oldest_ready_seconds=None if found.oldest_ready_seconds is None else round(found.oldest_ready_seconds, 3),
            queues=_queues(found.waiting),
            more=found.more,
            notes=found.notes,
        )
    )


def _process(each: service.ClusterProcessRow) -> ClusterProcess:
    row, seen = each.row, each.seen
    about, offset = row.process.about, seen.clock_offset_seconds
    return ClusterProcess(
        name=row.owner,
        host=about.host,
        pid=about.pid,
        roles=about.roles,
        state=seen.state,
        version=about.version,
        schema_revision=about.schema,
        started_at=time_of(about.started_at),
        beat_at=to_datetime(row.beat_at),
        seconds_ago=round(seen.silent_seconds, 3),
        runs=each.runs,
        stuck=tuple(seen.stuck),
        clock_offset_seconds=None if offset is None else round(offset, 6),
    )


def _worker(each: service.ClusterWorkerRow) -> ClusterWorker:
    return ClusterWorker(name=each.name, state=each.state, runs=each.runs, seconds_ago=round(each.silent_seconds, 3))


def _queues(waiting: tuple[WaitingGroup, ...]) -> tuple[QueueDepth, ...]:
    """One row for a kind and queue, the fullest first."""
    runs = {(each.state, each.kind, each.queue): each.runs for each in waiting}
    groups = dict.fromkeys((each.kind, each.queue) for each in waiting)
    rows = [
        QueueDepth(
            kind=kind,
            queue=queue,
            ready=runs.get((RunState.READY, kind, queue), 0),
            queued=runs.get((RunState.QUEUED, kind, queue), 0),
            held=runs.get((RunState.HELD, kind, queue), 0),
        )
        for kind, queue in groups
    ]
    return tuple(sorted(rows, key=lambda row: (-row.ready - row.queued - row.held, row.kind, row.queue or "")))


admin_routes = Routes(tag="admin")

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


@admin_routes(
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
    found = service.liveness(resources, caller)
    subsystems = {loop.name: _loop(loop) for loop in found.loops}
    if service.TICKER in subsystems:
        subsystems[_SCHEDULER] = subsystems[service.TICKER]
    processes = tuple(_process_life(each) for each in found.processes)
    answer = Liveness(healthy=found.healthy, subsystems=subsystems, processes=processes)
    return Reply(answer, 200 if found.healthy else 503)


@admin_routes(
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
    page = schedules_health.watch(resources, caller, after=after)
    link = {} if page.after is None else next_page("/admin/schedules/health", page.after)
    return Reply([_watched(each) for each in page.schedules], headers=link)


# Not below /api/schedules, where `health` may be the id of a schedule.
@admin_routes(
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
    next_page_token: Annotated[str | None, Query(max_length=MAX_TOKEN_LENGTH)] = None,
) -> Reply:
    """Newest first. With `unwell`: oldest first, one page of at most 1,000."""
    if unwell:
        page = schedules_health.examine_unwell(resources, caller)
    else:
        page = schedules_health.examine_page(resources, caller, page_size=page_size, next_page_token=next_page_token)
    shown: Any = tuple(readable(resources, "schedule", page.examined, _examined, lambda each: each.row.schedule_id))
    return Reply(ScheduleHealthList(schedules=shown, next_page_token=page.next_page_token))


@admin_routes(
    "GET",
    "/api/schedules/{schedule_id}/health",
    needs=READ,
    summary="Show the health of a schedule",
    answer=ScheduleHealth,
    example=examples.HEALTH,
)
def get_schedule_health(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Reply:
    return Reply(_examined(schedules_health.examine_one(resources, caller, schedule_id)))


def _process_life(process: service.ProcessHealth) -> ProcessLife:
    return ProcessLife(
        name=process.name,
        alive=process.alive,
        draining=process.draining,
        healthy=process.healthy,
        since=to_datetime(process.since),
        beat_at=to_datetime(process.beat_at),
        loops={loop.name: _loop(loop) for loop in process.loops},
    )


def _loop(loop: service.LoopHealth) -> LoopLife:
    return LoopLife(
        last_tick_at=to_datetime(loop.last_completed_at),
        seconds_ago=round(loop.seconds_ago, 3),
        limit_seconds=loop.limit_seconds,
        healthy=loop.healthy,
    )


def _watched(each: schedules_health.Watched) -> WatchedSchedule:
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
