"""The text output of a run, of its steps as a graph and a table, and of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.core.document.states import attempt_number
from horarium.features.workflows.graph_drawing import workflow_lines
from horarium.platform.cli.remote import Remote, with_remote
from horarium.platform.cli.streams import (
    NOTHING,
    Format,
    cell,
    labelled,
    named,
    printable,
    show_columns,
    show_document,
    show_json,
    show_lines,
    talk,
    text_lines,
)

if TYPE_CHECKING:
    from horarium.features.runs.model import Run, RunLogLine


_LABELS = {"nominal": "scheduled for", "stop_requested_at": "stop requested"}


def described(run: Run) -> Iterator[tuple[str, str]]:
    yield "run", run.run_id
    yield "schedule", cell(named(run.schedule_id, run.schedule_name))
    yield "namespace", run.namespace
    number = attempt_number(run.state, run.attempt)
    yield "state", run.state + (f" (attempt {number})" if number > 1 else "")
    yield "origin", f"{cell(run.origin)} · revision {cell(run.revision)}"
    name, version = None, ""
    if run.workflow is not None:
        name, version = run.workflow.name, f" · version {run.workflow.version}"
    yield "workflow", f"{cell(named(run.workflow_type, name))}{version} · {cell(run.workflow_instance_id)}"
    if run.covers is not None:
        told = run.covers
        yield "covers", f"{told.count} occurrences, {cell(told.first)} to {cell(told.last)}"
    for label, value in _optional(run):
        if value is not None:
            yield label, cell(value)
    held = [] if run.policies is None else list(_policies(run.policies.raw))
    yield from labelled("policies", held) if held else ()
    yield from _error(run)
    times = ("nominal", "due", "created_at", "started_at", "finished_at", "deadline", "stop_requested_at")
    yield from (
        (_LABELS.get(name, name.removesuffix("_at")), cell(run.raw[name])) for name in times if run.raw.get(name)
    )


def _error(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the error; a traceback follows its class on separate lines."""
    if run.error is None and run.error_class is None:
        return
    lines = text_lines(run.error or NOTHING)
    if run.error_class is not None:
        lines = [f"{run.error_class}: {lines[0]}"] if len(lines) == 1 else [run.error_class, *lines]
    yield from labelled("error", lines)


def _policies(held: Mapping[str, Any]) -> Iterator[str]:
    """Yield the policies that are not defaults, and their origin."""
    for path, origin in held["origins"].items():
        if origin != "default":
            part, _, name = path.partition(".")
            yield f"{path}: {cell(held[part].get(name) if name else held[part])} ({origin})"


def _assignee(found: Mapping[str, Any] | None) -> str | None:
    """Return such as `team:desk (News desk) · writer (The writer)`, with the member that does the work."""
    if not found:
        return None
    member = named(found.get("member"), found.get("member_name"))
    return f"{found['type']}:{named(found['id'], found.get('name'))}" + (f" · {member}" if member else "")


def _approval(found: Mapping[str, Any] | None) -> str | None:
    """Return such as `approved by ada at …: looks good · for spend`."""
    if not found:
        return None
    told = str(found.get("status") or "required")
    told += f" by {found['decided_by']}" if found.get("decided_by") else ""
    told += f" at {found['decided_at']}" if found.get("decided_at") else ""
    told += f": {found['reason']}" if found.get("reason") else ""
    told += f" · for {', '.join(found['gates'])}" if found.get("gates") else ""
    asked = found.get("approval_id") if found.get("status") in (None, "pending") else None
    return told + (f" · {asked}" if asked else "")


def _optional(run: Run) -> Iterator[tuple[str, object]]:
    yield "queue", run.task_queue
    yield "inputs", run.inputs
    yield from (run.rendered or {}).items()
    yield "rotation index", run.rotation_index_used
    if run.waiting_for is not None:
        place = run.waiting_for
        yield "waiting for", f"capacity of agent {place.agent_id} ({place.in_use} of {place.capacity} in use)"
    yield "result", run.result
    yield "cause", run.cause
    yield "assignee", _assignee(run.raw.get("assignee"))
    yield "approval", _approval(run.raw.get("approval"))
    yield "question", (run.raw.get("approval") or {}).get("question")
    if run.cost or run.tokens or run.tool_calls:
        yield "usage", f"cost {run.cost:g}, {run.tokens} tokens, {run.tool_calls} tool calls"
    yield "rerun of", run.rerun_of
    yield "reruns", ", ".join(run.reruns) or None
    yield "parent", run.parent_run_id
    yield "node", run.node_id


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
    from horarium.platform.client.errors import Forbidden, NotFound

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


RunId = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Run ID.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the run ends.")]
Times = Annotated[bool, typer.Option("--times", help="Prefix each line with its time, attempt and stream.")]
After = Annotated[
    int, typer.Option("--after", metavar="NUMBER", min=0, help="Print only lines with a greater line number.")
]


@with_remote
def logs_command(remote: Remote, run_id: RunId, follow: Follow = False, times: Times = False, after: After = 0) -> None:
    """Print the log of a run: its standard output, standard error and log records.

    Example: horarium run logs 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --follow
    """
    if remote.output in (Format.JSON, Format.YAML) and not follow:
        show_document(remote.client.get_run_logs(run_id, after=after).raw, remote.output, [])
        return
    lines = (
        remote.client.follow_run_logs(run_id, after=after)
        if follow
        else remote.client.iter_run_logs(run_id, after=after)
    )
    last = _show(remote, lines, times=times, after=after)
    if last == after and remote.output is Format.TABLE:
        talk(f"no {'more ' if after else ''}logs of run {run_id}")


def _show(remote: Remote, lines: Iterable[RunLogLine], *, times: bool, after: int) -> int:
    """Print lines and return the number of the last one; report dropped lines."""
    for line in lines:
        if remote.output is not Format.TABLE:
            show_json(dict(line.raw))
        else:
            if (missing := line.number - after - 1) > 0:
                talk(f"… {missing} lines dropped; the setting run_log_bytes limits the log of a run")
            typer.echo(_log_line(line) if times else printable(line.text))
        after = line.number
    return after


def _log_line(line: RunLogLine) -> str:
    return f"{cell(line.at)} {line.attempt + 1} {line.stream:6} {printable(line.text)}"
