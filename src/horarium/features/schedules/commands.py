"""The commands of `horarium schedule`."""

from __future__ import annotations

import typer

from horarium.platform.cli.program import LaterModule

read_commands = LaterModule("horarium.features.schedules.read_commands")
write_commands = LaterModule("horarium.features.schedules.write_commands")
run_commands = LaterModule("horarium.features.schedules.run_commands")
output = LaterModule("horarium.features.schedules.output")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage schedules.",
    epilog="Example: horarium schedule list",
)

_LOOK, _CHANGE, _FIRE, _GUARD = "Read", "Write", "Run", "Rules"
app.command("list", rich_help_panel=_LOOK)(read_commands.list_command)
app.command("describe", rich_help_panel=_LOOK)(read_commands.describe_command)
app.command("inspect", rich_help_panel=_LOOK)(read_commands.inspect_command)
app.command("history", rich_help_panel=_LOOK)(read_commands.history_command)
app.command("preview", rich_help_panel=_LOOK)(read_commands.preview_command)
app.command("explain", rich_help_panel=_LOOK)(read_commands.explain_command)
app.command("revisions", rich_help_panel=_LOOK)(output.revisions_command)
app.command("health", rich_help_panel=_LOOK)(read_commands.health_command)
app.command("create", rich_help_panel=_CHANGE)(write_commands.create_command)
app.command("upsert", rich_help_panel=_CHANGE)(write_commands.upsert_command)
app.command("update", rich_help_panel=_CHANGE)(write_commands.update_command)
app.command("pause", rich_help_panel=_CHANGE)(write_commands.pause_command)
app.command("resume", rich_help_panel=_CHANGE)(write_commands.resume_command)
app.command("label", rich_help_panel=_CHANGE)(write_commands.label_command)
app.command("delete", rich_help_panel=_CHANGE)(write_commands.delete_command)
app.command("trigger", rich_help_panel=_FIRE)(run_commands.trigger_command)
app.command("backfill", rich_help_panel=_FIRE)(run_commands.backfill_command)
app.add_typer(run_commands.calendar, name="calendar", rich_help_panel=_GUARD)
app.add_typer(run_commands.condition, name="condition", rich_help_panel=_GUARD)
app.add_typer(run_commands.rotation, name="rotation", rich_help_panel=_GUARD)
