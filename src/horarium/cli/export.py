"""The command `horarium export`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from horarium.cli.present import show_document
from horarium.cli.progress import counting
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.client.call import Call
    from horarium.client.page import Page
    from horarium.platform.wire import Answer

A = TypeVar("A", bound="Answer")

app = typer.Typer(add_completion=False)


@app.command("export")
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
    from horarium.cli.bundle import written_agent, written_assignment, written_calendar, written_team
    from horarium.client.assignee_calls import AssigneeCalls
    from horarium.client.service_calls import ServiceCalls

    agents = _every(remote, AssigneeCalls.list_agents(), "agents", left_out)
    teams = _every(remote, AssigneeCalls.list_teams(), "teams", left_out)
    assignments = _every(remote, AssigneeCalls.list_assignments(), "assignments", left_out)
    calendars = [
        written_calendar(each.raw)
        for each in _every(remote, ServiceCalls.list_calendars(), "calendars", left_out)
        if not each.read_only and bundle in (None, each.bundle)
    ]
    found = {
        "agents": [written_agent(each.raw) for each in agents if bundle in (None, each.bundle)],
        "teams": [written_team(each.raw) for each in teams if bundle in (None, each.bundle)],
        "workflows": _workflows(remote, bundle, left_out),
        "assignments": [written_assignment(each.raw) for each in assignments if bundle in (None, each.bundle)],
    }
    return {"calendars": calendars, **{name: documents for name, documents in found.items() if documents}}


def _workflows(remote: Remote, bundle: str | None, left_out: list[str]) -> list[dict[str, Any]]:
    from horarium.cli.bundle import written_workflow
    from horarium.client.workflow_calls import WorkflowCalls

    found = []
    for each in _every(remote, WorkflowCalls.list_workflows(bundle=bundle), "workflows", left_out):
        workflow = remote.client.get_workflow(each.workflow_id).raw
        if workflow.get("graph") is None:
            left_out.append(f"workflows: {each.workflow_id} is unreadable")
        else:
            found.append(written_workflow(workflow))
    return found


def _schedules(remote: Remote, source: str | None, bundle: str | None, left_out: list[str]) -> list[dict[str, Any]]:
    """Return schedules by ID, and of a free ID the last deleted one; those of workflow triggers are omitted."""
    from horarium.cli.bundle import is_exhausted, written
    from horarium.client.schedule_calls import ScheduleCalls
    from horarium.schedule.workflow_document import TEMPLATES

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
    return [written(raw) for _, raw in sorted({**live, **used_up}.items())]
