"""The commands of `horarium token`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli import completion
from horarium.cli.lists import show_list
from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.present import cell, printable, show_document
from horarium.cli.remote import Remote, remote_options, with_remote
from horarium.cli.render import Format, talk
from horarium.cli.times import TIME, Times, time_options

if TYPE_CHECKING:
    from horarium.features.tenants.model import IssuedToken

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage API tokens.",
    epilog="Example: horarium token list",
)


@app.command("create")
@with_options(times=time_options, remote=remote_options)
def create_command(
    remote: Remote,
    times: Times,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the token.")],
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            show_default=False,
            help="Role: admin, owner, operator, viewer or agent.",
            autocompletion=completion.roles,
        ),
    ],
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="WHO",
            show_default="NAME",
            help="Subject of the token; for the role agent, the agent ID.",
        ),
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar=TIME, show_default="never", help="Expiry time; 90d means in 90 days."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", metavar="QUEUE", show_default="all", help="Queue that the token may claim from; repeatable."
        ),
    ] = None,
) -> None:
    """Create a token for the namespace. The secret is printed only once and not stored.

    Example: horarium token create deploys --role operator
    """
    until = times.future("--expires-at", expires_at)
    flags = {"expires_at": "--expires-at", "role": "--role", "subject": "--subject", "queues": "--queue"}
    with by_flags(flags):
        token = remote.client.issue_token(name, role, subject=subject, expires_at=until, queues=queue or None)
    show_issued(remote, token)


def show_issued(remote: Remote, token: IssuedToken) -> None:
    """Print only the secret on stdout, so that it can be piped."""
    if remote.output is not Format.TABLE:
        show_document(token.raw, remote.output, [])
        return
    typer.echo(token.secret)
    talk(printable(f"token {token.token_id}, role {token.role}; the secret is shown only once"))


@app.command("list")
@with_remote
def list_command(remote: Remote) -> None:
    """List tokens without their secrets.

    Example: horarium token list
    """
    show_list(
        remote,
        "tokens",
        remote.client.list_tokens(),
        ("Token ID", "Name", "Role", "Subject", "Created", "Expires", "Revoked"),
        lambda t: (t.token_id, t.name, t.role, t.subject, t.created_at, t.expires_at, t.revoked_at),
    )


@app.command("rotate")
@with_remote
def rotate_command(
    remote: Remote,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", show_default=False, help="Token ID.")],
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            metavar="SECONDS",
            show_default="86400",
            help="Time that the old secret stays valid, in seconds; 0 = not at all.",
        ),
    ] = None,
) -> None:
    """Replace the secret of a token. The new secret is printed only once; the old one stays valid for --overlap.

    Example: horarium token rotate 01JQ8Z6H4M8X2V0T1R3S5W7Y9B --overlap 3600
    """
    token = remote.client.rotate_token(token_id, overlap_seconds=overlap)
    if remote.output is not Format.TABLE:
        show_document(token.raw, remote.output, [])
        return
    typer.echo(token.secret)
    talk(f"token {token.token_id}; the old secret is valid until {cell(token.previous_until)}")


@app.command("revoke")
@with_remote
def revoke_command(
    remote: Remote,
    token_id: Annotated[
        str,
        typer.Argument(metavar="TOKEN_ID", show_default=False, help="Token ID.", autocompletion=completion.token_ids),
    ],
) -> None:
    """Revoke a token. It is invalid immediately.

    Example: horarium token revoke 01JQ8Z6H4M8X2V0T1R3S5W7Y9B
    """
    remote.client.revoke_token(token_id)
    talk(f"token {token_id} revoked")
