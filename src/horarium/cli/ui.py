"""The command `horarium ui`."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from horarium.cli.present import show_document
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, talk

app = typer.Typer(add_completion=False)


@app.command("ui")
@with_remote
def ui_command(
    remote: Remote,
    printed: Annotated[bool, typer.Option("--print", help="Print the URL instead of opening a browser.")] = False,
) -> None:
    """Open the browser interface in the default browser, signed in with your token.

    The URL contains a code that is valid once, for one minute. The page shows whose token it is before it signs in.

    Exit code 1: no browser found; use --print.

    Example: horarium ui --print
    """
    address = address_of(remote.client.connection.base_url, _code(remote))
    if printed or remote.output is not Format.TABLE:
        show_document({"url": address}, remote.output, [("", address)])
    elif not webbrowser.open(address):
        talk("error: no browser found; use --print and open the URL elsewhere")
        raise typer.Exit(ExitCode.NO)


def address_of(server: str, code: str | None) -> str:
    """Return the URL; its fragment is not sent to the server, and the page removes it."""
    return f"{server.rstrip('/')}/ui/" + ("" if code is None else f"#token={code}")


def _code(remote: Remote) -> str | None:
    """Return a sign-in code; None without a token, because the browser then sends the client certificate."""
    if remote.client.connection.token is None:
        return None
    return remote.client.make_sign_in_link().code
