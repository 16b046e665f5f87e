"""The command `horarium doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.present import show
from horarium.cli.render import Format, Json
from horarium.cli.service import App, DatabaseUrl, DataDir, Host, Port, settings_of
from horarium.platform.clock import SystemClock


def doctor_command(
    data_dir: DataDir = None,
    host: Host = None,
    port: Port = None,
    database: DatabaseUrl = None,
    app: App = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Output format.")] = Format.TABLE,
) -> None:
    """Check the installation and show a remedy for each problem.

    Exit code 0: no failures; 1: at least one failure.

    Example: horarium doctor --database postgresql://horarium@db/horarium
    """
    from horarium.serve.checkup import Level, examine

    settings = settings_of(data_dir=data_dir, host=host, port=port, database=database, app=app)
    checks = list(examine(settings, SystemClock()))
    rows: list[Json] = [
        {"check": each.name, "level": each.level.value, "found": each.found, "remedy": each.remedy} for each in checks
    ]
    cells = [(each.level.value, each.name, each.found, each.remedy) for each in checks]
    show(rows, output, columns=("", "check", "found", "remedy"), cells=cells)
    if any(each.level is Level.FAILURE for each in checks):
        raise typer.Exit(1)
