"""`horarium agenda`: what runs in a window of time across schedules, and what does not, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli.naming import by_flags
from horarium.cli.options import with_options
from horarium.cli.pages import Listing, Paging, show_listing
from horarium.cli.present import show_columns, show_document
from horarium.cli.reading import pairs, refuse
from horarium.cli.remote import Remote, remote_options
from horarium.cli.render import Format, show_json, talk
from horarium.cli.times import TIME, Times, time_options
from horarium.clock import SystemClock
from horarium.instant import DAY, SECOND, from_rfc3339, to_rfc3339

if TYPE_CHECKING:
    from horarium.wire.agenda import AgendaLane, AgendaRow

app = typer.Typer(add_completion=False)


@app.command("agenda")
@with_options(times=time_options, remote=remote_options)
def agenda_command(
    remote: Remote,
    times: Times,
    start: Annotated[str | None, typer.Option("--from", metavar=TIME, show_default="now", help="From here on.")] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar=TIME, show_default="24 hours later", help="Up to before this."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=5_000, metavar="N", help="How many rows, at most.")
    ] = 1_000,
    schedule_id: Annotated[
        list[str] | None, typer.Option("--schedule", metavar="ID", show_default="all", help="Of these alone.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", show_default=False, help="Part of an id or a name.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=VALUE", show_default=False, help="All that are given must fit."),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", show_default="any", help="active, paused, finished or broken."),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="REASON", show_default="any", help="What was not run for it; no predictions."),
    ] = None,
    lanes: Annotated[
        bool, typer.Option("--lanes", help="Count the occurrences of each schedule instead of listing them.")
    ] = False,
) -> None:
    """What schedules do: the past as it was decided, the future as it is predicted; 31 days at most.

    What will not run has a reason.

    Example: horarium agenda --from tomorrow --to "the day after tomorrow" --tz Europe/Istanbul
    """
    first, last = times.future("--from", start), times.future("--to", end)
    if lanes:
        if reason is not None:
            refuse("--reason does not go with --lanes: lanes count every occurrence")
        wanted = {"schedule_id": schedule_id, "text": text, "labels": pairs("--label", label) if label else None}
        _show_lanes(remote, first, last, {**wanted, "status": status}, limit)
        return
    with by_flags({"from": "--from", "to": "--to", "schedule_id": "--schedule"}):
        found = remote.client.get_agenda(
            start=first,
            end=last,
            limit=limit,
            schedule_id=schedule_id,
            text=text,
            labels=pairs("--label", label) if label else None,
            status=status,
            reason=reason,
        )
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


def _show_lanes(remote: Remote, start: str | None, end: str | None, wanted: dict[str, Any], limit: int) -> None:
    """Print one line for each schedule, with the counts of the whole window."""
    from horarium.client.service_calls import ServiceCalls

    first = from_rfc3339(start) if start else SystemClock().now()
    last = from_rfc3339(end) if end else first + DAY
    call = ServiceCalls.list_agenda_lanes(
        start=to_rfc3339(first),
        end=to_rfc3339(last),
        bucket_seconds=max(1, -(-(last - first) // SECOND)),
        limit=0,
        **wanted,
    )
    show_listing(
        Listing(remote, call, Paging("lanes", "lane_limit", 100), limit),
        ("Schedule ID", "Name", "Dispatched", "Failed", "Held", "Skipped", "Missed"),
        lambda lane: (lane.schedule_id, lane.name or None, *_totals(lane)),
        empty="no schedules in namespace {namespace}",
        hint="more schedules: --limit",
    )


def _totals(lane: AgendaLane) -> tuple[int, ...]:
    names = ("dispatched", "failed", "held", "skipped", "missed")
    return tuple(sum(getattr(bucket, name) for bucket in lane.buckets) for name in names)


def _cells(row: AgendaRow) -> tuple[object, ...]:
    reason = row.reason if row.count == 1 else f"{row.reason} ({row.count} occurrences)"
    state = f"predicted, {row.certainty}" if row.predicted else row.state
    return row.at, row.schedule_id, row.decision, reason, state, row.run_id
