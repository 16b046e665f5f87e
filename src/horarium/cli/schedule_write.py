"""The verbs that change a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli import completion
from horarium.cli.bulk import Everything, Labels, Selection, Yes, change_schedules, selection
from horarium.cli.confirming import Confirm, if_meant
from horarium.cli.definition import Document, definition, put, without_nothing
from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.present import printable, show_document, warn
from horarium.cli.reading import pairs, refuse
from horarium.cli.remote import Remote, remote_options, with_remote
from horarium.cli.render import Format
from horarium.cli.times import TIME, Times, schedules_time_options

if TYPE_CHECKING:
    from horarium.wire.schedules import WriteResult

OneOfMany = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="Which schedule; or --label, or --all.",
        autocompletion=completion.schedule_ids,
    ),
]
ScheduleId = Annotated[
    str,
    typer.Argument(metavar="ID", show_default=False, help="Which schedule.", autocompletion=completion.schedule_ids),
]
OptionalId = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="Its id, unless the file says it.",
        autocompletion=completion.schedule_ids,
    ),
]
IfVersion = Annotated[
    int | None,
    typer.Option("--if-version", metavar="N", show_default=False, help="Only if nobody has changed it since."),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", show_default=False, help="Reason, recorded in the history."),
]
Note = Annotated[
    str | None,
    typer.Option("--note", metavar="TEXT", show_default=False, help="Replace the note of the schedule (one only)."),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar=TIME, show_default="it is resumed", help="When it goes on by itself."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show its words, next fires and what changes; write nothing.")]


@with_options(document=definition, remote=remote_options)
def create_command(
    remote: Remote,
    document: Document,
    schedule_id: OptionalId = None,
    paused: Annotated[bool, typer.Option("--paused", help="It waits until it is resumed.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Make a schedule. Without an id it gets one.

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
    show_written(remote, done)


@with_options(document=definition, remote=remote_options)
def upsert_command(
    remote: Remote, document: Document, schedule_id: OptionalId = None, confirm: Confirm = False
) -> None:
    """Create a schedule, or make the one with this id say the same. Equal definitions change nothing.

    Example: horarium schedule upsert nightly --file nightly.json
    """
    with by_flags(document.flags):
        named = _named(without_nothing(document), schedule_id)
        done = if_meant(lambda meant: remote.client.upsert_schedule(named, confirm=meant), confirm)
    show_written(remote, done)


@with_options(document=definition, remote=remote_options)
def update_command(
    remote: Remote,
    document: Document,
    schedule_id: ScheduleId,
    clear: Annotated[
        list[str] | None,
        typer.Option("--clear", metavar="FIELD", show_default=False, help="Such as note or spec.end_at."),
    ] = None,
    if_version: IfVersion = None,
    confirm: Confirm = False,
    dry_run: DryRun = False,
) -> None:
    """Change what is said, leave the rest. A list such as --cron is replaced as a whole.

    Another kind of action needs --kind, and --clear for the fields of the old one.

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
    show_written(remote, done)


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
    """Stop firing until the schedule is resumed, or until --until. Active runs continue.

    A second pause replaces the first one: its end, its reason and its author.

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
    show_written(remote, done)


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
    """Go on from now: what fell into the pause is not made up for.

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
    show_written(remote, done)


@with_remote
def label_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    put_on: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", show_default=False, help="Put this label on.")
    ] = None,
    take_off: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", show_default=False, help="Take this label off.")
    ] = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Put labels on and take labels off; the others stay.

    Example: horarium schedule label --label team=data --set tier=gold --unset owner
    """
    labels: dict[str, str | None] = {**pairs("--set", put_on or []), **dict.fromkeys(take_off or [])}
    if not labels:
        refuse("say what to do with --set or --unset")
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _change_many(remote, "label", chosen, if_version, yes, set_labels=labels)
        return
    with by_flags({"labels": "--set"}):
        done = remote.client.patch_schedule(chosen, {"labels": labels}, if_version=if_version)
    show_written(remote, done)


@with_remote
def delete_command(
    remote: Remote,
    schedule_id: OneOfMany = None,
    if_version: IfVersion = None,
    label: Labels = None,
    everything: Everything = False,
    yes: Yes = False,
) -> None:
    """Runs that have not started are cancelled; its history stays readable.

    Example: horarium schedule delete --label team=data
    """
    chosen = selection(schedule_id, label, everything)
    if isinstance(chosen, Selection):
        _change_many(remote, "delete", chosen, if_version, yes)
    else:
        show_written(remote, remote.client.delete_schedule(chosen, if_version=if_version))


def _draft(remote: Remote, document: Mapping[str, Any], flags: Mapping[str, str], changing: str | None = None) -> None:
    from horarium.cli.schedule_drafts import show_draft

    merge = None if changing is None else True
    show_draft(remote, remote.client.draft_schedule(document, changing=changing, merge=merge), flags)


def _reason(reason: str | None, note: str | None) -> str | None:
    if note is not None:
        refuse("--note changes one schedule; of many, give --reason")
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
        refuse("--if-version is the version of one schedule")
    with by_flags({"until": "--until", "reason": "--reason"}):
        change_schedules(remote, action, many, yes, confirm, **fields)


def show_written(remote: Remote, done: WriteResult) -> None:
    from horarium.cli.schedule_words import outcome

    if remote.output is Format.TABLE:
        typer.echo(printable(outcome(done)))
    else:
        show_document(done.raw, remote.output, [])
    warn(done.warnings)


def _named(document: Any, schedule_id: str | None) -> dict[str, Any]:
    said = document.get("schedule_id")
    if schedule_id is not None and said not in (None, schedule_id):
        refuse(f"the file is about {str(said)[:128]!r}, not {schedule_id!r}")
    return {**document, "schedule_id": schedule_id} if schedule_id is not None else dict(document)
