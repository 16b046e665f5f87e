"""Bodies and answers about workflows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.core.document.states import RunState
from horarium.platform.bodies import Body, Name, Text
from horarium.platform.wire import Answer, Object, Rows, Time, WriteOutcome

Labels = Annotated[Mapping[str, str], Meta(max_length=64)]


class WorkflowBody(Body, frozen=True, kw_only=True):
    """A workflow: nodes with an action each, edges and triggers."""

    workflow_id: Name | None = None
    version: int | None = None
    name: Text | None = None
    description: str | None = None
    owner: Text | None = None
    approval_policy: Object | None = None
    queue: Text | None = None
    connection: Text | None = None
    nodes: tuple[Object, ...]
    edges: tuple[Object, ...] = ()
    triggers: tuple[Object, ...] = ()


class WorkflowRunBody(Body, frozen=True, kw_only=True):
    """Options of a workflow run. `version` is a number or `latest` (default). `assignee` combines both assignee fields
    in one object.
    """

    OTHER_NAMES: ClassVar = {"input": "inputs"}

    inputs: Any = None
    version: int | str | None = None
    assignee: Object | None = None
    assignee_type: str | None = None
    assignee_id: Text | None = None
    workflow_assignment_id: Name | None = None
    labels: Labels | None = None
    approval_status: Text | None = None
    skip_approval: bool = False


class WorkflowStart(StrEnum):
    STARTED = "started"
    AWAITING_APPROVAL = "awaiting_approval"
    ALREADY_STARTED = "already_started"  # by the same idempotency key


class WorkflowGraph(Answer, frozen=True, kw_only=True):
    """Graph of a workflow. `order`: each node after its dependencies. `starts`: nodes without dependencies. `ends`:
    nodes that no other node depends on.
    """

    order: tuple[str, ...]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


class WorkflowSchedule(Answer, frozen=True, kw_only=True):
    """Outcome for the schedule of a trigger."""

    schedule_id: str
    outcome: WriteOutcome


class WorkflowWritten(Answer, frozen=True, kw_only=True):
    workflow_id: str
    version: int
    outcome: WriteOutcome
    schedules: tuple[WorkflowSchedule, ...]
    warnings: tuple[str, ...] = ()


class WorkflowChecked(Answer, frozen=True, kw_only=True):
    """Result of a validation. `document` is the workflow as it would be stored."""

    document: Object
    graph: WorkflowGraph
    warnings: tuple[str, ...] = ()


class WorkflowSummary(Answer, frozen=True, kw_only=True):
    """One version of a workflow. `nodes`: number of nodes. `created_by` and `bundle`: origin of the version."""

    workflow_id: str
    version: int
    name: str | None
    owner: str | None
    nodes: int | None
    bundle: str | None
    created_at: Time
    created_by: str | None


class WorkflowList(Answer, frozen=True, kw_only=True):
    workflows: Rows[WorkflowSummary]
    next_page_token: str | None


class WorkflowVersions(Answer, frozen=True, kw_only=True):
    workflow_id: str
    versions: Rows[WorkflowSummary]
    next_page_token: str | None


class Workflow(WorkflowSummary, frozen=True, kw_only=True):
    """A workflow. `graph` null: the stored document cannot be read."""

    document: Object
    graph: WorkflowGraph | None


class WorkflowDeleted(Answer, frozen=True, kw_only=True):
    workflow_id: str
    outcome: WriteOutcome
    schedules: tuple[WorkflowSchedule, ...]


class WorkflowStarted(Answer, frozen=True, kw_only=True):
    """A started workflow run. Its `version` is fixed."""

    run_id: str
    state: RunState
    outcome: WorkflowStart
    workflow_id: str
    version: int
