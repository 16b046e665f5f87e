"""The commands that start runs of a schedule: manual trigger and backfill."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli import completion
from horarium.cli.bulk import Everything, Labels, Selection, Yes, change_schedules, selection
from horarium.cli.confirming import Confirm
from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.present import cell, printable, show_columns, show_document, show_lines
from horarium.cli.reading import json_value, refuse
from horarium.cli.remote import ExitCode, Remote, remote_options, with_remote
from horarium.cli.render import Format, show_json, talk
from horarium.cli.schedule_write import OneOfMany, ScheduleId
from horarium.cli.times import TIME, Times, schedule_time_options
from horarium.cli.waiting import Patience, Timeout, all_succeeded, ended_runs, span_of

if TYPE_CHECKING:
    from horarium.features.schedules.model import Backfilled, Triggered

Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap-policy",
        metavar="POLICY",
        show_default="the schedule's",
        help="Overlap policy for this run.",
        autocompletion=completion.overlap_policies,
    ),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded in the history.")
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        show_default="generated",
        help="Idempotency key: a repeated request with the same key has no effect.",
    ),
]


@with_remote
def trigger_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    overlap_policy: Overlap = None,
    even_if_paused: Annotated[
        bool, typer.Option("--even-if-paused", help="Run even if the schedule is paused.")
    ] = False,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="JSON",
            show_default="the schedule's",
            help="Inputs of this run, as JSON; @FILE reads a file.",
        ),
    ] = None,
    reason: Reason = None,
    key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run ends.")] = False,
    timeout: Timeout = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
    confirm: Confirm = False,
) -> None:
    """Run a schedule now. The next fire time does not change.

    Exit code 1: the trigger was skipped; with --wait also: the run did not succeed, or not within --timeout.

    Example: horarium schedule trigger nightly --reason "asked for by finance" --wait --timeout 10m
    """
    if timeout is not None and not wait:
        refuse("--timeout requires --wait")
    patience = Patience(span_of("--timeout", timeout))
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _refuse_for_many(overlap_policy, even_if_paused or None, inputs, key, wait or None)
        return change_schedules(remote, "trigger", chosen, yes, confirm, reason=reason)
    done = remote.client.trigger_schedule(
        chosen,
        overlap_policy=overlap_policy,
        even_if_paused=even_if_paused or None,
        inputs=None if inputs is None else json_value("--input", inputs),
        reason=reason,
        idempotency_key=key,
    )
    if wait and done.run_id is not None:
        _show_end(remote, done, done.run_id, patience)
        return None
    show_document({**done.raw, **({"run": None} if wait else {})}, remote.output, _told(done))
    if done.run_id is None:
        raise typer.Exit(ExitCode.NO)
    return None


def _refuse_for_many(*given: object) -> None:
    if any(each is not None for each in given):
        refuse("--overlap-policy, --even-if-paused, --input, --key and --wait apply to a single schedule")


def _told(done: Triggered) -> list[tuple[str, str]]:
    said = done.outcome + (f": {done.reason}" if done.reason else "") + (" (repeated)" if done.repeated else "")
    lines = [("outcome", said), ("run", done.run_id), ("state", done.state), ("workflow", done.workflow_id)]
    return [(label, text) for label, text in lines if text]


def _show_end(remote: Remote, done: Triggered, run_id: str, patience: Patience) -> None:
    """Print the run ID at once in table format; other formats are one document with the run."""
    from horarium.cli.run_words import described

    if remote.output is Format.TABLE:
        show_lines(_told(done))
    run = next(ended_runs(remote.client, [run_id], patience), None)
    if run is None:
        talk(f"run {run_id} has not ended after {patience.seconds:g} s; it continues")
    if remote.output is Format.TABLE:
        if run is not None:
            show_lines([("", ""), *described(run)])
    else:
        show_document({**done.raw, "run": None if run is None else dict(run.raw)}, remote.output, [])
    if run is None or not all_succeeded([run_id], {run_id: run}):
        raise typer.Exit(ExitCode.NO)


@with_options(times=schedule_time_options, remote=remote_options)
def backfill_command(
    remote: Remote,
    times: Times,
    schedule_id: ScheduleId,
    start: Annotated[
        str,
        typer.Option(
            "--from", metavar=TIME, show_default=False, help="Start of the window, inclusive; 7d means seven days ago."
        ),
    ],
    end: Annotated[
        str, typer.Option("--to", metavar=TIME, show_default=False, help="End of the window, exclusive, such as now.")
    ],
    overlap_policy: Overlap = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Start with the newest occurrence.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the outcomes without starting runs.")] = False,
    reason: Reason = None,
    key: Key = None,
) -> None:
    """Run past occurrences in a window. Occurrences that already have a run are skipped.

    With the overlap policy skip, the runs are buffered and start one at a time.

    Example: horarium schedule backfill nightly --from 7d --to now --dry-run
    """
    times = times.of_schedule(remote, schedule_id)
    window = times.past("--from", start), times.past("--to", end)
    with by_flags({"start_time": "--from", "end_time": "--to", "overlap_policy": "--overlap-policy"}):
        done = remote.client.backfill_schedule(
            schedule_id,
            *window,
            overlap_policy=overlap_policy,
            reverse=reverse or None,
            dry_run=dry_run or None,
            reason=reason,
            idempotency_key=key,
        )
    match remote.output:
        case Format.TABLE:
            rows = [(row.fire_time, row.outcome, row.reason, row.run_id) for row in done.results]
            if rows:
                show_columns(("Fire Time", "Outcome", "Reason", "Run ID"), rows)
        case Format.JSONL:
            for row in done.results:
                show_json(dict(row.raw))
        case Format.JSON | Format.YAML:
            show_document(done.raw, remote.output, [])
    talk(_summary(done))
    if done.message is not None:
        talk(printable(done.message))
    if done.stopped:
        talk("stopped before the end of the window: the schedule reached max_runs")


def _summary(done: Backfilled) -> str:
    """Return such as `5 of 7 started, 4 of them buffered; skipped: 1 calendar, 1 already_exists`."""
    would = "would be " if done.dry_run else ""
    waiting = sum(row.outcome == "buffered" for row in done.results)
    reasons = Counter(row.reason for row in done.results if row.outcome == "skipped")
    turns = f", {waiting} of them buffered" if waiting else ""
    skipped = ", ".join(f"{count} {cell(reason)}" for reason, count in reasons.items())
    told = f"{done.fires_started} of {done.fires_attempted} {would}started{turns}"
    return f"{told}; skipped: {skipped}" if skipped else told
