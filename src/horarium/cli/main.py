"""The program `horarium`: its commands and exit codes.

The exit codes of commands that call a server are defined in `remote`. An error is one line on stderr; a traceback is
a bug. Options that precede the command are moved behind it:

`horarium --server URL -o json schedule list` is `horarium schedule list --server URL -o json`. An option behind the
command takes precedence, and a command without the option refuses it.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from horarium.errors import HorariumError
from horarium.platform.cli.program import LaterModule, make_later
from horarium.platform.cli.remote import CaFile, ClientCert, ClientKey, ContextName, DataDir, Namespace, Server, Token
from horarium.platform.cli.streams import Format, refuse, talk

SHORT = {"-o": "--output"}
LEADING = (
    "--server", "--token", "--namespace", "--data-dir", "--context", "--output", "--ca-file", "--client-cert",
    "--client-key",
)  # fmt: skip


def moved(arguments: Sequence[str], root: Any) -> list[str]:
    """Return the arguments in their usual order; an unknown command is left for `root` to refuse."""
    flags, rest = _split(arguments)
    if not flags:
        return list(arguments)
    depth, command = _command(rest, root)
    if getattr(command, "commands", None) is not None:
        return list(arguments)
    known = {name for param in command.params for name in param.opts}
    for flag in flags:
        if flag not in known:
            refuse(f"{flag}: `{' '.join(['horarium', *rest[:depth]])}` has no such option")
    return [*rest[:depth], *(word for pair in flags.items() for word in pair), *rest[depth:]]


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split the leading options, by their long names, from the rest; the last value of each counts."""
    found: dict[str, str] = {}
    left = list(arguments)
    while left:
        name, equals, value = left[0].partition("=")
        if left[0][:2] in SHORT and len(left[0]) > 2:
            name, equals, value = left[0][:2], "=", left[0][2:].removeprefix("=")
        name = SHORT.get(name, name)
        if name not in LEADING or (not equals and len(left) < 2):
            break
        found[name] = value if equals else left[1]
        del left[: 1 if equals else 2]
    return found, left


def _command(words: Sequence[str], root: Any) -> tuple[int, Any]:
    """Return the number of words that name the command, and the command."""
    depth, command = 0, root
    while depth < len(words):
        children: Mapping[str, Any] | None = getattr(command, "commands", None)
        if children is None or words[depth] not in children:
            break
        command = children[words[depth]]
        depth += 1
    return depth, command


service, offline, maintenance = map(
    LaterModule, ("horarium.cli.service", "horarium.cli.offline", "horarium.cli.maintenance")
)

SERVER_COMMANDS: Mapping[str, Any] = {
    "schedule": LaterModule("horarium.features.schedules.commands").app,
    "run": LaterModule("horarium.features.runs.commands").app,
    "workflow": LaterModule("horarium.features.workflows.commands").app,
    "approval": LaterModule("horarium.features.approvals.commands").app,
    "agent": LaterModule("horarium.features.agents.commands").app,
    "team": LaterModule("horarium.features.agents.team_commands").team_app,
    "assignment": LaterModule("horarium.features.agents.team_commands").assignment_app,
    "calendar": LaterModule("horarium.features.calendars.commands").app,
    "token": LaterModule("horarium.features.tenants.commands").token_app,
    "namespace": LaterModule("horarium.features.tenants.commands").namespace_app,
    "subscription": LaterModule("horarium.features.webhooks.commands").app,
    "secret": LaterModule("horarium.features.secrets.commands").app,
    "audit": LaterModule("horarium.features.audit.commands").app,
    "overview": LaterModule("horarium.features.cluster.commands").overview_app,
    "agenda": LaterModule("horarium.features.forecast.commands").app,
    "health": LaterModule("horarium.features.cluster.commands").health_app,
    "cluster": LaterModule("horarium.features.cluster.commands").cluster_app,
    "events": LaterModule("horarium.features.history.commands").app,
    "apply": LaterModule("horarium.features.bundles.commands").apply_app,
    "export": LaterModule("horarium.features.bundles.commands").export_app,
    "ui": LaterModule("horarium.cli.context").ui_app,
    "context": LaterModule("horarium.cli.context").app,
}
"""The app of each noun, in the order of the help."""

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
app.command("doctor")(maintenance.doctor_command)
app.command("tick")(maintenance.tick_command)
app.command("verify")(maintenance.verify_command)
app.command("copy")(maintenance.copy_command)

app.command("next")(offline.next_command)
app.command("explain-cron")(offline.explain_command)
app.command("lint")(offline.lint_command)
app.command("showcase")(offline.showcase_command)
condition.command("test")(offline.condition_test_command)
app.add_typer(condition, name="condition")


@condition.callback()
def _condition_group() -> None:
    """Keep the group: Typer would replace it by its only command."""


app.add_typer(LaterModule("horarium.compat.celery_beat.commands").app, name="import")
app.command("help", hidden=True)(offline.help_command)
# Alias of `secret`.
app.add_typer(LaterModule("horarium.features.secrets.commands").app, name="secrets", hidden=True)
make_later(app, SERVER_COMMANDS)


def _show_version(wanted: bool) -> None:
    if wanted:
        import platform
        from importlib.metadata import version as installed_version

        from horarium.core.recurrence.zone import tzdata_version

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
