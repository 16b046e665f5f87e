"""The commands of `horarium schedule`."""

from __future__ import annotations

import typer

from horarium.cli.lazy import LaterModule

schedule_fire, schedule_guards = LaterModule("horarium.cli.schedule_fire"), LaterModule("horarium.cli.schedule_guards")
schedule_read, schedule_write = LaterModule("horarium.cli.schedule_read"), LaterModule("horarium.cli.schedule_write")
schedule_drafts = LaterModule("horarium.cli.schedule_drafts")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage schedules.",
    epilog="Example: horarium schedule list",
)

_LOOK, _CHANGE, _FIRE, _GUARD = "Read", "Write", "Run", "Rules"
app.command("list", rich_help_panel=_LOOK)(schedule_read.list_command)
app.command("describe", rich_help_panel=_LOOK)(schedule_read.describe_command)
app.command("inspect", rich_help_panel=_LOOK)(schedule_read.inspect_command)
app.command("history", rich_help_panel=_LOOK)(schedule_read.history_command)
app.command("preview", rich_help_panel=_LOOK)(schedule_read.preview_command)
app.command("explain", rich_help_panel=_LOOK)(schedule_read.explain_command)
app.command("revisions", rich_help_panel=_LOOK)(schedule_drafts.revisions_command)
app.command("health", rich_help_panel=_LOOK)(schedule_read.health_command)
app.command("create", rich_help_panel=_CHANGE)(schedule_write.create_command)
app.command("upsert", rich_help_panel=_CHANGE)(schedule_write.upsert_command)
app.command("update", rich_help_panel=_CHANGE)(schedule_write.update_command)
app.command("pause", rich_help_panel=_CHANGE)(schedule_write.pause_command)
app.command("resume", rich_help_panel=_CHANGE)(schedule_write.resume_command)
app.command("label", rich_help_panel=_CHANGE)(schedule_write.label_command)
app.command("delete", rich_help_panel=_CHANGE)(schedule_write.delete_command)
app.command("trigger", rich_help_panel=_FIRE)(schedule_fire.trigger_command)
app.command("backfill", rich_help_panel=_FIRE)(schedule_fire.backfill_command)
app.add_typer(schedule_guards.calendar, name="calendar", rich_help_panel=_GUARD)
app.add_typer(schedule_guards.condition, name="condition", rich_help_panel=_GUARD)
app.add_typer(schedule_guards.rotation, name="rotation", rich_help_panel=_GUARD)
