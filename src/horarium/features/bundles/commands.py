"""The commands `horarium apply` and `horarium export`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from horarium.platform.cli.bulk import is_confirmed
from horarium.platform.cli.remote import Confirm, ExitCode, Remote, ending, if_meant, with_remote
from horarium.platform.cli.streams import (
    Format,
    cell,
    compact,
    counting,
    printable,
    show_columns,
    show_document,
    show_json,
    show_lines,
    talk,
)

if TYPE_CHECKING:
    from horarium.features.bundles.model import Applied, BundleChange
    from horarium.platform.client.call import Call, Page
    from horarium.platform.wire import Answer


apply_app = typer.Typer(add_completion=False)

CHANGED = 2
"""The exit code of `--detailed-exitcode` if anything changes."""
_CHANGING = frozenset({"create", "update", "delete"})
_MAX_ERROR = 2_000


@apply_app.command("apply")
@with_remote
def apply_command(
    remote: Remote,
    files: Annotated[
        list[str],
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            show_default=False,
            help="Bundle as JSON or YAML, or a directory of bundles; - reads stdin. Repeatable.",
        ),
    ],
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", metavar="NAME", show_default="the name in the file", help="Name of the bundle."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan without applying it.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete objects of this bundle that it no longer contains.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over objects that were created manually or by another bundle.")
    ] = False,
    detailed: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if anything changes, 1 on a refusal.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt before deletions.")] = False,
    confirm: Confirm = False,
) -> None:
    """Apply a bundle: create, update and delete objects to match it, in one transaction. Idempotent.

    Manually created schedules are kept, and paused schedules stay paused. --dry-run prints the plan, with the number of
    occurrences in the next seven days that the change adds and removes, regardless of calendars and conditions.
    Exit code 1: the bundle is refused.

    Example: horarium apply -f bundle.yaml --dry-run
    """
    from horarium.features.bundles.files import read_bundle

    with _refused_is_no():
        document = read_bundle(files, bundle)
        if prune and not (dry_run or yes) and sys.stdin.isatty():
            ask_before_deleting(remote.client.apply(document, dry_run=True, prune=True, adopt=adopt))
        done = if_meant(
            lambda meant: remote.client.apply(document, dry_run=dry_run, prune=prune, adopt=adopt, confirm=meant),
            confirm,
        )
    show_applied(remote, done)
    changes = sum(each.change in _CHANGING for each in done.changes)
    talk(f"{changes} of {len(done.changes)} {'would change' if dry_run else 'changed'}")
    if any(each.change == "keep" for each in done.changes) and not adopt:
        talk("keep: not owned by the bundle; --adopt takes it over")
    if detailed and changes:
        raise typer.Exit(CHANGED)


@contextmanager
def _refused_is_no() -> Iterator[None]:
    """Exit with 1 on a refusal, because 2 means changes."""
    from horarium.platform.client.errors import ClientError

    try:
        yield
    except typer.TyperException as wrong:
        _refuse(wrong.format_message())
    except ClientError as error:
        if ending(error)[0] is not ExitCode.BAD_QUESTION:
            raise
        _refuse(error.message)


def _refuse(message: str) -> None:
    talk(f"error: {printable(' '.join(message.split()))[:_MAX_ERROR]}")
    raise typer.Exit(ExitCode.NO)


def ask_before_deleting(plan: Applied) -> None:
    gone = [each for each in plan.changes if each.change == "delete"]
    if not gone:
        return
    for each in gone:
        talk(f"delete {each.kind} {printable(each.name)}")
    try:
        agreed = is_confirmed(f"Delete {len(gone)} object{'' if len(gone) == 1 else 's'}?", len(gone))
    except typer.Abort:  # the end of the input, or Ctrl-C
        agreed = False
    if not agreed:
        talk("cancelled; nothing changed")
        raise typer.Exit(ExitCode.NO)


def show_applied(remote: Remote, done: Applied) -> None:
    match remote.output:
        case Format.TABLE if done.changes:
            rows = [(each.change, each.kind, each.name, each.fires_added, each.fires_removed) for each in done.changes]
            show_columns(("Change", "Kind", "Name", "Fires Added", "Fires Removed"), rows)
            show_lines(_differences(done.changes))
        case Format.TABLE:
            talk("the bundle is empty")
        case Format.JSONL:
            for row in done.raw["changes"]:
                show_json(row)
        case Format.JSON | Format.YAML:
            show_document(done.raw, remote.output, [])
    for each in done.changes:
        for warning in each.warnings:
            talk(f"warning: {each.kind} {printable(each.name)}: {printable(warning)}")


def _differences(changes: Sequence[BundleChange]) -> Iterator[tuple[str, str]]:
    for each in changes:
        for differs in each.diff:
            label = f"{printable(each.name)} {printable(differs.path)}"
            yield label, f"{_value(differs.old)} → {_value(differs.new)}"
        if each.exhausted:
            yield printable(each.name), "max_runs reached"


def _value(value: object) -> str:
    return cell(value) if value is None or isinstance(value, str) else compact(value)


A = TypeVar("A", bound="Answer")

export_app = typer.Typer(add_completion=False)


@export_app.command("export")
@with_remote
def export_command(
    remote: Remote,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="SOURCE", show_default="any", help="Filter schedules by source: runtime or template."
        ),
    ] = None,
    bundle: Annotated[
        str | None,
        typer.Option("--bundle", metavar="NAME", show_default="any", help="Export only objects of this bundle."),
    ] = None,
) -> None:
    """Export calendars, agents, teams, workflows, assignments and schedules as a bundle.

    Workflows are exported in their newest version, including their triggers. Agent tokens and secrets are not exported.

    Paused, finished and exhausted schedules keep this state when the bundle is applied to an empty namespace. The
    format is JSON unless -o is yaml or jsonl; `apply` reads JSON and YAML. Exit code 1: the server could not read some
    objects, which are listed.

    Example: horarium export > bundle.json
    """
    left_out: list[str] = []
    lists = {**_documents(remote, bundle, left_out), "schedules": _schedules(remote, source, bundle, left_out)}
    if remote.output is Format.JSONL:
        for documents in lists.values():
            for document in documents:
                show_json(document)
    else:
        whole: dict[str, Any] = {} if bundle is None else {"bundle": bundle}
        whole |= lists
        if remote.output is Format.YAML:
            show_document(whole, remote.output, [])
        else:  # one value per line, for version control
            typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
    counted = ", ".join(f"{name}: {len(documents)}" for name, documents in lists.items())
    talk(f"namespace {remote.namespace}; {counted}")
    if left_out:
        for each in left_out:
            talk(f"not exported: {each}")
        talk("error: the bundle is incomplete; do not apply it with --prune")
        raise typer.Exit(ExitCode.NO)


def _every(remote: Remote, call: Call[Page[A]], member: str, left_out: list[str]) -> Iterator[A]:
    """Yield all rows of a list; collect those that the server could not read."""
    following: Call[Page[A]] | None = call
    while following is not None:
        page = remote.send(following)
        left_out += [f"{member}: {row.id} is unreadable: {row.detail}" for row in page.unreadable_rows]
        yield from page
        following = following.after(page)


def _documents(remote: Remote, bundle: str | None, left_out: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return all documents except schedules, by list; empty lists other than calendars are omitted."""
    from horarium.features.agents.calls import AssigneeCalls
    from horarium.features.bundles.files import (
        document_of_agent,
        document_of_assignment,
        document_of_calendar,
        document_of_team,
    )
    from horarium.features.calendars.operations import CalendarOperations

    agents = _every(remote, AssigneeCalls.list_agents(), "agents", left_out)
    teams = _every(remote, AssigneeCalls.list_teams(), "teams", left_out)
    assignments = _every(remote, AssigneeCalls.list_assignments(), "assignments", left_out)
    calendars = [
        document_of_calendar(each.raw)
        for each in _every(remote, CalendarOperations.list_calendars(), "calendars", left_out)
        if not each.read_only and bundle in (None, each.bundle)
    ]
    found = {
        "agents": [document_of_agent(each.raw) for each in agents if bundle in (None, each.bundle)],
        "teams": [document_of_team(each.raw) for each in teams if bundle in (None, each.bundle)],
        "workflows": _workflows(remote, bundle, left_out),
        "assignments": [document_of_assignment(each.raw) for each in assignments if bundle in (None, each.bundle)],
    }
    return {"calendars": calendars, **{name: documents for name, documents in found.items() if documents}}


def _workflows(remote: Remote, bundle: str | None, left_out: list[str]) -> list[dict[str, Any]]:
    from horarium.features.bundles.files import document_of_workflow
    from horarium.features.workflows.calls import WorkflowCalls

    found = []
    for each in _every(remote, WorkflowCalls.list_workflows(bundle=bundle), "workflows", left_out):
        workflow = remote.client.get_workflow(each.workflow_id).raw
        if workflow.get("graph") is None:
            left_out.append(f"workflows: {each.workflow_id} is unreadable")
        else:
            found.append(document_of_workflow(workflow))
    return found


def _schedules(remote: Remote, source: str | None, bundle: str | None, left_out: list[str]) -> list[dict[str, Any]]:
    """Return schedules by ID, and of a free ID the last deleted one; those of workflow triggers are omitted."""
    from horarium.core.document.stored_workflow import TEMPLATES
    from horarium.features.bundles.files import document_of_schedule, is_exhausted
    from horarium.features.schedules.calls import ScheduleCalls

    live: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    call = ScheduleCalls.list_schedules(source=source, bundle=bundle, include_deleted=True, page_size=200)
    with counting("schedules") as count:
        for schedule in _every(remote, call, "schedules", left_out):
            if (schedule.bundle or "").startswith(TEMPLATES):
                continue
            if schedule.broken is not None and schedule.status != "deleted":
                left_out.append(f"schedules: {schedule.schedule_id}: {schedule.broken}")
                continue
            kept = deleted if schedule.status == "deleted" else live
            kept.setdefault(schedule.schedule_id, schedule.raw)
            count(len(live))
    used_up = {name: raw for name, raw in deleted.items() if name not in live and is_exhausted(raw)}
    return [document_of_schedule(raw) for _, raw in sorted({**live, **used_up}.items())]
