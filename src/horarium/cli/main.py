"""The commands of the program `horarium`, and its exit codes.

The exit codes of commands that call a server are defined in `remote`. An error is one line on stderr; a traceback is
a bug.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from horarium.cli.lazy import SERVER_COMMANDS, LaterModule, make_later
from horarium.cli.leading import moved
from horarium.cli.remote import CaFile, ClientCert, ClientKey, ContextName, DataDir, Namespace, Server, Token
from horarium.cli.render import Format, talk
from horarium.errors import HorariumError

doctor, offline = LaterModule("horarium.cli.doctor"), LaterModule("horarium.cli.offline")
service, showcase = LaterModule("horarium.cli.service"), LaterModule("horarium.cli.showcase")
topics = LaterModule("horarium.cli.topics")
tick, verify, copy = (
    LaterModule("horarium.cli.tick"),
    LaterModule("horarium.cli.verify"),
    LaterModule("horarium.cli.copy"),
)

_NEGATIVE, _USAGE_ERROR = 1, 2
_FULL = (errno.ENOSPC, errno.EDQUOT)

app = typer.Typer(
    name="horarium",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Durable scheduling for workflows and agents.",
    epilog="Example: horarium up --demo",
)
condition = typer.Typer(
    no_args_is_help=True,
    help="Evaluate pre-dispatch conditions without a server.",
    epilog="Example: horarium condition test --filter filter.json --context context.json",
)

app.command("up")(service.up_command)
app.command("server")(service.server_command)
app.command("worker")(service.worker_command)
app.command("migrate")(service.migrate_command)
app.command("config")(service.config_command)
app.command("doctor")(doctor.doctor_command)
app.command("tick")(tick.tick_command)
app.command("verify")(verify.verify_command)
app.command("copy")(copy.copy_command)

app.command("next")(offline.next_command)
app.command("explain-cron")(offline.explain_command)
app.command("lint")(offline.lint_command)
app.command("showcase")(showcase.showcase_command)
condition.command("test")(offline.condition_test_command)
app.add_typer(condition, name="condition")


@condition.callback()
def _condition_group() -> None:
    """Keep the group: Typer would replace it by its only command."""


app.add_typer(LaterModule("horarium.cli.import_celery").app, name="import")
app.command("help", hidden=True)(topics.help_command)
# Alias of `secret`.
app.add_typer(LaterModule("horarium.cli.secret").app, name="secrets", hidden=True)
make_later(app, SERVER_COMMANDS)


def _show_version(wanted: bool) -> None:
    if wanted:
        import platform
        from importlib.metadata import version as installed_version

        from horarium.recurrence.zone import tzdata_version

        typer.echo(
            f"horarium {installed_version('horarium')} (tzdata {tzdata_version()}, Python {platform.python_version()})"
        )
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the versions of Horarium, tzdata and Python.",
        ),
    ] = False,
    server: Server = None,
    token: Token = None,
    namespace: Namespace = None,
    data_dir: DataDir = None,
    context: ContextName = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    output: Annotated[Format | None, typer.Option("--output", "-o", show_default=False, help="Output format.")] = None,
) -> None:
    """Accept the connection options before the command; `leading` has moved them behind it by now."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    if sys.stdin is None:  # closed by the parent process; treated as empty
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    _speak_what_it_can(sys.stdout)
    try:
        typed = sys.argv[1:] if arguments is None else arguments
        # The command must be known only where an option precedes it.
        given = moved(typed, get_command(app)) if typed and typed[0].startswith("-") else typed
        code = app(args=list(given), prog_name="horarium", standalone_mode=False)
    except HorariumError as wrong:
        return _fail(wrong.message)
    except typer.TyperException as wrong:
        return _fail(wrong.format_message())
    except typer.Abort:
        return _fail("aborted")
    except OSError as wrong:
        if wrong.errno not in _FULL:
            raise
        talk(f"error: cannot write the output: {wrong.strerror}")
        return _NEGATIVE
    return code if isinstance(code, int) else 0


def _speak_what_it_can(stream: object) -> None:
    """Print escapes such as `\\xb7` to a terminal without UTF-8."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def _fail(message: str) -> int:
    talk("error: " + " ".join(message.split()))
    return _USAGE_ERROR
