"""The command `horarium copy`."""

from __future__ import annotations

from typing import Annotated

import typer

from horarium.cli.progress import counting, filling
from horarium.cli.render import talk
from horarium.cli.service import failing_with_1, settings_of

_KEY = """\
Start the processes on the new database with the same secret key: keep the data directory with secret.key and
admin.token, or set HORARIUM_SECRET_KEY. A process with another key refuses to start."""


def copy_command(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="URL",
            show_default=False,
            help="URL of the source database, such as sqlite:///.horarium/horarium.db.",
        ),
    ],
    target: Annotated[
        str, typer.Option("--to", metavar="URL", show_default=False, help="URL of the new, empty database.")
    ],
) -> None:
    """Copy all data to a new database, also between SQLite and PostgreSQL.

    Stop all processes first. The copy is one transaction and is verified afterwards.

    Example: horarium copy --from sqlite:///.horarium/horarium.db --to postgresql://horarium@db/horarium
    """
    from horarium.serve.moving import MoveRefused, opened
    from horarium.store.copying import CopyFailed

    try:
        with failing_with_1(), opened(source, target) as move:
            with filling("rows", move.count()) as tell:
                copied = move.copy(tell)
            new = move.target_url
    except (MoveRefused, CopyFailed) as wrong:
        talk(f"error: {wrong.message}")
        raise typer.Exit(1) from None
    filled = sum(1 for rows in copied.values() if rows)
    typer.echo(f"copied {sum(copied.values())} rows of {filled} tables to {new}; row counts match")
    findings = _verify(target)
    if findings:
        talk(f"{findings} findings; run `horarium verify --database URL` on the old and the new database")
        raise typer.Exit(1)
    typer.echo("verified: every occurrence has exactly one decision")
    talk(_KEY)


def _verify(database: str) -> int:
    """Return the number of findings; no secret key is needed."""
    from horarium.features.cluster.verification import verify
    from horarium.platform.caller import internal
    from horarium.serve.service import open_service

    settings = settings_of(database=database, log_level="error")
    with (
        failing_with_1(),
        open_service(settings, migrates=False, key=b"none") as service,
        counting("schedules verified") as progress,
    ):
        caller = internal("cli", "default")
        return sum(1 for _ in verify(service.resources, caller, everywhere=True, progress=progress))
