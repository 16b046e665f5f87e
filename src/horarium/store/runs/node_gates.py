"""Which gates the nodes of steps declare: read off the version of the workflow that each step is of."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from horarium.schedule.compiled import CompiledWorkflow
from horarium.store import workflow_graphs
from horarium.store.runs.work import Work
from horarium.store.workflow_graphs import WorkflowVersion


def node_gates(connection: Connection, steps: Iterable[Work]) -> dict[bytes, tuple[str, ...]]:
    """By step. What cannot be found declares none: that the step waits was settled at its birth."""
    of = {
        step.run_id: (WorkflowVersion(step.namespace, step.of_workflow, step.of_version), step.node_id)
        for step in steps
        if step.of_workflow is not None and step.of_version is not None
    }
    if not of:
        return {}
    found = workflow_graphs.load(connection, {workflow for workflow, _ in of.values()})
    return {run_id: _declared(found[workflow], node_id) for run_id, (workflow, node_id) in of.items()}


def _declared(workflow: CompiledWorkflow | Exception, node_id: str | None) -> tuple[str, ...]:
    if isinstance(workflow, Exception) or node_id not in workflow.places:
        return ()
    return workflow.node(node_id).gates
