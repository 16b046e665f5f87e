"""The commands for calendars, the pre-dispatch condition and the input rotation of a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from horarium.cli import completion
from horarium.cli.calendar import create_command
from horarium.cli.present import labelled, printable, show_document, warn
from horarium.cli.reading import part_value, refuse
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.schedule_write import IfVersion, ScheduleId, show_written

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
        autocompletion=completion.calendar_names,
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
    show_written(remote, remote.client.set_calendars(schedule_id, wanted, if_version=now.version))


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
            autocompletion=completion.calendar_names,
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
    show_written(remote, done)


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
    show_written(remote, remote.client.set_condition(schedule_id, wanted, if_version=if_version))


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
    show_written(remote, remote.client.clear_condition(schedule_id, if_version=if_version))


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
    show_written(remote, remote.client.set_rotation(schedule_id, wanted, if_version=if_version))


@rotation.command("clear")
@with_remote
def clear_rotation_command(remote: Remote, schedule_id: ScheduleId, if_version: IfVersion = None) -> None:
    """Remove the rotating inputs; runs use the input of the schedule.

    Example: horarium schedule rotation clear nightly
    """
    show_written(remote, remote.client.clear_rotation(schedule_id, if_version=if_version))
