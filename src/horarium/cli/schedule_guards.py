"""The verbs for what stands between an occurrence and its run: calendars, the condition, the rotation of inputs."""

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
    help="Which calendars a schedule obeys; all of them must allow the day.",
    epilog="Example: horarium schedule calendar attach nightly us-federal-holidays-2026",
)
condition = typer.Typer(
    no_args_is_help=True,
    help="What must hold for an occurrence to fire.",
    epilog='Example: horarium schedule condition set nightly \'{"/last_24h_stats/failed": {"lt": 3}}\'',
)
rotation = typer.Typer(
    no_args_is_help=True,
    help="Inputs that the runs of a schedule take in turn.",
    epilog='Example: horarium schedule rotation set nightly \'[{"region": "eu"}, {"region": "us"}]\'',
)

CONDITION, ROTATION = "pre_dispatch_condition", "inputs_rotation"

# Who looks for calendars here wants to make one here too.
_HELP = (create_command.__doc__ or "").replace("horarium calendar", "horarium schedule calendar")
calendar.command("create", help=_HELP)(create_command)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="CALENDAR", show_default=False, help="One or more.", autocompletion=completion.calendar_names
    ),
]


@calendar.command("attach")
@with_remote
def attach_command(remote: Remote, schedule_id: ScheduleId, names: Names) -> None:
    """Let calendars forbid days, beside those that do already.

    Example: horarium schedule calendar attach nightly us-federal-holidays-2026 holidays:TR
    """
    now = remote.client.describe_schedule(schedule_id)
    wanted = list(dict.fromkeys([*now.calendars, *names]))
    # The version makes sure that what is attached meanwhile is not lost.
    show_written(remote, remote.client.set_calendars(schedule_id, wanted, if_version=now.version))


@calendar.command("detach")
@with_remote
def detach_command(
    remote: Remote,
    schedule_id: ScheduleId,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CALENDAR", show_default=False, help="One or more.", autocompletion=completion.calendar_names
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Let calendars forbid no more days. Those that are not attached are no error.

    Example: horarium schedule calendar detach nightly us-federal-holidays-2026
    """
    if everything == bool(names):
        refuse("name the calendars, or give --all")
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
        str, typer.Argument(metavar="CONDITION", show_default=False, help="JSON or YAML; @FILE reads it, @- is stdin.")
    ],
    if_version: IfVersion = None,
) -> None:
    """Fire only while a condition holds.

    The condition may stand alone or as the field pre_dispatch_condition.

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
        typer.Argument(metavar="CONDITION", show_default="its own", help="Another condition; @FILE reads it."),
    ] = None,
) -> None:
    """Whether a condition holds in what the schedule would see now, clause by clause. Nothing is written.

    Exit code 0 means that it holds, 1 that it does not.

    Example: horarium schedule condition test nightly '{"/last_24h_stats/failed": {"lt": 3}}'
    """
    wanted: Any = part_value("condition", CONDITION, text) if text is not None else _own_condition(remote, schedule_id)
    found = remote.client.test_condition(wanted, schedule_id=schedule_id)
    said = [found.error] if found.error is not None else [each.sentence for each in found.findings]
    lines = [("holds", "yes" if found.holds else "no"), *labelled("why", [printable(each) for each in said])]
    show_document(found.raw, remote.output, lines)
    warn(found.warnings)
    if not found.holds:
        raise typer.Exit(ExitCode.NO)


def _own_condition(remote: Remote, schedule_id: str) -> Mapping[str, Any]:
    own = remote.client.describe_schedule(schedule_id).pre_dispatch_condition
    if own is None:
        refuse("this schedule has no condition; give one")
    return own


@condition.command("clear")
@with_remote
def clear_condition_command(remote: Remote, schedule_id: ScheduleId, if_version: IfVersion = None) -> None:
    """Fire without a condition.

    Example: horarium schedule condition clear nightly
    """
    show_written(remote, remote.client.clear_condition(schedule_id, if_version=if_version))


@rotation.command("set")
@with_remote
def set_rotation_command(
    remote: Remote,
    schedule_id: ScheduleId,
    text: Annotated[
        str, typer.Argument(metavar="INPUTS", show_default=False, help="An array, JSON or YAML; @FILE reads it.")
    ],
    if_version: IfVersion = None,
) -> None:
    """Let each run take the next of these inputs; begins with the first. An empty array clears them.

    Example: horarium schedule rotation set nightly @inputs.json
    """
    wanted = part_value("rotation", ROTATION, text)
    if not isinstance(wanted, list):
        refuse("rotation: must be a JSON array")
    show_written(remote, remote.client.set_rotation(schedule_id, wanted, if_version=if_version))


@rotation.command("clear")
@with_remote
def clear_rotation_command(remote: Remote, schedule_id: ScheduleId, if_version: IfVersion = None) -> None:
    """Let every run take the schedule's own input.

    Example: horarium schedule rotation clear nightly
    """
    show_written(remote, remote.client.clear_rotation(schedule_id, if_version=if_version))
