"""The commands of `horarium run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.features.approvals.commands import approve_run_command, reject_run_command
from horarium.features.runs.output import described, logs_command, show_steps
from horarium.platform.cli import options
from horarium.platform.cli.bulk import Everything, Labels, Selection, Yes, selection, stop_runs
from horarium.platform.cli.lists import (
    All,
    AllNamespaces,
    Limit,
    Listing,
    PageToken,
    Paging,
    scope_of,
    show_listing,
    with_namespace,
)
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import ExitCode, Remote, remote_options, with_remote
from horarium.platform.cli.streams import (
    Format,
    json_value,
    printable,
    refuse,
    show_columns,
    show_document,
    show_json,
    talk,
    text_lines,
)
from horarium.platform.cli.times import TIME, Times, time_options
from horarium.platform.cli.waiting import PollingLimit, Timeout, all_succeeded, ended_runs, span_of

if TYPE_CHECKING:
    from horarium.features.runs.model import Run, RunEvent, RunStopped, RunSummary
    from horarium.platform.client.call import Call, Page


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List, inspect and stop runs.",
    epilog="Example: horarium run list --state unsuccessful",
)

_MOST_AWAITED = 100
_MOST_WATCHED = 1_000

RunId = Annotated[
    str, typer.Argument(metavar="RUN_ID", show_default=False, help="Run ID.", autocompletion=options.run_ids)
]


OfSchedule = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="ID",
        show_default="any",
        help="Filter by schedule.",
        autocompletion=options.schedule_ids,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        show_default="any",
        help="Filter by state; unsuccessful = failed, timed_out, launch_failed or unknown. Repeatable.",
        autocompletion=options.run_states,
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin",
        metavar="ORIGIN",
        show_default="any",
        help="Filter by origin: scheduled, backfill, manual or api. Repeatable.",
        autocompletion=options.run_origins,
    ),
]
WorkflowType = Annotated[
    str | None, typer.Option("--workflow-type", metavar="NAME", show_default="any", help="Filter by workflow type.")
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="NAME", show_default="any", help="Filter by queue.")]
WorkflowId = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        metavar="ID",
        show_default="any",
        help="Filter by stored workflow.",
        autocompletion=options.workflow_ids,
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        "--assignee",
        metavar="ID",
        show_default="any",
        help="Filter by agent or team; an agent also matches as a member of a team.",
        autocompletion=options.agent_ids,
    ),
]
FinishedAfter = Annotated[
    str | None,
    typer.Option(
        "--finished-after", metavar=TIME, show_default="any", help="List only runs that ended at or after this time."
    ),
]
Steps = Annotated[bool, typer.Option("--steps", help="Include the steps of workflows.")]
Skips = Annotated[bool, typer.Option("--skips", help="Include skipped occurrences; requires --schedule.")]


@app.command("list")
@with_options(times=time_options, remote=remote_options)
def list_command(
    remote: Remote,
    times: Times,
    schedule_id: OfSchedule = None,
    state: States = None,
    origin: Origins = None,
    workflow_type: WorkflowType = None,
    queue: Queue = None,
    workflow_id: WorkflowId = None,
    assignee: Who = None,
    finished_after: FinishedAfter = None,
    steps: Steps = False,
    skips: Skips = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
    all_namespaces: AllNamespaces = False,
    watched: Annotated[bool, typer.Option("--watch", "-w", help="Print new and changed runs until Ctrl-C.")] = False,
) -> None:
    """List runs, newest first; with --schedule also those of a deleted schedule.

    With --watch the newest run is last, and a run is printed again when it changes.

    Example: horarium run list --schedule nightly --state unsuccessful
    """
    shared: dict[str, Any] = {"state": state, "origin": origin, "workflow_id": workflow_id, "assignee": assignee}
    shared |= {"next_page_token": page_token, "finished_after": times.past("--finished-after", finished_after)}
    if schedule_id is not None:
        if workflow_type is not None or queue is not None or steps:
            refuse("--workflow-type, --queue and --steps cannot be combined with --schedule")
        if all_namespaces:
            refuse("--all-namespaces cannot be combined with --schedule: IDs are unique only within a namespace")
        call = _schedule_call(schedule_id, skips, shared)
    elif skips:
        refuse("--skips requires --schedule: skipped occurrences are in the history of a schedule")
    else:
        shared |= {"workflow_type": workflow_type, "queue": queue, "namespace": scope_of(all_namespaces)}
        call = _call(shared, steps)
    if watched:
        if everything or page_token is not None:
            refuse("--all and --page-token cannot be combined with --watch")
        if limit > _MOST_WATCHED:
            refuse(f"--limit: --watch shows at most {_MOST_WATCHED} runs")
        _watch_runs(remote, lambda: list(Listing(remote, call, Paging("runs"), limit)), call.query.get("namespace"))
        return
    _show_runs(Listing(remote, call, Paging("runs"), None if everything else limit))


def _schedule_call(schedule_id: str, skips: bool, asked: Mapping[str, Any]) -> Call[Page[RunSummary]]:
    from horarium.features.schedules.calls import ScheduleCalls

    return ScheduleCalls.list_schedule_runs(schedule_id, include="skips" if skips else None, **asked)


def _call(asked: Mapping[str, Any], steps: bool) -> Call[Page[RunSummary]]:
    from horarium.features.runs.calls import RunCalls

    return RunCalls.list_runs(include="steps" if steps else None, **asked)


def _watch_runs(remote: Remote, ask: Callable[[], Sequence[RunSummary]], namespace: object) -> None:
    from horarium.platform.cli.waiting import Growing, watch

    watch(
        ask,
        lambda run: (run.run_id or (run.schedule_id, run.nominal), (run.state, run.attempt, run.finished_at)),
        Growing(remote.output, *with_namespace(_COLUMNS, _row, namespace)),
        PollingLimit(),
    )


_COLUMNS = ("Run ID", "Schedule ID", "Name", "State", "Origin", "Scheduled For", "Finished")


def _row(run: RunSummary) -> Sequence[object]:
    name = run.schedule_name
    return run.run_id, run.schedule_id, name, run.state, run.origin, run.nominal, run.finished_at


def _show_runs(listing: Listing[RunSummary]) -> None:
    show_listing(
        listing,
        _COLUMNS,
        _row,
        empty="no runs in namespace {namespace}",
        hint="more runs: --all, or --page-token {cursor}",
    )


@app.command("show")
@with_remote
def show_command(remote: Remote, run_id: RunId) -> None:
    """Show a run. The run of a workflow is drawn as a graph with the state of each step.

    Example: horarium run show 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    run = remote.client.get_run(run_id)
    show_document(run.raw, remote.output, described(run))
    if remote.output is Format.TABLE:
        show_steps(remote, run)


@app.command("events")
@with_remote
def events_command(
    remote: Remote,
    run_id: RunId,
    own: Annotated[bool, typer.Option("--own", help="Omit the events of its steps.")] = False,
) -> None:
    """List the events of a run and of its steps, oldest first.

    Example: horarium run events 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    from horarium.features.runs.calls import RunCalls

    show_listing(
        Listing(remote, RunCalls.get_run_events(run_id, own=own or None), Paging("events", "limit", 500), None),
        ("Seq", "Event", "Recorded At", "Details"),
        lambda event: (event.sequence, event.event_type, event.recorded_at, _details(event)),
        empty=f"no events of run {run_id}",
        hint="",
        below=lambda event: [line for text in _long(event.payload).values() for line in text_lines(text)],
    )


def _long(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the values with several lines, such as a traceback."""
    return {name: value for name, value in payload.items() if isinstance(value, str) and "\n" in value.strip()}


def _details(event: RunEvent) -> dict[str, Any]:
    """Return the short values of an event, with the node of a step."""
    return {**({"node_id": event.node_id} if event.node_id else {}), **_short(event.payload)}


def _short(payload: Mapping[str, Any]) -> dict[str, Any]:
    long = _long(payload)
    return {name: value for name, value in payload.items() if name not in long}


app.command("logs")(logs_command)
app.command("approve")(approve_run_command)
app.command("reject")(reject_run_command)


@app.command("cancel")
@with_remote
def cancel_command(
    remote: Remote,
    run_id: Annotated[
        str | None,
        typer.Argument(metavar="RUN_ID", show_default=False, help="Run ID; instead of it, --label or --all."),
    ] = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Cancel runs. A run that has not started ends at once; a running one is asked to stop.

    --label selects the open runs of all schedules with the label.

    Example: horarium run cancel 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    chosen = selection(run_id, label, everything)
    if isinstance(chosen, Selection):
        stop_runs(remote, "cancel", chosen, yes)
    else:
        _show_outcome(remote, remote.client.cancel_run(chosen))


@app.command("rerun")
@with_remote
def rerun_command(
    remote: Remote,
    run_id: RunId,
    overlap_policy: Annotated[
        str | None,
        typer.Option(
            "--overlap-policy", metavar="POLICY", show_default="the schedule's", help="Overlap policy for this run."
        ),
    ] = None,
    even_if_paused: Annotated[
        bool, typer.Option("--even-if-paused", help="Run even if the schedule is paused.")
    ] = False,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="JSON",
            show_default="those of the run",
            help="Inputs of the new run, as JSON; @FILE reads a file.",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded in the history."),
    ] = None,
) -> None:
    """Rerun an ended run as a new run, with the same inputs unless --input is given.

    Budget, overlap policy and approval apply as for a manual trigger. Exit code 1: the rerun was skipped.

    Example: horarium run rerun 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --reason "the target was down"
    """
    done = remote.client.rerun_run(
        run_id,
        overlap_policy=overlap_policy,
        even_if_paused=even_if_paused or None,
        inputs=None if inputs is None else json_value("--input", inputs),
        reason=reason,
    )
    said = done.outcome + (f": {done.reason}" if done.reason else "")
    lines = [("outcome", said), ("run", done.run_id), ("rerun of", done.rerun_of), ("state", done.state)]
    show_document(done.raw, remote.output, [(label, text) for label, text in lines if text])
    if done.run_id is None:
        raise typer.Exit(ExitCode.NO)


@app.command("terminate")
@with_remote
def terminate_command(remote: Remote, run_id: RunId) -> None:
    """Terminate a run at once, without waiting for the worker.

    Example: horarium run terminate 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    _show_outcome(remote, remote.client.terminate_run(run_id))


@app.command("wait")
@with_remote
def wait_command(
    remote: Remote,
    run_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_ID", show_default=False, help="One or more run IDs.", autocompletion=options.run_ids
        ),
    ],
    timeout: Timeout = None,
) -> None:
    """Wait until runs end.

    Exit code 0: all succeeded; 1: at least one did not, or --timeout elapsed.

    Example: horarium run wait 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --timeout 10m
    """
    if len(run_ids) > _MOST_AWAITED:
        refuse(f"at most {_MOST_AWAITED} run IDs are accepted")
    patience = PollingLimit(span_of("--timeout", timeout))
    ended: dict[str, Run] = {}
    for run in ended_runs(remote.client, run_ids, patience):
        ended[run.run_id] = run
        if remote.output is Format.JSONL:
            show_json(dict(run.raw))
    late = [run_id for run_id in dict.fromkeys(run_ids) if run_id not in ended]
    if remote.output is Format.TABLE and ended:
        show_columns((*_COLUMNS, "Error"), [(*_row(run), run.error) for run in ended.values()])
    elif remote.output in (Format.JSON, Format.YAML):
        show_document({"runs": [dict(run.raw) for run in ended.values()], "not_ended": late}, remote.output, [])
    if late:
        talk(f"not ended after {patience.seconds:g} s: {', '.join(map(printable, late))}")
    if not all_succeeded(run_ids, ended):
        raise typer.Exit(ExitCode.NO)


def _show_outcome(remote: Remote, done: RunStopped) -> None:
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{done.run_id}: {done.outcome}; state {done.state}"))
    else:
        show_document(done.raw, remote.output, [])
