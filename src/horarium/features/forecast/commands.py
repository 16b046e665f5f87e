"""The command `horarium agenda`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.instant import DAY, SECOND, from_rfc3339, to_rfc3339
from horarium.platform.cli.lists import Listing, Paging, show_listing
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import Remote, by_flags, remote_options
from horarium.platform.cli.streams import Format, pairs, refuse, show_columns, show_document, show_json, talk
from horarium.platform.cli.times import TIME, Times, time_options
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.features.forecast.model import AgendaLane, AgendaRow


app = typer.Typer(add_completion=False)


@app.command("agenda")
@with_options(times=time_options, remote=remote_options)
def agenda_command(
    remote: Remote,
    times: Times,
    start: Annotated[
        str | None, typer.Option("--from", metavar=TIME, show_default="now", help="Start of the window, inclusive.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar=TIME, show_default="24 hours after --from", help="End of the window, exclusive."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=5_000, metavar="N", help="Maximum number of rows.")
    ] = 1_000,
    schedule_id: Annotated[
        list[str] | None,
        typer.Option("--schedule", metavar="ID", show_default="all", help="Filter by schedule; repeatable."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", show_default=False, help="Filter by a part of the ID or the name."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="NAME=VALUE", show_default=False, help="Filter by label; repeatable, all must match."
        ),
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            show_default="any",
            help="Filter by status: active, paused, finished or broken.",
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason", metavar="REASON", show_default="any", help="List only past occurrences skipped for this reason."
        ),
    ] = None,
    lanes: Annotated[
        bool, typer.Option("--lanes", help="Count the occurrences of each schedule instead of listing them.")
    ] = False,
) -> None:
    """List occurrences in a time window of at most 31 days: past decisions and future predictions.

    Occurrences that do not run have a reason.

    Example: horarium agenda --from tomorrow --to "the day after tomorrow" --tz Europe/Istanbul
    """
    first, last = times.future("--from", start), times.future("--to", end)
    if lanes:
        if reason is not None:
            refuse("--reason cannot be combined with --lanes")
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
            show_columns(("Time", "Schedule ID", "Decision", "Reason", "State", "Run ID"), map(_cells, found.rows))
        case Format.TABLE:
            talk(f"no occurrences in this window in namespace {remote.namespace}")
        case Format.JSONL:
            for row in found.rows:
                show_json(dict(row.raw))
        case Format.JSON | Format.YAML:
            show_document(found.raw, remote.output, [])
    if found.truncated:
        talk("more occurrences in this window: a larger --limit, or a later --from")


def _show_lanes(remote: Remote, start: str | None, end: str | None, wanted: dict[str, Any], limit: int) -> None:
    """Print one line for each schedule, with the counts of the whole window."""
    from horarium.features.cluster.calls import ServiceCalls

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
        ("Schedule ID", "Name", "Dispatched", "Failed", "Buffered", "Skipped", "Missed"),
        lambda lane: (lane.schedule_id, lane.name or None, *_totals(lane)),
        empty="no schedules in namespace {namespace}",
        hint="more schedules: a larger --limit",
    )


def _totals(lane: AgendaLane) -> tuple[int, ...]:
    names = ("dispatched", "failed", "held", "skipped", "missed")
    return tuple(sum(getattr(bucket, name) for bucket in lane.buckets) for name in names)


def _cells(row: AgendaRow) -> tuple[object, ...]:
    reason = row.reason if row.count == 1 else f"{row.reason} ({row.count} occurrences)"
    state = f"predicted, {row.certainty}" if row.predicted else row.state
    return row.at, row.schedule_id, row.decision, reason, state, row.run_id
