"""The commands that run the service: the whole of it, its parts, and what prepares and explains it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli.contexts import LOCAL, VARIABLE, contexts_file, in_use, load_contexts
from horarium.cli.present import show, warn
from horarium.cli.render import Format, Json, talk

# pydantic, FastAPI and SQLAlchemy take longer to import than `horarium next` to answer: the commands import
# what they need themselves.
if TYPE_CHECKING:
    from horarium.serve.process import Parts
    from horarium.settings import Settings

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", show_default=".horarium", help="Holds the database and the token."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", show_default="SQLite in the data directory", help="postgresql://…"),
]
Host = Annotated[
    str | None, typer.Option("--host", metavar="ADDRESS", show_default="127.0.0.1", help="Where the API listens.")
]
Port = Annotated[
    int | None, typer.Option("--port", metavar="PORT", show_default="8765", help="Where the API listens; 0 = any.")
]
BehindProxy = Annotated[
    bool | None,
    typer.Option("--behind-proxy", show_default=False, help="A reverse proxy brings requests of others here."),
]
TlsCert = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", show_default=False, help="Its certificate (PEM): the API speaks TLS."),
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="FILE", show_default=False, help="The key of the certificate (PEM)."),
]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-client-ca", metavar="FILE", show_default=False, help="Whose client certificates (PEM) are asked for."
    ),
]
App = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:ATTR", show_default=False, help="Your tasks and schedules: a Horarium()."),
]


def up_command(
    demo: Annotated[bool, typer.Option("--demo", help="Add schedules that show what it can do.")] = False,
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
    """The whole service in one process: API and engine. Ctrl-C stops it.

    Prints one line with its address when it is ready; on a terminal also the address of the browser interface, which
    signs you in as the admin, once and within 15 minutes. The demonstration keeps its data in a directory of its own,
    `demo` in the data directory. On a loopback address schedules may call this machine itself, unless
    `--behind-proxy` or HORARIUM_ALLOW_LOOPBACK_TARGETS=false says otherwise.

    A second `up` on the same data directory refuses to start and names the process that uses it.

    Example: horarium up --demo
    """
    from horarium.serve.process import UP
    from horarium.settings import as_up_takes_them

    if demo and app is not None:
        raise typer.TyperException("--demo brings an application of its own; leave out --app")
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
    """The API alone. The database must have been migrated.

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
            "--metrics-port", metavar="PORT", show_default="9465", help="Serve metrics and probes here; 0 = nowhere."
        ),
    ] = None,
) -> None:
    """The engine alone: it keeps time and hands out runs. Start as many as you like.

    Serves `/metrics`, `/livez` and `/readyz` on 127.0.0.1 (HORARIUM_METRICS_HOST). A port that is taken is logged, and
    the worker runs without metrics.

    Example: horarium worker --database postgresql://horarium@db/horarium --app myproject.jobs:app
    """
    from horarium.serve.process import WORKER

    _run(settings_of(data_dir=data_dir, database=database, app=app, metrics_port=metrics_port), WORKER)


def migrate_command(
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: say how the tables fit this program.")
    ] = False,
) -> None:
    """Bring the tables up to what this program knows. Harmless when there is nothing to do.

    `server` and `worker` run on the tables of the release before too, and those of the release before on these:
    processes may be replaced one by one. Exit code 0 of `--check` means that there is nothing to do, 1 that there is.

    Example: horarium migrate --database postgresql://horarium@db/horarium
    """
    if check:
        _check_tables(settings_of(data_dir=data_dir, database=database))
        return
    from horarium.serve.admin import make_data_dir
    from horarium.store.database import open_database
    from horarium.store.migrate import migrate

    settings = settings_of(data_dir=data_dir, database=database)
    with failing_with_1():
        make_data_dir(settings)
        opened = open_database(settings.database_url)
        try:
            applied = migrate(opened)
        finally:
            opened.close()
    talk("applied " + ", ".join(applied) if applied else "nothing to do")


def _check_tables(settings: Settings) -> None:
    from horarium.store.database import open_database
    from horarium.store.database.sqlite import database_path
    from horarium.store.migrate import examine_schema
    from horarium.store.schema_state import UP_TO_DATE, USABLE

    url = settings.database_url
    if url.startswith("sqlite:") and not database_path(url).exists():  # to open it would make it
        talk(f"needs a migration: {database_path(url)} is not there yet")
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
    state = "runs on the older tables" if found.fit in USABLE else "cannot run"
    talk(f"{state}: {found.sentence}")
    raise typer.Exit(1)


def config_command(
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print them.")] = Format.TABLE,
) -> None:
    """Every setting with its effective value and where it comes from. Secrets are not shown.

    The values are those of `horarium up`; where the origin is `up`, it has chosen by itself, and `server`, `worker`
    and embedded applications go by the default.

    Example: horarium config -o json
    """
    from horarium.serve.shown_settings import shown_values
    from horarium.settings import as_up_takes_them, origins, unknown_variables, variable

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
    """No setting of the service, but where commands that are typed here go."""
    found = load_contexts(contexts_file(os.environ))
    name = in_use(None, os.environ, found)
    origin = "environment" if os.environ.get(VARIABLE) else "file" if found.current else "default"
    return {"name": "context", "value": name or LOCAL, "origin": origin, "variable": VARIABLE}


def settings_of(**flags: Any) -> Settings:
    from horarium.settings import load_settings

    return load_settings(flags)


@contextmanager
def failing_with_1() -> Iterator[None]:
    """The question was right, but the machine says no: one line, exit code 1."""
    from horarium.api.shortages import shortage_of
    from horarium.serve.data_dir_lock import DataDirInUse
    from horarium.serve.open_files import TooFewResources
    from horarium.serve.process import AddressTaken
    from horarium.store.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable

    try:
        yield
    except SchemaMissing as wrong:
        talk(f"error: {wrong.message}: horarium migrate")
    except (AddressTaken, DataDirInUse, StoreUnavailable, SchemaTooNew, SchemaTooOld, TooFewResources) as wrong:
        talk("error: " + " ".join(wrong.message.split()))  # what a driver says may have lines of its own
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
