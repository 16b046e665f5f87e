"""Start a stored workflow without a schedule: by its owner or an admin, once for each idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from horarium.core.document.reader import WORKFLOW
from horarium.core.document.states import RunState
from horarium.errors import InvalidDefinition
from horarium.features.resources import Resources
from horarium.features.runs import starts
from horarium.features.schedules.drafts import require_namespace
from horarium.features.workflows.graph_rows import newest_versions
from horarium.features.workflows.model import WorkflowRunBody, WorkflowStart
from horarium.features.workflows.service import read_version
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.errors import WorkflowNotFound
from horarium.platform.wire import Permission, StartOutcome


@dataclass(frozen=True, slots=True)
class StartedWorkflow:
    run_id: bytes
    state: RunState
    outcome: WorkflowStart
    version: int


def start(
    resources: Resources, caller: Caller, workflow_id: str, asked: WorkflowRunBody, *, key: str | None
) -> StartedWorkflow:
    """Raises WorkflowNotFound, also for a version that is not there."""
    caller.require(Permission.WRITE)
    wanted = read_version(asked.version)
    resources.database.read(lambda connection: _check_there(connection, caller, workflow_id))
    action: dict[str, Any] = {"kind": WORKFLOW.name, "workflow_id": workflow_id, "version": wanted or "latest"}
    if asked.inputs is not None:
        action["input"] = asked.inputs
    beside = {
        "assignee": asked.assignee,
        "assignee_type": asked.assignee_type,
        "assignee_id": asked.assignee_id,
        "workflow_assignment_id": asked.workflow_assignment_id,
        "labels": asked.labels,
    }
    try:
        done = starts.start_run(resources, caller, action, key=key, beside=beside)
    except InvalidDefinition as wrong:
        raise InvalidDefinition({_body_path(path): said for path, said in wrong.errors.items()}) from None
    return StartedWorkflow(done.run_id, done.state, _outcome(done), done.version or 0)


def _body_path(path: str) -> str:
    """The body says beside each other what a schedule has in its action."""
    inputs = "action.input"
    return f"inputs{path.removeprefix(inputs)}" if path.startswith(inputs) else path


def _outcome(done: starts.StartedRun) -> WorkflowStart:
    if done.outcome is StartOutcome.ALREADY_STARTED:
        return WorkflowStart.ALREADY_STARTED
    waits = done.state is RunState.AWAITING_APPROVAL
    return WorkflowStart.AWAITING_APPROVAL if waits else WorkflowStart.STARTED


def _check_there(connection: Connection, caller: Caller, workflow_id: str) -> None:
    """Elsewhere a name that nobody has stored is a task's, or a worker's."""
    require_namespace(connection, caller.namespace)
    if not newest_versions(connection, [(caller.namespace, workflow_id)]):
        raise WorkflowNotFound(workflow_id)
