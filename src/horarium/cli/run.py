"""`horarium run`: what became of the work, and how to stop it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import cell, printable, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format
from horarium.cli.run_logs import logs_command

if TYPE_CHECKING:
    from horarium.wire.runs import Run, RunStopped, RunSummary

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Runs: what became of the work, and how to stop it.",
    epilog="Example: horarium run list --state failed",
)

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False, help="Which run.")]


OfSchedule = Annotated[
    str | None, typer.Option("--schedule", metavar="ID", show_default="any", help="Of one schedule.")
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", show_default="any", help="Such as failed; may be repeated."),
]
Origins = Annotated[
    list[str] | None,
    typer.Option("--origin", metavar="ORIGIN", show_default="any", help="scheduled, backfill, manual or api."),
]
WorkflowType = Annotated[
    str | None, typer.Option("--workflow-type", metavar="NAME", show_default="any", help="What they do.")
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="NAME", show_default="any", help="Where they wait.")]
Skips = Annotated[bool, typer.Option("--skips", help="Also what was skipped; with --schedule.")]


@app.command("list")
@with_remote
def list_command(
    remote: Remote,
    schedule_id: OfSchedule = None,
    state: States = None,
    origin: Origins = None,
    workflow_type: WorkflowType = None,
    queue: Queue = None,
    skips: Skips = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
) -> None:
    """Runs, newest first; with --schedule also those of a deleted schedule.

    Example: horarium run list --schedule nightly --state failed --state timed_out
    """
    from horarium.client.run_calls import RunCalls
    from horarium.client.schedule_calls import ScheduleCalls

    if schedule_id is not None:
        if workflow_type is not None or queue is not None:
            refuse("--workflow-type and --queue do not go with --schedule")
        call = ScheduleCalls.list_schedule_runs(
            schedule_id, state=state, origin=origin, include="skips" if skips else None, next_page_token=page_token
        )
    elif skips:
        refuse("--skips needs --schedule: skips are kept in the history of one schedule")
    else:
        call = RunCalls.list_runs(
            state=state, origin=origin, workflow_type=workflow_type, queue=queue, next_page_token=page_token
        )
    _show_runs(Listing(remote, call, Paging("runs"), None if everything else limit))


def _show_runs(listing: Listing[RunSummary]) -> None:
    show_listing(
        listing,
        ("Run ID", "Schedule ID", "State", "Origin", "Nominal", "Finished"),
        lambda run: (run.run_id, run.schedule_id, run.state, run.origin, run.nominal, run.finished_at),
        empty="no runs in namespace {namespace}",
        hint="more runs: --all, or --page-token {cursor}",
    )


@app.command("show")
@with_remote
def show_command(remote: Remote, run_id: RunId) -> None:
    """All about one run.

    Example: horarium run show 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    run = remote.client.get_run(run_id)
    show_document(run.raw, remote.output, _described(run))


@app.command("events")
@with_remote
def events_command(remote: Remote, run_id: RunId) -> None:
    """What happened to a run, oldest first.

    Example: horarium run events 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    from horarium.client.run_calls import RunCalls

    show_listing(
        Listing(remote, RunCalls.get_run_events(run_id), Paging("events", "limit", 500, "next_cursor"), None),
        ("Seq", "Event", "Recorded At", "Details"),
        lambda event: (event.sequence, event.event_type, event.recorded_at, event.payload),
        empty=f"no events about run {run_id}",
        hint="",
    )


app.command("logs")(logs_command)


@app.command("cancel")
@with_remote
def cancel_command(remote: Remote, run_id: RunId) -> None:
    """What has not started ends now; whoever has taken it is asked to stop.

    Example: horarium run cancel 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    _show_outcome(remote, remote.client.cancel_run(run_id))


@app.command("terminate")
@with_remote
def terminate_command(remote: Remote, run_id: RunId) -> None:
    """It ends now, whoever has it.

    Example: horarium run terminate 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    _show_outcome(remote, remote.client.terminate_run(run_id))


def _show_outcome(remote: Remote, done: RunStopped) -> None:
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{done.run_id}: {done.outcome}; state {done.state}"))
    else:
        show_document(done.raw, remote.output, [])


def _described(run: Run) -> Iterator[tuple[str, str]]:
    yield "run", run.run_id
    yield "schedule", cell(run.schedule_id)
    yield "namespace", run.namespace
    yield "state", run.state + (f" (attempt {run.attempt})" if run.attempt > 1 else "")
    yield "origin", f"{cell(run.origin)} · revision {cell(run.revision)}"
    yield "workflow", f"{cell(run.workflow_type)} · {cell(run.workflow_instance_id)}"
    if run.covers is not None:
        told = run.covers
        yield "covers", f"{told.count} occurrences, {cell(told.first)} to {cell(told.last)}"
    for label, value in _optional(run):
        if value is not None:
            yield label, cell(value)
    times = ("nominal", "due", "created_at", "started_at", "finished_at", "deadline", "stop_requested_at")
    yield from ((name.removesuffix("_at"), cell(run.raw[name])) for name in times if run.raw.get(name))


def _optional(run: Run) -> Iterator[tuple[str, object]]:
    yield "queue", run.task_queue
    yield "inputs", run.inputs
    yield "rotation", run.rotation_index_used
    yield "result", run.result
    yield "error", run.error if run.error_class is None else f"{run.error_class}: {cell(run.error)}"
    yield "cause", run.cause
    yield "approval", run.raw.get("approval")
    if run.cost or run.tokens or run.tool_calls:
        yield "used", f"cost {run.cost:g}, {run.tokens} tokens, {run.tool_calls} tool calls"
    yield "parent", run.parent_run_id
    yield "node", run.node_id
