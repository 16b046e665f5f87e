"""The registrar's paths of the plain cron scheduler: its fields, its words, its defaults.

    POST /schedules/upsert      {schedule_id?, workflow_id, version, cron_expr, timezone, …}
    POST /schedules/pause       {schedule_id, paused}
    GET  /schedules/{id}        the schedule and its next five fire times
    GET  /schedules/{id}/runs   the last runs and skips
    DELETE /schedules/{id}

What is missed is skipped here unless the document or the operator says otherwise. The same schedules show on
both surfaces.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query

from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.api.views import Body, moment
from horarium.errors import InvalidDefinition
from horarium.ids import id_text
from horarium.operations import lifecycles, listings, occurrences, schedules
from horarium.operations.listings import Described
from horarium.operations.occurrences import Skipped
from horarium.operations.resources import Resources
from horarium.operations.runs import Run
from horarium.operations.write_result import Outcome
from horarium.policy.catchup import CatchupPolicy
from horarium.policy.overlap import OverlapPolicy
from horarium.schedule.position import Status
from horarium.schedule.run import PublicStatus, public_status

router = APIRouter(prefix="/schedules", tags=["registrar"])

_DEFAULTS = {"default_catchup_policy": CatchupPolicy.SKIP.value, "default_overlap_policy": OverlapPolicy.SKIP.value}
_OVERLAP_WORDS = {OverlapPolicy.ALLOW_ALL: "allow", OverlapPolicy.BUFFER_ALL: "queue"}
_CATCHUP_WORDS = {CatchupPolicy.SKIP: "none", CatchupPolicy.FIRE_ALL: "fire_immediately"}
# What makes two deployments without an id the same schedule.
_IDENTITY = ("workflow_id", "workflowId", "cron_expr", "cronExpr", "timezone")


@router.post("/upsert")
@idempotent
def upsert(resources: ResourcesOf, caller: CallerOf, document: Document) -> Answer:
    """An equal definition changes nothing, and a pause is never undone by it."""
    named = {"schedule_id": _derived_id(document), **_without_nulls(document)}
    done = schedules.upsert(_with_defaults(resources), caller, named)
    body = {
        "schedule_id": done.schedule_id,
        "next_run_at": moment(done.next_due),
        "outcome": done.outcome.value,
        "warnings": list(done.warnings),
    }
    return Answer(body, 201 if done.outcome is Outcome.CREATED else 200)


@router.post("/pause")
@idempotent
def pause(resources: ResourcesOf, caller: CallerOf, body: Document) -> Answer:
    """`paused: false` resumes."""
    fields = Fields(body)
    schedule_id = fields.require("schedule_id", fields.text("schedule_id", "scheduleId", most=128))
    said = fields.require("paused", fields.anything("paused"))
    reason = fields.text("reason", "note")
    fields.check()
    if not isinstance(said, bool):
        raise InvalidDefinition({"paused": ["must be true or false"]})
    assert schedule_id is not None  # or check would have raised
    change = lifecycles.pause if said else lifecycles.resume
    done = change(resources, caller, schedule_id, reason=reason)
    return Answer(
        {
            "schedule_id": schedule_id,
            "paused": done.status is Status.PAUSED,
            "next_run_at": moment(done.next_due),
            "outcome": done.outcome.value,
        }
    )


@router.get("/{schedule_id}")
def get(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Answer:
    return Answer(_shown(listings.describe(resources, caller, schedule_id)))


@router.get("/{schedule_id}/runs")
def runs(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    limit: Annotated[int, Query(description="1 to 200")] = 20,
) -> Answer:
    """The newest first, skipped ones among them."""
    page = occurrences.list_occurrences(resources, caller, schedule_id, page_size=limit)
    return Answer({"schedule_id": schedule_id, "runs": [_row(each) for each in page.rows]})


@router.delete("/{schedule_id}")
@idempotent
def delete(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Answer:
    done = lifecycles.delete(resources, caller, schedule_id)
    return Answer({"schedule_id": done.schedule_id, "outcome": done.outcome.value})


def _with_defaults(resources: Resources) -> Resources:
    """Those of this surface, where the operator has chosen none."""
    chosen = resources.settings.model_fields_set
    update = {name: value for name, value in _DEFAULTS.items() if name not in chosen}
    return replace(resources, settings=resources.settings.model_copy(update=update))


def _derived_id(document: dict[str, Any]) -> str:
    """Without an id each deployment would add another schedule: the same workflow at the same times is the same one."""
    identity = orjson.dumps([document.get(name) for name in _IDENTITY])
    return f"trigger-{sha256(identity).hexdigest()[:24]}"


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def _shown(found: Described) -> Body:
    row, definition, spec = found.row, found.definition, found.definition.spec
    overlap, catchup = definition.overlap.policy, definition.catchup.policy
    return {
        "schedule_id": row.schedule_id,
        "workflow_id": definition.action.workflow,
        "version": definition.action.target.get("version"),
        "user_id": definition.user_id,
        "cron_expr": next(iter(spec.cron_expressions), None),
        "timezone": spec.timezone or "UTC",
        "start_at": moment(spec.start_at),
        "end_at": moment(spec.end_at),
        "next_run_at": moment(row.next_due) if row.status is Status.ACTIVE else None,
        "paused": row.status is Status.PAUSED,
        "status": row.status.value,
        "jitter_ms": spec.jitter_ms,
        "overlap_policy": _OVERLAP_WORDS.get(overlap, overlap.value),
        "catchup_policy": _CATCHUP_WORDS.get(catchup, catchup.value),
        "updated_at": moment(row.updated_at),
        "preview": [moment(fire.nominal) for fire in found.next_fires],
    }


def _row(each: Run | Skipped) -> Body:
    if isinstance(each, Skipped):
        said = each.event.payload
        return {
            "idempotency_key": None,
            "schedule_id": each.schedule_id,
            "run_at": said.get("occurrence_time") or said.get("first"),
            "status": PublicStatus.SKIPPED.value,
            "run_id": None,
            "reason": said.get("reason"),
            "count": said.get("count", 1),
            "created_at": moment(each.event.recorded_at),
            "updated_at": moment(each.event.recorded_at),
        }
    row = each.row
    return {
        "idempotency_key": each.key,
        "schedule_id": row.schedule_id,
        "run_at": moment(row.nominal),
        "status": public_status(row.state).value,
        "run_id": id_text(row.run_id),
        "reason": row.cause,
        "count": 1 if row.covers_count is None else row.covers_count,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.finished_at or row.started_at or row.created_at),
    }
