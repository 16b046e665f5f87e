"""The commands of `horarium context`, and `horarium ui`."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from horarium.platform.cli import options
from horarium.platform.cli.contexts import (
    LOCAL,
    SERVER_VARIABLES,
    VARIABLE,
    Contexts,
    NamedConnection,
    checked_name,
    contexts_file,
    in_use,
    load_contexts,
    save_contexts,
)
from horarium.platform.cli.remote import ExitCode, Output, Remote, with_remote
from horarium.platform.cli.streams import (
    STDIN,
    Format,
    Json,
    cell,
    refuse,
    show_columns,
    show_document,
    show_json,
    talk,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage saved server connections.",
    epilog="Example: horarium context use prod",
)

_MAX_TOKEN = 65_536

Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Context name.", autocompletion=options.contexts)
]


@app.command("create")
def create_command(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the context.")],
    server: Annotated[str, typer.Option("--server", metavar="URL", show_default=False, help="Server URL.")],
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", show_default=False, help="Default namespace.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TOKEN", show_default=False, help="API token, stored in the context file; - reads stdin."
        ),
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option(
            "--token-env", metavar="VARIABLE", show_default=False, help="Environment variable with the API token."
        ),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option("--token-file", metavar="FILE", show_default=False, help="File with the API token.")
    ] = None,
    ca_file: Annotated[
        str | None,
        typer.Option(
            "--ca-file", metavar="FILE", show_default=False, help="CA certificates that verify the server (PEM)."
        ),
    ] = None,
    client_cert: Annotated[
        str | None, typer.Option("--client-cert", metavar="FILE", show_default=False, help="Client certificate (PEM).")
    ] = None,
    client_key: Annotated[
        str | None,
        typer.Option(
            "--client-key", metavar="FILE", show_default=False, help="Private key of the client certificate (PEM)."
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing context.")] = False,
) -> None:
    """Save a server connection under a name. The server is not contacted.

    The context file is readable only by you. --token-env and --token-file store a reference instead of the token.

    Example: horarium context create prod --server https://horarium.example.org --token-env PROD_TOKEN
    """
    from horarium.platform.client.connection import Connection

    contexts = _load()
    if name in contexts.known and not replace:
        refuse(f"context {name!r} already exists; use --replace")
    secret = _from_stdin() if token == STDIN else token
    # Absolute, because commands run in any directory.
    file, ca, cert, key = map(_absolute, (token_file, ca_file, client_cert, client_key))
    context = NamedConnection(server, namespace, secret, token_env or None, file, ca, cert, key)
    # Refuse values that no request could carry.
    _ = Connection(server, secret, namespace, trust=context.trust).options
    _save(contexts.with_context(checked_name(name), context))
    talk(f"context {name} created; select it with `horarium context use {name}`")


@app.command("use")
def use_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", show_default=False, help="Context name, or local.", autocompletion=options.contexts
        ),
    ],
) -> None:
    """Select the context that commands use. local is the server of a local `up`.

    Example: horarium context use prod
    """
    _save(_load().using(name))
    talk(f"current context: {name}" if name != LOCAL else "current context: local (the server of a local `up`)")
    for variable in (*SERVER_VARIABLES, VARIABLE):
        if os.environ.get(variable) not in (None, "", name):
            talk(f"warning: {variable} is set and takes precedence")


@app.command("list")
def list_command(output: Output = Format.TABLE) -> None:
    """List contexts and mark the current one.

    Example: horarium context list
    """
    contexts = _load()
    current = in_use(None, os.environ, contexts) or LOCAL
    known: list[tuple[str, NamedConnection | None]] = [(LOCAL, None), *sorted(contexts.known.items())]
    rows = [{"name": name, "current": name == current, **_shown(context)} for name, context in known]
    match output:
        case Format.TABLE:
            told = [(name, "*" if name == current else None, *_shown(context).values()) for name, context in known]
            show_columns(("Name", "Current", "Server", "Namespace", "Token"), told)
        case Format.JSONL:
            for row in rows:
                show_json(row)
        case Format.JSON | Format.YAML:
            show_document({"contexts": rows}, output, [])


@app.command("show")
def show_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", show_default="the current one", help="Context name.", autocompletion=options.contexts
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show a context without its token.

    Example: horarium context show prod
    """
    contexts = _load()
    wanted = name or in_use(None, os.environ, contexts) or LOCAL
    context = contexts.named(wanted)
    document = {"name": wanted, **_shown(context), **_files(context), "file": str(contexts_file(os.environ))}
    show_document(document, output, _lines(document))


@app.command("delete")
def delete_command(name: Name) -> None:
    """Delete a context. The server is not contacted.

    Example: horarium context delete prod
    """
    if name == LOCAL:
        refuse(f"the context {LOCAL} cannot be deleted")
    _save(_load().without(name))
    talk(f"context {name} deleted")


def _shown(context: NamedConnection | None) -> dict[str, Json]:
    """Return the fields of a context without a stored token."""
    if context is None:
        return {"server": None, "namespace": None, "token": None}
    return {"server": context.server, "namespace": context.namespace, "token": context.token_from}


def _files(context: NamedConnection | None) -> dict[str, Json]:
    """Return the certificates of a context."""
    said = {} if context is None else asdict(context.trust)
    return {name: value for name, value in said.items() if value is not None}


def _lines(document: dict[str, Json]) -> Iterator[tuple[str, str]]:
    yield from ((label, cell(value)) for label, value in document.items())


def _load() -> Contexts:
    return load_contexts(contexts_file(os.environ))


def _save(contexts: Contexts) -> None:
    save_contexts(contexts_file(os.environ), contexts)


def _absolute(file: str | None) -> str | None:
    return str(Path(file).expanduser().absolute()) if file else None


def _from_stdin() -> str:
    read = sys.stdin.read(_MAX_TOKEN).strip()
    if not read:
        refuse("--token: stdin is empty")
    return read


ui_app = typer.Typer(add_completion=False)


@ui_app.command("ui")
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
