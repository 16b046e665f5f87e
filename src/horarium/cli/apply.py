"""`horarium apply`: brings schedules, and all that they need, into the state that a bundle describes."""

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
    from horarium.wire.bundles import Applied, BundleChange

app = typer.Typer(add_completion=False)

CHANGED = 2
"""The exit code of `--detailed-exitcode` where something changes; a bundle that is refused is never this."""
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
            help="A bundle, JSON or YAML, or a folder of them; - is stdin. May be given several times.",
        ),
    ],
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", metavar="NAME", show_default="as it says", help="What the bundle is called."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete what the bundle of this name brought before and has no more.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over what was made by hand or belongs to another bundle.")
    ] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 2 where something changes, 1 on any refusal.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is deleted.")] = False,
    confirm: Confirm = False,
) -> None:
    """Make schedules and all they need what a bundle says, all or none. Done twice it changes nothing more.

    Schedules that somebody made by hand are kept, and pauses survive. The plan counts the fires of the next seven
    days that come and go, whatever guards will say to them. A bundle that is refused ends with 1.

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
        talk("kept is what the bundle does not own; --adopt takes it over")
    if detailed and changes:
        raise typer.Exit(CHANGED)


@contextmanager
def _refused_is_no() -> Iterator[None]:
    """A bad question would be 2, which means changes here."""
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
        agreed = is_confirmed(f"Delete {len(gone)}?", len(gone))
    except typer.Abort:  # the end of the input, or Ctrl-C
        agreed = False
    if not agreed:
        talk("nothing was changed")
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
            yield printable(each.name), "its runs are used up"


def _value(value: object) -> str:
    return cell(value) if value is None or isinstance(value, str) else compact(value)
