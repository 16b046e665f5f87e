"""Routes of workflows: store, show by version, start without a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import Query

from horarium.core.document.states import RunState
from horarium.core.document.stored_workflow import NodeOrder
from horarium.features.resources import Resources
from horarium.features.workflows import service, starts
from horarium.features.workflows.drafts import TemplateChange
from horarium.features.workflows.model import (
    Workflow,
    WorkflowBody,
    WorkflowChecked,
    WorkflowDeleted,
    WorkflowGraph,
    WorkflowList,
    WorkflowRunBody,
    WorkflowSchedule,
    WorkflowStart,
    WorkflowStarted,
    WorkflowSummary,
    WorkflowVersions,
    WorkflowWritten,
)
from horarium.features.workflows.rows import WorkflowSummaryRow as Row
from horarium.instant import to_datetime
from horarium.platform.bodies import read_body
from horarium.platform.http.audited import Audited
from horarium.platform.http.examples import AT, RUN_ID
from horarium.platform.http.limits import readable
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import READ, WRITE, IdempotencyKey, Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import WriteOutcome

routes = Routes("/api/workflows", tag="workflows")

_SENT: Final[dict[str, Any]] = {
    "name": "Daily brief",
    "nodes": [
        {"id": "fetch", "action": {"kind": "http", "url": "https://news.example.com/today"}},
        {
            "id": "send",
            "needs": ["fetch"],
            "action": {"kind": "http", "url": "https://mail.example.com/send"},
            "input": {"rows": {"$from": "/results/fetch/rows"}},
        },
    ],
    "triggers": [{"key": "nightly", "schedule": {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"}}],
}
_GRAPH = WorkflowGraph(order=("fetch", "send"), starts=("fetch",), ends=("send",))
_SCHEDULES = (WorkflowSchedule(schedule_id="workflow:brief:nightly", outcome=WriteOutcome.CREATED),)
_NEWEST: Final[dict[str, Any]] = {
    "workflow_id": "brief",
    "version": 1,
    "name": "Daily brief",
    "owner": "ada",
    "nodes": 2,
    "bundle": None,
    "created_at": AT,
    "created_by": "ada",
}


@routes(
    "GET",
    "",
    needs=READ,
    summary="List workflows",
    answer=WorkflowList,
    example=WorkflowList(workflows=(WorkflowSummary(**_NEWEST),), next_page_token=None),
)
def list_workflows(
    resources: ResourcesOf,
    caller: CallerOf,
    owner: Annotated[str | None, Query(max_length=256)] = None,
    bundle: Annotated[str | None, Query(max_length=256)] = None,
    text: Annotated[
        str | None, Query(max_length=256, description="Only workflows whose ID or name contains this text.")
    ] = None,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """The newest version of each, sorted by ID."""
    page = service.list_workflows(
        resources,
        caller,
        owner=owner,
        bundle=bundle,
        text=text,
        page_size=page_size,
        next_page_token=next_page_token,
    )
    return Reply(WorkflowList(workflows=_summaries(resources, page.workflows), next_page_token=page.next_page_token))


@routes(
    "POST",
    "/validate",
    needs=READ,
    summary="Validate a workflow",
    body=WorkflowBody,
    sends=_SENT,
    answer=WorkflowChecked,
    example=WorkflowChecked(document=_SENT, graph=_GRAPH),
    repeatable=False,
    warns=True,
)
def validate_workflow(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """Returns the document as it would be stored, or all errors by path."""
    found = service.validate(resources, caller, document)
    return Reply(WorkflowChecked(document=found.document, graph=_graph(found.graph), warnings=found.warnings))


@routes(
    "PUT",
    "/{workflow_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create or update a workflow",
    body=WorkflowBody,
    sends=_SENT,
    answer=WorkflowWritten,
    also=(201,),
    example=WorkflowWritten(workflow_id="brief", version=1, outcome=WriteOutcome.CREATED, schedules=_SCHEDULES),
    planned=True,
    warns=True,
)
def put_workflow(
    resources: ResourcesOf, caller: CallerOf, workflow_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Each change creates a version; an equal document does not. Triggers of the workflow become managed schedules."""
    done = service.put(resources, caller, workflow_id, document, if_version=version_of(if_match))
    answer = WorkflowWritten(
        workflow_id=done.workflow_id,
        version=done.version,
        outcome=done.outcome,
        schedules=_schedules(done.schedules),
        warnings=done.warnings,
    )
    created = done.outcome is WriteOutcome.CREATED
    return Reply(answer, 201 if created else 200, headers={"ETag": etag(done.version)})


@routes(
    "GET",
    "/{workflow_id}",
    needs=READ,
    summary="Show a workflow",
    answer=Workflow,
    example=Workflow(**_NEWEST, document=_SENT, graph=_GRAPH),
)
def get_workflow(
    resources: ResourcesOf,
    caller: CallerOf,
    workflow_id: str,
    version: Annotated[str | None, Query(max_length=32, description="Version number or `latest`.")] = None,
) -> Reply:
    kept = service.get(resources, caller, workflow_id, version)
    graph = None if kept.graph is None else _graph(kept.graph)
    answer = Workflow(**_about(kept.row), document=kept.row.document, graph=graph)
    return Reply(answer, headers={"ETag": etag(kept.row.version)})


@routes(
    "GET",
    "/{workflow_id}/versions",
    needs=READ,
    summary="List the versions of a workflow",
    answer=WorkflowVersions,
    example=WorkflowVersions(workflow_id="brief", versions=(WorkflowSummary(**_NEWEST),), next_page_token=None),
)
def workflow_versions(
    resources: ResourcesOf,
    caller: CallerOf,
    workflow_id: str,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """Newest first."""
    page = service.list_versions(resources, caller, workflow_id, page_size=page_size, next_page_token=next_page_token)
    shown = _summaries(resources, page.workflows)
    return Reply(WorkflowVersions(workflow_id=workflow_id, versions=shown, next_page_token=page.next_page_token))


@routes(
    "DELETE",
    "/{workflow_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete a workflow",
    answer=WorkflowDeleted,
    example=WorkflowDeleted(workflow_id="brief", outcome=WriteOutcome.DELETED, schedules=()),
    planned=True,
)
def delete_workflow(resources: ResourcesOf, caller: CallerOf, workflow_id: str) -> Reply:
    """Deletes all versions and the schedules of its triggers. Rejected while a schedule, run or workflow uses it."""
    gone = service.delete(resources, caller, workflow_id)
    return Reply(WorkflowDeleted(workflow_id=workflow_id, outcome=WriteOutcome.DELETED, schedules=_schedules(gone)))


@routes(
    "POST",
    "/{workflow_id}/runs",
    needs=WRITE,
    summary="Start a workflow without a schedule",
    body=WorkflowRunBody,
    sends={"inputs": {"day": "2026-03-01"}, "labels": {"team": "news"}},
    answer=WorkflowStarted,
    status=201,
    also=(200,),
    example=WorkflowStarted(
        run_id=RUN_ID, state=RunState.READY, outcome=WorkflowStart.STARTED, workflow_id="brief", version=1
    ),
)
def run_workflow(
    resources: ResourcesOf,
    caller: CallerOf,
    workflow_id: str,
    body: Document,
    idempotency_key: IdempotencyKey = None,
) -> Reply:
    """With an assignee, the run awaits approval, as a run of a schedule would. The idempotency key is kept as long as
    the run.
    """
    asked = read_body(WorkflowRunBody, body)
    caller = caller.asking_to_skip(asked.approval_status, asked.skip_approval)
    done = starts.start(resources, caller, workflow_id, asked, key=idempotency_key)
    answer = WorkflowStarted(
        run_id=id_text(done.run_id),
        state=done.state,
        outcome=done.outcome,
        workflow_id=workflow_id,
        version=done.version,
    )
    return Reply(answer, 200 if done.outcome is WorkflowStart.ALREADY_STARTED else 201)


def _about(row: Row) -> dict[str, Any]:
    return {
        "workflow_id": row.workflow_id,
        "version": row.version,
        "name": row.name,
        "owner": row.owner,
        "nodes": row.nodes,
        "bundle": row.bundle,
        "created_at": to_datetime(row.created_at),
        "created_by": row.created_by,
    }


def _summaries(resources: Resources, rows: Iterable[Row]) -> Any:
    return tuple(
        readable(resources, "workflow", rows, lambda row: WorkflowSummary(**_about(row)), lambda row: row.workflow_id)
    )


def _schedules(changes: Iterable[TemplateChange]) -> tuple[WorkflowSchedule, ...]:
    return tuple(WorkflowSchedule(schedule_id=each.schedule_id, outcome=each.outcome) for each in changes)


def _graph(graph: NodeOrder) -> WorkflowGraph:
    return WorkflowGraph(order=graph.order, starts=graph.starts, ends=graph.ends)
