"""The text output of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from horarium.cli.present import NOTHING, cell, labelled, named, text_lines
from horarium.schedule.run import attempt_number

if TYPE_CHECKING:
    from horarium.features.runs.model import Run


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
