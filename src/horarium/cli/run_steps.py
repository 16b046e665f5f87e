"""The steps of the run of a workflow, as a graph and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from horarium.cli.graph_view import workflow_lines
from horarium.cli.present import cell, show_columns, show_lines
from horarium.cli.remote import Remote
from horarium.cli.render import talk

if TYPE_CHECKING:
    from horarium.features.runs.model import Run

_COLUMNS = ("Node", "State", "Run ID", "Started", "Finished", "Cause")


def show_steps(remote: Remote, run: Run) -> None:
    """Print the steps of the run of a workflow; print nothing for another run."""
    workflow, steps = run.raw.get("workflow"), run.raw.get("steps")
    if not workflow or steps is None:
        return
    document = _document(remote, str(workflow["workflow_id"]), workflow["version"])
    if document is not None:
        show_lines([("", ""), *(("", line) for line in workflow_lines(document, steps))])
    if steps:
        show_lines([("", "")])
        show_columns(_COLUMNS, [_row(step) for step in steps])


def _document(remote: Remote, workflow_id: str, version: int) -> Mapping[str, Any] | None:
    """Return the workflow; None if it is deleted or the caller may not read it."""
    from horarium.client.errors import Forbidden, NotFound

    try:
        return remote.client.get_workflow(workflow_id, version=version).raw
    except (NotFound, Forbidden):
        talk(f"cannot read workflow {workflow_id}; its steps are listed without the graph")
        return None


def _row(step: Mapping[str, Any]) -> Sequence[object]:
    name = f"{step.get('node_id')}{' (fallback)' if step.get('fallback') else ''}"
    why = step.get("cause") or step.get("error") or step.get("error_class")
    first = str(why).splitlines()[0] if why else None
    return name, step.get("state"), step.get("run_id"), step.get("started_at"), step.get("finished_at"), cell(first)
