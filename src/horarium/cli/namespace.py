"""`horarium namespace`: the tenants."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.bulk import agree
from horarium.cli.lists import show_list
from horarium.cli.present import printable, show_document
from horarium.cli.reading import refuse
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Namespaces: the tenants. Only admins see more than their own.",
    epilog="Example: horarium namespace list",
)


@app.command("create")
@with_remote
def create_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Its name, for ever.")],
    description: Annotated[
        str | None, typer.Option("--description", metavar="TEXT", show_default=False, help="What it is for.")
    ] = None,
) -> None:
    """Make a namespace; --namespace then works in it.

    Example: horarium namespace create staging --description "before it is real"
    """
    made = remote.client.create_namespace(name, description=description)
    if remote.output is Format.TABLE:
        typer.echo(printable(f"{made.namespace}: created"))
    else:
        show_document(made.raw, remote.output, [])


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Which one.")],
    force: Annotated[bool, typer.Option("--force", help="Also with live schedules and open runs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")] = False,
) -> None:
    """Delete a namespace with all that belongs to it: schedules, history, runs, calendars, tokens.

    Example: horarium namespace delete staging --force
    """
    found = remote.client.delete_namespace(name, dry_run=True)
    question = f"delete {name} with {found.schedules} live schedules and {found.open_runs} open runs?"
    if not force and (found.schedules or found.open_runs):
        refuse(f"{question} say --force, too")
    agree(question, yes)
    done = remote.client.delete_namespace(name, force=force or None)
    if remote.output is Format.TABLE:
        rest = "; the rest of its rows goes by itself" if done.outcome == "deleting" else ""
        typer.echo(printable(f"{done.namespace}: {done.outcome}{rest}"))
    else:
        show_document(done.raw, remote.output, [])


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """The namespaces.

    Example: horarium namespace list
    """
    show_list(
        remote,
        "namespaces",
        remote.client.list_namespaces(),
        ("Namespace", "Description", "Created"),
        lambda each: (each.namespace, each.description, each.created_at),
    )
