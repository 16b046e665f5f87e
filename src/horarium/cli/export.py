"""`horarium export`: what somebody wrote down in a namespace as one bundle, which `apply` takes."""

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
    from horarium.wire.answer import Answer

A = TypeVar("A", bound="Answer")

app = typer.Typer(add_completion=False)


@app.command("export")
@with_remote
def export_command(
    remote: Remote,
    source: Annotated[
        str | None, typer.Option("--source", metavar="SOURCE", show_default="any", help="runtime or template.")
    ] = None,
    bundle: Annotated[
        str | None, typer.Option("--bundle", metavar="NAME", show_default="any", help="Only what this bundle brought.")
    ] = None,
) -> None:
    """Calendars, agents, teams, workflows, assignments and schedules as one bundle, as people write them.

    A workflow is its newest version, and the schedules of its triggers are part of it. No token of an agent and no
    value of a secret is written.

    What is paused or finished, or has used up its runs, is so where the bundle is applied to an empty namespace.
    It is JSON unless -o says yaml or jsonl; `apply` reads JSON and YAML. Exits with 1 and names what is left out where
    the service cannot read a row.

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
        else:  # in lines, for people who keep it under version control
            typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
    counted = ", ".join(f"{name}: {len(documents)}" for name, documents in lists.items())
    talk(f"namespace {remote.namespace}; {counted}")
    if left_out:
        for each in left_out:
            talk(f"not exported: {each}")
        talk("error: the bundle is incomplete; do not apply it with --prune")
        raise typer.Exit(ExitCode.NO)


def _every(remote: Remote, call: Call[Page[A]], member: str, left_out: list[str]) -> Iterator[A]:
    """Yield all rows of a list, and note those that the service could not read."""
    following: Call[Page[A]] | None = call
    while following is not None:
        page = remote.send(following)
        left_out += [f"{member}: {row.id} is unreadable: {row.detail}" for row in page.unreadable_rows]
        yield from page
        following = following.after(page)


def _documents(remote: Remote, bundle: str | None, left_out: list[str]) -> dict[str, list[dict[str, Any]]]:
    """All that comes before schedules, by the list that holds it; most namespaces have calendars only."""
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
            left_out.append(f"workflows: {each.workflow_id} cannot be read")
        else:
            found.append(written_workflow(workflow))
    return found


def _schedules(remote: Remote, source: str | None, bundle: str | None, left_out: list[str]) -> list[dict[str, Any]]:
    """By id. Of an id that is free the last schedule counts: lists show the newest first.

    Those of a workflow's triggers are told by the workflow.
    """
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
