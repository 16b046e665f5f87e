"""`horarium export`: the calendars and schedules of a namespace as one bundle, which `apply` takes."""

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
    """Your calendars and schedules as one bundle, as people write them: without ids of rows, counts and times.

    What is paused or finished, or has used up its runs, is so where the bundle is applied to an empty namespace.
    It is JSON unless -o says yaml or jsonl; `apply` reads JSON and YAML.

    Example: horarium export > bundle.json
    """
    from horarium.cli.bundle import written_calendar

    calendars = [
        written_calendar(each.raw)
        for each in remote.client.iter_calendars()
        if not each.read_only and bundle in (None, each.bundle)
    ]
    schedules = _schedules(remote, source, bundle)
    if remote.output is Format.JSONL:
        for document in [*calendars, *schedules]:
            show_json(document)
    else:
        named = {} if bundle is None else {"bundle": bundle}
        whole: dict[str, Any] = {**named, "calendars": calendars, "schedules": schedules}
        if remote.output is Format.YAML:
            show_document(whole, remote.output, [])
        else:  # in lines, for people who keep it under version control
            typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
    talk(f"namespace {remote.namespace}; calendars: {len(calendars)}, schedules: {len(schedules)}")


def _schedules(remote: Remote, source: str | None, bundle: str | None) -> list[dict[str, Any]]:
    """By id. Of an id that is free the last schedule counts: lists show the newest first."""
    from horarium.cli.bundle import is_exhausted, written

    live: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    with counting("schedules") as count:
        for schedule in remote.client.iter_schedules(source=source, bundle=bundle, include_deleted=True, page_size=200):
            kept = deleted if schedule.status == "deleted" else live
            kept.setdefault(schedule.schedule_id, schedule.raw)
            count(len(live))
    used_up = {name: raw for name, raw in deleted.items() if name not in live and is_exhausted(raw)}
    return [written(raw) for _, raw in sorted({**live, **used_up}.items())]
