"""The registrar's paths of the plain cron scheduler: its fields, its words, its defaults.

    POST /schedules/upsert      {schedule_id?, workflow_id, version, cron_expr, timezone, …}
    POST /schedules/pause       {schedule_id, paused, until?}
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
from fastapi import Query

from horarium.compat.registrar.model import (
    Trigger,
    TriggerDeleted,
    TriggerPaused,
    TriggerRun,
    TriggerRuns,
    TriggerUpserted,
)
from horarium.core.document.states import PublicStatus, Status, public_status
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs import occurrences
from horarium.features.runs.occurrences import Skipped
from horarium.features.runs.service import RunView
from horarium.features.schedules import lifecycle, lists
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.creation import written_end
from horarium.features.schedules.lists import Described
from horarium.instant import from_rfc3339, to_datetime
from horarium.platform.bodies import PauseBody, read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.requests import CallerOf, Confirm, Document, ResourcesOf
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import OPERATE, READ, WRITE, Routes, ScheduleDocument
from horarium.platform.ids import id_text
from horarium.platform.wire import WriteOutcome, time_of

routes = Routes("/schedules", tag="registrar")

_DEFAULTS = {"default_catchup_policy": CatchupPolicy.SKIP.value, "default_overlap_policy": OverlapPolicy.SKIP.value}
_OVERLAP_WORDS = {OverlapPolicy.ALLOW_ALL: "allow", OverlapPolicy.BUFFER_ALL: "queue"}
_CATCHUP_WORDS = {CatchupPolicy.SKIP: "none", CatchupPolicy.FIRE_ALL: "fire_immediately"}
# What makes two deployments without an id the same schedule.
_IDENTITY = ("workflow_id", "workflowId", "cron_expr", "cronExpr", "timezone")


@routes(
    "POST",
    "/upsert",
    needs=WRITE,
    audited=Audited.NAMING_OWNER,
    summary="Create or update a trigger",
    body=ScheduleDocument,
    sends=examples.UPSERT,
    answer=TriggerUpserted,
    also=(201,),
    example=TriggerUpserted(
        schedule_id="nightly-report", next_run_at=examples.AT, outcome=WriteOutcome.CREATED, warnings=()
    ),
    warns=True,
)
def upsert_trigger(resources: ResourcesOf, caller: CallerOf, document: Document, confirm: Confirm = False) -> Reply:
    """An equal definition changes nothing. A paused trigger stays paused."""
    named = {"schedule_id": _derived_id(document), **_without_nulls(document)}
    done = schedule_service.upsert(_with_defaults(resources), caller.confirming(confirm), named)
    answer = TriggerUpserted(
        schedule_id=done.schedule_id,
        next_run_at=time_of(done.next_due),
        outcome=done.outcome,
        warnings=done.warnings,
        exhausted=done.exhausted,
    )
    return Reply(answer, 201 if done.outcome is WriteOutcome.CREATED else 200)


@routes(
    "POST",
    "/pause",
    needs=OPERATE,
    summary="Pause or resume a trigger",
    body=PauseBody,
    sends={"schedule_id": "nightly-report", "paused": True},
    answer=TriggerPaused,
    example=TriggerPaused(
        schedule_id="nightly-report", paused=True, next_run_at=examples.AT, outcome=WriteOutcome.PAUSED
    ),
)
def pause_trigger(resources: ResourcesOf, caller: CallerOf, body: Document, confirm: Confirm = False) -> Reply:
    """`paused: false` resumes. With `until`, the trigger resumes by itself at that time.

    Set `confirm` if this would start more than 1,000 buffered runs.
    """
    asked = read_body(PauseBody, body)
    meant = caller.confirming(confirm)
    if asked.paused:
        until = written_end(asked.until, asked.timezone)
        done = lifecycle.pause(resources, meant, asked.schedule_id, reason=asked.reason, until=until)
    elif asked.until is not None:
        raise InvalidDefinition({"until": ["is not allowed with paused: false"]})
    else:
        done = lifecycle.resume(resources, meant, asked.schedule_id, reason=asked.reason)
    return Reply(
        TriggerPaused(
            schedule_id=asked.schedule_id,
            paused=done.status is Status.PAUSED,
            next_run_at=time_of(done.next_due),
            outcome=done.outcome,
            paused_until=time_of(done.paused_until),
        )
    )


@routes(
    "GET",
    "/{schedule_id}",
    needs=READ,
    summary="Show a trigger",
    answer=Trigger,
    example=Trigger(
        schedule_id="nightly-report",
        workflow_id="report",
        version=3,
        user_id=None,
        cron_expr="0 2 * * *",
        timezone="Europe/Istanbul",
        start_at=None,
        end_at=None,
        next_run_at=examples.AT,
        paused=False,
        status=Status.ACTIVE,
        jitter_ms=0,
        overlap_policy="skip",
        catchup_policy="none",
        updated_at=examples.AT,
        preview=(examples.AT, examples.LATER),
    ),
)
def get_trigger(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Reply:
    return Reply(_shown(lists.describe(resources, caller, schedule_id)))


@routes(
    "GET",
    "/{schedule_id}/runs",
    needs=READ,
    summary="List the runs and skips of a trigger",
    answer=TriggerRuns,
    example=TriggerRuns(schedule_id="nightly-report", runs=()),
)
def list_trigger_runs(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    limit: Annotated[int, Query(description="Number of rows, 1 to 200.")] = 20,
) -> Reply:
    """Newest first, including skipped occurrences."""
    page = occurrences.list_occurrences(resources, caller, schedule_id, page_size=limit)
    return Reply(TriggerRuns(schedule_id=schedule_id, runs=tuple(_row(each) for each in page.rows)))


@routes(
    "DELETE",
    "/{schedule_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete a trigger",
    answer=TriggerDeleted,
    example=TriggerDeleted(schedule_id="nightly-report", outcome=WriteOutcome.DELETED),
)
def delete_trigger(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Reply:
    done = lifecycle.delete(resources, caller, schedule_id)
    return Reply(TriggerDeleted(schedule_id=done.schedule_id, outcome=done.outcome))


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


def _shown(found: Described) -> Trigger:
    row, definition, spec = found.row, found.definition, found.definition.spec
    overlap, catchup = definition.overlap.policy, definition.catchup.policy
    version: Any = definition.action.target.get("version")
    return Trigger(
        schedule_id=row.schedule_id,
        workflow_id=definition.action.workflow,
        version=version,
        user_id=definition.user_id,
        cron_expr=next(iter(spec.cron_expressions), None),
        timezone=spec.timezone or "UTC",
        start_at=time_of(spec.start_at),
        end_at=time_of(spec.end_at),
        next_run_at=time_of(found.next_due),
        paused=row.status is Status.PAUSED,
        status=row.status,
        jitter_ms=spec.jitter_ms,
        overlap_policy=_OVERLAP_WORDS.get(overlap, overlap.value),
        catchup_policy=_CATCHUP_WORDS.get(catchup, catchup.value),
        updated_at=to_datetime(row.updated_at),
        preview=tuple(to_datetime(fire.due) for fire in found.next_fires),
    )


def _row(each: RunView | Skipped) -> TriggerRun:
    if isinstance(each, Skipped):
        said, recorded = each.event.payload, to_datetime(each.event.recorded_at)
        nominal = said.get("occurrence_time") or said.get("first")
        return TriggerRun(
            idempotency_key=each.key,
            schedule_id=each.schedule_id,
            run_at=None if nominal is None else to_datetime(from_rfc3339(nominal)),
            status=PublicStatus.SKIPPED,
            run_id=None,
            reason=said.get("reason"),
            count=said.get("count", 1),
            created_at=recorded,
            updated_at=recorded,
        )
    row = each.row
    return TriggerRun(
        idempotency_key=each.key,
        schedule_id=row.schedule_id,
        run_at=to_datetime(row.nominal),
        status=public_status(row.state),
        run_id=id_text(row.run_id),
        reason=row.cause,
        count=1 if row.covers_count is None else row.covers_count,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.finished_at or row.started_at or row.created_at),
    )
