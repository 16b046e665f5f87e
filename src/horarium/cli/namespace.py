"""`horarium namespace`: the tenants."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.lists import show_list
from horarium.cli.present import printable, show_document
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
