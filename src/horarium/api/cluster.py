"""Routes about the server and the processes on its database."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from horarium.api import examples
from horarium.api.answers import Reply
from horarium.api.middleware import CONTROL_PLANE_VERSION
from horarium.api.pages import readable
from horarium.api.requests import CallerOf, IdentityOf, ResourcesOf
from horarium.api.routing import ADMINISTER, LOOK, Routes
from horarium.decision.process_state import ProcessState
from horarium.instant import to_datetime
from horarium.operations import cluster
from horarium.recurrence.zone import tzdata_version
from horarium.schedule.damage import Unreadable
from horarium.schedule.run import RunState
from horarium.store.runs.depth import Waiting
from horarium.wire.answer import time_of
from horarium.wire.cluster import Cluster, ClusterProcess, ClusterWorker, QueueDepth
from horarium.wire.service import ClusterInfo, ControlPlane

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
    found = cluster.cluster(resources, caller)
    listed: tuple[cluster.ClusterProcess | Unreadable, ...] = (*found.processes, *found.unreadable)
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


def _process(each: cluster.ClusterProcess) -> ClusterProcess:
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


def _worker(each: cluster.ClusterWorker) -> ClusterWorker:
    return ClusterWorker(name=each.name, state=each.state, runs=each.runs, seconds_ago=round(each.silent_seconds, 3))


def _queues(waiting: tuple[Waiting, ...]) -> tuple[QueueDepth, ...]:
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
