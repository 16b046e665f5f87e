"""`horarium import celery`: the schedules of Celery beat, with what will differ, before they are written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli import completion
from horarium.cli.apply import ask_before_deleting, show_applied
from horarium.cli.confirming import Confirm, if_meant
from horarium.cli.present import show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, show_json, talk
from horarium.cli.times import TIME, Times
from horarium.clock import SystemClock
from horarium.instant import Instant, from_rfc3339
from horarium.recurrence.zone import load_zone
from horarium.schedule.celery_translation import DEFAULT_TIMEOUT_SECONDS, Wishes, bundle_of, is_written, translate
from horarium.schedule.field import MAX_TIMEOUT_SECONDS
from horarium.schedule.naming import checked_id

if TYPE_CHECKING:
    from horarium.cli.celery_view import Viewed
    from horarium.wire.bundles import Applied

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Schedules of other programs, with what will differ, before they are written.",
    epilog="Example: horarium import celery proj.celery:app",
)

_LONGEST_LOAD = 3_600
_MAX_LINES = 10_000


@app.callback()
def _import_group() -> None:
    """Without this Typer would make the group's only command the group itself."""


@app.command("celery")
@with_remote
def celery_command(
    remote: Remote,
    celery_app: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:APP", show_default=False, help="The app, as `celery -A` takes it."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", show_default=False, help="What --describe has written; - is stdin."),
    ] = None,
    django: Annotated[
        bool, typer.Option("--django", help="Also the rows of django-celery-beat, by DJANGO_SETTINGS_MODULE.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(
            "--python", metavar="PROGRAM", show_default="this one", help="The interpreter that has the app and Celery."
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", show_default=False, help="Before every schedule's id.")
    ] = "",
    connection: Annotated[
        str | None,
        typer.Option(
            "--connection", metavar="NAME", show_default="default", help="The broker, as the server's settings name it."
        ),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            show_default="that of the app, or of the row",
            help="The zone of all entries.",
            autocompletion=completion.zones,
        ),
    ] = None,
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=1,
            max=MAX_TIMEOUT_SECONDS,
            help="How long a run may take whose task has no time limit.",
        ),
    ] = DEFAULT_TIMEOUT_SECONDS,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Also what can only be written alike, not the same.")
    ] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Write them paused, while beat still runs.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write them; without it they are shown.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete what an import brought before and has no more.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over what was made by hand or belongs to another bundle.")
    ] = False,
    describe: Annotated[bool, typer.Option("--describe", help="Print what was read out of the app, and end.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", metavar="N", min=1, max=_MAX_LINES, help="How many differing fires to show.")
    ] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar=TIME, show_default="now", help="Compare the year after it."),
    ] = None,
    load_timeout: Annotated[
        int,
        typer.Option(
            "--load-timeout", metavar="SECONDS", min=1, max=_LONGEST_LOAD, help="How long loading the app may take."
        ),
    ] = 300,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is deleted.")] = False,
    confirm: Confirm = False,
) -> None:
    """The schedules of Celery beat: what they become, which fires differ in the coming year, and then the bundle.

    The app is loaded in a process of its own, and Celery's own classes say when beat would fire. Nothing is written
    without --apply, or a yes at a terminal. The bundle is called celery: and the app's name: a second import changes
    nothing more, and pauses survive.

    An entry is the same; it differs at some moments, which are listed; it is shifted, as intervals are, which beat
    counts from its own start; it is approximate, only alike, and left out without --approximate; or it is refused.

    Exit code 0 means that all fires are the same, 1 that some differ or an entry is left out; with --apply, 0 means
    that all entries were written.

    Example: horarium import celery proj.celery:app --connection jobs
    """
    from horarium.cli.celery_view import is_the_same, show_view, view_document, viewed
    from horarium.schedule.celery_entries import read_description

    _check(celery_app, file, prefix, tz)
    document = _description(celery_app, file, django, python, _moment(after), load_timeout)
    if describe:
        show_json(document)
        return
    found = read_description(document)
    wishes = Wishes(prefix, connection, tz, timeout, pause)
    entries = viewed(translate(found, wishes))
    bundle = bundle_of(found, [each.translation for each in entries], approximate=approximate)
    view = view_document(found, entries, bundle)
    if remote.output is Format.TABLE:
        show_view(entries, lines)
        _tell_left_out(entries, approximate)
    done = None
    if _is_wanted(remote, bundle, apply, prune):
        if prune and not yes and sys.stdin.isatty():
            ask_before_deleting(remote.client.apply(bundle, dry_run=True, prune=True, adopt=adopt))
        done = if_meant(
            lambda meant: remote.client.apply(bundle, dry_run=False, prune=prune, adopt=adopt, confirm=meant), confirm
        )
    _answer(remote, view, done)
    whole = all(is_written(each.translation, approximate=approximate) for each in entries)
    if not (whole and (done is not None or is_the_same(entries))):
        raise typer.Exit(ExitCode.NO)


def _check(celery_app: str | None, file: str | None, prefix: str, tz: str | None) -> None:
    if (celery_app is None) == (file is None):
        refuse("give MODULE:APP, or --from and a file")
    if tz is not None:
        load_zone(tz)
    if prefix:
        try:
            checked_id("--prefix", prefix)
        except ValueError as wrong:
            refuse(str(wrong))
    if len(prefix) > 64:
        refuse("--prefix: at most 64 characters")


def _moment(after: str | None) -> Instant:
    return SystemClock().now() if after is None else from_rfc3339(Times(None).future("--after", after))


def _description(
    celery_app: str | None, file: str | None, django: bool, python: str | None, now: Instant, timeout: int
) -> dict[str, Any]:
    from horarium.cli.celery_source import from_app, from_file

    if file is not None:
        return from_file(file)
    return from_app(celery_app or "", django=django, python=python, now=now, timeout=timeout)


def _tell_left_out(entries: tuple[Viewed, ...], approximate: bool) -> None:
    left = [each for each in entries if not is_written(each.translation, approximate=approximate)]
    if not entries:
        talk("the app has no entries of beat")
    if left:
        alike = any(each.translation.document is not None for each in left)
        talk(
            f"\n{len(left)} of {len(entries)} left out{'; --approximate writes those that are alike' if alike else ''}"
        )


def _is_wanted(remote: Remote, bundle: dict[str, Any], apply: bool, prune: bool) -> bool:
    """Whether to write: somebody said so, or says so now. Who asks for JSON has seen nothing yet to agree to."""
    count = len(bundle["schedules"])
    if not (count or prune):
        return False
    if apply or (remote.output is Format.TABLE and sys.stdin.isatty() and _agreed(count)):
        return True
    talk(f"nothing was written; --apply writes {count} schedules as the bundle {bundle['bundle']}")
    return False


def _agreed(count: int) -> bool:
    try:
        return typer.confirm(f"Write {count} schedules?", err=True)
    except typer.Abort:  # the end of the input, or Ctrl-C
        return False


def _answer(remote: Remote, view: dict[str, Any], done: Applied | None) -> None:
    if remote.output is Format.TABLE:
        if done is not None:
            show_applied(remote, done)
            changed = sum(each.change not in ("keep", "unchanged") for each in done.changes)
            talk(f"{changed} of {len(done.changes)} changed")
        return
    whole = {**view, "changes": None if done is None else done.raw["changes"]}
    if remote.output is Format.JSONL:
        for row in whole["entries"]:
            show_json(row)
    else:
        show_document(whole, remote.output, [])
