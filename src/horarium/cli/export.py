"""`horarium export`: the calendars and schedules of a namespace as one bundle, which `apply` takes."""

from __future__ import annotations

import json
from typing import Annotated

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
) -> None:
    """Your calendars and schedules as one bundle, as people write them: without ids of rows, counts and times.

    It is JSON unless -o says yaml or jsonl; `apply` reads JSON and YAML.

    Example: horarium export > bundle.json
    """
    from horarium.cli.bundle import written, written_calendar

    calendars = [written_calendar(each.raw) for each in remote.client.list_calendars() if not each.read_only]
    schedules = []
    with counting("schedules") as count:
        for schedule in remote.client.iter_schedules(source=source, page_size=200):
            schedules.append(written(schedule.raw))
            count(len(schedules))
    schedules.sort(key=lambda document: str(document["schedule_id"]))
    if remote.output is Format.JSONL:
        for document in [*calendars, *schedules]:
            show_json(document)
    elif remote.output is Format.YAML:
        show_document({"calendars": calendars, "schedules": schedules}, remote.output, [])
    else:  # in lines, for people who keep it under version control
        typer.echo(json.dumps({"calendars": calendars, "schedules": schedules}, ensure_ascii=False, indent=2))
    talk(f"namespace {remote.namespace}; calendars: {len(calendars)}, schedules: {len(schedules)}")
