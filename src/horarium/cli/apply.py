"""`horarium apply`: brings calendars and schedules into the state that a bundle describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, assert_never

import typer

from horarium.cli.present import show_columns, show_document
from horarium.cli.progress import counting
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, show_json, talk
from horarium.clock import SystemClock
from horarium.instant import Instant, from_rfc3339

if TYPE_CHECKING:
    from horarium.cli.bundle import Bundle
    from horarium.cli.plan import Step

app = typer.Typer(add_completion=False)


@app.command("apply")
@with_remote
def apply_command(
    remote: Remote,
    file: Annotated[
        str,
        typer.Option("--file", "-f", metavar="FILE", show_default=False, help="The bundle, JSON or YAML; - is stdin."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete template schedules that the bundle does not have.")
    ] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="RFC3339", show_default="now", help="Count fires from here.")
    ] = None,
) -> None:
    """Make calendars and schedules what a bundle says. Done twice it changes nothing the second time.

    The schedules become templates. Those that a user has made are kept as they are, and pauses survive.
    The plan counts the fires of the next seven days that come and go, whatever guards will say to them.

    Example: horarium apply -f bundle.yaml --dry-run
    """
    from horarium.cli.bundle import read_bundle

    bundle = read_bundle(file)
    now = SystemClock().now() if start is None else from_rfc3339(start, field="from")
    with counting("looked at") as count:
        steps = []
        for step in _plan(remote, bundle, now, prune=prune):
            steps.append(step)
            count(len(steps))
    _show(remote, steps, dry_run=dry_run)
    if not dry_run:
        with counting("applied") as count:
            for number, step in enumerate(steps, 1):
                _do(remote, step)
                count(number)
    changes = sum(step.change in ("create", "update", "delete") for step in steps)
    talk(f"{changes} of {len(steps)} {'would change' if dry_run else 'changed'}")


def _plan(remote: Remote, bundle: Bundle, now: Instant, *, prune: bool) -> Iterator[Step]:
    from horarium.cli.plan import plan_calendar, plan_deletion, plan_schedule

    for document in bundle.calendars:
        yield plan_calendar(document, _calendar(remote, document["name"]))
    for document in bundle.schedules:
        yield plan_schedule(document, _schedule(remote, document["schedule_id"]), now=now)
    if prune:
        wanted = {document["schedule_id"] for document in bundle.schedules}
        for schedule in remote.client.iter_schedules(source="template", page_size=200):
            if schedule.schedule_id not in wanted:
                yield plan_deletion(schedule.raw, now=now)


def _do(remote: Remote, step: Step) -> None:
    from horarium.cli.plan import Change

    match step.change:
        case Change.UNCHANGED | Change.KEEP:
            return
        case Change.DELETE:
            remote.client.delete_schedule(step.name)
        case Change.CREATE if step.kind == "calendar":
            remote.client.create_calendar(step.document)
        case Change.UPDATE if step.kind == "calendar":
            remote.client.update_calendar(step.name, step.document)
        case Change.CREATE | Change.UPDATE:
            remote.client.upsert_schedule(step.document)
        case _:
            assert_never(step.change)


def _show(remote: Remote, steps: list[Step], *, dry_run: bool) -> None:
    rows = [_row(step) for step in steps]
    match remote.output:
        case Format.TABLE if rows:
            cells = [tuple((row | {"fields": ", ".join(row["fields"])}).values()) for row in rows]
            show_columns(("Change", "Kind", "Name", "Fields", "Fires Added", "Fires Removed"), cells)
        case Format.TABLE:
            talk("the bundle is empty")
        case Format.JSONL:
            for row in rows:
                show_json(row)
        case Format.JSON | Format.YAML:
            show_document({"dry_run": dry_run, "changes": rows}, remote.output, [])


def _row(step: Step) -> dict[str, Any]:
    return {
        "change": step.change.value,
        "kind": step.kind,
        "name": step.name,
        "fields": list(step.fields),
        "fires_added": "many" if step.added is None else step.added,
        "fires_removed": "many" if step.removed is None else step.removed,
    }


def _calendar(remote: Remote, name: str) -> Any:
    from horarium.client.errors import CalendarNotFound

    try:
        return remote.client.get_calendar(name).raw
    except CalendarNotFound:
        return None


def _schedule(remote: Remote, schedule_id: str) -> Any:
    from horarium.client.errors import ScheduleNotFound

    try:
        return remote.client.describe_schedule(schedule_id).raw
    except ScheduleNotFound:
        return None
