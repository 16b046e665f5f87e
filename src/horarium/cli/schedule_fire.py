"""The verbs that make a schedule fire: a trigger by hand, and a backfill of past occurrences."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.bulk import Everything, Labels, Selection, Yes, change_schedules, selection
from horarium.cli.present import show_columns, show_document
from horarium.cli.reading import json_value, refuse
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, show_json, talk
from horarium.cli.schedule_write import OneOfMany, ScheduleId

Overlap = Annotated[
    str | None,
    typer.Option("--overlap-policy", metavar="POLICY", show_default="its own", help="What to do when it is busy."),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", show_default=False, help="Why, for the history.")
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", show_default="a new one", help="The same key again is the same request."),
]


@with_remote
def trigger_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    overlap_policy: Overlap = None,
    even_if_paused: Annotated[bool, typer.Option("--even-if-paused", help="Also while it is paused.")] = False,
    inputs: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", show_default="its own", help="Other inputs, this once; @FILE."),
    ] = None,
    reason: Reason = None,
    key: Key = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Fire once, now. Its next fire stays what it is.

    Exit code 1 means that it was skipped.

    Example: horarium schedule trigger nightly --reason "asked for by finance"
    """
    chosen = selection(schedule_id, label, everything, yes)
    if isinstance(chosen, Selection):
        _refuse_for_many(overlap_policy, even_if_paused or None, inputs, key)
        return change_schedules(remote, "trigger", chosen, yes, reason=reason)
    done = remote.client.trigger_schedule(
        chosen,
        overlap_policy=overlap_policy,
        even_if_paused=even_if_paused or None,
        inputs=None if inputs is None else json_value("--input", inputs),
        reason=reason,
        idempotency_key=key,
    )
    said = done.outcome + (f": {done.reason}" if done.reason else "") + (" (repeated)" if done.repeated else "")
    lines = [("outcome", said), ("run", done.run_id), ("state", done.state), ("workflow", done.workflow_id)]
    show_document(done.raw, remote.output, [(label, text) for label, text in lines if text])
    if done.run_id is None:
        raise typer.Exit(ExitCode.NO)
    return None


def _refuse_for_many(*given: object) -> None:
    if any(each is not None for each in given):
        refuse("--overlap-policy, --even-if-paused, --input and --key are for one schedule")


@with_remote
def backfill_command(
    remote: Remote,
    schedule_id: ScheduleId,
    start: Annotated[str, typer.Option("--from", metavar="RFC3339", show_default=False, help="From here on.")],
    end: Annotated[str, typer.Option("--to", metavar="RFC3339", show_default=False, help="Up to before this.")],
    overlap_policy: Overlap = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The newest first.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    reason: Reason = None,
    key: Key = None,
) -> None:
    """Run what the schedule had in a window of the past. Occurrences that have a run are left alone.

    Example: horarium schedule backfill nightly --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z --dry-run
    """
    done = remote.client.backfill_schedule(
        schedule_id,
        start,
        end,
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
    started = "would be started" if done.dry_run else "started"
    talk(f"{done.fires_started} of {done.fires_attempted} {started}")
    if done.stopped:
        talk("stopped before the end of the window: the schedule has run out of runs")
