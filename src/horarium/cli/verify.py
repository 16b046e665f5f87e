"""The command `horarium verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from horarium.cli.present import show
from horarium.cli.progress import counting
from horarium.cli.render import Format, Json, talk
from horarium.cli.service import DatabaseUrl, DataDir, failing_with_1, settings_of

if TYPE_CHECKING:
    from horarium.features.cluster.verification import Finding, RunFinding

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
    from horarium.ids import id_text
    from horarium.instant import to_rfc3339

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
    from horarium.features.cluster.verification import DoubleStep, Miscounted, UnsoundRun
    from horarium.ids import id_text
    from horarium.life.soundness import Unsound

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
