"""What is sent and answered about workflows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Object, Rows, Time
from horarium.wire.bodies import Body, Name, Text
from horarium.wire.outcomes import WriteOutcome

Labels = Annotated[Mapping[str, str], Meta(max_length=64)]


class WorkflowBody(Body, frozen=True, kw_only=True):
    """Nodes with an action each, what comes before what, and when it starts by itself."""

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
    """`version` is a number or `latest`, which it is without one. `assignee` is both fields of it as one object."""

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
    """`order`: each node after those it waits for; `starts` wait for nobody, and for `ends` nobody waits."""

    order: tuple[str, ...]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


class WorkflowSchedule(Answer, frozen=True, kw_only=True):
    """What became of the schedule of a trigger."""

    schedule_id: str
    outcome: WriteOutcome


class WorkflowWritten(Answer, frozen=True, kw_only=True):
    workflow_id: str
    version: int
    outcome: WriteOutcome
    schedules: tuple[WorkflowSchedule, ...]
    warnings: tuple[str, ...] = ()


class WorkflowChecked(Answer, frozen=True, kw_only=True):
    """`document` as it would be kept."""

    document: Object
    graph: WorkflowGraph
    warnings: tuple[str, ...] = ()


class WorkflowSummary(Answer, frozen=True, kw_only=True):
    """One version. `nodes` is how many it has, `created_by` who put it, `bundle` the one that brought it."""

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
    """`graph` null = the stored document cannot be read any more."""

    document: Object
    graph: WorkflowGraph | None


class WorkflowDeleted(Answer, frozen=True, kw_only=True):
    workflow_id: str
    outcome: WriteOutcome
    schedules: tuple[WorkflowSchedule, ...]


class WorkflowStarted(Answer, frozen=True, kw_only=True):
    """`version` is the one that the run keeps to."""

    run_id: str
    state: RunState
    outcome: WorkflowStart
    workflow_id: str
    version: int
