"""The command `horarium import celery`, and the description of a Celery app that it imports.

The description comes from a file, or from a child process that loads the app. An app may print, hang or exit, so it
is loaded in a separate process with a timeout and answers in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.compat.celery_beat.translation import (
    DEFAULT_TIMEOUT_SECONDS,
    TranslationOptions,
    bundle_of,
    is_importable,
    translate,
)
from horarium.core.document.field import MAX_TIMEOUT_SECONDS
from horarium.core.policy.queue import checked_id
from horarium.core.recurrence.zone import load_zone
from horarium.features.bundles.commands import ask_before_deleting, show_applied
from horarium.instant import DAY, SECOND, Instant, from_rfc3339
from horarium.platform.cli import options
from horarium.platform.cli.remote import Confirm, ExitCode, Remote, if_meant, with_remote
from horarium.platform.cli.streams import Format, printable, read_object, refuse, show_document, show_json, talk
from horarium.platform.cli.times import TIME, Times
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.compat.celery_beat.output import Viewed
    from horarium.features.bundles.model import Applied


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Import schedules from other schedulers.",
    epilog="Example: horarium import celery proj.celery:app",
)

_LONGEST_LOAD = 3_600
_MAX_LINES = 10_000


@app.callback()
def _import_group() -> None:
    """Keep the group: Typer would replace it by its only command."""


@app.command("celery")
@with_remote
def celery_command(
    remote: Remote,
    celery_app: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:APP", show_default=False, help="Celery app, as for `celery -A`."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", show_default=False, help="File written by --describe; - reads stdin."),
    ] = None,
    django: Annotated[
        bool, typer.Option("--django", help="Include entries of django-celery-beat; requires DJANGO_SETTINGS_MODULE.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(
            "--python", metavar="PROGRAM", show_default="current", help="Python interpreter with Celery and the app."
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", show_default=False, help="Prefix of the schedule IDs.")
    ] = "",
    connection: Annotated[
        str | None,
        typer.Option(
            "--connection",
            metavar="NAME",
            show_default="default",
            help="Celery connection in the settings of the server.",
        ),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            show_default="that of the entry or the app",
            help="Time zone of all entries.",
            autocompletion=options.zones,
        ),
    ] = None,
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=1,
            max=MAX_TIMEOUT_SECONDS,
            help="Run timeout of tasks without a time limit, in seconds.",
        ),
    ] = DEFAULT_TIMEOUT_SECONDS,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Include entries that can only be imported approximately.")
    ] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Create the schedules paused.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write the schedules instead of only showing them.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete schedules of an earlier import that no longer have an entry.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over schedules that were created manually or by another bundle.")
    ] = False,
    describe: Annotated[bool, typer.Option("--describe", help="Print the description of the app and exit.")] = False,
    lines: Annotated[
        int,
        typer.Option("--lines", metavar="N", min=1, max=_MAX_LINES, help="Maximum number of differing fires to show."),
    ] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar=TIME, show_default="now", help="Start of the compared year."),
    ] = None,
    load_timeout: Annotated[
        int,
        typer.Option(
            "--load-timeout",
            metavar="SECONDS",
            min=1,
            max=_LONGEST_LOAD,
            help="Timeout for loading the app, in seconds.",
        ),
    ] = 300,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt before deletions.")] = False,
    confirm: Confirm = False,
) -> None:
    """Import the schedules of Celery beat and compare their fires over the coming year.

    The app is loaded in a separate process, and the classes of Celery compute the fires of beat. Schedules are written
    only with --apply or after a confirmation. They form the bundle celery:APP; a repeated import changes only what
    differs and keeps paused schedules paused.

    Verdicts: same; differs (differing fires are listed); shifted (intervals, which beat counts from its start);
    approximate (omitted without --approximate); refused.

    Exit code 0: all fires are the same, with --apply: all entries were written; 1: fires differ or entries are omitted.

    Example: horarium import celery proj.celery:app --connection jobs
    """
    from horarium.compat.celery_beat.entries import read_description
    from horarium.compat.celery_beat.output import is_the_same, show_view, view_document, viewed

    _check(celery_app, file, prefix, tz)
    document = _description(celery_app, file, django, python, _moment(after), load_timeout)
    if describe:
        show_json(document)
        return
    found = read_description(document)
    wishes = TranslationOptions(prefix, connection, tz, timeout, pause)
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
    whole = all(is_importable(each.translation, approximate=approximate) for each in entries)
    if not (whole and (done is not None or is_the_same(entries))):
        raise typer.Exit(ExitCode.NO)


def _check(celery_app: str | None, file: str | None, prefix: str, tz: str | None) -> None:
    if (celery_app is None) == (file is None):
        refuse("give either MODULE:APP or --from FILE")
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
    if file is not None:
        return from_file(file)
    return from_app(celery_app or "", django=django, python=python, now=now, timeout=timeout)


def _tell_left_out(entries: tuple[Viewed, ...], approximate: bool) -> None:
    left = [each for each in entries if not is_importable(each.translation, approximate=approximate)]
    if not entries:
        talk("the app has no beat entries")
    if left:
        alike = any(each.translation.document is not None for each in left)
        talk(f"\n{len(left)} of {len(entries)} omitted{'; --approximate includes approximate ones' if alike else ''}")


def _is_wanted(remote: Remote, bundle: dict[str, Any], apply: bool, prune: bool) -> bool:
    """Return whether to write: --apply, or a confirmation in table output."""
    count = len(bundle["schedules"])
    if not (count or prune):
        return False
    if apply or (remote.output is Format.TABLE and sys.stdin.isatty() and _agreed(count)):
        return True
    talk(f"nothing written; --apply writes {count} schedules as bundle {bundle['bundle']}")
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


COMPARED_DAYS = 366
_MAX_BYTES = 256 * 1024 * 1024
_MAX_PRINTED = 2_000
# Per entry: a year of hours, a week of minutes. Denser entries are then compared around DST changes only.
_MAX_STEPS = 10_000


def from_file(file: str) -> dict[str, Any]:
    return read_object("--from", file)


def from_app(app: str, *, django: bool, python: str | None, now: Instant, timeout: int) -> dict[str, Any]:
    """Load the app from the working directory, as `celery beat` does."""
    with tempfile.TemporaryDirectory(prefix="horarium-") as folder:
        answer, printed = Path(folder) / "description.json", Path(folder) / "printed"
        until = now + COMPARED_DAYS * DAY
        wanted = {
            "app": app,
            "django": django,
            "now": now // SECOND,
            "until": until // SECOND,
            "steps": _MAX_STEPS,
            "output": str(answer),
        }
        code = _run([python or sys.executable, "-c", _program(), json.dumps(wanted)], printed, timeout)
        if not answer.is_file():
            refuse(f"{app}: the process that loads it exited with code {code} and no answer{_last_output(printed)}")
        if answer.stat().st_size > _MAX_BYTES:
            refuse(f"{app}: the description has more than {_MAX_BYTES} bytes")
        document = read_object("description", str(answer))
        if "error" in document:
            refuse(f"{app}: loading failed: {str(document['error'])[:_MAX_PRINTED]}{_last_output(printed)}")
        return document


def _program() -> str:
    return resources.files("horarium.compat.celery_beat").joinpath("app_description.py").read_text("utf-8")


def _run(command: list[str], printed: Path, timeout: int) -> int:
    """Run a command in a new session, so that its child processes end with it."""
    with printed.open("wb") as file:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        except OSError as wrong:
            refuse(f"--python: cannot start {command[0]!r}: {wrong.strerror}")
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            refuse(f"loading the app took more than {timeout} seconds; increase --load-timeout")
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _last_output(printed: Path) -> str:
    """Return the last line of the output, for the error message."""
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - _MAX_PRINTED))
        text = file.read().decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; last output: {printable(lines[-1])}" if lines else ""
