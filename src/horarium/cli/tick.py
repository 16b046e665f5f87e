"""The command `horarium tick`, for use with an external scheduler."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.present import show_columns
from horarium.cli.render import show_json, talk
from horarium.cli.service import App, DatabaseUrl, DataDir, failing_with_1, settings_of

_COLUMNS = ("schedule_id", "instance_id", "outcome", "occurrence_time", "last_fired_at", "next_fire_at")


def tick_command(
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, max=10_000, metavar="N", show_default="all", help="Maximum number of schedules."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the decisions as JSON.")] = False,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    app: App = None,
) -> None:
    """Run one pass of the engine: decide due occurrences, dispatch ready runs, wait for their results, and exit.

    Example: horarium tick --json --limit 100
    """
    import asyncio

    from horarium.serve.one_pass import one_pass
    from horarium.serve.service import open_service

    settings = settings_of(data_dir=data_dir, database=database, app=app, tick_batch=limit, log_level="error")
    with failing_with_1(), open_service(settings, migrates=False) as service:
        rows, parked = asyncio.run(one_pass(service, everything=limit is None))
    if as_json:
        show_json(list(rows))
    elif rows:
        show_columns(_COLUMNS, [[row.get(column) for column in _COLUMNS] for row in rows])
    for schedule_id, error in parked:
        talk(f"{schedule_id} is broken: {error}")
    if not rows:
        talk("no occurrences due")
    if parked:
        raise typer.Exit(1)
