"""The commands up, server, worker, migrate and config."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.platform.cli.contexts import LOCAL, VARIABLE, contexts_file, in_use, load_contexts
from horarium.platform.cli.streams import Format, Json, show, talk, warn

if TYPE_CHECKING:
    from horarium.platform.settings import Settings
    from horarium.serve.process import Parts


# pydantic, FastAPI and SQLAlchemy take longer to import than `horarium next` to answer: the commands import
# what they need themselves.

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        show_default=".horarium",
        help="Directory of the database, the token and the secret key.",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        show_default="SQLite in the data directory",
        help="Database URL, such as postgresql://horarium@db/horarium.",
    ),
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", show_default="127.0.0.1", help="Listen address of the API.")
]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="PORT", show_default="8765", help="Listen port of the API; 0 = any free port."),
]
BehindProxy = Annotated[
    bool | None,
    typer.Option("--behind-proxy", show_default=False, help="The API is reached through a reverse proxy."),
]
TlsCert = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", show_default=False, help="Server certificate (PEM); enables TLS."),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="FILE", show_default=False, help="Private key of the server certificate (PEM)."),
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-client-ca",
        metavar="FILE",
        show_default=False,
        help="CA certificates (PEM) that verify client certificates.",
    ),
]
App = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:ATTR",
        show_default=False,
        help="Application with tasks and schedules: a Horarium() object.",
    ),
]


def up_command(
    demo: Annotated[bool, typer.Option("--demo", help="Add demo schedules.")] = False,
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    database: DatabaseUrl = None,
    app: App = None,
    behind_proxy: BehindProxy = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
) -> None:
    """Run the whole service in one process: API and engine. Ctrl-C stops it.

    Prints its URL when it is ready; on a terminal also a URL of the browser interface that signs you in as admin, valid
    once for 15 minutes. --demo stores its data in the subdirectory `demo` of the data directory. On a loopback address,
    schedules may call this machine, unless --behind-proxy or HORARIUM_ALLOW_LOOPBACK_TARGETS=false is set.

    A second `up` with the same data directory refuses to start.

    Example: horarium up --demo
    """
    from horarium.platform.settings import as_up_takes_them
    from horarium.serve.process import UP

    if demo and app is not None:
        raise typer.TyperException("--demo cannot be combined with --app")
    tls = {"tls_cert": tls_cert, "tls_key": tls_key, "tls_client_ca": tls_client_ca}
    settings = settings_of(
        data_dir=data_dir, host=host, port=port, database=database, app=app, behind_proxy=behind_proxy, **tls
    )
    _run(as_up_takes_them(settings), UP, demo=demo)


def server_command(
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    database: DatabaseUrl = None,
    behind_proxy: BehindProxy = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
) -> None:
    """Run the API only. Run `horarium migrate` first.

    Example: horarium server --database postgresql://horarium@db/horarium --host 0.0.0.0
    """
    from horarium.serve.process import SERVER

    tls = {"tls_cert": tls_cert, "tls_key": tls_key, "tls_client_ca": tls_client_ca}
    settings = settings_of(data_dir=data_dir, host=host, port=port, database=database, behind_proxy=behind_proxy, **tls)
    _run(settings, SERVER)


def worker_command(
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    app: App = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", metavar="PORT", show_default="9465", help="Port of metrics and probes; 0 = disabled."
        ),
    ] = None,
) -> None:
    """Run the engine only: it decides occurrences and dispatches runs. Any number of workers may run.

    Serves `/metrics`, `/livez` and `/readyz` on 127.0.0.1 (HORARIUM_METRICS_HOST). If the port is in use, the worker
    logs it and runs without metrics.

    Example: horarium worker --database postgresql://horarium@db/horarium --app myproject.jobs:app
    """
    from horarium.serve.process import WORKER

    _run(settings_of(data_dir=data_dir, database=database, app=app, metrics_port=metrics_port), WORKER)


def migrate_command(
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    check: Annotated[
        bool, typer.Option("--check", help="Report whether a migration is needed; change nothing.")
    ] = False,
) -> None:
    """Migrate the database schema to this release. Does nothing if it is current.

    Processes of this release and of the previous one run on either schema, so processes can be upgraded one by one.

    Exit code of --check: 0: no migration needed; 1: migration needed.

    Example: horarium migrate --database postgresql://horarium@db/horarium
    """
    if check:
        _check_tables(settings_of(data_dir=data_dir, database=database))
        return
    from horarium.platform.database import open_database
    from horarium.platform.database.schema import migrate
    from horarium.serve.data_dir import make_data_dir

    settings = settings_of(data_dir=data_dir, database=database)
    with failing_with_1():
        make_data_dir(settings)
        opened = open_database(settings.database_url)
        try:
            applied = migrate(opened)
        finally:
            opened.close()
    talk("applied " + ", ".join(applied) if applied else "schema is current")


def _check_tables(settings: Settings) -> None:
    from horarium.platform.database import open_database
    from horarium.platform.database.schema import UP_TO_DATE, USABLE, examine_schema
    from horarium.platform.database.sqlite import database_path

    url = settings.database_url
    if url.startswith("sqlite:") and not database_path(url).exists():  # opening it would create it
        talk(f"migration needed: {database_path(url)} does not exist")
        raise typer.Exit(1)
    with failing_with_1():
        opened = open_database(url, pool_size=1)
        try:
            found = examine_schema(opened)
        finally:
            opened.close()
    if found.fit in UP_TO_DATE:
        talk(f"up to date: {found.sentence}")
        return
    state = "migration available" if found.fit in USABLE else "incompatible schema"
    talk(f"{state}: {found.sentence}")
    raise typer.Exit(1)


def config_command(
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.TABLE,
) -> None:
    """Show every setting with its effective value and origin. Secrets are not shown.

    The values are those of `horarium up`. The origin `up` marks values that `up` chooses; `server`, `worker` and
    embedded applications use the default.

    Example: horarium config -o json
    """
    from horarium.platform.settings import as_up_takes_them, origins, unknown_variables, variable
    from horarium.platform.settings.shown import shown_values

    settings = as_up_takes_them(settings_of(data_dir=data_dir, database=database))
    warn(unknown_variables(os.environ))
    values = shown_values(settings)
    came_from = origins(settings)
    rows: list[Json] = [
        {"name": name, "value": value, "origin": came_from[name], "variable": variable(name)}
        for name, value in values.items()
    ]
    cells = [[name, _shown(value), came_from[name], variable(name)] for name, value in values.items()]
    context = _context_row()
    show(
        [*rows, {**context}],
        output,
        columns=("setting", "value", "origin", "variable"),
        cells=[*cells, list(context.values())],
    )


def _context_row() -> dict[str, str]:
    """Return the current context, which is not a setting of the service."""
    found = load_contexts(contexts_file(os.environ))
    name = in_use(None, os.environ, found)
    origin = "environment" if os.environ.get(VARIABLE) else "file" if found.current else "default"
    return {"name": "context", "value": name or LOCAL, "origin": origin, "variable": VARIABLE}


def settings_of(**flags: Any) -> Settings:
    from horarium.platform.settings import load_settings

    return load_settings(flags)


@contextmanager
def failing_with_1() -> Iterator[None]:
    """End with one line and exit code 1 where the environment prevents the command."""
    from horarium.platform.database.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable
    from horarium.platform.http.middleware import shortage_of
    from horarium.serve.data_dir import DataDirInUse
    from horarium.serve.process import AddressTaken
    from horarium.serve.startup import TooFewResources

    try:
        yield
    except SchemaMissing as wrong:
        talk(f"error: {wrong.message}: run `horarium migrate`")
    except (AddressTaken, DataDirInUse, StoreUnavailable, SchemaTooNew, SchemaTooOld, TooFewResources) as wrong:
        talk("error: " + " ".join(wrong.message.split()))  # messages of drivers may have several lines
    except (OSError, RuntimeError) as wrong:
        if (lacking := shortage_of(wrong)) is None:
            raise
        talk(f"error: {lacking}")
    else:
        return
    raise typer.Exit(1)


def _run(settings: Settings, parts: Parts, *, demo: bool = False) -> None:
    from horarium.serve.process import run

    to_terminal = sys.stdout.isatty()
    with failing_with_1():
        if demo:
            from horarium.demo.schedules import run_demo

            run_demo(settings, say=typer.echo, to_terminal=to_terminal)
        else:
            run(settings, parts, say=typer.echo, to_terminal=to_terminal)


def _shown(value: object) -> str:
    return "" if value is None else str(value)
