"""The command `horarium apply`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.bulk import is_confirmed
from horarium.cli.confirming import Confirm, if_meant
from horarium.cli.present import cell, compact, printable, show_columns, show_document, show_lines
from horarium.cli.remote import ExitCode, Remote, ending, with_remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.features.bundles.model import Applied, BundleChange

app = typer.Typer(add_completion=False)

CHANGED = 2
"""The exit code of `--detailed-exitcode` if anything changes."""
_CHANGING = frozenset({"create", "update", "delete"})
_MAX_ERROR = 2_000


@app.command("apply")
@with_remote
def apply_command(
    remote: Remote,
    files: Annotated[
        list[str],
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            show_default=False,
            help="Bundle as JSON or YAML, or a directory of bundles; - reads stdin. Repeatable.",
        ),
    ],
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", metavar="NAME", show_default="the name in the file", help="Name of the bundle."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan without applying it.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete objects of this bundle that it no longer contains.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over objects that were created manually or by another bundle.")
    ] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if anything changes, 1 on a refusal.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt before deletions.")] = False,
    confirm: Confirm = False,
) -> None:
    """Apply a bundle: create, update and delete objects to match it, in one transaction. Idempotent.

    Manually created schedules are kept, and paused schedules stay paused. --dry-run prints the plan, with the number of
    occurrences in the next seven days that the change adds and removes, regardless of calendars and conditions.
    Exit code 1: the bundle is refused.

    Example: horarium apply -f bundle.yaml --dry-run
    """
    from horarium.cli.bundle import read_bundle

    with _refused_is_no():
        document = read_bundle(files, bundle)
        if prune and not (dry_run or yes) and sys.stdin.isatty():
            ask_before_deleting(remote.client.apply(document, dry_run=True, prune=True, adopt=adopt))
        done = if_meant(
            lambda meant: remote.client.apply(document, dry_run=dry_run, prune=prune, adopt=adopt, confirm=meant),
            confirm,
        )
    show_applied(remote, done)
    changes = sum(each.change in _CHANGING for each in done.changes)
    talk(f"{changes} of {len(done.changes)} {'would change' if dry_run else 'changed'}")
    if any(each.change == "keep" for each in done.changes) and not adopt:
        talk("keep: not owned by the bundle; --adopt takes it over")
    if detailed and changes:
        raise typer.Exit(CHANGED)


@contextmanager
def _refused_is_no() -> Iterator[None]:
    """Exit with 1 on a refusal, because 2 means changes."""
    from horarium.client.errors import ClientError

    try:
        yield
    except typer.TyperException as wrong:
        _refuse(wrong.format_message())
    except ClientError as error:
        if ending(error)[0] is not ExitCode.BAD_QUESTION:
            raise
        _refuse(error.message)


def _refuse(message: str) -> None:
    talk(f"error: {printable(' '.join(message.split()))[:_MAX_ERROR]}")
    raise typer.Exit(ExitCode.NO)


def ask_before_deleting(plan: Applied) -> None:
    gone = [each for each in plan.changes if each.change == "delete"]
    if not gone:
        return
    for each in gone:
        talk(f"delete {each.kind} {printable(each.name)}")
    try:
        agreed = is_confirmed(f"Delete {len(gone)} object{'' if len(gone) == 1 else 's'}?", len(gone))
    except typer.Abort:  # the end of the input, or Ctrl-C
        agreed = False
    if not agreed:
        talk("cancelled; nothing changed")
        raise typer.Exit(ExitCode.NO)


def show_applied(remote: Remote, done: Applied) -> None:
    match remote.output:
        case Format.TABLE if done.changes:
            rows = [(each.change, each.kind, each.name, each.fires_added, each.fires_removed) for each in done.changes]
            show_columns(("Change", "Kind", "Name", "Fires Added", "Fires Removed"), rows)
            show_lines(_differences(done.changes))
        case Format.TABLE:
            talk("the bundle is empty")
        case Format.JSONL:
            for row in done.raw["changes"]:
                show_json(row)
        case Format.JSON | Format.YAML:
            show_document(done.raw, remote.output, [])
    for each in done.changes:
        for warning in each.warnings:
            talk(f"warning: {each.kind} {printable(each.name)}: {printable(warning)}")


def _differences(changes: Sequence[BundleChange]) -> Iterator[tuple[str, str]]:
    for each in changes:
        for differs in each.diff:
            label = f"{printable(each.name)} {printable(differs.path)}"
            yield label, f"{_value(differs.old)} → {_value(differs.new)}"
        if each.exhausted:
            yield printable(each.name), "max_runs reached"


def _value(value: object) -> str:
    return cell(value) if value is None or isinstance(value, str) else compact(value)
