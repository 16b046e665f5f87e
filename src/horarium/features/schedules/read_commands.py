"""The commands that read schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.core.decision.statuses import UNWELL
from horarium.features.schedules.model import ScheduleHealth
from horarium.features.schedules.write_commands import ScheduleId
from horarium.platform.cli import options
from horarium.platform.cli.lists import (
    All,
    AllNamespaces,
    Limit,
    Listing,
    PageToken,
    Paging,
    scope_of,
    show_list,
    show_listing,
    with_namespace,
)
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import ExitCode, Remote, remote_options, with_remote
from horarium.platform.cli.streams import (
    NOTHING,
    Format,
    cell,
    pairs,
    printable,
    refuse,
    show_columns,
    show_document,
    talk,
)
from horarium.platform.cli.times import TIME, Times, schedule_time_options
from horarium.platform.client.call import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from horarium.features.schedules.model import Explanation, HistoryEvent, Schedule, ScheduleHealth


_MORE = "more schedules: --all, or --page-token {cursor}"
_MORE_EVENTS = "more events: --all, or --after-sequence {cursor}"
_ANSWERS = {True: "yes", False: "no", None: "not evaluated"}


Status = Annotated[
    str | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        show_default="any",
        help="Filter by status: active, paused, finished, deleted or broken.",
        autocompletion=options.schedule_statuses,
    ),
]
WorkflowType = Annotated[
    str | None, typer.Option("--workflow-type", metavar="NAME", show_default="any", help="Filter by workflow type.")
]
Owner = Annotated[str | None, typer.Option("--owner", metavar="NAME", show_default="any", help="Filter by owner.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="SOURCE",
        show_default="any",
        help="Filter by source: runtime or template.",
        autocompletion=options.schedule_sources,
    ),
]
Text = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", show_default=False, help="Filter by a part of the ID or the name."),
]
Bundle = Annotated[
    str | None,
    typer.Option("--bundle", metavar="NAME", show_default="any", help="Filter by bundle."),
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="NAME=VALUE", show_default=False, help="Filter by label; repeatable, all must match."
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="QUERY",
        show_default=False,
        help="Filter by search attributes, such as 'tenant = 42'; AND combines.",
    ),
]

Health = Annotated[
    str | None,
    typer.Option(
        "--health",
        metavar="HEALTH",
        show_default="any",
        help="Filter by health: broken, paused, waiting_for_approval, failing, stale or late.",
    ),
]

CalendarName = Annotated[
    str | None,
    typer.Option("--calendar", metavar="NAME", show_default="any", help="Filter by calendar."),
]

AssigneeName = Annotated[
    str | None,
    typer.Option("--assignee", metavar="ID", show_default="any", help="Filter by agent or team."),
]

Deleted = Annotated[bool, typer.Option("--deleted", help="Show the deleted schedule if no live one has this ID.")]


@with_remote
def list_command(
    remote: Remote,
    status: Status = None,
    workflow_type: WorkflowType = None,
    owner: Owner = None,
    source: Source = None,
    bundle: Bundle = None,
    text: Text = None,
    label: Label = None,
    query: Query = None,
    health: Health = None,
    calendar: CalendarName = None,
    assignee: AssigneeName = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted schedules.")] = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
) -> None:
    """List schedules, newest first.

    Example: horarium schedule list --status paused -o jsonl
    """
    from horarium.features.schedules.calls import ScheduleCalls
    from horarium.features.schedules.output import target_of

    labels = pairs("--label", label) if label else None
    call = ScheduleCalls.list_schedules(
        status=status, workflow_type=workflow_type, owner=owner, source=source, bundle=bundle, text=text,
        labels=labels, query=query, health=health, calendar=calendar, assignee=assignee,
        include_deleted=deleted or None, next_page_token=page_token,
    )  # fmt: skip
    show_listing(
        Listing(remote, call, Paging("schedules"), None if everything else limit),
        ("Schedule ID", "When", "Target", "Status", "Next Run", "Last Fire", "Last Outcome"),
        lambda s: (s.schedule_id, s.words, target_of(s), s.status, _runs(s), s.last_fired_at, _last_status(s)),
        empty="no schedules in namespace {namespace}",
        hint=_MORE,
    )


@with_remote
def describe_command(remote: Remote, schedule_id: ScheduleId, deleted: Deleted = False) -> None:
    """Show a schedule and its next fire times, in its time zone and in UTC.

    Example: horarium schedule describe nightly
    """
    from horarium.features.schedules.output import described

    found = remote.client.describe_schedule(schedule_id, include_deleted=deleted or None)
    show_document(found.raw, remote.output, described(found))


@with_remote
def inspect_command(remote: Remote, schedule_id: ScheduleId, deleted: Deleted = False) -> None:
    """Alias of describe.

    Example: horarium schedule inspect nightly
    """
    from horarium.features.schedules.output import described

    found = remote.client.describe_schedule(schedule_id, include_deleted=deleted or None)
    show_document(found.raw, remote.output, described(found))


@with_remote
def history_command(
    remote: Remote,
    schedule_id: ScheduleId,
    limit: Limit = 100,
    after_sequence: Annotated[
        int | None,
        typer.Option(
            "--after-sequence",
            min=0,
            metavar="N",
            show_default="0",
            help="Show only events after this sequence number.",
        ),
    ] = None,
    everything: All = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="List newest events first.")] = False,
    uid: Annotated[
        str | None,
        typer.Option(
            "--uid", metavar="UID", show_default="the newest", help="UID of an earlier schedule with the same ID."
        ),
    ] = None,
) -> None:
    """Show the history of a schedule, oldest first; also of a deleted schedule.

    Example: horarium schedule history nightly --reverse --limit 20
    """
    from horarium.features.schedules.calls import ScheduleCalls

    call = ScheduleCalls.get_schedule_history(
        schedule_id, after_sequence=after_sequence, uid=uid, order="desc" if reverse else None
    )
    show_listing(
        Listing(remote, call, Paging("events", "limit", 500, "next_cursor"), None if everything else limit),
        ("Seq", "Event", "Recorded At", "Workflow Refs"),
        lambda event: (event.sequence, event.event_type, event.recorded_at, _references(event)),
        empty=f"no events of schedule {schedule_id} in namespace {{namespace}}",
        hint=_MORE_EVENTS,
    )


@with_options(times=schedule_time_options, remote=remote_options)
def preview_command(
    remote: Remote,
    times: Times,
    schedule_id: ScheduleId,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=200, metavar="N", help="Number of occurrences.")
    ] = 10,
    start: Annotated[
        str | None, typer.Option("--from", metavar=TIME, show_default="now", help="Start of the forecast, exclusive.")
    ] = None,
) -> None:
    """Forecast the next occurrences, at most 31 days ahead.

    Certainty is certain, likely (estimated from run durations) or unknown (depends on a condition or a limit, or no
    run history).

    Example: horarium schedule preview nightly --count 5
    """
    from horarium.features.schedules.draft_calls import DraftCalls
    from horarium.features.schedules.output import decided, given_to, notes

    call = DraftCalls.preview_schedule(
        schedule_id, n=count, start=times.of_schedule(remote, schedule_id).future("--from", start)
    )
    show_listing(
        Listing(remote, call, Paging("rows", "n"), count),
        ("Scheduled For", "Decision", "Reason", "Certainty", "Inputs", "Notes"),
        lambda row: (row.tick_at, decided(row), row.reason, row.certainty, given_to(row), notes(row)),
        empty="no occurrences within 31 days",
        hint="more occurrences: a larger --count",
    )


@with_options(times=schedule_time_options, remote=remote_options)
def explain_command(
    remote: Remote,
    times: Times,
    schedule_id: ScheduleId,
    at: Annotated[
        str | None, typer.Option("--at", metavar=TIME, show_default="next fire", help="Time of the occurrence.")
    ] = None,
) -> None:
    """Explain why a schedule fires or does not fire at a time, past or future.

    Example: horarium schedule explain nightly --at 2026-07-04T02:00:00Z
    """
    moment = times.of_schedule(remote, schedule_id).future("--at", at) or _next_fire(remote, schedule_id)
    found = remote.client.explain_schedule(schedule_id, moment)
    if remote.output is not Format.TABLE:
        show_document(found.raw, remote.output, [])
        return
    typer.echo(printable(found.sentence))
    if found.certainty is not None:
        typer.echo(f"Certainty: {found.certainty}.")
    if found.source == "history":
        typer.echo(f"Checks at decision time ({cell(found.as_of)}):")
    typer.echo()
    show_columns(("Check", "Passes", "Detail"), [_finding(each) for each in found.findings])
    for text in _around(found):
        talk(text)


@with_remote
def health_command(
    remote: Remote,
    schedule_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", show_default="all", help="Schedule ID.", autocompletion=options.schedule_ids),
    ] = None,
    unwell: Annotated[
        bool, typer.Option("--unwell", help="List only unhealthy schedules and those awaiting approval.")
    ] = False,
    all_namespaces: AllNamespaces = False,
) -> None:
    """Show the health of schedules, each with an explanation.

    The status is the first that applies: broken, paused, waiting_for_approval, failing (failing_after consecutive
    failed runs, default 3), stale (no decision for two intervals of the spec), late (an occurrence is undecided past
    its misfire grace), never_run, ok.

    Exit code 0: all healthy; 1: at least one schedule is broken, failing, stale or late.

    Example: horarium schedule health nightly
    """
    if all_namespaces and schedule_id is not None:
        refuse("--all-namespaces cannot be combined with an ID: IDs are unique only within a namespace")
    namespace = scope_of(all_namespaces)
    page = health_of(remote, schedule_id, unwell=unwell, namespace=namespace)
    columns, row = with_namespace(
        ("Schedule ID", "Status", "Last Run", "Next Expected", "Explanation"), _health, namespace
    )
    show_list(remote, "schedules", page, columns, row)
    if remote.output is Format.TABLE:
        for each in page:
            for warning in each.warnings or ():
                talk(printable(f"warning: {each.schedule_id}: {warning}"))
    if any(is_unwell(each) for each in page):
        raise typer.Exit(ExitCode.NO)


def _health(found: ScheduleHealth) -> Sequence[object]:
    return found.schedule_id, found.status, found.last_run_at, found.expected_next_run, found.sentence


def _runs(schedule: Schedule) -> str:
    """Return the time of the next run, or the reason why there is none."""
    return cell(schedule.next_run_at or schedule.next_run_reason)


def _last_status(schedule: Schedule) -> str | None:
    """Return the status of the last occurrence; a skip does not hide that the last run failed."""
    word, failed = schedule.last_status, schedule.consecutive_failures
    if not failed or word == "error":
        return word or None
    return f"{word} ({'last run' if failed == 1 else f'last {failed} runs'} failed)"


def _references(event: HistoryEvent) -> str:
    return " ".join(each for each in (event.workflow_instance_id, event.workflow_run_id) if each)


def _next_fire(remote: Remote, schedule_id: str) -> str:
    """Return the fire time; `explain` finds its occurrence."""
    fires = remote.client.describe_schedule(schedule_id).next_fire_times
    if not fires:
        refuse("the schedule has no next fire; give --at")
    return cell(fires[0])


def _finding(finding: Any) -> tuple[str, str, Any]:
    return finding.question, _ANSWERS[finding.holds], finding.detail


def _around(found: Explanation) -> list[str]:
    known = [("previous occurrence", found.previous), ("next occurrence", found.following)]
    return [f"{what}: {cell(when)}" for what, when in known if cell(when) != NOTHING]


_PAGE = 200


def health_of(
    remote: Remote, schedule_id: str | None, *, unwell: bool = False, namespace: str | None = None
) -> Page[ScheduleHealth]:
    if schedule_id is not None:
        return Page((remote.client.get_schedule_health(schedule_id),))
    if unwell:
        return remote.client.list_schedule_health(unwell=True, namespace=namespace)
    return Page(tuple(remote.client.iter_schedule_health(namespace=namespace, page_size=_PAGE)))


def is_unwell(health: ScheduleHealth) -> bool:
    """Return whether the status is an unhealthy one; an unknown status is not."""
    return health.status in UNWELL
