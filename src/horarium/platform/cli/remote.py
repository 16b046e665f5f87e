"""Connection options of a command, the exit code of a refusal, and the confirmation of large changes.

| exit code | meaning                                                               |
|-----------|-----------------------------------------------------------------------|
| 0         | success                                                               |
| 1         | negative result: findings, conflict, skipped trigger, failed run      |
| 2         | usage error: invalid option, file or document                         |
| 3         | server unreachable, or the response is not from Horarium              |
| 4         | access denied: token missing, invalid, or its role is not sufficient  |
| 5         | not found in this namespace                                           |

Errors name the flags of the command instead of the API fields.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from horarium.platform.cli import options
from horarium.platform.cli.contexts import LOCAL, Target, applied, contexts_file, in_use, is_elsewhere, load_contexts
from horarium.platform.cli.options import Command, with_options
from horarium.platform.cli.program import CONNECTION
from horarium.platform.cli.streams import Format, printable, refuse, talk
from horarium.platform.client.trust import Trust

if TYPE_CHECKING:
    from horarium.client.client import Client
    from horarium.platform.client.call import Call
    from horarium.platform.client.connection import Connection
    from horarium.platform.client.errors import ClientError


# The client brings httpx, which takes longer to import than an offline command to answer.

T = TypeVar("T")

_WHERE = CONNECTION
_OTHER_SERVER = "start `horarium up`, or set --server, HORARIUM_SERVER or a context"
_CERTIFICATES = "set --ca-file to verify the server, --client-cert and --client-key to authenticate"
_OTHER_TOKEN = "set --token or HORARIUM_TOKEN"
_MAX_ERROR = 2_000
SOURCE = "cli"
"""The `source` that history and audit record for a command."""


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
        show_default="HORARIUM_SERVER, else the local service",
        help="Server URL.",
        rich_help_panel=_WHERE,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        show_default="HORARIUM_TOKEN, else the local service",
        help="API token.",
        rich_help_panel=_WHERE,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        show_default="HORARIUM_NAMESPACE, else the token's",
        help="Namespace to work in.",
        rich_help_panel=_WHERE,
        autocompletion=options.namespace_names,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        show_default=".horarium",
        help="Data directory of a local service. The URL and the token are read from it.",
        rich_help_panel=_WHERE,
    ),
]
ContextName = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        show_default="HORARIUM_CONTEXT, else the current one",
        help="Saved connection; see `horarium context`.",
        rich_help_panel=_WHERE,
        autocompletion=options.contexts,
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        show_default="HORARIUM_CA_FILE, else the public CAs",
        help="CA certificates that verify the server (PEM).",
        rich_help_panel=_WHERE,
    ),
]
ClientCert = Annotated[
    str | None,
    typer.Option(
        "--client-cert",
        metavar="FILE",
        show_default="HORARIUM_CLIENT_CERT",
        help="Client certificate (PEM).",
        rich_help_panel=_WHERE,
    ),
]
ClientKey = Annotated[
    str | None,
    typer.Option(
        "--client-key",
        metavar="FILE",
        show_default="HORARIUM_CLIENT_KEY",
        help="Private key of the client certificate (PEM).",
        rich_help_panel=_WHERE,
    ),
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]


@dataclass(frozen=True, slots=True)
class Remote:
    """The client and the output format of a command."""

    client: Client
    output: Format

    @property
    def namespace(self) -> str:
        """The requested namespace, or the one in the response of the server."""
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
    """Yield a client that has sent no request yet; end the command with one line where the server refuses."""
    from horarium.client.client import Client
    from horarium.platform.client.errors import ClientError
    from horarium.platform.client.exchange import Retries

    trust = Trust(ca_file, client_cert, client_key)
    found = connection_of(server, token, namespace, data_dir, context, trust)
    # Report an unreachable server within half a second.
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
    """Return the connection for these flags, without a request."""
    from horarium.platform.client.connection import discover

    said = target_of(Target(server, token, namespace, trust), data_dir, context)
    environ = {} if context == LOCAL else os.environ  # a flag takes precedence over the environment
    return discover(
        data_dir, server=said.server, token=said.token, namespace=said.namespace, trust=said.trust, environ=environ
    )


def target_of(said: Target, data_dir: Path | None, context: str | None) -> Target:
    """Resolve flags, then the environment, then the current context, then the data directory of a local `up`."""
    if context is not None and (said.server is not None or data_dir is not None):
        refuse("--context sets the server; remove --server and --data-dir")
    by_itself = said.server is not None and said.token is None and data_dir is None
    if context is None and not by_itself and is_elsewhere(said, data_dir, os.environ):
        return said
    contexts = load_contexts(contexts_file(os.environ))
    name = in_use(context, os.environ, contexts)
    return applied(said, name, by_flag=context is not None, contexts=contexts, environ=os.environ)


with_remote: Callable[[Command], Command] = with_options(remote=remote_options)
"""Add the connection options and `--output` to a command whose parameter `remote` is a Remote."""


def ending(error: ClientError) -> tuple[ExitCode, str]:
    """Return the exit code of a refusal, and a hint where the message has none."""
    from horarium.platform.client import errors

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


@contextmanager
def by_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Rename fields in client errors; `flags` is by the path of the field."""
    from horarium.platform.client.errors import ClientError

    try:
        yield
    except ClientError as error:
        told = error.body.get("errors")
        if not isinstance(told, Mapping) or not told:  # the error of a single field may begin with its path
            path, colon, text = error.message.partition(": ")
            told = {path: [text]} if colon and _flag(path, flags) != path else {}
        error.message = renamed(told, flags) or error.message
        raise


def renamed(errors: Mapping[str, Sequence[str]], flags: Mapping[str, str]) -> str:
    """Return all errors in one line."""
    texts = [
        f"{_flag(path, flags)}: {_in_words(text, flags)}"
        for path, said in errors.items()
        if isinstance(said, list)
        for text in said
    ]
    return "; ".join(texts)


def _flag(path: str, flags: Mapping[str, str]) -> str:
    """Return the flag of a field; items such as `spec.at.0` belong to the flag of the list."""
    whole = re.sub(r"\.[0-9]+(\.(every|offset))?$", "", path)
    return flags.get(path) or flags.get(whole) or path


def _in_words(text: str, flags: Mapping[str, str]) -> str:
    """Rename fields that an error mentions, in backquotes or with an underscore in the name."""
    for path, flag in flags.items():
        text = text.replace(f"`{path}`", flag)
        if "_" in path:
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", flag, text)
    return text


Confirm = Annotated[bool, typer.Option("--confirm", help="Proceed even if more than 1,000 runs would start at once.")]


def if_meant(act: Callable[[bool | None], T], confirm: bool) -> T:
    """Call `act` with the confirmation; prompt for it where the server requires it."""
    from horarium.platform.client.errors import ConfirmNeeded

    try:
        return act(confirm or None)
    except ConfirmNeeded as needed:
        ask_whether_meant(needed.count or 0)
    return act(True)


def ask_whether_meant(count: int) -> None:
    """Prompt for the confirmation; refuse without a terminal."""
    question = f"Start {count} runs at once?"
    if not sys.stdin.isatty():
        refuse(f"{question} No terminal for the confirmation; use --confirm")
    if not typer.confirm(question, err=True):
        talk("cancelled; nothing changed")
        raise typer.Exit(ExitCode.NO)
