"""What an operator's monitoring asks: which loops live, and how each schedule is doing."""

from __future__ import annotations

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.requests import CallerOf, ResourcesOf
from horarium.api.views import Body, moment
from horarium.operations import liveness, schedule_health
from horarium.operations.liveness import TICKER, Liveness, LoopLife, ProcessLife
from horarium.operations.schedule_health import Examined

router = APIRouter(tags=["admin"])

# What Molecule calls the ticker.
_SCHEDULER = "scheduler"


@router.get("/admin/liveness")
def live(resources: ResourcesOf, caller: CallerOf) -> Answer:
    """By completed steps, never by mere beats. 503 when no ticker completes its steps."""
    found = liveness.liveness(resources, caller)
    return Answer(_liveness(found), 200 if found.healthy else 503)


@router.get("/admin/schedules/health")
def schedules_health(resources: ResourcesOf, caller: CallerOf) -> Answer:
    """Every schedule of the namespace, by the name of its agent and its own."""
    found = [_examined(each) for each in schedule_health.examine(resources, caller)]
    return Answer(sorted(found, key=lambda row: (row["workspace_name"] or "", row["schedule_name"])))


@router.get("/api/schedules/{schedule_id}/health")
def schedule_is(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Answer:
    return Answer(_examined(schedule_health.examine_one(resources, caller, schedule_id)))


def _liveness(found: Liveness) -> Body:
    subsystems = {loop.name: _loop(loop) for loop in found.loops}
    if TICKER in subsystems:
        subsystems[_SCHEDULER] = subsystems[TICKER]
    return {
        "healthy": found.healthy,
        "subsystems": subsystems,
        "processes": [_process(each) for each in found.processes],
    }


def _process(process: ProcessLife) -> Body:
    return {
        "name": process.name,
        "alive": process.alive,
        "draining": process.draining,
        "healthy": process.healthy,
        "since": moment(process.since),
        "beat_at": moment(process.beat_at),
        "loops": {loop.name: _loop(loop) for loop in process.loops},
    }


def _loop(loop: LoopLife) -> Body:
    return {
        "last_tick_at": moment(loop.last_completed_at),
        "seconds_ago": round(loop.seconds_ago, 3),
        "limit_seconds": loop.limit_seconds,
        "healthy": loop.healthy,
    }


def _examined(each: Examined) -> Body:
    row, spec = each.row, each.document.get("spec", {})
    return {
        "workspace_id": each.agent_id,
        "workspace_name": each.agent_name,
        "schedule_id": row.schedule_id,
        "schedule_name": row.name or row.schedule_id,
        "namespace": row.namespace,
        "cron_expr": next(iter(spec.get("cron_expressions", ())), None),
        "last_run_at": moment(row.last_fired_at),
        "expected_next_run": moment(each.expected_next),
        "status": each.health.value,
        "late_seconds": round(each.late_seconds, 3),
        "stale_threshold_seconds": each.threshold_seconds,
        "error": row.last_error if each.health is schedule_health.ScheduleHealth.BROKEN else None,
    }
