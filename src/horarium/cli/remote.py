"""Where the server of a command is, and how a command ends that it refuses.

| exit code | means                                                                         |
|-----------|-------------------------------------------------------------------------------|
| 0         | done                                                                          |
| 1         | the answer is no: findings, a conflict, a trigger that was skipped            |
| 2         | the question was wrong: an option, a file, a document that is refused         |
| 3         | the server cannot be reached, or what answers is no Horarium                  |
| 4         | not allowed: no token, a wrong one, or one whose role is too small            |
| 5         | not found: what was named is not there, or not in this namespace              |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from horarium.cli.options import Command, with_options
from horarium.cli.present import printable
from horarium.cli.render import Format, talk

# The client brings httpx, which takes longer to import than an offline command to answer.
if TYPE_CHECKING:
    from horarium.client.call import Call
    from horarium.client.client import Client
    from horarium.client.errors import ClientError

T = TypeVar("T")

_WHERE = "Which server"
_OTHER_SERVER = "is `horarium up` running? --server or HORARIUM_SERVER names another address"
_OTHER_TOKEN = "--token or HORARIUM_TOKEN names another token"
_MAX_ERROR = 2_000


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
) -> Iterator[Remote]:
    """Asks nobody yet. Whatever the server refuses ends the command with one line and its exit code."""
    from horarium.client.client import Client
    from horarium.client.discover import discover
    from horarium.client.errors import ClientError
    from horarium.client.exchange import Retries

    found = discover(data_dir, server=server, token=token, namespace=namespace)
    # A person waits: a server that is not there is named within half a second.
    retries = Retries(attempts=3, base_ms=100)
    try:
        with Client(found.base_url, token=found.token, namespace=found.namespace, retries=retries) as client:
            yield Remote(client, output)
    except ClientError as error:
        code, hint = ending(error)
        talk(f"error: {_line(error.message)}{f'; {hint}' if hint else ''}")
        raise typer.Exit(code) from None


with_remote: Callable[[Command], Command] = with_options(remote=remote_options)
"""For commands whose parameter `remote` is a Remote: adds the options that find the server, and `--output`."""


def ending(error: ClientError) -> tuple[ExitCode, str]:
    """The exit code of a refusal, and what to do about it where that is not plain."""
    from horarium.client import errors

    match error:
        case errors.ServerUnavailable() | errors.UnexpectedAnswer():
            return ExitCode.UNREACHABLE, _OTHER_SERVER
        case errors.Unauthorized():
            return ExitCode.NOT_ALLOWED, _OTHER_TOKEN
        case errors.Forbidden():
            return ExitCode.NOT_ALLOWED, ""
        case errors.NotFound():
            return ExitCode.NOT_FOUND, ""
        case errors.Conflict() | errors.PreconditionFailed() | errors.RateLimited() | errors.ServerError():
            return ExitCode.NO, ""
        case _:
            return ExitCode.BAD_QUESTION, ""


def _line(message: str) -> str:
    return printable(" ".join(message.split()))[:_MAX_ERROR]
