"""`horarium verify`: does every occurrence have its one decision?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from horarium.cli.progress import counting
from horarium.cli.render import Format, Json, show, talk
from horarium.cli.service import DatabaseUrl, DataDir, failing_with_1, settings_of

if TYPE_CHECKING:
    from horarium.operations.verify import Finding


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
    """Recompute every schedule and compare it with what was recorded. Changes nothing.

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
        data: list[Json] = [dict(zip(("schedule_id", "finding", "detail"), row, strict=True)) for row in rows]
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
    from horarium.operations.verify import Double, Gap, Missing, OrphanRun, Stray

    match finding:
        case Missing(first=first, last=last, count=count):
            detail = f"{count} without a decision, {to_rfc3339(first)} to {to_rfc3339(last)}"
            return finding.schedule_id, "missing", detail
        case Double(nominal=nominal, sequence=sequence):
            return finding.schedule_id, "double", f"{to_rfc3339(nominal)} is decided again by event {sequence}"
        case Stray(nominal=nominal, sequence=sequence):
            return finding.schedule_id, "stray", f"event {sequence} decides {to_rfc3339(nominal)}, which is none"
        case Gap(sequence=first_gone, last=last_gone):
            return finding.schedule_id, "gap", f"events {first_gone} to {last_gone} are gone"
        case OrphanRun(run_id=run_id, nominal=nominal):
            return finding.schedule_id, "orphan", f"run {id_text(run_id)} of {to_rfc3339(nominal)} has no event"
        case _:
            assert_never(finding)
