"""Where the server of a command is, and how a command ends that it refuses.

| exit code | means                                                                            |
|-----------|----------------------------------------------------------------------------------|
| 0         | done                                                                             |
| 1         | the answer is no: findings, a conflict, a trigger that was skipped, a failed run |
| 2         | the question was wrong: an option, a file, a document that is refused            |
| 3         | the server cannot be reached, or what answers is no Horarium                     |
| 4         | not allowed: no token, a wrong one, or one whose role is too small               |
| 5         | not found: what was named is not there, or not in this namespace                 |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from horarium.cli import completion
from horarium.cli.contexts import LOCAL, Target, applied, contexts_file, in_use, is_elsewhere, load_contexts
from horarium.cli.options import Command, with_options
from horarium.cli.present import printable
from horarium.cli.reading import refuse
from horarium.cli.render import Format, talk
from horarium.client.trust import Trust

# The client brings httpx, which takes longer to import than an offline command to answer.
if TYPE_CHECKING:
    from horarium.client.call import Call
    from horarium.client.client import Client
    from horarium.client.connection import Connection
    from horarium.client.errors import ClientError

T = TypeVar("T")

_WHERE = "Which server"
_OTHER_SERVER = "is `horarium up` running? --server, HORARIUM_SERVER or a context names another address"
_CERTIFICATES = "--ca-file says who vouches for the server, --client-cert and --client-key say who you are"
_OTHER_TOKEN = "--token or HORARIUM_TOKEN names another token"
_MAX_ERROR = 2_000
SOURCE = "cli"
"""What history and audit say of what a command did."""


class ExitCode(IntEnum):
    DONE = 0
    NO = 1
    BAD_QUESTION = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5


Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        show_default="HORARIUM_SERVER, or the local `up`",
        help="Its address.",
        rich_help_panel=_WHERE,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        show_default="HORARIUM_TOKEN, or that of the local `up`",
        help="Who you are to it.",
        rich_help_panel=_WHERE,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        show_default="HORARIUM_NAMESPACE, or that of the token",
        help="Which tenant.",
        rich_help_panel=_WHERE,
        autocompletion=completion.namespace_names,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        show_default=".horarium",
        help="Where the local `up` leaves address and token.",
        rich_help_panel=_WHERE,
    ),
]
ContextName = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        show_default="HORARIUM_CONTEXT, or the one in use",
        help="A server by its name; see `horarium context`.",
        rich_help_panel=_WHERE,
        autocompletion=completion.contexts,
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        show_default="HORARIUM_CA_FILE, or the usual ones",
        help="Certificates that vouch for it.",
        rich_help_panel=_WHERE,
    ),
]
ClientCert = Annotated[
    str | None,
    typer.Option(
        "--client-cert",
        metavar="FILE",
        show_default="HORARIUM_CLIENT_CERT",
        help="Your certificate, if it asks for one.",
        rich_help_panel=_WHERE,
    ),
]
ClientKey = Annotated[
    str | None,
    typer.Option(
        "--client-key",
        metavar="FILE",
        show_default="HORARIUM_CLIENT_KEY",
        help="The key of your certificate.",
        rich_help_panel=_WHERE,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the answer.")]


@dataclass(frozen=True, slots=True)
class Remote:
    """What a command needs to ask and to answer."""

    client: Client
    output: Format

    @property
    def namespace(self) -> str:
        """The one that was asked for, or that the server named in its answer."""
        return self.client.namespace or "default"

    def send(self, call: Call[T]) -> T:
        return self.client.send(call)


@contextmanager
def remote_options(
    output: Output = Format.TABLE,
    server: Server = None,
    token: Token = None,
    namespace: Namespace = None,
    data_dir: DataDir = None,
    context: ContextName = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
) -> Iterator[Remote]:
    """Asks nobody yet. Whatever the server refuses ends the command with one line and its exit code."""
    from horarium.client.client import Client
    from horarium.client.errors import ClientError
    from horarium.client.exchange import Retries

    trust = Trust(ca_file, client_cert, client_key)
    found = connection_of(server, token, namespace, data_dir, context, trust)
    # A person waits: a server that is not there is named within half a second.
    retries = Retries(attempts=3, base_ms=100)
    try:
        with Client(
            found.base_url,
            token=found.token,
            namespace=found.namespace,
            retries=retries,
            source=SOURCE,
            **asdict(found.trust),
        ) as client:
            yield Remote(client, output)
    except ClientError as error:
        code, hint = ending(error)
        talk(f"error: {_line(error.message)}{f'; {hint}' if hint else ''}")
        raise typer.Exit(code) from None


def connection_of(
    server: str | None,
    token: str | None,
    namespace: str | None,
    data_dir: Path | None,
    context: str | None,
    trust: Trust,
) -> Connection:
    """Where a command with these flags goes. Asks nobody."""
    from horarium.client.discover import discover

    said = target_of(Target(server, token, namespace, trust), data_dir, context)
    environ = {} if context == LOCAL else os.environ  # a flag goes before what the environment says of another server
    return discover(
        data_dir, server=said.server, token=said.token, namespace=said.namespace, trust=said.trust, environ=environ
    )


def target_of(said: Target, data_dir: Path | None, context: str | None) -> Target:
    """Flags, then the environment, then the context in use; the data directory of a local `up` is what is left."""
    if context is not None and (said.server is not None or data_dir is not None):
        refuse("--context names a server; leave out --server and --data-dir")
    by_itself = said.server is not None and said.token is None and data_dir is None
    if context is None and not by_itself and is_elsewhere(said, data_dir, os.environ):
        return said
    contexts = load_contexts(contexts_file(os.environ))
    name = in_use(context, os.environ, contexts)
    return applied(said, name, by_flag=context is not None, contexts=contexts, environ=os.environ)


with_remote: Callable[[Command], Command] = with_options(remote=remote_options)
"""For commands whose parameter `remote` is a Remote: adds the options that find the server, and `--output`."""


def ending(error: ClientError) -> tuple[ExitCode, str]:
    """The exit code of a refusal, and what to do about it where that is not plain."""
    from horarium.client import errors

    match error:
        case errors.ServerUnavailable() if "[SSL:" in error.message:
            return ExitCode.UNREACHABLE, _CERTIFICATES
        case errors.ServerUnavailable() | errors.UnexpectedAnswer():
            return ExitCode.UNREACHABLE, _OTHER_SERVER
        case errors.Unauthorized():
            return ExitCode.NOT_ALLOWED, _OTHER_TOKEN
        case errors.Forbidden():
            return ExitCode.NOT_ALLOWED, ""
        case errors.NotFound():
            return ExitCode.NOT_FOUND, ""
        case errors.ApprovalOver() | errors.InputsChanged():
            return ExitCode.NO, ""
        case errors.Conflict() | errors.PreconditionFailed() | errors.RateLimited() | errors.ServerError():
            return ExitCode.NO, ""
        case _:
            return ExitCode.BAD_QUESTION, ""


def _line(message: str) -> str:
    return printable(" ".join(message.split()))[:_MAX_ERROR]
