"""Commands that open the database of an installation themselves: doctor, tick, verify and copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from horarium.cli.service import App, DatabaseUrl, DataDir, Host, Port, failing_with_1, settings_of
from horarium.platform.cli.streams import Format, Json, counting, filling, show, show_columns, show_json, talk
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.features.cluster.verification import Finding, RunFinding


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
    from horarium.serve.checkup import Grade, examine

    settings = settings_of(data_dir=data_dir, host=host, port=port, database=database, app=app)
    checks = list(examine(settings, SystemClock()))
    rows: list[Json] = [
        {"check": each.name, "level": each.level.value, "found": each.found, "remedy": each.remedy} for each in checks
    ]
    cells = [(each.level.value, each.name, each.found, each.remedy) for each in checks]
    show(rows, output, columns=("", "check", "found", "remedy"), cells=cells)
    if any(each.level is Grade.FAILURE for each in checks):
        raise typer.Exit(1)


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

    from horarium.serve.maintenance import one_pass
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


_NOBODY = "-"
"""Placeholder for a run without a schedule."""


def verify_command(
    schedule_id: Annotated[
        str | None, typer.Option("--schedule", metavar="ID", show_default="all", help="Check only this schedule.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", show_default="all", help="Check only this namespace.")
    ] = None,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    output: Annotated[
        Format | None, typer.Option("--output", "-o", show_default="lines", help="Output format.")
    ] = None,
) -> None:
    """Verify that every occurrence has exactly one recorded decision, and that every run is consistent. Read-only.

    Reports missing, duplicate and unexpected decisions, gaps in the history, runs that can neither progress nor end,
    steps that are open after their workflow ended, runs that started without a recorded approval of their inputs, and
    wrong counters.

    Exit code 0: no findings; 1: findings.

    Example: horarium verify --schedule nightly-report
    """
    from horarium.features.cluster.verification import verify
    from horarium.platform.caller import internal
    from horarium.serve.service import open_service

    settings = settings_of(data_dir=data_dir, database=database, log_level="error")
    with failing_with_1(), open_service(settings, migrates=False) as service, counting("schedules checked") as progress:
        caller = internal("cli", namespace or "default")
        everywhere = namespace is None
        found = list(
            verify(service.resources, caller, schedule_id=schedule_id, everywhere=everywhere, progress=progress)
        )
    rows = [_row(finding) for finding in found]
    if output is not None:
        data: list[Json] = [
            {"schedule_id": None if who == _NOBODY else who, "finding": what, "detail": detail}
            for who, what, detail in rows
        ]
        show(data, output, columns=("schedule", "finding", "detail"), cells=rows)
    else:
        for row in rows:
            typer.echo("  ".join(row))
    if rows:
        talk(f"{len(rows)} finding{'' if len(rows) == 1 else 's'}")
        raise typer.Exit(1)
    talk("verified: every occurrence has exactly one decision")


def _row(finding: Finding) -> tuple[str, str, str]:
    from horarium.features.cluster.verification import (
        CannotVerify,
        Double,
        DoubleStep,
        Gap,
        Miscounted,
        Missing,
        OrphanRun,
        Stray,
        UnsoundRun,
    )
    from horarium.instant import to_rfc3339
    from horarium.platform.ids import id_text

    match finding:
        case Miscounted() | UnsoundRun() | DoubleStep():
            return _row_of_run(finding)
        case Missing(first=first, last=last, count=count):
            detail = f"{count} without a decision, {to_rfc3339(first)} to {to_rfc3339(last)}"
            return finding.schedule_id, "missing", detail
        case Double(nominal=nominal, sequence=sequence):
            return finding.schedule_id, "double", f"{to_rfc3339(nominal)} has a second decision, event {sequence}"
        case Stray(nominal=nominal, sequence=sequence):
            return (
                finding.schedule_id,
                "stray",
                f"event {sequence} decides {to_rfc3339(nominal)}, which is not an occurrence",
            )
        case CannotVerify(detail=detail):
            return finding.schedule_id, "unreadable", detail
        case Gap(sequence=first_gone, last=last_gone):
            return finding.schedule_id, "gap", f"events {first_gone} to {last_gone} are missing"
        case OrphanRun(run_id=run_id, nominal=nominal):
            return finding.schedule_id, "orphan", f"run {id_text(run_id)} of {to_rfc3339(nominal)} has no event"
        case _:
            assert_never(finding)


def _row_of_run(finding: RunFinding) -> tuple[str, str, str]:
    from horarium.core.lifecycle.live_run import Unsound
    from horarium.features.cluster.verification import DoubleStep, Miscounted, UnsoundRun
    from horarium.platform.ids import id_text

    sentences = {
        Unsound.STUCK: "can neither progress nor end",
        Unsound.OUTLIVES: "is open, but its workflow has ended",
        Unsound.UNREADABLE: "is unreadable: damaged, or written by a newer release",
        Unsound.UNAPPROVED: "started without a recorded approval of its inputs",
    }
    match finding:
        case Miscounted(counter=counter, told=told, really=really):
            return finding.schedule_id or _NOBODY, "miscounted", f"{counter} is {told}, expected {really}"
        case UnsoundRun(run_id=run_id, what=what):
            return finding.schedule_id or _NOBODY, what.value, f"run {id_text(run_id)} {sentences[what]}"
        case DoubleStep(run_id=run_id, node_id=node_id):
            return _NOBODY, "double", f"run {id_text(run_id)} has two runs of node {node_id!r}"
        case _:
            assert_never(finding)


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
    from horarium.platform.database.copying import CopyFailed
    from horarium.serve.maintenance import MoveRefused, opened

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
