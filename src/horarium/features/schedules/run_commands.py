"""Commands that start runs of a schedule, and commands for its calendars, condition and input rotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.features.calendars.commands import create_command
from horarium.features.schedules.write_commands import IfVersion, OneOfMany, ScheduleId, show_saved
from horarium.platform.cli import options
from horarium.platform.cli.bulk import Everything, Labels, Selection, Yes, change_schedules, selection
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import Confirm, ExitCode, Remote, by_flags, remote_options, with_remote
from horarium.platform.cli.streams import (
    Format,
    cell,
    json_value,
    labelled,
    part_value,
    printable,
    refuse,
    show_columns,
    show_document,
    show_json,
    show_lines,
    talk,
    warn,
)
from horarium.platform.cli.times import TIME, Times, schedule_time_options
from horarium.platform.cli.waiting import PollingLimit, Timeout, all_succeeded, ended_runs, span_of

if TYPE_CHECKING:
    from horarium.features.schedules.model import Backfilled, Triggered


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────


Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap-policy",
        metavar="POLICY",
        show_default="the schedule's",
        help="Overlap policy for this run.",
        autocompletion=options.overlap_policies,
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
    patience = PollingLimit(span_of("--timeout", timeout))
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
    show_document({**done.raw, **({"run": None} if wait else {})}, remote.output, _trigger_lines(done))
    if done.run_id is None:
        raise typer.Exit(ExitCode.NO)
    return None


def _refuse_for_many(*given: object) -> None:
    if any(each is not None for each in given):
        refuse("--overlap-policy, --even-if-paused, --input, --key and --wait apply to a single schedule")


def _trigger_lines(done: Triggered) -> list[tuple[str, str]]:
    said = done.outcome + (f": {done.reason}" if done.reason else "") + (" (repeated)" if done.repeated else "")
    lines = [("outcome", said), ("run", done.run_id), ("state", done.state), ("workflow", done.workflow_id)]
    return [(label, text) for label, text in lines if text]


def _show_end(remote: Remote, done: Triggered, run_id: str, patience: PollingLimit) -> None:
    """Print the run ID at once in table format; other formats are one document with the run."""
    from horarium.features.runs.output import described

    if remote.output is Format.TABLE:
        show_lines(_trigger_lines(done))
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


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────


calendar = typer.Typer(
    no_args_is_help=True,
    help="Attach calendars to a schedule. A run requires that all of them allow the day.",
    epilog="Example: horarium schedule calendar attach nightly us-federal-holidays-2026",
)
condition = typer.Typer(
    no_args_is_help=True,
    help="Manage the condition that an occurrence must meet to run.",
    epilog='Example: horarium schedule condition set nightly \'{"/last_24h_stats/failed": {"lt": 3}}\'',
)
rotation = typer.Typer(
    no_args_is_help=True,
    help="Manage the rotating inputs of a schedule.",
    epilog='Example: horarium schedule rotation set nightly \'[{"region": "eu"}, {"region": "us"}]\'',
)

CONDITION, ROTATION = "pre_dispatch_condition", "inputs_rotation"

# The command is also offered here.
_HELP = (create_command.__doc__ or "").replace("horarium calendar", "horarium schedule calendar")
calendar.command("create", help=_HELP)(create_command)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="CALENDAR",
        show_default=False,
        help="One or more calendar names.",
        autocompletion=options.calendar_names,
    ),
]


@calendar.command("attach")
@with_remote
def attach_command(remote: Remote, schedule_id: ScheduleId, names: Names) -> None:
    """Attach calendars to a schedule. Attached calendars stay.

    Example: horarium schedule calendar attach nightly us-federal-holidays-2026 holidays:TR
    """
    now = remote.client.describe_schedule(schedule_id)
    wanted = list(dict.fromkeys([*now.calendars, *names]))
    # The version prevents a lost update.
    show_saved(remote, remote.client.set_calendars(schedule_id, wanted, if_version=now.version))


@calendar.command("detach")
@with_remote
def detach_command(
    remote: Remote,
    schedule_id: ScheduleId,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CALENDAR",
            show_default=False,
            help="One or more calendar names.",
            autocompletion=options.calendar_names,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Detach all calendars.")] = False,
) -> None:
    """Detach calendars from a schedule. Calendars that are not attached are ignored.

    Example: horarium schedule calendar detach nightly us-federal-holidays-2026
    """
    if everything == bool(names):
        refuse("give calendar names or --all")
    now = remote.client.describe_schedule(schedule_id)
    left = [name for name in now.calendars if names and name not in names]
    if left:
        done = remote.client.set_calendars(schedule_id, left, if_version=now.version)
    else:
        done = remote.client.clear_calendars(schedule_id, if_version=now.version)
    show_saved(remote, done)


@condition.command("set")
@with_remote
def set_condition_command(
    remote: Remote,
    schedule_id: ScheduleId,
    text: Annotated[
        str,
        typer.Argument(
            metavar="CONDITION", show_default=False, help="Condition as JSON or YAML; @FILE reads a file, @- stdin."
        ),
    ],
    if_version: IfVersion = None,
) -> None:
    """Set the condition of a schedule. Occurrences that do not meet it are skipped.

    The document is the condition itself, or an object with the field pre_dispatch_condition.

    Example: horarium schedule condition set nightly '{"/last_24h_stats/failed": {"lt": 3}}'
    """
    wanted = part_value("condition", CONDITION, text)
    if not isinstance(wanted, dict):
        refuse("condition: must be a JSON object")
    show_saved(remote, remote.client.set_condition(schedule_id, wanted, if_version=if_version))


@condition.command("test")
@with_remote
def try_condition_command(
    remote: Remote,
    schedule_id: ScheduleId,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="CONDITION", show_default="the schedule's", help="Condition to test; @FILE reads a file."
        ),
    ] = None,
) -> None:
    """Evaluate a condition against the current context of the schedule, clause by clause.

    Exit code 0: the condition holds; 1: it does not.

    Example: horarium schedule condition test nightly '{"/last_24h_stats/failed": {"lt": 3}}'
    """
    wanted: Any = part_value("condition", CONDITION, text) if text is not None else _own_condition(remote, schedule_id)
    found = remote.client.test_condition(wanted, schedule_id=schedule_id)
    said = [found.error] if found.error is not None else [each.sentence for each in found.findings]
    lines = [("holds", "yes" if found.holds else "no"), *labelled("clauses", [printable(each) for each in said])]
    show_document(found.raw, remote.output, lines)
    warn(found.warnings)
    if not found.holds:
        raise typer.Exit(ExitCode.NO)


def _own_condition(remote: Remote, schedule_id: str) -> Mapping[str, Any]:
    own = remote.client.describe_schedule(schedule_id).pre_dispatch_condition
    if own is None:
        refuse("the schedule has no condition; give one as an argument")
    return own


@condition.command("clear")
@with_remote
def clear_condition_command(remote: Remote, schedule_id: ScheduleId, if_version: IfVersion = None) -> None:
    """Remove the condition of a schedule.

    Example: horarium schedule condition clear nightly
    """
    show_saved(remote, remote.client.clear_condition(schedule_id, if_version=if_version))


@rotation.command("set")
@with_remote
def set_rotation_command(
    remote: Remote,
    schedule_id: ScheduleId,
    text: Annotated[
        str,
        typer.Argument(
            metavar="INPUTS", show_default=False, help="Array of inputs as JSON or YAML; @FILE reads a file."
        ),
    ],
    if_version: IfVersion = None,
) -> None:
    """Set the rotating inputs: each run uses the next one, starting with the first. An empty array clears them.

    Example: horarium schedule rotation set nightly @inputs.json
    """
    wanted = part_value("rotation", ROTATION, text)
    if not isinstance(wanted, list):
        refuse("rotation: must be a JSON array")
    show_saved(remote, remote.client.set_rotation(schedule_id, wanted, if_version=if_version))


@rotation.command("clear")
@with_remote
def clear_rotation_command(remote: Remote, schedule_id: ScheduleId, if_version: IfVersion = None) -> None:
    """Remove the rotating inputs; runs use the input of the schedule.

    Example: horarium schedule rotation clear nightly
    """
    show_saved(remote, remote.client.clear_rotation(schedule_id, if_version=if_version))
