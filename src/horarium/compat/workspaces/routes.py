"""The routes of workspaces: the schedules of an agent, as it and its peers see them.

    GET    /workspaces/{id}/schedules               oldest first
    POST   /workspaces/{id}/schedules               {cron_expr, prompt, name?, timezone?, enabled?}
    PATCH  /workspaces/{id}/schedules/{schedule}    any of these
    DELETE /workspaces/{id}/schedules/{schedule}
    POST   /workspaces/{id}/schedules/{schedule}/run
    GET    /workspaces/{id}/schedules/{schedule}/history
    GET    /workspaces/{id}/schedules/health        for peers: neither prompts nor times

The same schedules show below `/api/schedules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import Depends, Header, Query, Request

from horarium.compat.workspaces import service
from horarium.compat.workspaces.service import MOST_LISTED, WorkspaceHistory, WorkspacePage
from horarium.core.decision.statuses import LastStatus
from horarium.core.document.states import RunState, Source
from horarium.core.policy.approval import NO_SKIPPING, Skipping, skipping_in
from horarium.features.agents import workspace_model
from horarium.features.agents.workspace_words import (
    RunStatus,
    cron_of,
    cut_prompt,
    prompt_of,
    run_error,
    run_status,
    zone_of,
)
from horarium.features.runs.occurrences import Skipped
from horarium.features.runs.service import RunView
from horarium.instant import to_datetime
from horarium.platform.http.audited import Audited
from horarium.platform.http.examples import AT, LATER
from horarium.platform.http.limits import next_page, readable, within_bytes
from horarium.platform.http.requests import CallerOf, ResourcesOf, json_body
from horarium.platform.http.responses import IfMatch, Reply, version_of
from horarium.platform.http.routing import LOOK, RUN, SCHEDULE, Routes
from horarium.platform.wire import time_of

routes = Routes("/workspaces/{workspace_id}/schedules", tag="workspaces")

_SCHEDULE = "/{workspace_schedule_id}"
_SENT: dict[str, Any] = {
    "name": "Daily Security Audit",
    "cron_expr": "0 9 * * *",
    "timezone": "America/New_York",
    "prompt": "Run a security audit of all open PRs.",
    "enabled": True,
}
_HEALTH: dict[str, Any] = {
    "id": "01kjf0z7c8e2v9q4m6t1n3b5x1",
    "name": _SENT["name"],
    "enabled": True,
    "last_run_at": AT,
    "next_run_at": LATER,
    "run_count": 1,
    "last_status": LastStatus.SUCCESS,
    "last_error": "",
}
_EXAMPLE = workspace_model.WorkspaceSchedule(
    **_HEALTH,
    workspace_id="writer",
    cron_expr=_SENT["cron_expr"],
    timezone=_SENT["timezone"],
    prompt=_SENT["prompt"],
    source=Source.RUNTIME,
    consecutive_empty_runs=0,
    created_at=AT,
    updated_at=AT,
)
_RAN = workspace_model.WorkspaceRun(
    timestamp=AT,
    duration_ms=4523,
    status=RunStatus.SUCCESS,
    error_detail="",
    request={
        "schedule_id": _HEALTH["id"],
        "schedule_name": _SENT["name"],
        "cron_expr": _SENT["cron_expr"],
        "prompt": _SENT["prompt"],
    },
)

Posted = Annotated[Any, Depends(json_body)]
After = Annotated[str | None, Query(max_length=128, description="ID of the last schedule of the previous page.")]
Named = Annotated[
    str | None, Header(alias="X-Workspace-ID", description="Workspace of the caller. Required for the role `agent`.")
]


@routes(
    "GET",
    "",
    needs=LOOK,
    summary="List the schedules in a workspace",
    answer=workspace_model.WorkspaceSchedule,
    many=True,
    example=[_EXAMPLE],
)
def list_workspace_schedules(resources: ResourcesOf, caller: CallerOf, workspace_id: str, after: After = None) -> Reply:
    """Oldest first, at most 1,000 and 2 MB per page. A `Link` header leads to the next page."""
    page, shown = within_bytes(
        None,
        lambda most: service.list_schedules(resources, caller, workspace_id, after=after, most=most or MOST_LISTED),
        lambda page: readable(resources, "schedule", page.schedules, _listed, lambda each: each.row.schedule_id),
    )
    return Reply(shown, headers=_next(page, workspace_id, ""))


@routes(
    "POST",
    "",
    needs=SCHEDULE,
    summary="Create a schedule in a workspace",
    body=workspace_model.WorkspaceScheduleBody,
    sends=_SENT,
    answer=workspace_model.WorkspaceScheduleCreated,
    status=201,
    example=workspace_model.WorkspaceScheduleCreated(id=_HEALTH["id"], status="created", next_run_at=LATER),
    warns=True,
)
def create_workspace_schedule(resources: ResourcesOf, caller: CallerOf, workspace_id: str, body: Posted) -> Reply:
    """A name must be unique in the workspace. Schedules may have no name."""
    done = service.create(resources, caller, workspace_id, body)
    next_run_at = time_of(done.next_due)
    answer = workspace_model.WorkspaceScheduleCreated(
        id=done.schedule_id, status="created", next_run_at=next_run_at, warnings=done.warnings
    )
    return Reply(answer, 201)


@routes(
    "GET",
    "/health",
    needs=LOOK,
    summary="List the health of schedules in a workspace",
    answer=workspace_model.WorkspaceHealth,
    many=True,
    example=[workspace_model.WorkspaceHealth(**_HEALTH)],
)
def workspace_schedule_health(
    resources: ResourcesOf, caller: CallerOf, workspace_id: str, after: After = None, named: Named = None
) -> Reply:
    """Also available to other agents. They must send their own workspace in `X-Workspace-ID`, which must match their
    token.
    """
    page, shown = within_bytes(
        None,
        lambda most: service.health(
            resources, caller, workspace_id, named=named, after=after, most=most or MOST_LISTED
        ),
        lambda page: readable(
            resources,
            "schedule",
            page.schedules,
            lambda each: workspace_model.WorkspaceHealth(**_health(each)),
            lambda each: each.row.schedule_id,
        ),
    )
    return Reply(shown, headers=_next(page, workspace_id, "/health"))


@routes(
    "PATCH",
    _SCHEDULE,
    needs=SCHEDULE,
    summary="Update a schedule in a workspace",
    body=workspace_model.WorkspaceChangeBody,
    sends={"cron_expr": "30 8 * * *"},
    answer=workspace_model.WorkspaceScheduleUpdated,
    example=workspace_model.WorkspaceScheduleUpdated(status="updated"),
    warns=True,
)
def change_workspace_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    workspace_id: str,
    workspace_schedule_id: str,
    body: Posted,
    if_match: IfMatch = None,
) -> Reply:
    """Omitted fields are kept. Enabling a schedule does not run occurrences missed while it was disabled."""
    version = version_of(if_match)
    done = service.change(resources, caller, workspace_id, workspace_schedule_id, body, if_version=version)
    return Reply(workspace_model.WorkspaceScheduleUpdated(status="updated", warnings=done.warnings))


@routes(
    "DELETE",
    _SCHEDULE,
    needs=SCHEDULE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete a schedule in a workspace",
    answer=workspace_model.WorkspaceScheduleDeleted,
    example=workspace_model.WorkspaceScheduleDeleted(status="deleted"),
)
def delete_workspace_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    workspace_id: str,
    workspace_schedule_id: str,
    if_match: IfMatch = None,
) -> Reply:
    """Cancels runs that have not started."""
    version = version_of(if_match)
    service.delete(resources, caller, workspace_id, workspace_schedule_id, if_version=version)
    return Reply(workspace_model.WorkspaceScheduleDeleted(status="deleted"))


async def _asked_to_skip(request: Request, _known: CallerOf) -> Skipping:
    """Return what the body says to skip an approval. The route has no other use for a body, so any is accepted."""
    try:
        return skipping_in(orjson.loads(await request.body()))
    except orjson.JSONDecodeError:
        return NO_SKIPPING


@routes(
    "POST",
    f"{_SCHEDULE}/run",
    needs=RUN,
    summary="Run a schedule in a workspace now",
    answer=workspace_model.WorkspaceFired,
    example=workspace_model.WorkspaceFired(status="fired", workspace_id="writer", prompt=_SENT["prompt"]),
)
def run_workspace_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    skipping: Annotated[Skipping, Depends(_asked_to_skip)],
    workspace_id: str,
    workspace_schedule_id: str,
) -> Reply:
    """Does not change the next occurrence. Returns 409 if the run is not possible, for example because another run is
    active.
    """
    asking = caller.asking_to_skip(*skipping)
    prompt, state = service.run(resources, asking, workspace_id, workspace_schedule_id)
    status: Literal["fired", "awaiting_approval"] = (
        "awaiting_approval" if state is RunState.AWAITING_APPROVAL else "fired"
    )
    return Reply(workspace_model.WorkspaceFired(status=status, workspace_id=workspace_id, prompt=prompt))


@routes(
    "GET",
    f"{_SCHEDULE}/history",
    needs=LOOK,
    summary="List the last runs of a schedule in a workspace",
    answer=workspace_model.WorkspaceRun,
    many=True,
    example=[_RAN],
)
def workspace_schedule_history(
    resources: ResourcesOf, caller: CallerOf, workspace_id: str, workspace_schedule_id: str
) -> Reply:
    """The 20 newest runs and skips, newest first."""
    found = service.history(resources, caller, workspace_id, workspace_schedule_id)
    return Reply([_skipped(found, each) if isinstance(each, Skipped) else _ran(found, each) for each in found.rows])


def _next(page: WorkspacePage, workspace_id: str, more: str) -> Mapping[str, str]:
    if page.after is None:
        return {}
    return next_page(f"/workspaces/{quote(workspace_id, safe='')}/schedules{more}", page.after)


def _health(each: service.WorkspaceScheduleRow) -> dict[str, Any]:
    return {
        "id": each.row.schedule_id,
        "name": each.row.name,
        "enabled": each.is_enabled,
        "last_run_at": time_of(each.last_run_at),
        "next_run_at": time_of(each.next_due),
        "run_count": each.run_count,
        "last_status": each.row.last_status,
        "last_error": each.last_error,
    }


def _listed(each: service.WorkspaceScheduleRow) -> workspace_model.WorkspaceSchedule:
    row, document = each.row, each.document
    return workspace_model.WorkspaceSchedule(
        **_health(each),
        workspace_id=row.workspace or "",
        cron_expr=cron_of(document),
        timezone=zone_of(document),
        prompt=prompt_of(document),
        source=Source(row.source),
        consecutive_empty_runs=row.empty_in_a_row,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
    )


def _request(found: WorkspaceHistory, **more: object) -> dict[str, object]:
    row = found.row
    named = {"schedule_id": row.schedule_id, "schedule_name": row.name, "cron_expr": cron_of(found.document)}
    return {**named, **more}


def _ran(found: WorkspaceHistory, run: RunView) -> workspace_model.WorkspaceRun:
    row, status = run.row, run_status(run.row.state)
    prompt = "" if run.definition is None else str(run.definition.action.target.get("prompt") or "")
    more: dict[str, object] = {"prompt": cut_prompt(prompt)}
    if status is RunStatus.SKIPPED:
        more = {"skipped": True}
    ended = row.finished_at is not None and row.started_at is not None
    return workspace_model.WorkspaceRun(
        timestamp=to_datetime(row.started_at or row.created_at),
        duration_ms=round(run.runtime_seconds * 1_000) if ended else None,
        status=status,
        error_detail=run_error(row.state, row.error, row.cause),
        request=_request(found, **more),
    )


def _skipped(found: WorkspaceHistory, skip: Skipped) -> workspace_model.WorkspaceRun:
    return workspace_model.WorkspaceRun(
        timestamp=to_datetime(skip.event.recorded_at),
        duration_ms=None,
        status=RunStatus.SKIPPED,
        error_detail=f"skipped: {skip.event.payload.get('reason') or 'not run'}",
        request=_request(found, skipped=True),
    )
