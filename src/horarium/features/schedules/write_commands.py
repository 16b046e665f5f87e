"""The commands that change schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.features.schedules.definition_flags import Document, definition, put, without_nothing
from horarium.platform.cli import options
from horarium.platform.cli.bulk import Everything, Labels, Selection, Yes, change_schedules, selection
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import Confirm, Remote, by_flags, if_meant, remote_options, with_remote
from horarium.platform.cli.streams import Format, pairs, printable, refuse, show_document, warn
from horarium.platform.cli.times import TIME, Times, schedules_time_options

if TYPE_CHECKING:
    from horarium.features.schedules.model import WriteResult


OneOfMany = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="Schedule ID; instead of it, --label or --all.",
        autocompletion=options.schedule_ids,
    ),
]
ScheduleId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Schedule ID.", autocompletion=options.schedule_ids),
]
OptionalId = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="Schedule ID, unless the file has one.",
        autocompletion=options.schedule_ids,
    ),
]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", show_default=False, help="Write only if the schedule has this version."),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded in the history."),
]
Note = Annotated[
    str | None,
    typer.Option(
        "--note",
        metavar="TEXT",
        show_default=False,
        help="Replace the note of the schedule; not with --label or --all.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar=TIME, show_default="until resumed", help="Time of the automatic resume."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the definition, its next fires and the changes without writing.")
]


@with_options(document=definition, remote=remote_options)
def create_command(
    remote: Remote,
    document: Document,
    schedule_id: OptionalId = None,
    paused: Annotated[bool, typer.Option("--paused", help="Create the schedule paused.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Create a schedule. Without an ID the server generates one.

    Example: horarium schedule create nightly --cron "0 2 * * *" --tz Europe/Istanbul --workflow-type report
    """
    if paused:
        document["paused"] = True
    named = _named(without_nothing(document), schedule_id)
    if dry_run:
        _draft(remote, named, document.flags)
        return
    with by_flags(document.flags):
        done = remote.client.create_schedule(named)
    show_saved(remote, done)


@with_options(document=definition, remote=remote_options)
def upsert_command(
    remote: Remote, document: Document, schedule_id: OptionalId = None, confirm: Confirm = False
) -> None:
    """Create a schedule, or replace the definition of an existing one. An equal definition changes nothing.

    Example: horarium schedule upsert nightly --file nightly.json
    """
    with by_flags(document.flags):
        named = _named(without_nothing(document), schedule_id)
        done = if_meant(lambda meant: remote.client.upsert_schedule(named, confirm=meant), confirm)
    show_saved(remote, done)


@with_options(document=definition, remote=remote_options)
def update_command(
    remote: Remote,
    document: Document,
    schedule_id: ScheduleId,
    clear: Annotated[
        list[str] | None,
        typer.Option(
            "--clear",
            metavar="FIELD",
            show_default=False,
            help="Reset a field to its default, such as note or spec.end_at; repeatable.",
        ),
    ] = None,
    if_version: IfVersion = None,
    confirm: Confirm = False,
    dry_run: DryRun = False,
) -> None:
    """Change the given fields of a schedule. A list such as --cron is replaced as a whole.

    To change the kind of the action, give --kind, and --clear for the fields of the old action.

    Example: horarium schedule update nightly --cron "0 3 * * *" --clear note
    """
    for place in clear or []:
        put(document, place, None)
    changes = without_nothing(document)
    if dry_run:
        _draft(remote, changes, document.flags, schedule_id)
        return
    with by_flags(document.flags):
        done = if_meant(
            lambda meant: remote.client.patch_schedule(schedule_id, changes, if_version=if_version, confirm=meant),
            confirm,
        )
    show_saved(remote, done)


@with_options(times=schedules_time_options, remote=remote_options)
def pause_command(
    remote: Remote,
    times: Times,
    schedule_id: OneOfMany = None,
    until: Until = None,
    reason: Reason = None,
    note: Note = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
    confirm: Confirm = False,
) -> None:
    """Pause schedules until they are resumed, or until --until. Active runs continue.

    Pausing a paused schedule replaces the end, the reason and the author of the pause.

    Example: horarium schedule pause nightly --until "tomorrow 09:00" --tz Europe/Istanbul --reason "the database moves"
    """
    chosen = selection(schedule_id, label, everything)
    if not isinstance(chosen, Selection):
        times = times.of_schedule(remote, chosen)
    until = times.future("--until", until)
    if isinstance(chosen, Selection):
        _change_many(remote, "pause", chosen, if_version, yes, confirm, until=until, reason=_reason(reason, note))
        return
    with by_flags({"until": "--until", "reason": "--reason", "note": "--note"}):
        done = if_meant(
            lambda meant: remote.client.pause_schedule(
                chosen, reason=reason, note=note, until=until, if_version=if_version, confirm=meant
            ),
            confirm,
        )
    show_saved(remote, done)


@with_remote
def resume_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    reason: Reason = None,
    note: Note = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
    confirm: Confirm = False,
) -> None:
    """Resume schedules. Occurrences missed while paused do not run.

    Example: horarium schedule resume nightly
    """
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _change_many(remote, "resume", chosen, if_version, yes, confirm, reason=_reason(reason, note))
        return
    with by_flags({"reason": "--reason", "note": "--note"}):
        done = if_meant(
            lambda meant: remote.client.resume_schedule(
                chosen, reason=reason, note=note, if_version=if_version, confirm=meant
            ),
            confirm,
        )
    show_saved(remote, done)


@with_remote
def label_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    put_on: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", show_default=False, help="Set a label; repeatable."),
    ] = None,
    take_off: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="NAME", show_default=False, help="Remove a label; repeatable."),
    ] = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Set and remove labels. Other labels stay.

    Example: horarium schedule label --label team=data --set tier=gold --unset owner
    """
    labels: dict[str, str | None] = {**pairs("--set", put_on or []), **dict.fromkeys(take_off or [])}
    if not labels:
        refuse("give --set or --unset")
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _change_many(remote, "label", chosen, if_version, yes, set_labels=labels)
        return
    with by_flags({"labels": "--set"}):
        done = remote.client.patch_schedule(chosen, {"labels": labels}, if_version=if_version)
    show_saved(remote, done)


@with_remote
def delete_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Delete schedules. Runs that have not started are cancelled; the history remains.

    Example: horarium schedule delete --label team=data
    """
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _change_many(remote, "delete", chosen, if_version, yes)
    else:
        show_saved(remote, remote.client.delete_schedule(chosen, if_version=if_version))


def _draft(remote: Remote, document: Mapping[str, Any], flags: Mapping[str, str], changing: str | None = None) -> None:
    from horarium.features.schedules.output import show_draft

    merge = None if changing is None else True
    show_draft(remote, remote.client.draft_schedule(document, changing=changing, merge=merge), flags)


def _reason(reason: str | None, note: str | None) -> str | None:
    if note is not None:
        refuse("--note applies to a single schedule; use --reason")
    return reason


def _change_many(
    remote: Remote,
    action: str,
    many: Selection,
    if_version: int | None,
    yes: bool,
    confirm: bool = False,
    **fields: Any,
) -> None:
    if if_version is not None:
        refuse("--if-version applies to a single schedule")
    with by_flags({"until": "--until", "reason": "--reason"}):
        change_schedules(remote, action, many, yes, confirm, **fields)


def show_saved(remote: Remote, done: WriteResult) -> None:
    from horarium.features.schedules.output import outcome

    if remote.output is Format.TABLE:
        typer.echo(printable(outcome(done)))
    else:
        show_document(done.raw, remote.output, [])
    warn(done.warnings)


def _named(document: Any, schedule_id: str | None) -> dict[str, Any]:
    said = document.get("schedule_id")
    if schedule_id is not None and said not in (None, schedule_id):
        refuse(f"the file has the schedule_id {str(said)[:128]!r}, not {schedule_id!r}")
    return {**document, "schedule_id": schedule_id} if schedule_id is not None else dict(document)
