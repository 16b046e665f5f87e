"""`horarium export`: what somebody wrote down in a namespace as one bundle, which `apply` takes."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from horarium.cli.present import show_document
from horarium.cli.progress import counting
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, show_json, talk

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
    It is JSON unless -o says yaml or jsonl; `apply` reads JSON and YAML.

    Example: horarium export > bundle.json
    """
    lists = {**_documents(remote, bundle), "schedules": _schedules(remote, source, bundle)}
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


def _documents(remote: Remote, bundle: str | None) -> dict[str, list[dict[str, Any]]]:
    """All that comes before schedules, by the list that holds it; most namespaces have calendars only."""
    from horarium.cli.bundle import written_agent, written_assignment, written_calendar, written_team, written_workflow

    client = remote.client
    calendars = [
        written_calendar(each.raw)
        for each in client.iter_calendars()
        if not each.read_only and bundle in (None, each.bundle)
    ]
    found = {
        "agents": [written_agent(each.raw) for each in client.iter_agents() if bundle in (None, each.bundle)],
        "teams": [written_team(each.raw) for each in client.iter_teams() if bundle in (None, each.bundle)],
        "workflows": [
            written_workflow(client.get_workflow(each.workflow_id).raw) for each in client.iter_workflows(bundle=bundle)
        ],
        "assignments": [
            written_assignment(each.raw) for each in client.iter_assignments() if bundle in (None, each.bundle)
        ],
    }
    return {"calendars": calendars, **{name: documents for name, documents in found.items() if documents}}


def _schedules(remote: Remote, source: str | None, bundle: str | None) -> list[dict[str, Any]]:
    """By id. Of an id that is free the last schedule counts: lists show the newest first.

    Those of a workflow's triggers are told by the workflow.
    """
    from horarium.cli.bundle import is_exhausted, written
    from horarium.schedule.workflow_document import TEMPLATES

    live: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    with counting("schedules") as count:
        for schedule in remote.client.iter_schedules(source=source, bundle=bundle, include_deleted=True, page_size=200):
            if (schedule.bundle or "").startswith(TEMPLATES):
                continue
            kept = deleted if schedule.status == "deleted" else live
            kept.setdefault(schedule.schedule_id, schedule.raw)
            count(len(live))
    used_up = {name: raw for name, raw in deleted.items() if name not in live and is_exhausted(raw)}
    return [written(raw) for _, raw in sorted({**live, **used_up}.items())]
