"""`horarium agenda`: what runs in a window of time across schedules, and what does not, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.present import show_columns, show_document
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.wire.agenda import AgendaRow

app = typer.Typer(add_completion=False)


@app.command("agenda")
@with_remote
def agenda_command(
    remote: Remote,
    start: Annotated[
        str | None, typer.Option("--from", metavar="RFC3339", show_default="now", help="From here on.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="RFC3339", show_default="24 hours later", help="Up to before this."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=5_000, metavar="N", help="How many rows, at most.")
    ] = 1_000,
) -> None:
    """What all schedules do: the past as it was decided, the future as it is predicted; 31 days at most.

    What will not run has a reason.

    Example: horarium agenda --from 2026-11-16T00:00:00Z --to 2026-11-17T00:00:00Z
    """
    found = remote.client.get_agenda(start=start, end=end, limit=limit)
    match remote.output:
        case Format.TABLE if found.rows:
            show_columns(("At", "Schedule ID", "Decision", "Reason", "State", "Run ID"), map(_cells, found.rows))
        case Format.TABLE:
            talk(f"nothing in this window in namespace {remote.namespace}")
        case Format.JSONL:
            for row in found.rows:
                show_json(dict(row.raw))
        case Format.JSON | Format.YAML:
            show_document(found.raw, remote.output, [])
    if found.truncated:
        talk("there is more in this window: --limit, or a later --from")


def _cells(row: AgendaRow) -> tuple[object, ...]:
    reason = row.reason if row.count == 1 else f"{row.reason} ({row.count} occurrences)"
    state = "predicted" if row.predicted else row.state
    return row.at, row.schedule_id, row.decision, reason, state, row.run_id
