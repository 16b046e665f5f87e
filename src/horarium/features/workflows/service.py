"""Create, change, list and delete workflows. Each change is a version; triggers create schedules.

Only the owner of a workflow or an admin changes, deletes or schedules it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from horarium.core.document.checks import of_workflow
from horarium.core.document.json_values import same_json
from horarium.core.document.stored_workflow import (
    NodeOrder,
    WorkflowUse,
    graph_of,
    sub_workflows,
    template_bundle,
    workflow_document,
)
from horarium.core.document.workflow import WorkflowDefinition, parse_workflow
from horarium.core.policy.queue import PolicyError, checked_id, shown
from horarium.errors import InvalidDefinition, InvalidWorkflow
from horarium.features.approvals import standing_rows
from horarium.features.resources import Resources
from horarium.features.schedules.decisions import bypass_on_record
from horarium.features.schedules.drafts import check_bytes, check_rows, require_namespace
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.features.workflows.drafts import (
    TemplateChange,
    check_references,
    check_trigger_calendars,
    delete_templates,
    keep_taken,
    put_templates,
    read_document,
    settled_owner,
    warnings_of,
    without_credentials,
)
from horarium.features.workflows.rows import WorkflowRow, WorkflowSummaryRow
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection, limits
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.errors import NamespaceNotFound, VersionMismatch, WorkflowInUse, WorkflowNotFound
from horarium.platform.wire import Permission, WriteOutcome

T = TypeVar("T")

LATEST = "latest"
_USERS_NAMED = 20


@dataclass(frozen=True, slots=True)
class WorkflowChange:
    """`version` is the newest from now on; `schedules` are those of its triggers."""

    workflow_id: str
    version: int
    outcome: WriteOutcome
    schedules: tuple[TemplateChange, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedWorkflow:
    """`document` as it would be kept."""

    document: Mapping[str, Any]
    graph: NodeOrder
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredWorkflow:
    """`graph` None = the row was damaged, and is shown as it is."""

    row: WorkflowRow
    graph: NodeOrder | None


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    workflows: tuple[WorkflowSummaryRow, ...]
    next_page_token: str | None


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


def put(
    resources: Resources,
    caller: Caller,
    workflow_id: str,
    document: Mapping[str, Any],
    *,
    if_version: int | None = None,
) -> WorkflowChange:
    """Made, or changed; an equal document makes no new version. Raises InvalidWorkflow with all that is wrong."""
    caller.require(Permission.WRITE)
    asked = read_document(resources, caller, document, _named(workflow_id))
    with bypass_on_record(resources, caller):
        return _write_with_retry(
            resources, lambda connection: put_read(resources, connection, caller, asked, if_version=if_version)
        )


def put_read(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    asked: WorkflowDefinition,
    *,
    bundle: str | None = None,
    if_version: int | None = None,
) -> WorkflowChange:
    """In the transaction of `connection`, for whoever has read the document. `bundle` is the one that brings it."""
    # Two at once could make a cycle between them that neither sees; and versions are counted one after the other.
    if not tenant_rows.lock_namespace(connection, caller.namespace):
        raise NamespaceNotFound(caller.namespace)
    before = workflow_rows.find(connection, caller.namespace, asked.workflow_id)
    if before is not None:
        caller.require_owner(before.owner, f"the workflow {asked.workflow_id!r}")
    if if_version is not None and (before is None or before.version != if_version):
        raise VersionMismatch(if_version, 0 if before is None else before.version)
    owner, version = settled_owner(caller, asked.owner, before), 1 if before is None else before.version + 1
    workflow, taken = without_credentials(replace(asked, owner=owner, version=version))
    check_references(connection, caller, workflow, before)
    document = workflow_document(workflow)
    new_secrets = keep_taken(resources, connection, caller, taken)
    is_same = before is not None and same_json(before.document, document)
    if not is_same:
        _insert(resources, connection, caller, workflow, document, bundle or (before.bundle if before else None))
    elif before is not None:
        version = before.version
    schedules = put_templates(resources, connection, caller, workflow)
    return WorkflowChange(
        workflow.workflow_id,
        version,
        _outcome(is_new=before is None, is_same=is_same and not new_secrets),
        schedules,
        (
            *warnings_of(resources, connection, caller, workflow),
            *(f"{each.schedule_id}: {said}" for each in schedules for said in each.warnings),
        ),
    )


def _outcome(*, is_new: bool, is_same: bool) -> WriteOutcome:
    if is_new:
        return WriteOutcome.CREATED
    return WriteOutcome.UNCHANGED if is_same else WriteOutcome.UPDATED


def _insert(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    workflow: WorkflowDefinition,
    document: dict[str, Any],
    bundle: str | None,
) -> None:
    now = resources.clock.now()
    row = WorkflowRow(
        namespace=caller.namespace,
        workflow_id=workflow.workflow_id,
        version=workflow.version,
        owner=workflow.owner,
        created_at=now,
        bundle=bundle,
        created_by=caller.principal,
        name=workflow.name,
        nodes=len(workflow.nodes),
        uses=tuple(dict.fromkeys(WorkflowUse(sub.name, sub.version) for sub in sub_workflows(workflow))),
        document=document,
    )
    check_rows(connection, limits.WORKFLOWS, caller.namespace)
    workflow_rows.insert(connection, row)
    if workflow.version > 1:  # to undo an edit later does not bring back what it ended
        standing_rows.close_ended(connection, caller.namespace, now, workflow_id=workflow.workflow_id)
    check_bytes(resources, connection, caller.namespace, document, now)


def validate(resources: Resources, caller: Caller, document: Mapping[str, Any]) -> CheckedWorkflow:
    """Validate without storing; the returned document has its credentials removed, as it would be stored."""
    caller.require(Permission.READ)
    workflow, taken = without_credentials(read_document(resources, caller, document))
    generated = [name for _, credentials in taken for name in credentials]

    def look(connection: Connection) -> CheckedWorkflow:
        require_namespace(connection, caller.namespace)
        before = workflow_rows.find(connection, caller.namespace, workflow.workflow_id)
        next_one = replace(workflow, version=1 if before is None else before.version + 1)
        calendars = partial(check_trigger_calendars, resources, connection, caller, workflow)
        check_references(connection, caller, next_one, before, calendars)
        told = warnings_of(resources, connection, caller, workflow, generated)
        return CheckedWorkflow(workflow_document(workflow), graph_of(workflow), told)

    return resources.database.read(look)


def delete(resources: Resources, caller: Caller, workflow_id: str) -> tuple[TemplateChange, ...]:
    """All versions, with the schedules of its triggers. Refused while anything else needs it."""
    caller.require(Permission.WRITE)
    return resources.database.write_planned(lambda connection: delete_in(resources, connection, caller, workflow_id))


def delete_in(
    resources: Resources, connection: Connection, caller: Caller, workflow_id: str
) -> tuple[TemplateChange, ...]:
    """In the transaction of `connection`."""
    namespace = caller.namespace
    if not tenant_rows.lock_namespace(connection, namespace):
        raise NamespaceNotFound(namespace)
    row = _find(connection, caller, workflow_id)
    caller.require_owner(row.owner, f"the workflow {workflow_id!r}")
    own, most = template_bundle(workflow_id), _USERS_NAMED
    schedules = workflow_rows.schedules_with_workflow(connection, namespace, workflow_id, but_of=own, most=most)
    others = workflow_rows.workflows_with_workflow(connection, namespace, workflow_id, most=most)
    open_runs = workflow_rows.open_runs_with_workflow(connection, namespace, workflow_id, most=most)
    if schedules or others or open_runs:
        raise WorkflowInUse(workflow_id, tuple(schedules), tuple(others), open_runs)
    gone = delete_templates(resources, connection, caller, workflow_id)
    workflow_rows.delete(connection, namespace, workflow_id, secret_prefix=of_workflow(workflow_id))
    standing_rows.close_ended(connection, namespace, resources.clock.now())
    return gone


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def get(resources: Resources, caller: Caller, workflow_id: str, version: str | int | None = None) -> StoredWorkflow:
    """That version; without one, or for `latest`, the newest."""
    caller.require(Permission.READ)
    wanted = read_version(version)

    def look(connection: Connection) -> StoredWorkflow:
        row = _find(connection, caller, workflow_id, wanted)
        try:
            return StoredWorkflow(row, graph_of(read_row(row)))
        except InvalidWorkflow:
            return StoredWorkflow(row, None)

    return resources.database.read(look)


def read_row(row: WorkflowRow) -> WorkflowDefinition:
    """Raises InvalidWorkflow for a row that somebody damaged."""
    return parse_workflow({**row.document, "workflow_id": row.workflow_id, "version": row.version})


def read_version(version: str | int | None) -> int | None:
    """None = the newest. Raises InvalidDefinition."""
    if version is None or version == LATEST:
        return None
    text = str(version)
    if isinstance(version, bool) or not (text.isascii() and text.isdecimal() and len(text) < 10) or int(text) < 1:
        raise InvalidDefinition({"version": [f"must be a number of 1 or more, or {LATEST}, not {shown(version)}"]})
    return int(text)


def list_workflows(
    resources: Resources,
    caller: Caller,
    *,
    owner: str | None = None,
    bundle: str | None = None,
    text: str | None = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> WorkflowPage:
    """The newest version of each, by id. The token of a page is the id of its last."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)

    def look(connection: Connection) -> WorkflowPage:
        require_namespace(connection, caller.namespace)
        rows, more = workflow_rows.list_page(
            connection,
            caller.namespace,
            owner=owner,
            bundle=bundle,
            text=text,
            after_id=next_page_token,
            limit=limit,
        )
        return WorkflowPage(tuple(rows), rows[-1].workflow_id if more else None)

    return resources.database.read(look)


def list_versions(
    resources: Resources,
    caller: Caller,
    workflow_id: str,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> WorkflowPage:
    """The newest first. The token of a page is its last version."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else _token(next_page_token)

    def look(connection: Connection) -> WorkflowPage:
        _find(connection, caller, workflow_id)
        rows, more = workflow_rows.versions_page(connection, caller.namespace, workflow_id, before=before, limit=limit)
        return WorkflowPage(tuple(rows), str(rows[-1].version) if more else None)

    return resources.database.read(look)


def _find(connection: Connection, caller: Caller, workflow_id: str, version: int | None = None) -> WorkflowRow:
    row = workflow_rows.find(connection, caller.namespace, workflow_id, version)
    if row is None:
        require_namespace(connection, caller.namespace)
        if version is not None and workflow_rows.find(connection, caller.namespace, workflow_id) is not None:
            raise WorkflowNotFound(workflow_id, f"version {version} does not exist")
        raise WorkflowNotFound(workflow_id)
    return row


def _named(workflow_id: str) -> str:
    try:
        return checked_id("workflow_id", workflow_id)
    except PolicyError as wrong:
        raise InvalidWorkflow({wrong.field: [wrong.text]}) from None


def _token(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidDefinition({"next_page_token": ["is not a valid page token"]})
    return int(text)


def _write_with_retry(resources: Resources, work: Callable[[Connection], T]) -> T:
    """Somebody was faster: the second time their version is seen."""
    try:
        return resources.database.write_planned(work)
    except UniqueConflict:
        return resources.database.write_planned(work)
