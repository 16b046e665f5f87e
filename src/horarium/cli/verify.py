"""`horarium verify`: does every occurrence have its one decision, and is every run as it must be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from horarium.cli.present import show
from horarium.cli.progress import counting
from horarium.cli.render import Format, Json, talk
from horarium.cli.service import DatabaseUrl, DataDir, failing_with_1, settings_of

if TYPE_CHECKING:
    from horarium.operations.verify import Finding
    from horarium.operations.verify_runs import RunFinding

_NOBODY = "-"
"""Where no schedule asked for the run."""


def verify_command(
    schedule_id: Annotated[
        str | None, typer.Option("--schedule", metavar="ID", show_default="all", help="Check one schedule only.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAME", show_default="all", help="Check one namespace only.")
    ] = None,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
    output: Annotated[
        Format | None, typer.Option("--output", "-o", show_default="lines", help="How to print the findings.")
    ] = None,
) -> None:
    """Recompute every schedule and compare it with what was recorded, and look at every run. Changes nothing.

    A run is reported that can neither move nor end, that outlives the workflow it is a step of, or that was let go
    without a recorded yes to its inputs; so is a count that differs from what it counts.

    Exit code 0 means that all is accounted for, 1 that there are findings.

    Example: horarium verify --schedule nightly-report
    """
    from horarium.operations.caller import internal
    from horarium.operations.verify import verify
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
        talk(f"{len(rows)} findings")
        raise typer.Exit(1)
    talk("every occurrence has its one decision")


def _row(finding: Finding) -> tuple[str, str, str]:
    from horarium.ids import id_text
    from horarium.instant import to_rfc3339
    from horarium.operations.verify import CannotVerify, Double, Gap, Missing, OrphanRun, Stray
    from horarium.operations.verify_runs import DoubleStep, Miscounted, UnsoundRun

    match finding:
        case Miscounted() | UnsoundRun() | DoubleStep():
            return _row_of_run(finding)
        case Missing(first=first, last=last, count=count):
            detail = f"{count} without a decision, {to_rfc3339(first)} to {to_rfc3339(last)}"
            return finding.schedule_id, "missing", detail
        case Double(nominal=nominal, sequence=sequence):
            return finding.schedule_id, "double", f"{to_rfc3339(nominal)} is decided again by event {sequence}"
        case Stray(nominal=nominal, sequence=sequence):
            return finding.schedule_id, "stray", f"event {sequence} decides {to_rfc3339(nominal)}, which is none"
        case CannotVerify(detail=detail):
            return finding.schedule_id, "unreadable", detail
        case Gap(sequence=first_gone, last=last_gone):
            return finding.schedule_id, "gap", f"events {first_gone} to {last_gone} are gone"
        case OrphanRun(run_id=run_id, nominal=nominal):
            return finding.schedule_id, "orphan", f"run {id_text(run_id)} of {to_rfc3339(nominal)} has no event"
        case _:
            assert_never(finding)


def _row_of_run(finding: RunFinding) -> tuple[str, str, str]:
    from horarium.ids import id_text
    from horarium.life.soundness import Unsound
    from horarium.operations.verify_runs import DoubleStep, Miscounted, UnsoundRun

    sentences = {
        Unsound.STUCK: "can neither move nor end",
        Unsound.OUTLIVES: "is open, though the workflow that it is a step of has ended",
        Unsound.UNREADABLE: "cannot be read: it was damaged, or written by a newer program",
        Unsound.UNAPPROVED: "was let go without a recorded yes to its inputs",
    }
    match finding:
        case Miscounted(counter=counter, told=told, really=really):
            return finding.schedule_id or _NOBODY, "miscounted", f"{counter} says {told} and there are {really}"
        case UnsoundRun(run_id=run_id, what=what):
            return finding.schedule_id or _NOBODY, what.value, f"run {id_text(run_id)} {sentences[what]}"
        case DoubleStep(run_id=run_id, node_id=node_id):
            return _NOBODY, "double", f"two runs stand for the node {node_id!r} of run {id_text(run_id)}"
        case _:
            assert_never(finding)
