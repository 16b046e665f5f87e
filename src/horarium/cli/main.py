"""`horarium`: which commands there are, and how each of them ends.

How a command ends that speaks to a server is written in `remote`. An error is one line on stderr; a traceback
is a defect of ours.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.main import get_command

from horarium.cli.lazy import PANEL, SERVER_COMMANDS, LaterModule, make_later
from horarium.cli.leading import moved
from horarium.cli.remote import CaFile, ClientCert, ClientKey, ContextName, DataDir, Namespace, Server, Token
from horarium.cli.render import Format, talk
from horarium.errors import HorariumError

doctor, offline, service, showcase = map(LaterModule, ("doctor", "offline", "service", "showcase"))
tick, verify, copy = LaterModule("tick"), LaterModule("verify"), LaterModule("copy")

_NO, _BAD_QUESTION = 1, 2
_FULL = (errno.ENOSPC, errno.EDQUOT)

_EPILOG = """\
Exit codes: 0 done · 1 the answer is no · 2 the question was wrong · 3 the server cannot be reached ·
4 not allowed · 5 not found

Example: horarium next "0 9 * * 1-5" --tz Europe/Istanbul
"""

app = typer.Typer(
    name="horarium",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="When could it happen, whether it does, and why: a durable scheduler.",
    epilog=_EPILOG,
)
condition = typer.Typer(
    no_args_is_help=True,
    help="Conditions: JSON pointers, five operators, all of which must hold.",
    epilog="Example: horarium condition test --filter filter.json --context context.json",
)

_SERVICE = "The service"
app.command("up", rich_help_panel=_SERVICE)(service.up_command)
app.command("server", rich_help_panel=_SERVICE)(service.server_command)
app.command("worker", rich_help_panel=_SERVICE)(service.worker_command)
app.command("migrate", rich_help_panel=_SERVICE)(service.migrate_command)
app.command("config", rich_help_panel=_SERVICE)(service.config_command)
app.command("doctor", rich_help_panel=_SERVICE)(doctor.doctor_command)
app.command("tick", rich_help_panel=_SERVICE)(tick.tick_command)
app.command("verify", rich_help_panel=_SERVICE)(verify.verify_command)
app.command("copy", rich_help_panel=_SERVICE)(copy.copy_command)

_OFFLINE = "Offline: no server needed"
app.command("next", rich_help_panel=_OFFLINE)(offline.next_command)
app.command("explain-cron", rich_help_panel=_OFFLINE)(offline.explain_command)
app.command("lint", rich_help_panel=_OFFLINE)(offline.lint_command)
app.command("showcase", rich_help_panel=_OFFLINE)(showcase.showcase_command)
condition.command("test")(offline.condition_test_command)
app.add_typer(condition, name="condition", rich_help_panel=_OFFLINE)


@condition.callback()
def _condition_group() -> None:
    """Without this Typer would make the group's only command the group itself."""


app.add_typer(LaterModule("import_celery").app, name="import", rich_help_panel=PANEL)
# Another name of `secret`.
app.add_typer(LaterModule("secret").app, name="secrets", hidden=True)
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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
    server: Server = None,
    token: Token = None,
    namespace: Namespace = None,
    data_dir: DataDir = None,
    context: ContextName = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    output: Annotated[
        Format | None, typer.Option("--output", "-o", show_default=False, help="How to print the answer.")
    ] = None,
) -> None:
    """The options of a server may stand here, or behind the verb: `leading` has moved them there by now."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The program: arguments in, exit code out."""
    if sys.stdin is None:  # whoever started us has closed it; to a command it is as good as empty
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    _speak_what_it_can(sys.stdout)
    try:
        typed = sys.argv[1:] if arguments is None else arguments
        # Only who begins with an option needs to know which command follows.
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
        talk(f"error: the answer cannot be written: {wrong.strerror}")
        return _NO
    return code if isinstance(code, int) else 0


def _speak_what_it_can(stream: object) -> None:
    """A terminal that has no UTF-8 gets escapes, as in `\\xb7`, and no traceback."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="backslashreplace")


def _fail(message: str) -> int:
    if message:  # a command without its arguments has shown its help instead
        talk("error: " + " ".join(message.split()))
    return _BAD_QUESTION
